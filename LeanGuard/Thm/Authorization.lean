import LeanGuard.Thm.Admission
import LeanGuard.Thm.Formula

/-!
# The decision is the one that the temporal logic calls for
-/

namespace LeanGuard

open scoped LeanLTL

/-- The applicable rules conclude to admission exactly when the history satisfies a permit, every requirement and no forbid, and has a truth
value for every one of them. -/
theorem authorize_iff (policy : Policy) (contract : Contract) (pending : Pending) (journal : Journal) :
    conclude (policy.results contract pending journal) = .admit ↔
      policy.Authorized contract (traceOf (.pending pending) journal.past) := by
  have no_error (f : Formula) : (∀ e, f.eval (.pending pending) journal.past ≠ .error e) ↔
      traceOf (.pending pending) journal.past ⊨ f.defined := by
    have := Temporal.eval_error_iff f (.pending pending) journal.past
    grind
  simp only [conclude_results_iff, Temporal.eval_iff_sat, Temporal.eval_false_iff, no_error]
  constructor
  · rintro ⟨⟨rule, mem, kind, h⟩, requires, forbids, defined⟩
    exact ⟨⟨rule, mem, kind, h.2⟩, fun r m k => (requires r m k).2, fun r m k => (forbids r m k).2, defined⟩
  · rintro ⟨⟨rule, mem, kind, h⟩, requires, forbids, defined⟩
    exact ⟨⟨rule, mem, kind, defined rule mem, h⟩, fun r m k => ⟨defined r m, requires r m k⟩,
      fun r m k => ⟨defined r m, forbids r m k⟩, defined⟩

/-- A call is admitted exactly when its tool has a contract, its arguments fit it, and the history authorizes it. -/
theorem admit_iff (policy : Policy) (call : Call) (snapshot : Snapshot) (journal : Journal) :
    policy.decide call snapshot journal = .admit ↔ policy.Admitted call snapshot journal := by
  simp only [decide_eq_admit_iff, authorize_iff, Policy.Admitted]

end LeanGuard
