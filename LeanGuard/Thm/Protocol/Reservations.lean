import LeanGuard.Thm.Protocol.Invariants

/-!
# What the state knows of reservations
-/

namespace LeanGuard.Protocol

open State
/-! ### One step -/

/-- The phase that an action moves a reservation to. -/
def next (id : Symbol) (phase : Reservation.Phase) : Action → Reservation.Phase
  | .dispatch i => if i = id then .dispatched else phase
  | .outcome i status => if i = id then status.phase else phase
  | .expireReservation i => if i = id then .expired else phase
  | .reconcile i succeeded => if i = id then (if succeeded then .succeeded else .failed) else phase
  | _ => phase

/-- A reservation that there is only changes its phase. -/
theorem reservation_next {s : State} {step : Step} (accepted : s.refusal? step = none) {id : Symbol} {r : Reservation}
    (h : s.reservations[id]? = some r) :
    (s.apply step).reservations[id]? = some { r with phase := next id r.phase step.action } := by
  rw [apply_reservations]
  obtain ⟨t, a⟩ := step
  cases a with
  | reserve i p =>
    have : i ≠ id := by rintro rfl; simp [refusal?, Std.HashMap.contains_eq_isSome_getElem?, h] at accepted
    clear accepted
    simp only [next]
    cases s.offers[p]? <;> simp [Std.HashMap.getElem?_insert, this, h]
  | propose | decide | confirm | expireConsent | pass => exact h
  | dispatch i | outcome i _ | expireReservation i | reconcile i _ =>
    clear accepted
    simp only [next]
    by_cases e : i = id
    · subst e; simp [h]
    · cases s.reservations[i]? <;> simp [Std.HashMap.getElem?_insert, e, h]

/-- A new reservation is made by a reserving step alone. -/
theorem reservation_new {s : State} {step : Step} {id : Symbol} {r : Reservation}
    (none : s.reservations[id]? = none) (h : (s.apply step).reservations[id]? = some r) :
    ∃ revision offer, step.action = .reserve id r.offer revision r.consent r.deadline ∧
      s.offers[r.offer]? = some offer ∧ r.proposal = offer.proposal ∧ r.phase = .reserved := by
  rw [apply_reservations] at h
  obtain ⟨t, a⟩ := step
  cases a with
  | propose | decide | confirm | expireConsent | pass => simp only [none] at h; cases h
  | reserve i p revision c d =>
    cases ho : s.offers[p]? with
    | none => simp only [ho, none] at h; cases h
    | some o =>
      simp only [ho, Std.HashMap.getElem?_insert] at h
      split at h
      · rename_i e
        obtain rfl : i = id := by simpa using e
        obtain rfl := Option.some.inj h
        exact ⟨revision, o, rfl, ho, rfl, rfl⟩
      · rw [none] at h; cases h
  | dispatch i | outcome i _ | expireReservation i | reconcile i _ =>
    cases hr : s.reservations[i]? with
    | none => simp only [hr, none] at h; cases h
    | some o =>
      have : i ≠ id := by rintro rfl; simp [none] at hr
      simp [hr, Std.HashMap.getElem?_insert, this, none] at h
/-- What an accepted reservation has found. -/
theorem reserve_accepted {s : State} {time : Time} {id p revision : Symbol} {c : Option Symbol} {d : Option Time}
    (accepted : s.refusal? ⟨time, .reserve id p revision c d⟩ = none) :
    s.reservations[id]? = none ∧ ∃ offer, s.offers[p]? = some offer ∧ offer.proposal.revision = revision ∧
      offer.admitted = true ∧ s.overlapRefusal? offer.proposal = none ∧
      s.consentRefusal? (s.clock time) offer.proposal c = none := by
  simp only [refusal?] at accepted
  split at accepted
  · cases accepted
  rename_i fresh
  refine ⟨by simpa using fresh, ?_⟩
  cases ho : s.offers[p]? with
  | none => simp [ho] at accepted
  | some offer =>
    simp only [ho] at accepted
    refine ⟨offer, rfl, ?_⟩
    clear ho fresh
    generalize s.overlapRefusal? offer.proposal = overlap at *
    generalize s.consentRefusal? (s.clock time) offer.proposal c = consent at *
    grind

/-- What an accepted reservation of a single-use operation has found. -/
theorem overlap_accepted {s : State} {p : Proposal} (accepted : s.overlapRefusal? p = none) (single : p.singleUse = true) :
    s.running[p.operation]? = none := by
  unfold overlapRefusal? at accepted
  simp only [single, if_true] at accepted
  cases h : s.running[p.operation]? with
  | none => rfl
  | some holder => simp only [h] at accepted; split at accepted <;> cases accepted

/-! ### All steps -/

/-- Every reservation of the state was made, for the proposal that it has. -/
theorem reservation_made {history : History} {s : State} (h : Reaches history s) :
    ∀ id r, s.reservations[id]? = some r → ∃ time revision,
      ⟨time, .reserve id r.offer revision r.consent r.deadline⟩ ∈ history ∧ history.Proposed r.offer r.proposal := by
  induction h with
  | start => simp [State.start]
  | @step history s step h accepted ih =>
    intro id r hr
    cases old : s.reservations[id]? with
    | some r₀ =>
      rw [reservation_next accepted old] at hr
      obtain rfl := Option.some.inj hr
      obtain ⟨time, revision, mem, p⟩ := ih id r₀ old
      exact ⟨time, revision, .tail _ mem, proposed_cons.mpr (.inr p)⟩
    | none =>
      obtain ⟨revision, offer, ha, ho, hp, _⟩ := reservation_new old hr
      refine ⟨step.time, revision, ha ▸ .head _, proposed_cons.mpr (.inr ?_)⟩
      simp [(offersAgree h).proposed, ho, hp]

/-- The state has every reservation that was made. -/
theorem reservation_known {history : History} {s : State} (h : Reaches history s) {time id p revision c d}
    (mem : ⟨time, .reserve id p revision c d⟩ ∈ history) : ∃ r, s.reservations[id]? = some r ∧ r.offer = p := by
  induction h with
  | start => cases mem
  | @step history s step h accepted ih =>
    cases mem with
    | head =>
      obtain ⟨_, offer, ho, _⟩ := reserve_accepted accepted
      rw [apply_reservations]
      exact ⟨_, by simp only [ho, Std.HashMap.getElem?_insert_self]; rfl, rfl⟩
    | tail _ mem =>
      obtain ⟨r, hr, offer⟩ := ih mem
      exact ⟨_, reservation_next accepted hr, offer⟩

/-- A reservation is for one proposal, and the state has it. -/
theorem reserved_known {history : History} {s : State} (h : Reaches history s) {id : Symbol} {p : Proposal}
    (reserved : history.Reserved id p) : ∃ r, s.reservations[id]? = some r ∧ r.proposal = p := by
  obtain ⟨_, offer, _, _, _, mem, hp⟩ := reserved
  obtain ⟨r, hr, rfl⟩ := reservation_known h mem
  obtain ⟨_, _, _, hp'⟩ := reservation_made h id r hr
  rw [(offersAgree h).proposed] at hp hp'
  exact ⟨r, hr, Option.some.inj (hp'.symm.trans hp)⟩

/-- The call has been sent. -/
def Reservation.Phase.sent : Reservation.Phase → Bool
  | .reserved | .expired => false
  | _ => true

theorem Outcome.phase_sent (status : Outcome) : status.phase.sent = true := by cases status <;> rfl

/-- A dispatching step finds its reservation undispatched, and leaves it dispatched. -/
theorem dispatch_accepted {s : State} {time : Time} {id : Symbol} (accepted : s.refusal? ⟨time, .dispatch id⟩ = none) :
    ∃ r, s.reservations[id]? = some r ∧ r.phase = .reserved := by
  unfold refusal? at accepted
  cases hr : s.reservations[id]? with
  | none => simp [hr] at accepted
  | some r => cases hp : r.phase <;> simp [hr, hp] at accepted ⊢

/-- What was sent stays sent. -/
theorem sent_next {s : State} {step : Step} (accepted : s.refusal? step = none) {id : Symbol} {r : Reservation}
    (h : s.reservations[id]? = some r) (sent : r.phase.sent = true) : (next id r.phase step.action).sent = true := by
  obtain ⟨t, a⟩ := step
  unfold refusal? at accepted
  cases a with
  | propose | decide | confirm | expireConsent | pass | reserve => exact sent
  | dispatch i | outcome i _ | expireReservation i | reconcile i _ =>
    simp only [next]
    split
    · rename_i e
      subst e
      simp only [h] at accepted
      first
        | rfl
        | exact Outcome.phase_sent _
        | (split <;> rfl)
        | (cases hp : r.phase <;> simp [hp, Reservation.Phase.sent] at accepted sent)
    · exact sent

/-- The state knows what was dispatched. -/
theorem dispatched_sent {history : History} {s : State} (h : Reaches history s) {id : Symbol}
    (mem : ∃ step ∈ history, step.action.dispatched? = some id) :
    ∃ r, s.reservations[id]? = some r ∧ r.phase.sent = true := by
  induction h with
  | start => simp at mem
  | @step history s step h accepted ih =>
    obtain ⟨x, mem, hx⟩ := mem
    cases mem with
    | head =>
      obtain ⟨t, a⟩ := step
      cases a with
      | dispatch i =>
        obtain rfl : i = id := Option.some.inj hx
        obtain ⟨r, hr, _⟩ := dispatch_accepted accepted
        exact ⟨_, reservation_next accepted hr, by simp [next, Reservation.Phase.sent]⟩
      | _ => cases hx
    | tail _ mem =>
      obtain ⟨r, hr, sent⟩ := ih ⟨x, mem, hx⟩
      exact ⟨_, reservation_next accepted hr, sent_next accepted hr sent⟩

/-- The reservation takes its operation: it is reserved, sent, or of unknown outcome. -/
def Reservation.Phase.takes : Reservation.Phase → Bool
  | .reserved | .dispatched | .unknown => true
  | _ => false

/-- The state knows which reservation has taken a single-use operation. -/
theorem running_known {history : History} {s : State} (h : Reaches history s) :
    ∀ (id : Symbol) (r : Reservation), s.reservations[id]? = some r → r.proposal.singleUse = true → r.phase.takes = true →
      s.running[r.proposal.operation]? = some id := by
  induction h with
  | start => simp [State.start]
  | @step history s step h accepted ih =>
    intro id r hr single takes
    rw [apply_running]
    cases old : s.reservations[id]? with
    | none =>
      obtain ⟨revision, offer, ha, ho, hp, _⟩ := reservation_new old hr
      rw [hp] at single ⊢
      simp [ha, ho, single]
    | some r₀ =>
      rw [reservation_next accepted old] at hr
      obtain rfl := Option.some.inj hr
      simp only at single takes ⊢
      have taken := ih id r₀ old single
      obtain ⟨t, a⟩ := step
      cases a with
      | propose | decide | confirm | expireConsent | pass => exact taken takes
      | reserve i p _ c d =>
        have taken := taken takes
        obtain ⟨_, o, ho, _, _, free, _⟩ := reserve_accepted accepted
        simp only [ho]
        split
        · rename_i single'
          have free := overlap_accepted free single'
          have : o.proposal.operation ≠ r₀.proposal.operation := by intro e; rw [e, taken] at free; cases free
          simpa [Std.HashMap.getElem?_insert, this] using taken
        · exact taken
      | dispatch i =>
        simp only [next] at takes
        split at takes
        · rename_i e
          subst e
          simp only [refusal?, old] at accepted
          exact taken (by cases hp : r₀.phase <;> simp [hp, Reservation.Phase.takes] at accepted ⊢)
        · exact taken takes
      | outcome i status =>
        simp only [next] at takes
        split at takes
        · rename_i e
          subst e
          simp only [refusal?, old] at accepted
          have := taken (by cases hp : r₀.phase <;> simp [hp, Reservation.Phase.takes] at accepted ⊢)
          cases status <;> simp [Outcome.phase, Reservation.Phase.takes] at takes ⊢
          exact this
        · have taken := taken takes
          cases hi : s.reservations[i]? with
          | none => cases status <;> simpa [hi] using taken
          | some ri =>
            have other := ih i ri hi
            simp only [refusal?, hi] at accepted
            cases hp : ri.phase <;> simp [hp] at accepted
            have := fun hs => other hs (by simp [hp, Reservation.Phase.takes])
            cases status <;> simp only [hi] <;> grind
      | expireReservation i | reconcile i _ =>
        simp only [next] at takes
        split at takes
        · (try split at takes) <;> simp [Reservation.Phase.takes] at takes
        · have taken := taken takes
          cases hi : s.reservations[i]? with
          | none => simpa [hi] using taken
          | some ri =>
            have other := ih i ri hi
            simp only [refusal?, hi] at accepted
            cases hp : ri.phase <;> simp [hp] at accepted
            have := fun hs => other hs (by simp [hp, Reservation.Phase.takes])
            simp only [hi]
            grind

/-- The state knows which calls were dispatched and are not known to have succeeded or failed. -/
theorem unsettled_known {history : History} {s : State} (h : Reaches history s) {id : Symbol} :
    ∀ since time before, history = since ++ ⟨time, .dispatch id⟩ :: before →
      (∀ x ∈ since, x.action.settled? ≠ some id) →
      ∃ r, s.reservations[id]? = some r ∧ (r.phase = .dispatched ∨ r.phase = .unknown) := by
  induction h with
  | start => intro since; cases since <;> simp
  | @step history s step h accepted ih =>
    intro since time before split unsettled
    cases since with
    | nil =>
      obtain ⟨rfl, rfl⟩ := List.cons.inj split
      obtain ⟨r, hr, _⟩ := dispatch_accepted accepted
      exact ⟨_, reservation_next accepted hr, .inl (by simp [next])⟩
    | cons x since =>
      simp only [List.cons_append, List.cons.injEq] at split
      obtain ⟨rfl, split⟩ := split
      obtain ⟨r, hr, phase⟩ := ih since time before split fun x mem => unsettled x (.tail _ mem)
      refine ⟨_, reservation_next accepted hr, ?_⟩
      have unsettled := unsettled step (.head _)
      obtain ⟨t, a⟩ := step
      cases a with
      | propose | decide | confirm | expireConsent | pass | reserve => exact phase
      | outcome i status =>
        simp only [next]
        split
        · rename_i e
          subst e
          cases status with
          | unknown => exact .inr rfl
          | succeeded | failed => exact absurd rfl unsettled
        · exact phase
      | reconcile i _ =>
        have : i ≠ id := by rintro rfl; exact unsettled rfl
        simpa [next, this] using phase
      | dispatch i | expireReservation i =>
        have : i ≠ id := by
          rintro rfl
          rcases phase with phase | phase <;> simp [refusal?, hr, phase] at accepted
        simpa [next, this] using phase

end LeanGuard.Protocol
