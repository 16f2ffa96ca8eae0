import LeanGuard.Eval.Admission
import LeanGuard.Protocol.Machine
import LeanGuard.Wire.Decode
import LeanGuard.Wire.Encode

/-!
# The protocol in JSON

A host asks for a step; it is accepted, and answered with the event to append to the journal, or refused, with the rule that it failed. The
state is moved by the journal's events alone, whichever process appended them. An event that the machine refuses means that the journal is
not one that it made: from there on nothing is accepted that could lead to a dispatch.
-/

namespace LeanGuard.Wire.Protocol

open Lean (Json JsonNumber toJson)
open LeanGuard.Protocol

/-! ## What the policy asks -/

/-- Whether an atom of that name stands in the formula. -/
def mentions (name : String) : Formula → Bool
  | .atom n _ => n == name
  | .top | .bot => false
  | .not p | .previous _ p | .once _ p | .within _ p => mentions name p
  | .and p q | .or p q | .since _ p q => mentions name p || mentions name q

/-- Whether a rule about the tool looks for a consent. -/
def asksConsent (policy : Policy) (contract : Contract) : Bool :=
  (policy.applicable contract).any fun rule => mentions "consent" rule.condition

/-- What a call in a snapshot proposes, by the policy's contract of its tool. -/
def proposalOf (policy : Policy) (contract : Contract) (call : Call) (snapshot : Snapshot) : Proposal where
  call
  resource := contract.resourceOf call.arguments
  revision := snapshot.revision
  principal := snapshot.principal
  conversation := snapshot.conversation
  singleUse := contract.access == .write
  asksConsent := asksConsent policy contract

/-! ## Events out -/

def quantityJson (q : Quantity) : Json :=
  match q.toInt? with
  | some i => .num ⟨i, 0⟩
  | none => .num ⟨q.millionths, 6⟩

mutual
def valueJson : Value → Json
  | .null => .null
  | .bool b => .bool b
  | .num q => quantityJson q
  | .sym s => .str s.text
  | .text s => .str s
  | .list items => .arr (itemsJson items).toArray
  | .record fields => .mkObj (fieldsJson fields)
def itemsJson : List Value → List Json
  | [] => []
  | v :: vs => valueJson v :: itemsJson vs
def fieldsJson : List (Symbol × Value) → List (String × Json)
  | [] => []
  | (name, v) :: rest => (name.text, valueJson v) :: fieldsJson rest
end

def callJson (c : Call) : Json :=
  .mkObj [("tool", c.tool.text), ("arguments", .mkObj (fieldsJson c.arguments))]

def resourceJson (r : Resource) : Json := .mkObj [("type", r.type.text), ("id", r.id.text)]

/-- An event, without the fields that it does not have. -/
def eventJson (e : Event) : Json :=
  .mkObj <| [("kind", Json.str e.kind.text), ("time", toJson e.time)] ++ List.filterMap id [
    e.principal.map fun s => ("principal", .str s.text),
    e.conversation.map fun s => ("conversation", .str s.text),
    e.resource.map fun r => ("resource", resourceJson r),
    e.revision.map fun s => ("revision", .str s.text),
    e.call.map fun c => ("call", callJson c),
    e.status.map fun s => ("status", .str s.text),
    if e.data.isEmpty then none else some ("data", .mkObj (fieldsJson e.data))]

/-! ## Steps and events -/

def kind : Action → Symbol
  | .propose .. => sym!"proposal"
  | .decide .. => sym!"admission"
  | .confirm .. => sym!"consent"
  | .reserve .. => sym!"reservation"
  | .dispatch .. => sym!"dispatch"
  | .outcome .. => sym!"outcome"
  | .expireConsent .. | .expireReservation .. => sym!"expiry"
  | .reconcile .. => sym!"reconciliation"
  | .pass => sym!"other"

def outcomeSymbol : Outcome → Symbol
  | .succeeded => sym!"succeeded"
  | .failed => sym!"failed"
  | .unknown => sym!"unknown"

def status? : Action → Option Symbol
  | .outcome _ o => some (outcomeSymbol o)
  | .reconcile _ succeeded => some (if succeeded then sym!"succeeded" else sym!"failed")
  | _ => none

def optionalField (name : Symbol) (value : Option α) (f : α → Value) : Fields :=
  match value with
  | none => []
  | some v => [(name, f v)]

def timeValue (t : Time) : Value := .num (.ofInt t)

/-- What an event's data say of the action; in the order of the names. -/
def actionData : Action → Fields
  | .propose id p =>
    [(sym!"asks_consent", .bool p.asksConsent), (sym!"proposal", .sym id), (sym!"single_use", .bool p.singleUse)]
  | .decide id _ admitted => [(sym!"admitted", .bool admitted), (sym!"proposal", .sym id)]
  | .confirm id proposal _ expires =>
    [(sym!"consent", .sym id)] ++ optionalField sym!"expires" expires timeValue ++ [(sym!"proposal", .sym proposal)]
  | .reserve id proposal _ consent deadline =>
    optionalField sym!"consent" consent .sym ++ optionalField sym!"deadline" deadline timeValue ++
      [(sym!"proposal", .sym proposal), (sym!"reservation", .sym id)]
  | .dispatch id | .outcome id _ | .expireReservation id | .reconcile id _ => [(sym!"reservation", .sym id)]
  | .expireConsent id => [(sym!"consent", .sym id)]
  | .pass => []

/-- The proposal that the action is about. -/
def subject? (s : State) : Action → Option Proposal
  | .propose _ p => some p
  | .decide id .. | .confirm _ id .. | .reserve _ id .. => (s.offers[id]?).map (·.proposal)
  | .dispatch id | .outcome id _ | .expireReservation id | .reconcile id _ => (s.reservations[id]?).map (·.proposal)
  | .expireConsent id => (s.consents[id]?).map (·.proposal)
  | .pass => none

/-- The event that records the step; `details` are the host's own. -/
def eventOf (s : State) (step : Step) (details : Fields := []) : Event :=
  let subject := subject? s step.action
  { kind := kind step.action
    time := step.time
    principal := subject.bind (·.principal)
    conversation := subject.bind (·.conversation)
    resource := subject.bind (·.resource)
    revision := subject.map (·.revision)
    call := subject.map (·.call)
    status := status? step.action
    data := actionData step.action ++ (if details.isEmpty then [] else [(sym!"details", .record details)]) }

def lacks {α : Type} (what : String) : Except String α := .error s!"the event has no {what}"

def dataSymbol (e : Event) (name : Symbol) : Except String Symbol :=
  match e.data.find? name with
  | some (.sym s) => .ok s
  | _ => lacks s!"data.{name}"

def dataSymbol? (e : Event) (name : Symbol) : Except String (Option Symbol) :=
  match e.data.find? name with
  | none => .ok none
  | some (.sym s) => .ok (some s)
  | some v => .error s!"data.{name}: expected a string, found {v.typeName}"

def dataBool (e : Event) (name : Symbol) : Except String Bool :=
  match e.data.find? name with
  | some (.bool b) => .ok b
  | _ => lacks s!"data.{name}"

def dataTime? (e : Event) (name : Symbol) : Except String (Option Time) :=
  match e.data.find? name with
  | none => .ok none
  | some (.num q) =>
    match q.toInt? with
    | some t => .ok (some t)
    | none => .error s!"data.{name}: expected a whole number"
  | some v => .error s!"data.{name}: expected a whole number, found {v.typeName}"

def present (what : String) : Option α → Except String α
  | some v => .ok v
  | none => lacks what

/-- The action that an event records; none if the event is not the protocol's. -/
def actionOf (e : Event) : Except String (Option Action) := do
  match e.kind.text with
  | "proposal" =>
    return some (.propose (← dataSymbol e sym!"proposal") {
      call := ← present "call" e.call
      resource := e.resource
      revision := ← present "revision" e.revision
      principal := e.principal
      conversation := e.conversation
      singleUse := ← dataBool e sym!"single_use"
      asksConsent := ← dataBool e sym!"asks_consent" })
  | "admission" =>
    return some (.decide (← dataSymbol e sym!"proposal") (← present "revision" e.revision) (← dataBool e sym!"admitted"))
  | "consent" =>
    return some (.confirm (← dataSymbol e sym!"consent") (← dataSymbol e sym!"proposal") (← present "principal" e.principal)
      (← dataTime? e sym!"expires"))
  | "reservation" =>
    return some (.reserve (← dataSymbol e sym!"reservation") (← dataSymbol e sym!"proposal") (← present "revision" e.revision)
      (← dataSymbol? e sym!"consent") (← dataTime? e sym!"deadline"))
  | "dispatch" => return some (.dispatch (← dataSymbol e sym!"reservation"))
  | "outcome" =>
    let id ← dataSymbol e sym!"reservation"
    match (← present "status" e.status).text with
    | "succeeded" => return some (.outcome id .succeeded)
    | "failed" => return some (.outcome id .failed)
    | "unknown" => return some (.outcome id .unknown)
    | s => .error s!"“{s}” is not an outcome"
  | "expiry" =>
    match ← dataSymbol? e sym!"consent", ← dataSymbol? e sym!"reservation" with
    | some id, none => return some (.expireConsent id)
    | none, some id => return some (.expireReservation id)
    | _, _ => .error "an expiry is of a consent or of a reservation"
  | "reconciliation" =>
    let id ← dataSymbol e sym!"reservation"
    match (← present "status" e.status).text with
    | "succeeded" => return some (.reconcile id true)
    | "failed" => return some (.reconcile id false)
    | s => .error s!"“{s}” does not settle a call"
  | _ => return none

/-! ## Following a journal -/

/-- Where a journal stopped being one that the machine could have made. -/
structure Fault where
  /-- The place of the event in the journal, from 0. -/
  position : Nat
  kind : Symbol
  message : String

/-- The protocol's state, as far as the journal has been read. -/
structure Follower where
  state : State := .start
  seen : Nat := 0
  fault : Option Fault := none

namespace Follower

def start : Follower := {}

/-- Whether the event says of the call what the state has of its proposal: no rule of the policy is to read another call than the machine. -/
def describes (e expected : Event) : Bool :=
  e.call == expected.call && e.resource == expected.resource && e.revision == expected.revision &&
    e.principal == expected.principal && e.conversation == expected.conversation

/-- The step that an event of the journal records, if the machine accepts it there. -/
def stepOf (s : State) (e : Event) : Except String Step :=
  match actionOf e with
  | .error message => .error message
  | .ok none => .ok ⟨e.time, .pass⟩
  | .ok (some action) =>
    let step : Step := ⟨e.time, action⟩
    match s.refusal? step with
    | some refusal => .error s!"{refusal.id}: {refusal.hint}"
    | none =>
      if describes e (eventOf s step) then .ok step
      else .error "the event's call, resource, revision, principal or conversation is not the proposal's"

/-- After one more event of the journal. -/
def follow : Follower → Event → Follower
  | ⟨state, seen, some fault⟩, _ => ⟨state, seen + 1, some fault⟩
  | ⟨state, seen, none⟩, e =>
    match stepOf state e with
    | .ok step => ⟨state.apply step, seen + 1, none⟩
    | .error message => ⟨state, seen + 1, some ⟨seen, e.kind, message⟩⟩

/-- After a journal. -/
def ofJournal (journal : Journal) : Follower := journal.foldr (fun e f => f.follow e) start

end Follower

/-! ## Steps in, answers out -/

/-- The journal is not one that the machine made. -/
def inconsistent : Failure :=
  ⟨"protocol.inconsistent", .require, .temporalIncompatibility,
    "The journal is not consistent: nothing can be sent until an operator has looked at it."⟩

def Refusal.failure (r : Refusal) : Failure := ⟨r.id, .require, r.category, r.hint⟩

/-- What a step comes to: the decision, and the events to append. -/
structure Answer where
  /-- Whether the step itself is to be recorded: it is among the events. -/
  accepted : Bool
  decision : Decision
  events : List Event := []
  /-- The consent that a reservation uses. -/
  consent : Option Symbol := none

def Answer.fields (a : Answer) : List (String × Json) :=
  [("accepted", .bool a.accepted)] ++ decisionFields a.decision ++
    [("events", .arr (a.events.map eventJson).toArray), ("consent", match a.consent with | none => .null | some c => .str c.text)]

def refuse (failure : Failure) : Answer := { accepted := false, decision := .deny [failure] [] }

/-- The expiry that a refusal has found out, to be recorded, so that a clock that jumps back does not undo it. -/
def expiryFound (s : State) (time : Time) : Action → Option Action
  | .reserve _ _ _ (some c) _ =>
    match s.consents[c]? with
    | some consent => if consent.phase = .live ∧ passed consent.expires (s.clock time) then some (.expireConsent c) else none
    | none => none
  | .dispatch id =>
    match s.reservations[id]? with
    | some r => if r.phase = .reserved ∧ passed r.deadline (s.clock time) then some (.expireReservation id) else none
    | none => none
  | _ => none

/-- The machine's answer to a step whose decision, if it is one, is known. -/
def judge (f : Follower) (step : Step) (decision : Decision := .admit) (details : Fields := []) : Answer :=
  match f.state.refusal? step with
  | some refusal =>
    { refuse (Refusal.failure refusal) with
      events := match expiryFound f.state step.time step.action with
        | none => []
        | some action => [eventOf f.state ⟨step.time, action⟩] }
  | none => { accepted := true, decision, events := [eventOf f.state step details] }

/-- The refusal if a snapshot was not read for the proposal's principal and conversation. -/
def viewRefusal? (p : Proposal) (snapshot : Snapshot) : Option Refusal :=
  if p.principal ≠ snapshot.principal then some .principalChanged
  else if p.conversation ≠ snapshot.conversation then some .conversationChanged
  else none

/-- The policy's decision on a recorded proposal in a snapshot read for it. -/
def reviewed (decide : Call → Snapshot → Decision) (f : Follower) (id : Symbol) (snapshot : Snapshot) :
    Except Refusal (Proposal × Decision) :=
  match f.state.offers[id]? with
  | none => .error .noSuchProposal
  | some offer =>
    match viewRefusal? offer.proposal snapshot with
    | some refusal => .error refusal
    | none => .ok (offer.proposal, decide offer.proposal.call snapshot)

def outcome : Decoder Outcome := fun j => do
  match (← status j).text with
  | "succeeded" => return .succeeded
  | "failed" => return .failed
  | _ => return .unknown

def settled : Decoder Bool := fun j => do
  match ← outcome j with
  | .succeeded => return true
  | .failed => return false
  | .unknown => Wire.fail "expected one of succeeded, failed"

def stepNames : List String :=
  ["propose", "decide", "confirm", "reserve", "dispatch", "outcome", "expire", "reconcile"]

/-- The answer to a step in JSON. `decide` is the policy's decision over the same journal that `f` has followed. -/
def protocolStep (policy : Policy) (decide : Call → Snapshot → Decision) (f : Follower) (j : Json) :
    Except WireError Answer := do
  let named (fields : List String) : Except WireError Object := object (["step", "time"] ++ fields) j
  let name ← match j.getObjVal? "step" with
    | .ok name => (string name).mapError (·.inField "step")
    | .error _ => Wire.fail "expected an object with a field step"
  let guarded (answer : Except WireError Answer) : Except WireError Answer :=
    if f.fault.isSome then .ok (refuse inconsistent) else answer
  match name with
  | "propose" =>
    let o ← named ["proposal", "call", "snapshot"]
    let time ← o.required "time" integer
    let id ← o.required "proposal" symbol
    let call ← o.required "call" call
    let snapshot ← o.required "snapshot" snapshot
    guarded <| match policy.contract? call.tool with
      | none => .ok (refuse Host.unknownTool)
      | some contract => .ok (judge f ⟨time, .propose id (proposalOf policy contract call snapshot)⟩)
  | "decide" =>
    let o ← named ["proposal", "snapshot"]
    let time ← o.required "time" integer
    let id ← o.required "proposal" symbol
    let snapshot ← o.required "snapshot" snapshot
    guarded <| match reviewed decide f id snapshot with
      | .error refusal => .ok (refuse (Refusal.failure refusal))
      | .ok (_, decision) => .ok (judge f ⟨time, .decide id snapshot.revision (decision == .admit)⟩ decision)
  | "confirm" =>
    let o ← named ["proposal", "consent", "by", "expires"]
    let time ← o.required "time" integer
    let id ← o.required "consent" symbol
    let proposal ← o.required "proposal" symbol
    let by' ← o.required "by" symbol
    let expires ← o.optional "expires" integer
    guarded <| .ok (judge f ⟨time, .confirm id proposal by' expires⟩)
  | "reserve" =>
    let o ← named ["proposal", "reservation", "snapshot", "consent", "deadline"]
    let time ← o.required "time" integer
    let id ← o.required "reservation" symbol
    let proposal ← o.required "proposal" symbol
    let snapshot ← o.required "snapshot" snapshot
    let consent ← o.optional "consent" symbol
    let deadline ← o.optional "deadline" integer
    guarded <| match reviewed decide f proposal snapshot with
      | .error refusal => .ok (refuse (Refusal.failure refusal))
      | .ok (p, decision) =>
        let consent := consent <|> f.state.consentFor p
        let answer := judge f ⟨time, .reserve id proposal snapshot.revision consent deadline⟩
        /- The policy decides again, over the journal to which the reservation is about to be appended. -/
        if answer.accepted && decision != .admit then .ok { accepted := false, decision }
        else .ok { answer with consent := if answer.accepted then consent else none }
  | "dispatch" =>
    let o ← named ["reservation"]
    let time ← o.required "time" integer
    let id ← o.required "reservation" symbol
    guarded <| .ok (judge f ⟨time, .dispatch id⟩)
  | "outcome" =>
    let o ← named ["reservation", "status", "details"]
    let time ← o.required "time" integer
    let id ← o.required "reservation" symbol
    let status ← o.required "status" outcome
    let details ← o.optional "details" fields
    return judge f ⟨time, .outcome id status⟩ (details := details.getD [])
  | "expire" =>
    let o ← named ["consent", "reservation"]
    let time ← o.required "time" integer
    match ← o.optional "consent" symbol, ← o.optional "reservation" symbol with
    | some id, none => return judge f ⟨time, .expireConsent id⟩
    | none, some id => return judge f ⟨time, .expireReservation id⟩
    | _, _ => Wire.fail "expected either a consent or a reservation"
  | "reconcile" =>
    let o ← named ["reservation", "status", "details"]
    let time ← o.required "time" integer
    let id ← o.required "reservation" symbol
    let succeeded ← o.required "status" settled
    let details ← o.optional "details" fields
    return judge f ⟨time, .reconcile id succeeded⟩ (details := details.getD [])
  | name => .error (WireError.inField ⟨"", s!"no step “{name}”; there are: {", ".intercalate stepNames}"⟩ "step")

def phaseName : Reservation.Phase → String
  | .reserved => "reserved"
  | .dispatched => "dispatched"
  | .unknown => "unknown"
  | .succeeded => "succeeded"
  | .failed => "failed"
  | .expired => "expired"

/-- The single-use calls that are reserved, sent or of unknown outcome. -/
def unsettled (f : Follower) : Json :=
  .arr <| (f.state.running.toList.filterMap fun (_, id) =>
    (f.state.reservations[id]?).map fun r => Json.mkObj [
      ("reservation", id.text), ("proposal", r.offer.text), ("phase", phaseName r.phase),
      ("call", callJson r.proposal.call),
      ("resource", match r.proposal.resource with | none => .null | some x => resourceJson x),
      ("revision", r.proposal.revision.text)]).toArray

/-- How far the journal has been followed, whether it is consistent, and what is not settled. -/
def statusFields (f : Follower) : List (String × Json) :=
  [("events_seen", toJson f.seen),
   ("fault", match f.fault with
    | none => .null
    | some x => .mkObj [("position", toJson x.position), ("kind", x.kind.text), ("message", .str x.message)]),
   ("unsettled", unsettled f)]

end LeanGuard.Wire.Protocol
