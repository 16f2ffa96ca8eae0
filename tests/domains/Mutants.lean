import Policies

/-!
# Policies with a fault in one rule

For each rule that is about a call's tool, the policy without the rule and the policy with the rule's condition negated, and what they decide
where the whole policy was asked. Test code: it is given to the warm process as a command, without its import line.
-/

namespace LeanGuard.Mutants

open Lean (Json)
open Wire

/-- The policy with one rule changed or, if nothing is to stand in its place, left out. -/
def changed (policy : Policy) (id : String) (change : Rule → Option Rule) : Policy :=
  { policy with rules := policy.rules.filterMap fun rule => if rule.id == id then change rule else some rule }

def mutations : List (String × (Rule → Option Rule)) := [
  ("dropped", fun _ => none),
  ("negated", fun rule => some { rule with condition := .not rule.condition })]

/-- What a decision says: the rules that failed, behind `!` those that could not be evaluated; nothing if it is an admission. -/
def reasons : Decision → List String
  | .admit => []
  | .deny failed errors => failed.map (·.id) ++ errors.map fun e => "!" ++ e.rule

structure Situation where
  call : Call
  snapshot : Snapshot
  journal : Journal

def situation : Decoder Situation := fun j => do
  let o ← object ["call", "snapshot", "journal"] j
  let events ← o.required "journal" (listOf event)
  return { call := ← o.required "call" Wire.call, snapshot := ← o.required "snapshot" Wire.snapshot, journal := events.reverse }

def strings (items : List String) : Json := .arr (items.map Json.str).toArray

/-- What the whole policy decides, and each mutant whose rule is about the tool: its rule, its fault and its reasons. -/
def row (policy : Policy) (s : Situation) : Json :=
  let decide (p : Policy) : List String := reasons (p.decide s.call s.snapshot s.journal)
  let applicable := ((policy.contract? s.call.tool).map policy.applicable).getD []
  let mutants := applicable.flatMap fun rule => mutations.map fun (name, change) =>
    Json.arr #[.str rule.id, .str name, strings (decide (changed policy rule.id change))]
  .mkObj [("whole", strings (decide policy)), ("mutants", .arr mutants.toArray)]

def rows (request : String) : Except WireError Json := do
  let json ← (Json.parse request).mapError fun e => ⟨"", e⟩
  let o ← object ["policy", "situations"] json
  let policy ← policyNamed policies (← o.required "policy" string)
  return .arr ((← o.required "situations" (listOf situation)).map (row policy)).toArray

def mutants (request : String) : IO Unit :=
  match rows request with
  | .ok json => IO.println json.compress
  | .error e => throw (IO.userError s!"{e.path}: {e.message}")

end LeanGuard.Mutants

open LeanGuard.Mutants in
/-- Prints a row for each situation. -/
def mutants (request : String) : IO Unit := LeanGuard.Mutants.mutants request
