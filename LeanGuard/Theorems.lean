import LeanGuard.Thm.Symbol
import LeanGuard.Thm.Monitor
import LeanGuard.Thm.Authorization

/-!
# What is proved

One page with every public theorem, each restated in full; the proofs are in `Thm/`. The words: `Formula.interp` and `Formula.defined`
(`Spec/Interpretation.lean`) say of which traces a condition is true, and of which it has a truth value; `Policy.ComesTo`, `Policy.Fails` and
`Policy.Errs` (`Thm/Admission.lean`) say what a rule comes to, what fails and what errs.
-/

namespace LeanGuard.Theorems

open LeanGuard.LeanLTL
open scoped LeanGuard.LeanLTL

/-! ## Symbols -/

/-- Two symbols are equal exactly when the strings they stand for are. -/
theorem Symbol.ofString_inj {s t : String} : Symbol.ofString s = Symbol.ofString t ↔ s = t :=
  LeanGuard.Symbol.ofString_inj

/-! ## The evaluator and the temporal logic -/

/-- The evaluator answers true exactly when the history has a truth value for the formula and satisfies its interpretation. -/
theorem Temporal.eval_iff_sat (f : Formula) (m : Moment) (past : Past) :
    f.eval m past = .ok true ↔ traceOf m past ⊨ f.defined ∧ traceOf m past ⊨ f.interp :=
  LeanGuard.Temporal.eval_iff_sat f m past

/-- The evaluator answers false exactly when the history has a truth value for the formula and does not satisfy its interpretation. -/
theorem Temporal.eval_false_iff (f : Formula) (m : Moment) (past : Past) :
    f.eval m past = .ok false ↔ traceOf m past ⊨ f.defined ∧ ¬ traceOf m past ⊨ f.interp :=
  LeanGuard.Temporal.eval_false_iff f m past

/-- The evaluator answers with an error exactly when the history has no truth value for the formula. -/
theorem Temporal.eval_error_iff (f : Formula) (m : Moment) (past : Past) :
    (∃ e, f.eval m past = .error e) ↔ ¬ traceOf m past ⊨ f.defined :=
  LeanGuard.Temporal.eval_error_iff f m past

/-- For a formula whose atoms never err, the evaluator answers true exactly when the history satisfies the interpretation. -/
theorem Temporal.eval_iff_sat_of_total {f : Formula} (h : f.Total) (m : Moment) (past : Past) :
    f.eval m past = .ok true ↔ traceOf m past ⊨ f.interp :=
  LeanGuard.Temporal.eval_iff_sat_of_total h m past

/-! ## The decision and the temporal logic -/

/-- The applicable rules conclude to admission exactly when the history satisfies a permit, every requirement and no forbid, and has a truth
value for every one of them. -/
theorem authorize_iff (policy : Policy) (contract : Contract) (pending : Pending) (journal : Journal) :
    conclude (policy.results contract pending journal) = .admit ↔
      policy.Authorized contract (traceOf (.pending pending) journal.past) :=
  LeanGuard.authorize_iff policy contract pending journal

/-- A call is admitted exactly when its tool has a contract, its arguments fit it, and the history authorizes it. -/
theorem admit_iff (policy : Policy) (call : Call) (snapshot : Snapshot) (journal : Journal) :
    policy.decide call snapshot journal = .admit ↔ policy.Admitted call snapshot journal :=
  LeanGuard.admit_iff policy call snapshot journal

/-! ## Denials -/

section

variable {policy : Policy} {call : Call} {snapshot : Snapshot} {journal : Journal}

/-- A forbid that holds denies the call, whatever permits hold. -/
theorem forbid_overrides {rule : Rule} (kind : rule.kind = .forbid)
    (holds : policy.ComesTo call snapshot journal rule (.ok true)) :
    policy.decide call snapshot journal ≠ .admit :=
  LeanGuard.forbid_overrides kind holds

/-- A requirement that comes to anything but true denies the call, whatever permits hold. -/
theorem unmet_requirement_denies {rule : Rule} {truth : Checked} (kind : rule.kind = .require)
    (comes : policy.ComesTo call snapshot journal rule truth) (unmet : truth ≠ .ok true) :
    policy.decide call snapshot journal ≠ .admit :=
  LeanGuard.unmet_requirement_denies kind comes unmet

/-- A rule that can't be evaluated denies the call, whatever its kind and whatever the others say. -/
theorem error_denies {rule : Rule} {error : EvalError}
    (errs : policy.ComesTo call snapshot journal rule (.error error)) :
    policy.decide call snapshot journal ≠ .admit :=
  LeanGuard.error_denies errs

/-- Where no permit holds, the call is denied. -/
theorem default_deny
    (none : ∀ rule : Rule, rule.kind = .permit → ¬ policy.ComesTo call snapshot journal rule (.ok true)) :
    policy.decide call snapshot journal ≠ .admit :=
  LeanGuard.default_deny none

/-- A denial names exactly the rules that failed, and exactly the errors. -/
theorem failed_rules_complete {failed : List Failure} {errors : List RuleError}
    (denied : policy.decide call snapshot journal = .deny failed errors) :
    (∀ failure, failure ∈ failed ↔ policy.Fails call snapshot journal failure) ∧
      ∀ error, error ∈ errors ↔ policy.Errs call snapshot journal error :=
  LeanGuard.failed_rules_complete denied

/-- A denial never comes without a reason: it names a failed rule or an error. -/
theorem denial_has_reason {failed : List Failure} {errors : List RuleError}
    (denied : policy.decide call snapshot journal = .deny failed errors) : failed ≠ [] ∨ errors ≠ [] :=
  LeanGuard.denial_has_reason denied

end

/-! ## The incremental monitor -/

/-- The monitor of a journal decides every call as the evaluator does over that journal. -/
theorem monitor_eq_eval (policy : Policy) (journal : Journal) (call : Call) (snapshot : Snapshot) :
    (Monitor.ofJournal policy journal).decide call snapshot = policy.decide call snapshot journal :=
  LeanGuard.monitor_eq_eval policy journal call snapshot

/-- Observing an event gives the monitor of the journal with that event in front: the monitor never needs the journal again. -/
theorem Monitor.observe_ofJournal (policy : Policy) (journal : Journal) (event : Event) :
    (Monitor.ofJournal policy journal).observe event = Monitor.ofJournal policy (event :: journal) :=
  LeanGuard.Monitor.observe_ofJournal policy journal event

end LeanGuard.Theorems
