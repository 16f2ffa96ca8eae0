import LeanGuard.Eval.Monitor
import LeanGuard.Wire.Decode
import LeanGuard.Wire.Encode
import LeanGuard.Wire.Protocol

/-!
# Requests

The `guard` requests of the warm process. A request that can't be decoded is answered with an error, never with a decision; so is one that
names a policy or an operation that there is not.
-/

namespace LeanGuard.Wire

open Lean (Json toJson)

/-- A journal that the process follows: what the rules and the protocol remember of it, and how many events it has. -/
structure Followed where
  monitor : Monitor
  protocol : Protocol.Follower := .start
  seen : Nat := 0

/-- The followed journals, by policy and journal id. -/
abbrev Journals := Std.HashMap (String × String) Followed

def failField {α : Type} (name message : String) : Except WireError α := .error (WireError.inField ⟨"", message⟩ name)

/-- The policy of that name, or with the suffix behind the name, the policy without its stricter rules. -/
def policyNamed (policies : List Policy) (name : String) : Except WireError Policy :=
  match policies.find? (·.name == name) <|>
      ((policies.find? fun p => p.name ++ withoutStricterSuffix == name).map Policy.withoutStricter) with
  | some p => .ok p
  | none => failField "policy" s!"no policy named “{name}”; there are: {", ".intercalate (policies.map (·.name))}"

/-- The journal of that id, which must have as many events as the request counts. -/
def followed (journals : Journals) (o : Object) (policy id : String) : Except WireError Followed := do
  match journals.get? (policy, id) with
  | none => failField "journal_id" s!"no journal “{id}” is followed for this policy; send its events with observe"
  | some journal =>
    match ← o.optional "events_seen" integer with
    | some n =>
      if n = journal.seen then return journal
      else failField "events_seen" s!"the journal “{id}” has {journal.seen} events here, the request counts {n}"
    | none => return journal

/-- The decision on a call, by the monitor. The journal comes with the request, or is one that the process follows. -/
def admit (policies : List Policy) (journals : Journals) (o : Object) : Except WireError (List (String × Json)) := do
  let name ← o.required "policy" string
  let policy ← policyNamed policies name
  let proposed ← o.required "call" call
  let snap ← o.required "snapshot" snapshot
  let monitor ← match ← o.optional "journal_id" string with
    | some id => do pure (← followed journals o name id).monitor
    | none => do
      let events ← o.required "journal" (listOf event)
      pure (events.foldl Monitor.observe (Monitor.start policy))
  let decision := monitor.decide proposed snap
  return [("policy", .str name), ("revision", .str snap.revision.text)] ++ decisionFields decision

/-- More events for a journal that the process follows (from now on, if it is new). -/
def observe (policies : List Policy) (journals : Journals) (o : Object) :
    Except WireError (Journals × List (String × Json)) := do
  let name ← o.required "policy" string
  let policy ← policyNamed policies name
  let id ← o.required "journal_id" string
  let events ← o.required "events" (listOf event)
  let journal := journals.getD (name, id) { monitor := Monitor.start policy }
  let journals := journals.erase (name, id)
  let journal := { journal with
    monitor := events.foldl Monitor.observe journal.monitor
    protocol := events.foldl Protocol.Follower.follow journal.protocol
    seen := journal.seen + events.length }
  return (journals.insert (name, id) journal, [("events_seen", toJson journal.seen)])

/-- A step of the protocol on a followed journal: accepted, with the events to append, or refused. It moves nothing: the events do. -/
def step (policies : List Policy) (journals : Journals) (o : Object) : Except WireError (List (String × Json)) := do
  let name ← o.required "policy" string
  let policy ← policyNamed policies name
  let journal ← followed journals o name (← o.required "journal_id" string)
  let answer ← o.required "step" (Protocol.protocolStep policy journal.monitor.decide journal.protocol)
  return answer.fields

/-- How far a followed journal has come, and what is not settled in it. -/
def journalStatus (policies : List Policy) (journals : Journals) (o : Object) : Except WireError (List (String × Json)) := do
  let name ← o.required "policy" string
  let _ ← policyNamed policies name
  let journal ← followed journals o name (← o.required "journal_id" string)
  return Protocol.statusFields journal.protocol

/-- Forgets one journal, or all. -/
def reset (journals : Journals) (o : Object) : Except WireError (Journals × List (String × Json)) := do
  match ← o.optional "journal_id" string with
  | none => return (∅, [("reset", "all")])
  | some id => return (journals.filter fun key _ => key.2 != id, [("reset", .str id)])

def operations : List String := ["admit", "observe", "step", "status", "reset", "policies", "repair", "prove"]

def known : List String :=
  ["id", "op", "policy", "call", "snapshot", "journal", "journal_id", "events", "events_seen", "step"]

def answerObject (policies : List Policy) (journals : Journals) (o : Object) :
    Except WireError (Journals × List (String × Json)) := do
  match ← o.required "op" string with
  | "admit" => return (journals, ← admit policies journals o)
  | "observe" => observe policies journals o
  | "step" => return (journals, ← step policies journals o)
  | "status" => return (journals, ← journalStatus policies journals o)
  | "reset" => reset journals o
  | "policies" => return (journals, [("policies", .arr (policies.map Policy.json).toArray)])
  | "repair" | "prove" => failField "op" "a repair or a proof is asked of the process itself"
  | op => failField "op" s!"no operation “{op}”; there are: {", ".intercalate operations}"

/-- Answers the body of a `guard` request. The answer repeats the request's `id`. -/
def answer (policies : List Policy) (journals : Journals) (request : Json) : Journals × Json :=
  let id := (request.getObjVal? "id").toOption.getD .null
  match object known request >>= answerObject policies journals with
  | .ok (journals, fields) => (journals, .mkObj ([("id", id), ("ok", .bool true)] ++ fields))
  | .error e =>
    (journals, .mkObj [("id", id), ("ok", .bool false), ("error", .mkObj [("path", .str ("guard" ++ e.path)), ("message", e.message)])])

/-- An admission asked as text: one JSON object with `call`, `snapshot` and `journal`. -/
def admitText (policies : List Policy) (policy request : String) : Json :=
  match Json.parse request with
  | .error e => .mkObj [("ok", .bool false), ("error", .mkObj [("path", "guard"), ("message", .str s!"not JSON: {e}")])]
  | .ok j => (answer policies ∅ (j.setObjVal! "policy" policy |>.setObjVal! "op" "admit")).2

end LeanGuard.Wire
