import LeanGuard.Spec.Formula

/-!
# Reading values in atoms

What a policy's atoms read of a call, a snapshot or an event. A missing or malformed field is an error that names it, never false.
-/

namespace LeanGuard

abbrev Read (α : Type) := Except EvalError α

def unreadable {α : Type} (message : String) : Read α := .error ⟨message⟩

namespace Value

def asSymbol (what : String) : Value → Read Symbol
  | .sym s => .ok s
  | v => unreadable s!"{what}: expected a string, found {v.typeName}"

def asQuantity (what : String) : Value → Read Quantity
  | .num q => .ok q
  | v => unreadable s!"{what}: expected a number, found {v.typeName}"

def asBool (what : String) : Value → Read Bool
  | .bool b => .ok b
  | v => unreadable s!"{what}: expected true or false, found {v.typeName}"

def asList (what : String) : Value → Read (List Value)
  | .list items => .ok items
  | v => unreadable s!"{what}: expected a list, found {v.typeName}"

def asFields (what : String) : Value → Read Fields
  | .record fields => .ok fields
  | v => unreadable s!"{what}: expected an object, found {v.typeName}"

def asSymbols (what : String) (v : Value) : Read (List Symbol) := do
  (← v.asList what).mapM (·.asSymbol what)

end Value

namespace Fields

/-- A field that must be there. -/
def need (fields : Fields) (name : Symbol) : Read Value :=
  match fields.find? name with
  | some v => .ok v
  | none => unreadable s!"{name}: missing"

def needSymbol (fields : Fields) (name : Symbol) : Read Symbol := do (← fields.need name).asSymbol name.text
def needQuantity (fields : Fields) (name : Symbol) : Read Quantity := do (← fields.need name).asQuantity name.text
def needBool (fields : Fields) (name : Symbol) : Read Bool := do (← fields.need name).asBool name.text
def needList (fields : Fields) (name : Symbol) : Read (List Value) := do (← fields.need name).asList name.text
def needFields (fields : Fields) (name : Symbol) : Read Fields := do (← fields.need name).asFields name.text
def needSymbols (fields : Fields) (name : Symbol) : Read (List Symbol) := do (← fields.need name).asSymbols name.text

end Fields

namespace Pending

def arguments (p : Pending) : Fields := p.call.arguments

def state (p : Pending) : Read Fields := p.snapshot.state.asFields "state"

/-- An entry of one of the snapshot's tables, as in `state.orders["#W1"]`. -/
def row (p : Pending) (table key : Symbol) : Read Fields := do
  match (← (← p.state).needFields table).find? key with
  | some row => row.asFields s!"state.{table}.{key}"
  | none => unreadable s!"state.{table}.{key}: missing"

/-- The customer that the host has authenticated. -/
def customer (p : Pending) : Read Symbol :=
  match p.snapshot.principal with
  | some s => .ok s
  | none => unreadable "no customer is authenticated"

end Pending
end LeanGuard
