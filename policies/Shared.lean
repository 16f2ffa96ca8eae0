import LeanGuard.Spec.Read
import LeanGuard.Spec.Policy

/-! # What the policies share: rows that may not exist, events, consent, calls in flight -/

namespace LeanGuard.Shared

/-- `declare_symbols order_id user_id` defines each of the names as the symbol of itself. -/
macro "declare_symbols" ids:ident* : command => do
  let defs ← ids.mapM fun id => `(def $id:ident : Symbol := sym!$(Lean.Syntax.mkStrLit id.getId.toString))
  return ⟨Lean.mkNullNode defs⟩

/-! ## The snapshot -/

/-- A condition written as steps: a step that reads what is not there, or that does not hold, ends it with false; one that can't be read, with an
error. -/
abbrev Find := OptionT (Except EvalError)

/-- Whether all the steps hold. -/
def holds (steps : Pending → Find Unit) (p : Pending) : Read Bool := return (← (steps p).run).isSome

/-- What is there; the step fails if nothing is. -/
def found : Option α → Find α
  | some a => return a
  | none => failure

/-- An entry of one of the snapshot's tables. An adapter writes null where the backend has no such entry: that is known, and fails the step;
an entry that the adapter left out is missing data, and an error. -/
def row (p : Pending) (table key : Symbol) : Find Fields := do
  match (← (← p.state).needFields table).find? key with
  | some .null => failure
  | some row => row.asFields s!"state.{table}.{key}"
  | none => (unreadable s!"state.{table}.{key}: missing" : Read Fields)

/-- The entry that an argument of the call names. -/
def named (p : Pending) (table argument : Symbol) : Find Fields := do
  row p table (← p.arguments.needSymbol argument)

/-- Whether that is the customer whom the host has authenticated; no one is, if there is none. -/
def isCustomer (p : Pending) (id : Symbol) : Bool := p.snapshot.principal == some id

/-- The authenticated customer's entry. -/
def account (p : Pending) (table : Symbol) : Find Fields := do
  row p table (← found p.snapshot.principal)

/-- An entry of an object that may lack it. -/
def entry (fields : Fields) (name : Symbol) : Find Fields := do
  (← found (fields.find? name)).asFields name.text

/-- A list of objects. -/
def objectsIn (fields : Fields) (name : Symbol) : Read (List Fields) := do
  (← fields.needList name).mapM (·.asFields name.text)

/-- Whether the condition holds of any of the items. Those after the first of which it does are not read. -/
def anyOf (condition : α → Find Bool) : List α → Find Bool
  | [] => return false
  | item :: items => do if ← condition item then return true else anyOf condition items

/-- The sum of what is read of each item. -/
def sum (items : List α) (amount : α → Find Quantity) : Find Quantity :=
  items.foldlM (init := 0) fun total item => return total + (← amount item)

/-! ## Events -/

/-- An event of that kind. -/
def event (kind : Symbol) : Formula := .happened kind.text fun e => .ok (e.kind == kind)

def authentication : Formula := event sym!"authentication"
def observation : Formula := event sym!"observation"
def consent : Formula := event sym!"consent"
def reservation : Formula := event sym!"reservation"

/-- A call that was reserved has ended: its outcome is known, now or when the backend was asked later, or it was never sent. -/
def ended : Formula :=
  .happened "the call ended" fun e => .ok <|
    e.kind == sym!"outcome" && e.status != some sym!"unknown" || e.kind == sym!"reconciliation" ||
      e.kind == sym!"expiry" && (e.data.find? sym!"reservation").isSome

/-- A call of that tool ended well, as far as is known by now. -/
def succeeded (tool : Symbol) : Formula :=
  .happened s!"{tool} succeeded" fun e => .ok <|
    (e.kind == sym!"outcome" || e.kind == sym!"reconciliation") && e.status == some sym!"succeeded" &&
      e.call.any (·.tool == tool)

/-- A customer was authenticated in this conversation. -/
def authenticated : Formula := .within [.conversation] (.once .unbounded authentication)

/-- This resource was read in this conversation. -/
def observed : Formula := .within [.conversation, .resource] (.once .unbounded observation)

/-- A consent, and no reservation since. -/
def unspentConsent : Formula := .since .unbounded (.not reservation) consent

/-- The customer confirmed exactly this call, in this state of the backend, and it has not been sent since: not in this conversation, and
not anywhere else. -/
def confirmed : Formula :=
  .and (.within [.principal, .conversation, .resource, .revision, .proposal] unspentConsent)
    (.within [.proposal] unspentConsent)

/-- A call on this resource was sent and has not come back. -/
def inFlight : Formula := .within [.resource] (.since .unbounded (.not ended) reservation)

/-- One call in flight for a resource. -/
def noOverlap : Rule where
  id := "host.no_overlap"
  kind := .forbid
  tools := .writing
  category := .temporalIncompatibility
  hint := "Another call on the same resource has not come back yet. Wait for its outcome before you call again."
  sentence := "At most one call may be in flight for a resource."
  condition := inFlight

end LeanGuard.Shared
