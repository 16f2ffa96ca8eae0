import Std.Data.HashMap
import LeanGuard.Spec.Policy

/-!
# The protocol

An admission alone does not stop a retried payment or a reused approval. The protocol does: a call is proposed, decided, where the policy
asks for it confirmed, reserved, dispatched, and its outcome recorded. The state is what the journal's steps have led to, so processes that
share a journal agree on it. A step is checked against the state (`State.refusal?`) and then changes it (`State.apply`), both in a number of
operations that does not depend on the length of the journal. `Thm/Protocol.lean` proves what no sequence of steps can get past.
-/

namespace LeanGuard.Protocol

deriving instance Hashable for Resource
deriving instance Hashable for Call

/-- What a call does: the tool with its canonical arguments, on a resource. -/
structure Operation where
  call : Call
  resource : Option Resource
deriving DecidableEq, Hashable

/-- An operation that a conversation's principal proposes in one state of the backend. -/
structure Proposal where
  call : Call
  resource : Option Resource
  /-- The state of the backend that the proposal was made in. -/
  revision : Symbol
  principal : Option Symbol
  conversation : Option Symbol
  /-- The tool writes: the operation must not happen twice by accident. -/
  singleUse : Bool
  /-- The policy asks for the principal's consent. -/
  asksConsent : Bool
deriving DecidableEq, Hashable

/-- What the proposal would do, whoever proposes it and when. -/
def Proposal.operation (p : Proposal) : Operation := ⟨p.call, p.resource⟩

/-- How a dispatched call ended, as far as is known. -/
inductive Outcome where
  | succeeded
  | failed
  | unknown
deriving DecidableEq, Repr

/-- What a step does. Ids are chosen by the host and never used again. -/
inductive Action where
  /-- A call is proposed. -/
  | propose (id : Symbol) (proposal : Proposal)
  /-- The policy has decided on a proposal, in a snapshot of that revision. -/
  | decide (proposal revision : Symbol) (admitted : Bool)
  /-- A person confirms a proposal, until a time. -/
  | confirm (consent proposal by' : Symbol) (expires : Option Time)
  /-- A proposal is about to run, in a snapshot of that revision; it uses up the consent. -/
  | reserve (reservation proposal revision : Symbol) (consent : Option Symbol) (deadline : Option Time)
  /-- The reserved call is sent to its tool. -/
  | dispatch (reservation : Symbol)
  /-- The dispatched call has ended, or nothing more will be heard of it. -/
  | outcome (reservation : Symbol) (status : Outcome)
  /-- A consent ends unused. -/
  | expireConsent (consent : Symbol)
  /-- A reservation ends undispatched. -/
  | expireReservation (reservation : Symbol)
  /-- The backend has told how a call of unknown outcome ended. -/
  | reconcile (reservation : Symbol) (succeeded : Bool)
  /-- Something that the protocol is not about; time passes. -/
  | pass
deriving DecidableEq

/-- An action at a time. -/
structure Step where
  time : Time
  action : Action
deriving DecidableEq

/-- Why a step is refused. -/
inductive Refusal where
  | noSuchProposal
  | noSuchConsent
  | noReservation
  | idTaken
  | notAdmitted
  | revisionChanged
  | toolChanged
  | argumentsChanged
  | resourceChanged
  | principalChanged
  | conversationChanged
  | termsChanged
  | consentMissing
  | consentUsed
  | consentExpired
  | inFlight
  | outcomeUnknown
  | alreadyDispatched
  | notDispatched
  | reservationExpired
  | notDue
  | outcomeRecorded
  | stillInFlight
deriving DecidableEq, Repr

/-- The rule that the step failed. -/
def Refusal.id : Refusal → String
  | .noSuchProposal => "protocol.no_such_proposal"
  | .noSuchConsent => "protocol.no_such_consent"
  | .noReservation => "protocol.no_reservation"
  | .idTaken => "protocol.id_taken"
  | .notAdmitted => "protocol.not_admitted"
  | .revisionChanged => "protocol.revision_changed"
  | .toolChanged => "protocol.tool_changed"
  | .argumentsChanged => "protocol.arguments_changed"
  | .resourceChanged => "protocol.resource_changed"
  | .principalChanged => "protocol.principal_changed"
  | .conversationChanged => "protocol.conversation_changed"
  | .termsChanged => "protocol.terms_changed"
  | .consentMissing => "protocol.consent_missing"
  | .consentUsed => "protocol.consent_used"
  | .consentExpired => "protocol.consent_expired"
  | .inFlight => "host.no_overlap"
  | .outcomeUnknown => "protocol.outcome_unknown"
  | .alreadyDispatched => "protocol.already_dispatched"
  | .notDispatched => "protocol.not_dispatched"
  | .reservationExpired => "protocol.reservation_expired"
  | .notDue => "protocol.not_due"
  | .outcomeRecorded => "protocol.outcome_recorded"
  | .stillInFlight => "protocol.still_in_flight"

def Refusal.category : Refusal → Category
  | .noSuchProposal | .noSuchConsent | .noReservation | .idTaken => .invalidInvocation
  | .revisionChanged => .stateIncompatibility
  | .toolChanged | .argumentsChanged | .resourceChanged | .principalChanged | .conversationChanged | .termsChanged
  | .consentMissing | .consentUsed | .consentExpired => .authorizationFailure
  | .notAdmitted => .policyProhibition
  | .inFlight | .outcomeUnknown | .alreadyDispatched | .notDispatched | .reservationExpired | .notDue | .outcomeRecorded
  | .stillInFlight => .temporalIncompatibility

/-- What the model or the host is told. -/
def Refusal.hint : Refusal → String
  | .noSuchProposal => "No proposal has this id. Propose the call first."
  | .noSuchConsent => "No consent has this id."
  | .noReservation => "No reservation has this id. A call runs only under its reservation."
  | .idTaken => "This id is in use. Choose a new one."
  | .notAdmitted => "The policy has not admitted this proposal, or the admission is used up. Have it decided again."
  | .revisionChanged => "The data changed after this call was proposed. Read it again and propose the call anew."
  | .toolChanged => "The confirmation was for another tool. Ask for confirmation of this call."
  | .argumentsChanged => "The arguments are not the ones that were confirmed. Ask for confirmation of this exact call."
  | .resourceChanged => "The confirmation was for another resource. Ask for confirmation of this call."
  | .principalChanged => "The confirmation has to come from the person for whom the call is made."
  | .conversationChanged => "The confirmation was given in another conversation. Ask for it in this one."
  | .termsChanged => "The tool's terms changed after the confirmation. Ask for confirmation of this call again."
  | .consentMissing => "The customer has not confirmed this exact call. Describe it and ask for confirmation."
  | .consentUsed => "This confirmation has been used. Every call needs a confirmation of its own."
  | .consentExpired => "The confirmation has expired. Ask for it again."
  | .inFlight => "Another call on the same resource has not come back yet. Wait for its outcome before you call again."
  | .outcomeUnknown => "It is not known whether this call went through. It can't be sent again until that is settled."
  | .alreadyDispatched => "This reservation has been dispatched. It can't be dispatched again."
  | .notDispatched => "This reservation has not been dispatched."
  | .reservationExpired => "The reservation has expired. Reserve the call again."
  | .notDue => "The reservation has not reached its deadline."
  | .outcomeRecorded => "The outcome of this call is recorded already."
  | .stillInFlight => "The call has no outcome yet. Record its outcome as unknown before you settle it from the backend."

/-- A proposal that was made, and what has been decided about it. -/
structure Offer where
  proposal : Proposal
  /-- The newest decision admits it, and no reservation has used that. -/
  admitted : Bool
  /-- How many calls had changed its resource when it was proposed. -/
  changes : Nat

/-- What became of a consent. -/
inductive Consent.Phase where
  | live
  | used
  | expired
deriving DecidableEq, Repr

/-- A person's confirmation of exactly one proposal. -/
structure Consent where
  proposal : Proposal
  expires : Option Time
  phase : Consent.Phase

/-- What became of a reservation. -/
inductive Reservation.Phase where
  | reserved
  | dispatched
  | unknown
  | succeeded
  | failed
  | expired
deriving DecidableEq, Repr

/-- The record that a call is about to run. -/
structure Reservation where
  /-- The proposal's id. -/
  offer : Symbol
  proposal : Proposal
  consent : Option Symbol
  deadline : Option Time
  phase : Reservation.Phase

/-- The phase that a known outcome leads to. -/
def Outcome.phase : Outcome → Reservation.Phase
  | .succeeded => .succeeded
  | .failed => .failed
  | .unknown => .unknown

/-- Whether a time bound has passed; it never passes if there is none. -/
def passed (bound : Option Time) (now : Time) : Bool := bound.any (· ≤ now)

/-- What the accepted steps have led to. -/
structure State where
  /-- The latest time of a step so far: a clock that jumps back is not believed. -/
  now : Time := 0
  offers : Std.HashMap Symbol Offer := ∅
  consents : Std.HashMap Symbol Consent := ∅
  reservations : Std.HashMap Symbol Reservation := ∅
  /-- The single-use operations that are reserved, sent, or of unknown outcome, with their reservation. -/
  running : Std.HashMap Operation Symbol := ∅
  /-- The resources of these operations, with their reservation. -/
  occupied : Std.HashMap Resource Symbol := ∅
  /-- How many single-use calls have succeeded on a resource. -/
  changes : Std.HashMap Resource Nat := ∅
  /-- The newest consent to exactly that proposal. -/
  given : Std.HashMap Proposal Symbol := ∅
  /-- The newest consent by a principal in a conversation to a use of a tool. -/
  nearest : Std.HashMap (Option Symbol × Option Symbol × Symbol) Symbol := ∅

namespace State

/-- Nothing has happened. -/
def start : State := {}

/-- The time at a step: never earlier than that of a step before it. -/
def clock (s : State) (time : Time) : Time := max s.now time

/-- How many single-use calls have succeeded on the proposal's resource. -/
def changesOf (s : State) (p : Proposal) : Nat :=
  match p.resource with
  | none => 0
  | some r => s.changes.getD r 0

/-- What a consent to `named` lacks to be a consent to `asked`. -/
def mismatch (named asked : Proposal) : Option Refusal :=
  if named.call.tool ≠ asked.call.tool then some .toolChanged
  else if named.call.arguments ≠ asked.call.arguments then some .argumentsChanged
  else if named.resource ≠ asked.resource then some .resourceChanged
  else if named.principal ≠ asked.principal then some .principalChanged
  else if named.conversation ≠ asked.conversation then some .conversationChanged
  else if named.revision ≠ asked.revision then some .revisionChanged
  else if named ≠ asked then some .termsChanged
  else none

/-- Why the consent does not admit the proposal now. -/
def consentRefusal? (s : State) (now : Time) (p : Proposal) : Option Symbol → Option Refusal
  | none => if p.asksConsent then some .consentMissing else none
  | some id =>
    match s.consents[id]? with
    | none => some .consentMissing
    | some consent =>
      match mismatch consent.proposal p with
      | some refusal => some refusal
      | none =>
        match consent.phase with
        | .used => some .consentUsed
        | .expired => some .consentExpired
        | .live => if passed consent.expires now then some .consentExpired else none

/-- Why the operation can't be reserved beside what is running. -/
def overlapRefusal? (s : State) (p : Proposal) : Option Refusal :=
  if p.singleUse then
    match s.running[p.operation]? with
    | some holder =>
      if (s.reservations[holder]?).any (·.phase = .unknown) then some .outcomeUnknown else some .inFlight
    | none =>
      match p.resource with
      | none => none
      | some r => if s.occupied.contains r then some .inFlight else none
  else none

/-- Why the step is refused; none if it is accepted. -/
def refusal? (s : State) (step : Step) : Option Refusal :=
  let now := s.clock step.time
  match step.action with
  | .propose id _ => if s.offers.contains id then some .idTaken else none
  | .decide id revision _ =>
    match s.offers[id]? with
    | none => some .noSuchProposal
    | some offer => if offer.proposal.revision ≠ revision then some .revisionChanged else none
  | .confirm id proposal by' expires =>
    if s.consents.contains id then some .idTaken
    else
      match s.offers[proposal]? with
      | none => some .noSuchProposal
      | some offer =>
        if offer.proposal.principal ≠ some by' then some .principalChanged
        else if passed expires now then some .consentExpired
        else none
  | .reserve id proposal revision consent _ =>
    if s.reservations.contains id then some .idTaken
    else
      match s.offers[proposal]? with
      | none => some .noSuchProposal
      | some offer =>
        if offer.proposal.revision ≠ revision then some .revisionChanged
        else
          match s.overlapRefusal? offer.proposal with
          | some refusal => some refusal
          | none =>
            match s.consentRefusal? now offer.proposal consent with
            | some refusal => some refusal
            | none =>
              if offer.changes ≠ s.changesOf offer.proposal then some .revisionChanged
              else if offer.admitted then none
              else some .notAdmitted
  | .dispatch id =>
    match s.reservations[id]? with
    | none => some .noReservation
    | some reservation =>
      match reservation.phase with
      | .reserved => if passed reservation.deadline now then some .reservationExpired else none
      | .expired => some .reservationExpired
      | _ => some .alreadyDispatched
  | .outcome id _ =>
    match s.reservations[id]? with
    | none => some .noReservation
    | some reservation =>
      match reservation.phase with
      | .dispatched => none
      | .reserved | .expired => some .notDispatched
      | _ => some .outcomeRecorded
  | .expireConsent id =>
    match s.consents[id]? with
    | none => some .noSuchConsent
    | some consent =>
      match consent.phase with
      | .live => none
      | .used => some .consentUsed
      | .expired => some .consentExpired
  | .expireReservation id =>
    match s.reservations[id]? with
    | none => some .noReservation
    | some reservation =>
      match reservation.phase with
      | .reserved => if reservation.deadline.isSome && !passed reservation.deadline now then some .notDue else none
      | .expired => some .reservationExpired
      | _ => some .alreadyDispatched
  | .reconcile id _ =>
    match s.reservations[id]? with
    | none => some .noReservation
    | some reservation =>
      match reservation.phase with
      | .unknown => none
      | .dispatched => some .stillInFlight
      | .reserved | .expired => some .notDispatched
      | .succeeded | .failed => some .outcomeRecorded
  | .pass => none

/-- Time passes. -/
def tick (s : State) (time : Time) : State := { s with now := s.clock time }

/-- The reservation's operation and resource are taken. -/
def occupy (s : State) (p : Proposal) (holder : Symbol) : State :=
  if p.singleUse then
    { s with
      running := s.running.insert p.operation holder
      occupied := match p.resource with
        | none => s.occupied
        | some r => s.occupied.insert r holder }
  else s

/-- The reservation's operation and resource are free again. -/
def release (s : State) (p : Proposal) : State :=
  if p.singleUse then
    { s with
      running := s.running.erase p.operation
      occupied := match p.resource with
        | none => s.occupied
        | some r => s.occupied.erase r }
  else s

/-- The proposal's resource is no longer as it was. -/
def change (s : State) (p : Proposal) : State :=
  match p.singleUse, p.resource with
  | true, some r => { s with changes := s.changes.insert r (s.changes.getD r 0 + 1) }
  | _, _ => s

/-- The reservation is in that phase from now on. -/
def move (s : State) (id : Symbol) (reservation : Reservation) (phase : Reservation.Phase) : State :=
  { s with reservations := s.reservations.insert id { reservation with phase } }

/-- The reservation has come to its end. -/
def settle (s : State) (id : Symbol) (reservation : Reservation) (phase : Reservation.Phase) : State :=
  let s := (s.move id reservation phase).release reservation.proposal
  if phase = .succeeded then s.change reservation.proposal else s

/-- The consent, if there is one, is in that phase from now on. -/
def moveConsent (s : State) (id : Symbol) (phase : Consent.Phase) : State :=
  match s.consents[id]? with
  | none => s
  | some consent => { s with consents := s.consents.insert id { consent with phase } }

/-- What an accepted action does to the state. -/
def perform (s : State) : Action → State
  | .propose id proposal => { s with offers := s.offers.insert id ⟨proposal, false, s.changesOf proposal⟩ }
  | .decide id _ admitted =>
    match s.offers[id]? with
    | none => s
    | some offer => { s with offers := s.offers.insert id { offer with admitted } }
  | .confirm id proposal _ expires =>
    match s.offers[proposal]? with
    | none => s
    | some ⟨p, _, _⟩ =>
      { s with
        consents := s.consents.insert id ⟨p, expires, .live⟩
        given := s.given.insert p id
        nearest := s.nearest.insert (p.principal, p.conversation, p.call.tool) id }
  | .reserve id proposal _ consent deadline =>
    match s.offers[proposal]? with
    | none => s
    | some offer =>
      let s := { s with
        offers := s.offers.insert proposal { offer with admitted := false }
        reservations := s.reservations.insert id ⟨proposal, offer.proposal, consent, deadline, .reserved⟩ }
      let s := match consent with
        | none => s
        | some c => s.moveConsent c .used
      s.occupy offer.proposal id
  | .dispatch id =>
    match s.reservations[id]? with
    | none => s
    | some reservation => s.move id reservation .dispatched
  | .outcome id status =>
    match s.reservations[id]?, status with
    | none, _ => s
    | some reservation, .unknown => s.move id reservation .unknown
    | some reservation, status => s.settle id reservation status.phase
  | .expireConsent id => s.moveConsent id .expired
  | .expireReservation id =>
    match s.reservations[id]? with
    | none => s
    | some reservation => s.settle id reservation .expired
  | .reconcile id succeeded =>
    match s.reservations[id]? with
    | none => s
    | some reservation => s.settle id reservation (if succeeded then .succeeded else .failed)
  | .pass => s

/-- The state after an accepted step. -/
def apply (s : State) (step : Step) : State := (s.tick step.time).perform step.action

/-- The state after a step, if it is accepted. -/
def step (s : State) (step : Step) : Except Refusal State :=
  match s.refusal? step with
  | some refusal => .error refusal
  | none => .ok (s.apply step)

/-- The consent that a proposal would use: the newest to exactly that proposal; else, so that the refusal can say what differs, the
newest of that principal in that conversation to a use of that tool. -/
def consentFor (s : State) (p : Proposal) : Option Symbol :=
  match s.given[p]? with
  | some id => some id
  | none => if p.asksConsent then s.nearest[(p.principal, p.conversation, p.call.tool)]? else none

end State

/-- The accepted steps, newest first. -/
abbrev History := List Step

/-- What becomes of a state and its history when a step is tried: a refused step leaves no trace. -/
def attempt (so_far : State × History) (step : Step) : State × History :=
  match so_far.1.step step with
  | .error _ => so_far
  | .ok s => (s, step :: so_far.2)

/-- The state that any sequence of tried steps leads to, and those that were accepted, newest first. -/
def run (steps : List Step) : State × History := steps.foldl attempt (State.start, [])

end LeanGuard.Protocol
