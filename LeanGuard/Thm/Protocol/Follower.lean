import LeanGuard.Thm.Protocol
import LeanGuard.Wire.Protocol

/-!
# Following a journal is running the machine
-/

namespace LeanGuard.Wire.Protocol

open LeanGuard.Protocol

theorem run_snoc (steps : List Step) (step : Step) : run (steps ++ [step]) = attempt (run steps) step := by
  simp [run]

/-- A step that is read from an event is one that the machine accepts. -/
theorem Follower.stepOf_accepted {s : State} {e : Event} {step : Step} (h : stepOf s e = .ok step) :
    s.refusal? step = none := by
  unfold stepOf at h
  split at h
  · cases h
  · obtain rfl := Except.ok.inj h; rfl
  · simp only at h
    split at h
    · cases h
    · split at h
      · obtain rfl := Except.ok.inj h; assumption
      · cases h

/-- Whatever events a journal has, the state that a process follows it to is one that the machine reaches: what no sequence of steps gets
past, no journal gets past. -/
theorem Follower.state_runs (journal : Journal) : ∃ steps, (run steps).1 = (Follower.ofJournal journal).state := by
  induction journal with
  | nil => exact ⟨[], rfl⟩
  | cons e journal ih =>
    obtain ⟨steps, ih⟩ := ih
    simp only [Follower.ofJournal, List.foldr_cons] at ih ⊢
    generalize List.foldr (fun e f => Follower.follow f e) Follower.start journal = f at ih
    obtain ⟨s, seen, fault⟩ := f
    simp only at ih
    cases fault with
    | some _ => exact ⟨steps, ih⟩
    | none =>
      simp only [Follower.follow]
      cases h : stepOf s e with
      | error _ => exact ⟨steps, ih⟩
      | ok step =>
        refine ⟨steps ++ [step], ?_⟩
        simp only [run_snoc, attempt, State.step, ih, Follower.stepOf_accepted h]

end LeanGuard.Wire.Protocol
