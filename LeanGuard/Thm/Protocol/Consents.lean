import LeanGuard.Thm.Protocol.Reservations

/-!
# What the state knows of consents and of time
-/

namespace LeanGuard.Protocol

open State

/-! ### Time -/

/-- No accepted step is later than the state's clock. -/
theorem time_le_now {history : History} {s : State} (h : Reaches history s) :
    ∀ step ∈ history, step.time ≤ s.now := by
  induction h with
  | start => simp
  | @step history s step h accepted ih =>
    intro x mem
    rw [apply_now]
    cases mem with
    | head => exact Int.le_max_right ..
    | tail _ mem => exact Int.le_trans (ih x mem) (Int.le_max_left ..)

/-! ### Consents -/

theorem eq_of_mismatch {named asked : Proposal} (h : mismatch named asked = none) : named = asked := by
  unfold mismatch at h
  repeat' split at h
  all_goals first
    | exact Decidable.not_not.mp (by assumption)
    | exact absurd h (by simp)

/-- What a reservation finds of the consent that it uses. -/
theorem consent_accepted {s : State} {now : Time} {p : Proposal} {c : Symbol}
    (accepted : s.consentRefusal? now p (some c) = none) :
    ∃ k, s.consents[c]? = some k ∧ k.proposal = p ∧ k.phase = .live ∧ passed k.expires now = false := by
  simp only [consentRefusal?] at accepted
  cases hk : s.consents[c]? with
  | none => simp [hk] at accepted
  | some k =>
    simp only [hk] at accepted
    refine ⟨k, rfl, ?_⟩
    cases hm : mismatch k.proposal p with
    | some _ => simp [hm] at accepted
    | none =>
      simp only [hm] at accepted
      cases hp : k.phase <;> simp [hp] at accepted
      exact ⟨eq_of_mismatch hm, rfl, accepted⟩

/-- Every consent of the state was given, to the proposal that it has. -/
theorem consent_given {history : History} {s : State} (h : Reaches history s) :
    ∀ (c : Symbol) (k : Consent), s.consents[c]? = some k → history.Confirmed c k.proposal k.expires := by
  induction h with
  | start => simp [State.start]
  | @step history s step h accepted ih =>
    have old (c : Symbol) (p : Proposal) (e : Option Time) (h : history.Confirmed c p e) :
        History.Confirmed (step :: history) c p e := by
      obtain ⟨t, id, by', mem, hp, hb⟩ := h
      exact ⟨t, id, by', .tail _ mem, proposed_cons.mpr (.inr hp), hb⟩
    intro c k hk
    rw [apply_consents] at hk
    obtain ⟨t, a⟩ := step
    cases a with
    | propose | decide | dispatch | outcome | expireReservation | reconcile | pass => exact old _ _ _ (ih c k hk)
    | confirm c' p by' expires =>
      have offer := (offersAgree h).proposed p
      simp only [refusal?] at accepted
      split at accepted
      · cases accepted
      cases ho : s.offers[p]? with
      | none => simp [ho] at accepted
      | some o =>
        simp only [ho] at accepted
        split at accepted
        · cases accepted
        rename_i principal
        simp only [ho, Std.HashMap.getElem?_insert] at hk
        split at hk
        · rename_i e
          obtain rfl : c' = c := by simpa using e
          obtain rfl := Option.some.inj hk
          exact ⟨t, p, by', .head _, proposed_cons.mpr (.inr ((offer _).mpr (by simp [ho]))), by simpa using principal⟩
        · exact old _ _ _ (ih c k hk)
    | reserve i p revision c' d =>
      cases c' with
      | none => exact old _ _ _ (ih c k hk)
      | some c' =>
        clear accepted
        simp only at hk
        split at hk
        · rename_i k' _ hk'
          simp only [Std.HashMap.getElem?_insert] at hk
          split at hk
          · rename_i e
            obtain rfl : c' = c := by simpa using e
            obtain rfl := Option.some.inj hk
            exact old _ _ _ (ih c' k' hk')
          · exact old _ _ _ (ih c k hk)
        · exact old _ _ _ (ih c k hk)
    | expireConsent c' =>
      clear accepted
      cases hk' : s.consents[c']? with
      | none => simp only [hk'] at hk; exact old _ _ _ (ih c k hk)
      | some k' =>
        simp only [hk', Std.HashMap.getElem?_insert] at hk
        split at hk
        · rename_i e
          obtain rfl : c' = c := by simpa using e
          obtain rfl := Option.some.inj hk
          exact old _ _ _ (ih c' k' hk')
        · exact old _ _ _ (ih c k hk)

/-- A consent that was used is known to be. -/
theorem consent_used {history : History} {s : State} (h : Reaches history s) {c : Symbol}
    (mem : ∃ step ∈ history, step.action.used? = some c) : ∃ k, s.consents[c]? = some k ∧ k.phase = .used := by
  induction h with
  | start => simp at mem
  | @step history s step h accepted ih =>
    obtain ⟨x, mem, hx⟩ := mem
    rw [apply_consents]
    cases mem with
    | head =>
      obtain ⟨t, a⟩ := step
      cases a with
      | reserve i p revision c' d =>
        obtain rfl : c' = some c := hx
        obtain ⟨_, o, ho, _, _, _, hc⟩ := reserve_accepted accepted
        obtain ⟨k, hk, _⟩ := consent_accepted hc
        exact ⟨_, by simp only [ho, hk, Std.HashMap.getElem?_insert_self]; rfl, rfl⟩
      | _ => cases hx
    | tail _ mem =>
      obtain ⟨k, hk, used⟩ := ih ⟨x, mem, hx⟩
      obtain ⟨t, a⟩ := step
      cases a with
      | propose | decide | dispatch | outcome | expireReservation | reconcile | pass => exact ⟨k, hk, used⟩
      | confirm c' p by' expires =>
        have : c' ≠ c := by
          rintro rfl
          simp [refusal?, Std.HashMap.contains_eq_isSome_getElem?, hk] at accepted
        clear accepted
        cases ho : s.offers[p]? with
        | none => exact ⟨k, by simpa only [ho] using hk, used⟩
        | some o => exact ⟨k, by simpa [ho, Std.HashMap.getElem?_insert, this] using hk, used⟩
      | reserve i p revision c' d =>
        cases c' with
        | none => exact ⟨k, hk, used⟩
        | some c' =>
          obtain ⟨_, o, ho, _, _, _, hc⟩ := reserve_accepted accepted
          obtain ⟨k', hk', _, live, _⟩ := consent_accepted hc
          have : c' ≠ c := by
            rintro rfl
            rw [hk] at hk'
            obtain rfl := Option.some.inj hk'
            simp [used] at live
          simp [ho, hk', Std.HashMap.getElem?_insert, this, hk, used]
      | expireConsent c' =>
        have : c' ≠ c := by
          rintro rfl
          simp [refusal?, hk, used] at accepted
        clear accepted
        cases hk' : s.consents[c']? with
        | none => exact ⟨k, by simpa only [hk'] using hk, used⟩
        | some k' => exact ⟨k, by simpa [hk', Std.HashMap.getElem?_insert, this] using hk, used⟩
end LeanGuard.Protocol
