import LeanGuard.Protocol.Machine

/-!
# What an accepted step changes

Each part of the state after a step, in terms of the same part before it.
-/

namespace LeanGuard.Protocol

open State

/-! ### The parts of a step -/

@[simp] theorem tick_offers (s : State) (t : Time) : (s.tick t).offers = s.offers := rfl
@[simp] theorem tick_consents (s : State) (t : Time) : (s.tick t).consents = s.consents := rfl
@[simp] theorem tick_reservations (s : State) (t : Time) : (s.tick t).reservations = s.reservations := rfl
@[simp] theorem tick_running (s : State) (t : Time) : (s.tick t).running = s.running := rfl
@[simp] theorem tick_occupied (s : State) (t : Time) : (s.tick t).occupied = s.occupied := rfl

@[simp] theorem move_offers (s : State) (id r p) : (s.move id r p).offers = s.offers := rfl
@[simp] theorem move_consents (s : State) (id r p) : (s.move id r p).consents = s.consents := rfl
@[simp] theorem move_running (s : State) (id r p) : (s.move id r p).running = s.running := rfl
@[simp] theorem move_occupied (s : State) (id r p) : (s.move id r p).occupied = s.occupied := rfl
@[simp] theorem move_now (s : State) (id r p) : (s.move id r p).now = s.now := rfl
@[simp] theorem move_reservations (s : State) (id r p) :
    (s.move id r p).reservations = s.reservations.insert id { r with phase := p } := rfl

@[simp] theorem occupy_offers (s : State) (p h) : (s.occupy p h).offers = s.offers := by unfold occupy; split <;> rfl
@[simp] theorem occupy_consents (s : State) (p h) : (s.occupy p h).consents = s.consents := by unfold occupy; split <;> rfl
@[simp] theorem occupy_now (s : State) (p h) : (s.occupy p h).now = s.now := by unfold occupy; split <;> rfl
@[simp] theorem occupy_reservations (s : State) (p h) : (s.occupy p h).reservations = s.reservations := by
  unfold occupy; split <;> rfl
theorem occupy_running (s : State) (p h) :
    (s.occupy p h).running = if p.singleUse then s.running.insert p.operation h else s.running := by
  unfold occupy; split <;> rfl

@[simp] theorem release_offers (s : State) (p) : (s.release p).offers = s.offers := by unfold release; split <;> rfl
@[simp] theorem release_consents (s : State) (p) : (s.release p).consents = s.consents := by unfold release; split <;> rfl
@[simp] theorem release_now (s : State) (p) : (s.release p).now = s.now := by unfold release; split <;> rfl
@[simp] theorem release_reservations (s : State) (p) : (s.release p).reservations = s.reservations := by
  unfold release; split <;> rfl
theorem release_running (s : State) (p) :
    (s.release p).running = if p.singleUse then s.running.erase p.operation else s.running := by
  unfold release; split <;> rfl

@[simp] theorem change_offers (s : State) (p) : (s.change p).offers = s.offers := by unfold change; split <;> rfl
@[simp] theorem change_consents (s : State) (p) : (s.change p).consents = s.consents := by unfold change; split <;> rfl
@[simp] theorem change_now (s : State) (p) : (s.change p).now = s.now := by unfold change; split <;> rfl
@[simp] theorem change_reservations (s : State) (p) : (s.change p).reservations = s.reservations := by
  unfold change; split <;> rfl
@[simp] theorem change_running (s : State) (p) : (s.change p).running = s.running := by unfold change; split <;> rfl
@[simp] theorem change_occupied (s : State) (p) : (s.change p).occupied = s.occupied := by unfold change; split <;> rfl

@[simp] theorem settle_offers (s : State) (id r p) : (s.settle id r p).offers = s.offers := by
  unfold settle; split <;> simp
@[simp] theorem settle_consents (s : State) (id r p) : (s.settle id r p).consents = s.consents := by
  unfold settle; split <;> simp
@[simp] theorem settle_now (s : State) (id r p) : (s.settle id r p).now = s.now := by
  unfold settle; split <;> simp
@[simp] theorem settle_reservations (s : State) (id r p) :
    (s.settle id r p).reservations = s.reservations.insert id { r with phase := p } := by
  unfold settle; split <;> simp
theorem settle_running (s : State) (id r p) :
    (s.settle id r p).running = if r.proposal.singleUse then s.running.erase r.proposal.operation else s.running := by
  unfold settle; split <;> simp [release_running]

@[simp] theorem moveConsent_offers (s : State) (c p) : (s.moveConsent c p).offers = s.offers := by
  unfold moveConsent; split <;> rfl
@[simp] theorem moveConsent_reservations (s : State) (c p) : (s.moveConsent c p).reservations = s.reservations := by
  unfold moveConsent; split <;> rfl
@[simp] theorem moveConsent_running (s : State) (c p) : (s.moveConsent c p).running = s.running := by
  unfold moveConsent; split <;> rfl
@[simp] theorem moveConsent_now (s : State) (c p) : (s.moveConsent c p).now = s.now := by
  unfold moveConsent; split <;> rfl

/-! ### A whole step -/

theorem apply_offers (s : State) (step : Step) : (s.apply step).offers = match step.action with
    | .propose id p => s.offers.insert id ⟨p, false, (s.tick step.time).changesOf p⟩
    | .decide id _ admitted => match s.offers[id]? with
      | none => s.offers
      | some o => s.offers.insert id { o with admitted }
    | .reserve _ id _ _ _ => match s.offers[id]? with
      | none => s.offers
      | some o => s.offers.insert id { o with admitted := false }
    | _ => s.offers := by
  unfold apply perform
  cases step.action <;> simp only [tick_offers, tick_consents, tick_reservations] <;> grind [settle_offers, move_offers, occupy_offers, moveConsent_offers, tick_offers]

theorem apply_consents (s : State) (step : Step) : (s.apply step).consents = match step.action with
    | .confirm id p _ expires => match s.offers[p]? with
      | none => s.consents
      | some o => s.consents.insert id ⟨o.proposal, expires, .live⟩
    | .reserve _ id _ (some c) _ => match s.offers[id]?, s.consents[c]? with
      | some _, some k => s.consents.insert c { k with phase := .used }
      | _, _ => s.consents
    | .expireConsent c => match s.consents[c]? with
      | none => s.consents
      | some k => s.consents.insert c { k with phase := .expired }
    | _ => s.consents := by
  unfold apply perform
  cases step.action <;> simp only [tick_offers, tick_consents, tick_reservations] <;>
    grind [settle_consents, move_consents, occupy_consents, moveConsent, tick_consents]

theorem apply_reservations (s : State) (step : Step) : (s.apply step).reservations = match step.action with
    | .reserve id p _ c d => match s.offers[p]? with
      | none => s.reservations
      | some o => s.reservations.insert id ⟨p, o.proposal, c, d, .reserved⟩
    | .dispatch id => match s.reservations[id]? with
      | none => s.reservations
      | some r => s.reservations.insert id { r with phase := .dispatched }
    | .outcome id status => match s.reservations[id]? with
      | none => s.reservations
      | some r => s.reservations.insert id { r with phase := status.phase }
    | .expireReservation id => match s.reservations[id]? with
      | none => s.reservations
      | some r => s.reservations.insert id { r with phase := .expired }
    | .reconcile id succeeded => match s.reservations[id]? with
      | none => s.reservations
      | some r => s.reservations.insert id { r with phase := if succeeded then .succeeded else .failed }
    | _ => s.reservations := by
  unfold apply perform
  cases step.action <;> simp only [tick_offers, tick_consents, tick_reservations] <;>
    grind [settle_reservations, move_reservations, occupy_reservations, moveConsent_reservations, tick_reservations, Outcome.phase]

theorem apply_running (s : State) (step : Step) : (s.apply step).running = match step.action with
    | .reserve id p _ _ _ => match s.offers[p]? with
      | none => s.running
      | some o => if o.proposal.singleUse then s.running.insert o.proposal.operation id else s.running
    | .outcome _ .unknown => s.running
    | .outcome id _ | .expireReservation id | .reconcile id _ => match s.reservations[id]? with
      | none => s.running
      | some r => if r.proposal.singleUse then s.running.erase r.proposal.operation else s.running
    | _ => s.running := by
  unfold apply perform
  cases step.action <;> simp only [tick_offers, tick_consents, tick_reservations] <;>
    grind [settle_running, move_running, occupy_running, moveConsent_running, tick_running]

theorem apply_now (s : State) (step : Step) : (s.apply step).now = max s.now step.time := by
  unfold apply perform
  cases step.action <;> simp only [tick_offers, tick_consents, tick_reservations] <;>
    grind [settle_now, move_now, occupy_now, moveConsent_now, tick, clock]
end LeanGuard.Protocol
