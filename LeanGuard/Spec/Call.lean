import LeanGuard.Spec.Value

/-!
# Calls, snapshots, events, moments

A policy is decided at a **pending moment**: a proposed call in a trusted snapshot. Behind it lie the events of the journal.
-/

namespace LeanGuard

/-- A tool call as the model proposed it: untrusted. -/
structure Call where
  tool : Symbol
  arguments : Fields
deriving DecidableEq

/-- What a tool touches: one thing of the backend, by type ("order") and id. -/
structure Resource where
  type : Symbol
  id : Symbol
deriving DecidableEq

/-- Milliseconds since 1970-01-01 00:00 UTC. -/
abbrev Time := Int

/-- What an adapter read from the authoritative backend for this call: trusted. -/
structure Snapshot where
  /-- Names this state of the backend; another state has another revision. -/
  revision : Symbol
  /-- The trusted clock at the decision. -/
  time : Time
  /-- The customer that the host has authenticated, if any. -/
  principal : Option Symbol
  conversation : Option Symbol
  /-- The backend's data that the policy needs. -/
  state : Value

/-- One thing that happened, as the host recorded it: trusted. -/
structure Event where
  /-- authentication, observation, consent, reservation, outcome, ... -/
  kind : Symbol
  time : Time
  principal : Option Symbol := none
  conversation : Option Symbol := none
  resource : Option Resource := none
  revision : Option Symbol := none
  /-- The call that the event is about. -/
  call : Option Call := none
  /-- Of an outcome: succeeded, failed, unknown. -/
  status : Option Symbol := none
  data : Fields := []

/-- The pending moment: a call in its snapshot, and the resource that the tool's contract says it touches. -/
structure Pending where
  call : Call
  snapshot : Snapshot
  resource : Option Resource

/-- One place of the trace: the pending call at its head, an event elsewhere. -/
inductive Moment where
  | pending (p : Pending)
  | event (e : Event)

namespace Moment

def time : Moment → Time
  | .pending p => p.snapshot.time
  | .event e => e.time

def principal : Moment → Option Symbol
  | .pending p => p.snapshot.principal
  | .event e => e.principal

def conversation : Moment → Option Symbol
  | .pending p => p.snapshot.conversation
  | .event e => e.conversation

def resource : Moment → Option Resource
  | .pending p => p.resource
  | .event e => e.resource

def revision : Moment → Option Symbol
  | .pending p => some p.snapshot.revision
  | .event e => e.revision

def call : Moment → Option Call
  | .pending p => some p.call
  | .event e => e.call

end Moment

/-- The events, newest first (the journal file has the newest last). -/
abbrev Journal := List Event

/-- The history behind a moment: what came before it, newest first. -/
abbrev Past := List Moment

/-- The journal as the past of the pending moment. -/
def Journal.past (journal : Journal) : Past := journal.map .event

end LeanGuard
