import LeanGuard.Thm.Symbol
import LeanGuard.Thm.Monitor
import LeanGuard.Thm.Authorization
import LeanGuard.Thm.Protocol.Follower
import LeanGuard.Thm.Repair

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

/-! ## Stricter rules -/

/-- Without its stricter rules a policy has all its others, and no more. -/
theorem withoutStricter_rules {rule : Rule} :
    rule ∈ policy.withoutStricter.rules ↔ rule ∈ policy.rules ∧ rule.optional = false :=
  LeanGuard.withoutStricter_rules

/-- What a policy admits, it admits without its stricter rules too: leaving them out denies nothing. -/
theorem withoutStricter_admits (admitted : policy.decide call snapshot journal = .admit) :
    policy.withoutStricter.decide call snapshot journal = .admit :=
  LeanGuard.withoutStricter_admits admitted

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

/-! ## The protocol

`(run steps).2` are the accepted ones of any steps that were tried, newest first: in `later ++ step :: past`, `past` came before `step`. The
words are in `Protocol/History.lean`. -/

section

open LeanGuard.Protocol

/-- Nothing is dispatched without a reservation, and nothing is reserved unless the newest decision on its proposal was an admission at the
same revision, which no other reservation had used. -/
theorem dispatch_was_admitted {steps : List Step} {later past : History} {time : Time} {reservation : Symbol}
    (dispatched : (run steps).2 = later ++ ⟨time, .dispatch reservation⟩ :: past) :
    ∃ since time id revision consent deadline, ∃ before : History, ∃ proposal : Proposal,
      past = since ++ ⟨time, .reserve reservation id revision consent deadline⟩ :: before ∧
      before.Proposed id proposal ∧ proposal.revision = revision ∧ before.Admits id revision :=
  LeanGuard.Protocol.dispatch_was_admitted dispatched

/-- A reservation is dispatched at most once. -/
theorem dispatched_at_most_once (steps : List Step) (reservation : Symbol) :
    (run steps).2.countP (fun step => step.action.dispatched? = some reservation) ≤ 1 :=
  LeanGuard.Protocol.dispatched_at_most_once steps reservation

/-- Between two dispatches of the same single-use operation the first is settled: while its outcome is unknown it is not dispatched again,
under whatever proposal, reservation or consent. -/
theorem unknown_not_redispatched {steps : List Step} {later between past : History} {time₁ time₂ : Time}
    {reservation₁ reservation₂ : Symbol} {proposal₁ proposal₂ : Proposal}
    (dispatched : (run steps).2 = later ++ ⟨time₂, .dispatch reservation₂⟩ :: (between ++ ⟨time₁, .dispatch reservation₁⟩ :: past))
    (reserved₁ : (run steps).2.Reserved reservation₁ proposal₁) (reserved₂ : (run steps).2.Reserved reservation₂ proposal₂)
    (same : proposal₁.operation = proposal₂.operation)
    (single₁ : proposal₁.singleUse = true) (single₂ : proposal₂.singleUse = true) :
    ∃ step ∈ between, step.action.settled? = some reservation₁ :=
  LeanGuard.Protocol.unknown_not_redispatched dispatched reserved₁ reserved₂ same single₁ single₂

/-- A consent admits exactly the proposal that it was given to, tool, arguments, resource, revision, principal and conversation, and only
before it expires, by every clock that was ever read. -/
theorem consent_exact {steps : List Step} {later past : History} {time : Time} {reservation id revision consent : Symbol}
    {deadline : Option Time}
    (reserved : (run steps).2 = later ++ ⟨time, .reserve reservation id revision (some consent) deadline⟩ :: past) :
    ∃ proposal expires, past.Proposed id proposal ∧ proposal.revision = revision ∧
      past.Confirmed consent proposal expires ∧
      ∀ bound, expires = some bound → time < bound ∧ ∀ step ∈ past, step.time < bound :=
  LeanGuard.Protocol.consent_exact reserved

/-- A consent is used at most once. -/
theorem consent_once (steps : List Step) (consent : Symbol) :
    (run steps).2.countP (fun step => step.action.used? = some consent) ≤ 1 :=
  LeanGuard.Protocol.consent_once steps consent

/-- Where the policy asks for consent, nothing is reserved without one. -/
theorem consent_needed {steps : List Step} {later past : History} {time : Time} {reservation id revision : Symbol}
    {consent : Option Symbol} {deadline : Option Time} {proposal : Proposal}
    (reserved : (run steps).2 = later ++ ⟨time, .reserve reservation id revision consent deadline⟩ :: past)
    (proposed : past.Proposed id proposal) (asks : proposal.asksConsent = true) : consent.isSome = true :=
  LeanGuard.Protocol.consent_needed reserved proposed asks

/-- Whatever events a journal has, the state that a process follows it to is one that the machine reaches. -/
theorem Follower.state_runs (journal : Journal) :
    ∃ steps, (run steps).1 = (Wire.Protocol.Follower.ofJournal journal).state :=
  Wire.Protocol.Follower.state_runs journal

end

/-! ## Repairs

`EditOK`, `Repair` and `Policy.consentFor` are defined in `Repair/Defs.lean`. -/

section

variable {policy : Policy} {intent : Intent} {snapshot : Snapshot} {journal : Journal} {original edited : Call}

/-- A repair keeps the intent of the call, and is admitted: in the journal as it is, or, where it needs consent, in the journal in which the
customer has confirmed exactly the edited call. -/
theorem repair_sound (repair : Repair policy intent snapshot journal original) :
    EditOK policy intent snapshot original repair.edited ∧
      (repair.needsConsent = false → policy.decide repair.edited snapshot journal = .admit) ∧
      (repair.needsConsent = true →
        policy.decide repair.edited snapshot (policy.consentFor repair.edited snapshot :: journal) = .admit) :=
  LeanGuard.repair_sound repair

/-- What a search of the candidates finds keeps the intent and is admitted. -/
theorem searchRepair_sound {budget : Nat} {found : Call × Bool}
    (h : (searchRepair policy intent snapshot journal original budget).found = some found) :
    EditOK policy intent snapshot original found.1 ∧
      policy.decide found.1 snapshot (policy.consented found.2 found.1 snapshot journal) = .admit :=
  LeanGuard.searchRepair_sound h

/-- An edit that keeps the intent changes no argument that no source of the tool is about. -/
theorem EditOK.unoffered_stays (ok : EditOK policy intent snapshot original edited) {name : Symbol} {before after : Value}
    (pair : ((name, before), (name, after)) ∈ original.arguments.zip edited.arguments)
    (none : ∀ source ∈ intent.sources, original.tool ∈ source.tools → source.argument ≠ name) : after = before :=
  LeanGuard.EditOK.unoffered_stays ok pair none

end
end LeanGuard.Theorems
