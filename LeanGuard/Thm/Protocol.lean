import LeanGuard.Thm.Protocol.Consents

/-!
# What no sequence of steps gets past

`(run steps).2` are the accepted ones of any steps that were tried, newest first: of `later ++ step :: past`, `past` came before `step`.
-/

namespace LeanGuard.Protocol

open State

theorem run_split {steps : List Step} {later past : History} {step : Step} (h : (run steps).2 = later ++ step :: past) :
    ∃ s, Reaches past s ∧ s.refusal? step = none := by
  obtain ⟨s, reaches⟩ := (h ▸ run_reaches steps : Reaches (later ++ step :: past) _).suffix
  obtain ⟨s, reaches, accepted, _⟩ := reaches.before
  exact ⟨s, reaches, accepted⟩

/-- Nothing is dispatched without a reservation, and nothing is reserved unless the newest decision on its proposal was an admission at the
same revision, which no other reservation had used. -/
theorem dispatch_was_admitted {steps : List Step} {later past : History} {time : Time} {reservation : Symbol}
    (dispatched : (run steps).2 = later ++ ⟨time, .dispatch reservation⟩ :: past) :
    ∃ since time id revision consent deadline, ∃ before : History, ∃ proposal : Proposal,
      past = since ++ ⟨time, .reserve reservation id revision consent deadline⟩ :: before ∧
      before.Proposed id proposal ∧ proposal.revision = revision ∧ before.Admits id revision := by
  obtain ⟨s, reaches, accepted⟩ := run_split dispatched
  obtain ⟨r, hr, _⟩ := dispatch_accepted accepted
  obtain ⟨t, revision, mem, _⟩ := reservation_made reaches reservation r hr
  obtain ⟨since, before, rfl⟩ := List.append_of_mem mem
  obtain ⟨_, reaches₁⟩ := reaches.suffix
  obtain ⟨s', reaches₂, accepted', _⟩ := reaches₁.before
  obtain ⟨_, offer, ho, rfl, admitted, _⟩ := reserve_accepted accepted'
  have agree := offersAgree reaches₂
  exact ⟨since, t, r.offer, _, r.consent, r.deadline, before, offer.proposal, rfl,
    (agree.proposed _ _).mpr (by simp [ho]), rfl, agree.admitted _ _ ho admitted⟩

/-- A reservation is dispatched at most once. -/
theorem dispatched_at_most_once (steps : List Step) (reservation : Symbol) :
    (run steps).2.countP (fun step => step.action.dispatched? = some reservation) ≤ 1 := by
  have reaches := run_reaches steps
  generalize (run steps).2 = history at reaches
  generalize (run steps).1 = s at reaches
  induction reaches with
  | start => simp
  | @step history s step reaches accepted ih =>
    rw [List.countP_cons]
    split
    · rename_i dispatched
      obtain ⟨t, a⟩ := step
      cases a with
      | dispatch i =>
        obtain rfl : i = reservation := by simpa [Action.dispatched?] using dispatched
        obtain ⟨r, hr, phase⟩ := dispatch_accepted accepted
        have : history.countP (fun step => step.action.dispatched? = some i) = 0 := by
          rw [List.countP_eq_zero]
          intro x mem hx
          obtain ⟨r', hr', sent⟩ := dispatched_sent reaches ⟨x, mem, by simpa using hx⟩
          rw [hr] at hr'
          obtain rfl := Option.some.inj hr'
          simp [phase, Reservation.Phase.sent] at sent
        omega
      | _ => simp [Action.dispatched?] at dispatched
    · exact ih

theorem Reserved.later {later past : History} {id : Symbol} {p : Proposal} (h : past.Reserved id p) :
    History.Reserved (later ++ past) id p := by
  obtain ⟨t, i, revision, c, d, mem, t', mem'⟩ := h
  exact ⟨t, i, revision, c, d, List.mem_append_right _ mem, t', List.mem_append_right _ mem'⟩

/-- Between two dispatches of the same single-use operation the first is settled: its outcome was recorded as succeeded or failed, or
reconciled. While the outcome is unknown the operation is not dispatched again, under whatever proposal, reservation or consent. -/
theorem unknown_not_redispatched {steps : List Step} {later between past : History} {time₁ time₂ : Time}
    {reservation₁ reservation₂ : Symbol} {proposal₁ proposal₂ : Proposal}
    (dispatched : (run steps).2 = later ++ ⟨time₂, .dispatch reservation₂⟩ :: (between ++ ⟨time₁, .dispatch reservation₁⟩ :: past))
    (reserved₁ : (run steps).2.Reserved reservation₁ proposal₁) (reserved₂ : (run steps).2.Reserved reservation₂ proposal₂)
    (same : proposal₁.operation = proposal₂.operation)
    (single₁ : proposal₁.singleUse = true) (single₂ : proposal₂.singleUse = true) :
    ∃ step ∈ between, step.action.settled? = some reservation₁ := by
  apply Classical.byContradiction
  intro unsettled
  obtain ⟨s, reaches, accepted⟩ := run_split dispatched
  obtain ⟨r₁, hr₁, phase₁⟩ := unsettled_known reaches between time₁ past rfl fun x mem h => unsettled ⟨x, mem, h⟩
  obtain ⟨r₂, hr₂, phase₂⟩ := dispatch_accepted accepted
  have proposal (id : Symbol) (r : Reservation) (p : Proposal) (hr : s.reservations[id]? = some r)
      (reserved : (run steps).2.Reserved id p) : r.proposal = p := by
    obtain ⟨t, revision, mem, hp⟩ := reservation_made reaches id r hr
    have here : History.Reserved _ id r.proposal := ⟨t, r.offer, revision, r.consent, r.deadline, mem, hp⟩
    have here : (run steps).2.Reserved id r.proposal := by
      rw [dispatched]
      have := Reserved.later (later := later ++ [⟨time₂, .dispatch reservation₂⟩]) here
      simpa using this
    obtain ⟨_, h, rfl⟩ := reserved_known (run_reaches steps) reserved
    obtain ⟨_, h', e⟩ := reserved_known (run_reaches steps) here
    rw [h] at h'
    rw [← e, Option.some.inj h']
  have e₁ := proposal _ _ _ hr₁ reserved₁
  have e₂ := proposal _ _ _ hr₂ reserved₂
  have running₁ := running_known reaches _ r₁ hr₁ (e₁ ▸ single₁) (by rcases phase₁ with h | h <;> simp [h, Reservation.Phase.takes])
  have running₂ := running_known reaches _ r₂ hr₂ (e₂ ▸ single₂) (by simp [phase₂, Reservation.Phase.takes])
  rw [e₁, same, ← e₂, running₂] at running₁
  obtain rfl := Option.some.inj running₁
  rw [hr₁] at hr₂
  obtain rfl := Option.some.inj hr₂
  simp [phase₂] at phase₁

/-- A consent admits exactly the proposal that it was given to, tool, arguments, resource, revision, principal and conversation, and only
before it expires, by every clock that was ever read. -/
theorem consent_exact {steps : List Step} {later past : History} {time : Time} {reservation id revision consent : Symbol}
    {deadline : Option Time}
    (reserved : (run steps).2 = later ++ ⟨time, .reserve reservation id revision (some consent) deadline⟩ :: past) :
    ∃ proposal expires, past.Proposed id proposal ∧ proposal.revision = revision ∧
      past.Confirmed consent proposal expires ∧
      ∀ bound, expires = some bound → time < bound ∧ ∀ step ∈ past, step.time < bound := by
  obtain ⟨s, reaches, accepted⟩ := run_split reserved
  obtain ⟨_, offer, ho, hr, _, _, hc⟩ := reserve_accepted accepted
  obtain ⟨k, hk, he, _, passed⟩ := consent_accepted hc
  refine ⟨offer.proposal, k.expires, ((offersAgree reaches).proposed _ _).mpr (by simp [ho]), hr,
    he ▸ consent_given reaches _ k hk, ?_⟩
  intro bound hb
  simp only [hb, Protocol.passed, Option.any_some, clock, decide_eq_false_iff_not] at passed
  obtain ⟨now, here⟩ := Int.max_lt.mp (Int.not_le.mp passed)
  exact ⟨here, fun x mem => Int.lt_of_le_of_lt (time_le_now reaches x mem) now⟩

/-- A consent is used at most once. -/
theorem consent_once (steps : List Step) (consent : Symbol) :
    (run steps).2.countP (fun step => step.action.used? = some consent) ≤ 1 := by
  have reaches := run_reaches steps
  generalize (run steps).2 = history at reaches
  generalize (run steps).1 = s at reaches
  induction reaches with
  | start => simp
  | @step history s step reaches accepted ih =>
    rw [List.countP_cons]
    split
    · rename_i used
      obtain ⟨t, a⟩ := step
      cases a with
      | reserve i p revision c d =>
        obtain rfl : c = some consent := by simpa [Action.used?] using used
        obtain ⟨_, _, _, _, _, _, hc⟩ := reserve_accepted accepted
        obtain ⟨k, hk, _, live, _⟩ := consent_accepted hc
        have : history.countP (fun step => step.action.used? = some consent) = 0 := by
          rw [List.countP_eq_zero]
          intro x mem hx
          obtain ⟨k', hk', used⟩ := consent_used reaches ⟨x, mem, by simpa using hx⟩
          rw [hk] at hk'
          obtain rfl := Option.some.inj hk'
          simp [live] at used
        omega
      | _ => simp [Action.used?] at used
    · exact ih

/-- Where the policy asks for consent, nothing is reserved without one. -/
theorem consent_needed {steps : List Step} {later past : History} {time : Time} {reservation id revision : Symbol}
    {consent : Option Symbol} {deadline : Option Time} {proposal : Proposal}
    (reserved : (run steps).2 = later ++ ⟨time, .reserve reservation id revision consent deadline⟩ :: past)
    (proposed : past.Proposed id proposal) (asks : proposal.asksConsent = true) : consent.isSome = true := by
  obtain ⟨s, reaches, accepted⟩ := run_split reserved
  obtain ⟨_, offer, ho, _, _, _, hc⟩ := reserve_accepted accepted
  obtain rfl : offer.proposal = proposal := by simpa [ho] using ((offersAgree reaches).proposed _ _).mp proposed
  cases consent with
  | none => simp [consentRefusal?, asks] at hc
  | some _ => rfl

end LeanGuard.Protocol
