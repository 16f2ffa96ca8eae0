import LeanGuard.Protocol.History
import LeanGuard.Thm.Protocol.Effects

/-!
# What the state knows of its history
-/

namespace LeanGuard.Protocol

open State

/-! ### Accepted steps -/

/-- The accepted steps, newest first, lead to the state. -/
inductive Reaches : History → State → Prop where
  | start : Reaches [] State.start
  | step {history s step} : Reaches history s → s.refusal? step = none → Reaches (step :: history) (s.apply step)

theorem attempt_reaches {x : State × History} (step : Step) (h : Reaches x.2 x.1) :
    Reaches (attempt x step).2 (attempt x step).1 := by
  unfold attempt State.step
  cases accepted : x.1.refusal? step with
  | none => exact .step h accepted
  | some _ => exact h

theorem foldl_reaches (steps : List Step) {x : State × History} (h : Reaches x.2 x.1) :
    Reaches (steps.foldl attempt x).2 (steps.foldl attempt x).1 := by
  induction steps generalizing x with
  | nil => exact h
  | cons step steps ih => exact ih (attempt_reaches step h)

theorem run_reaches (steps : List Step) : Reaches (run steps).2 (run steps).1 :=
  foldl_reaches steps .start

theorem Reaches.before {history : History} {step : Step} {s : State} (h : Reaches (step :: history) s) :
    ∃ s₀, Reaches history s₀ ∧ s₀.refusal? step = none ∧ s = s₀.apply step := by
  cases h with
  | step h accepted => exact ⟨_, h, accepted, rfl⟩

theorem Reaches.suffix {later history : History} {s : State} (h : Reaches (later ++ history) s) :
    ∃ s₀, Reaches history s₀ := by
  induction later generalizing s with
  | nil => exact ⟨s, h⟩
  | cons step later ih =>
    obtain ⟨s₀, h, _⟩ := h.before
    exact ih h

/-! ### One more step in a history -/

theorem proposed_cons {step : Step} {history : History} {id : Symbol} {p : Proposal} :
    History.Proposed (step :: history) id p ↔ step.action = .propose id p ∨ history.Proposed id p := by
  obtain ⟨t, a⟩ := step
  simp only [History.Proposed, List.mem_cons, Step.mk.injEq]
  grind

theorem admits_decide {history : History} {step : Step} {id revision : Symbol}
    (h : step.action = .decide id revision true) : History.Admits (step :: history) id revision := by
  obtain ⟨t, a⟩ := step
  obtain rfl : a = _ := h
  exact ⟨[], t, history, rfl, by simp⟩

theorem admits_cons {history : History} {step : Step} {id revision : Symbol} (h : history.Admits id revision)
    (other : step.action.admission? ≠ some id) : History.Admits (step :: history) id revision := by
  obtain ⟨since, t, before, rfl, none⟩ := h
  exact ⟨step :: since, t, before, rfl, by simpa using ⟨other, none⟩⟩

/-! ### Proposals -/

/-- The state has exactly the proposals of the history, and no admission that the history does not have. -/
structure OffersAgree (history : History) (s : State) : Prop where
  proposed : ∀ id p, history.Proposed id p ↔ (s.offers[id]?).map (·.proposal) = some p
  admitted : ∀ id offer, s.offers[id]? = some offer → offer.admitted = true → history.Admits id offer.proposal.revision

theorem offersAgree {history : History} {s : State} (h : Reaches history s) : OffersAgree history s := by
  induction h with
  | start => constructor <;> simp [State.start, History.Proposed]
  | @step history s step h accepted ih =>
    obtain ⟨proposed, admitted⟩ := ih
    constructor
    · intro id p
      rw [proposed_cons, proposed, apply_offers]
      unfold refusal? at accepted
      cases ha : step.action <;> grind
    · intro id offer
      rw [apply_offers]
      unfold refusal? at accepted
      have keep := fun revision (h : history.Admits id revision) => admits_cons (step := step) h
      have new := fun revision => admits_decide (history := history) (step := step) (id := id) (revision := revision)
      cases ha : step.action <;> grind [Action.admission?]

end LeanGuard.Protocol
