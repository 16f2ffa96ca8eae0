import LeanGuard.Spec.Read
import LeanGuard.Eval.Monitor
import LeanGuard.Wire.Decode

/-!
# The Lean side of the differential tests

A program that decodes formulas, histories and policies from JSON, a batch on each line, and prints what Lean makes of them. Test code: the
package does not import it.

A moment is an event as on the wire, or an object with `call`, `snapshot` and `resource`. Formulas are lists, as in
`["since", 5, ["kind", "a"], ["top"]]`; a window is a number of milliseconds, or null.
-/

namespace LeanGuard.Oracle

open Lean (Json)
open Wire

/-! ## Atoms -/

def need (what : String) (m : Moment) : Option α → Except EvalError α
  | some v => .ok v
  | none => .error ⟨s!"{what} is missing at {m.time}"⟩

/-- A flag in the event's data or in the call's arguments: missing and malformed ones are errors. -/
def flag (name : Symbol) (m : Moment) : Checked := do
  let fields := match m with
    | .pending p => p.call.arguments
    | .event e => e.data
  match ← need name.text m (fields.find? name) with
  | .bool b => .ok b
  | v => .error ⟨s!"{name} at {m.time} is {v.typeName}"⟩

/-- Never an error. -/
def principalIs (name : Symbol) (m : Moment) : Checked := .ok (m.principal == some name)

/-- An error at every moment that has no status. -/
def statusIs (name : Symbol) (m : Moment) : Checked := do
  let status := match m with
    | .pending _ => none
    | .event e => e.status
  return (← need "the status" m status) == name

/-! ## Decoding -/

def window : Decoder Window
  | .null => .ok .unbounded
  | j => do
    let n ← integer j
    if n < 0 then fail "a window is not negative" else return .milliseconds n.toNat

def oneOf (names : List (String × α)) : Decoder α := fun j => do
  match names.lookup (← string j) with
  | some a => return a
  | none => fail s!"expected one of {names.map (·.1)}"

def dimension : Decoder Dimension
  | .obj o => do return .argument (← (Object.required o "argument" symbol))
  | j => oneOf [("principal", .principal), ("conversation", .conversation), ("resource", .resource), ("revision", .revision),
      ("proposal", .proposal), ("tool", .tool)] j

instance : Inhabited (Except WireError Formula) := ⟨.ok .bot⟩

/-- A chain of tests, since matching on strings takes Lean seconds to compile. -/
partial def formula (j : Json) : Except WireError Formula := do
  let items ← listOf pure j
  let name ← string (items.getD 0 .null)
  let part (i : Nat) : Json := items.getD i .null
  if name == "top" then return .top
  if name == "bot" then return .bot
  if name == "ready" then return .now "ready" fun p => do (← p.state).needBool (.ofString "ready")
  if name == "kind" then
    let k ← symbol (part 1)
    return .happened k.text fun e => .ok (e.kind == k)
  if name == "flag" then return .atom name (flag (← symbol (part 1)))
  if name == "principal" then return .atom name (principalIs (← symbol (part 1)))
  if name == "status" then return .atom name (statusIs (← symbol (part 1)))
  if name == "not" then return .not (← formula (part 1))
  if name == "and" then return .and (← formula (part 1)) (← formula (part 2))
  if name == "or" then return .or (← formula (part 1)) (← formula (part 2))
  if name == "previous" then return .previous (← window (part 1)) (← formula (part 2))
  if name == "once" then return .once (← window (part 1)) (← formula (part 2))
  if name == "since" then return .since (← window (part 1)) (← formula (part 2)) (← formula (part 3))
  if name == "within" then return .within (← listOf dimension (part 1)) (← formula (part 2))
  fail s!"not a formula: {j.compress}"

def pending : Decoder Pending := fun j => do
  let o ← object ["call", "snapshot", "resource"] j
  return {
    call := ← o.required "call" call
    snapshot := ← o.required "snapshot" snapshot
    resource := ← o.optional "resource" resource }

def moment : Decoder Moment := fun j =>
  match j.getObjVal? "snapshot" with
  | .ok _ => .pending <$> pending j
  | .error _ => .event <$> event j

/-- A history, oldest first. -/
abbrev history : Decoder (List Moment) := listOf moment

/-! ## Formulas -/

def letter : Checked → String
  | .ok true => "T"
  | .ok false => "F"
  | .error _ => "E"

/-- One letter if the evaluator and the monitor agree, the text of an error included; both answers otherwise. -/
def agreed (evaluated recalled : Checked) : String :=
  let shown : Checked → String
    | .ok b => toString b
    | .error e => s!"error: {e.message}"
  if shown evaluated == shown recalled then letter evaluated
  else s!"⟨evaluator {shown evaluated} | monitor {shown recalled}⟩"

/-- The verdict at each moment of a history, oldest first, by the evaluator over everything before it and by the monitor, which learns one
moment after another. -/
def verdicts (f : Formula) : (memory : f.Memory) → (past : Past) → List Moment → String
  | _, _, [] => ""
  | memory, past, m :: later =>
    agreed (f.eval m past) (f.recall memory m) ++ verdicts f (f.learn memory m) (m :: past) later

/-! ## Policies -/

def boolean : Decoder Bool
  | .bool b => .ok b
  | j => fail s!"expected true or false, found {describe j}"

def parameter : Decoder Parameter := fun j => do
  let o ← object ["name", "type", "required"] j
  return {
    name := ← o.required "name" symbol
    type := ← o.required "type" (oneOf
      [("string", .string), ("integer", .integer), ("number", .number), ("boolean", .boolean), ("object", .object),
        ("strings", .listOf .string)])
    required := ← o.required "required" boolean }

def contract : Decoder Contract := fun j => do
  let o ← object ["tool", "access", "parameters", "resource"] j
  let r ← o.optional "resource" Wire.resource
  return {
    tool := ← o.required "tool" symbol
    access := ← o.required "access" (oneOf [("read", .read), ("write", .write)])
    parameters := ← o.required "parameters" (listOf parameter)
    resource := r.map fun r => ⟨r.type, r.id⟩ }

def tools : Decoder Tools
  | .str "every" => .ok .every
  | .str "writing" => .ok .writing
  | j => .these <$> listOf symbol j

def rule : Decoder Rule := fun j => do
  let o ← object ["id", "kind", "tools", "condition"] j
  return {
    id := ← o.required "id" string
    kind := ← o.required "kind" (oneOf [("permit", .permit), ("require", .require), ("forbid", .forbid)])
    tools := ← o.required "tools" tools
    category := .policyProhibition
    hint := ""
    condition := ← o.required "condition" formula }

def policy : Decoder Policy := fun j => do
  let o ← object ["contracts", "rules"] j
  return {
    name := "generated"
    contracts := ← o.required "contracts" (listOf contract)
    rules := ← o.required "rules" (listOf rule) }

/-- As text: `admit`, or the failed rules and then the rules with an error. -/
def decision : Decision → String
  | .admit => "admit"
  | .deny failed errors => s!"deny {",".intercalate (failed.map (·.id))} {",".intercalate (errors.map (·.rule))}"

/-- The decision by the evaluator over the whole journal and by the monitor, which observes one event after another. -/
def decisions (p : Policy) (c : Call) (s : Snapshot) (oldestFirst : List Event) : String :=
  let decided := p.decide c s oldestFirst.reverse
  let monitored := (oldestFirst.foldl Monitor.observe (Monitor.start p)).decide c s
  if decided == monitored then decision decided
  else s!"⟨evaluator {decision decided} | monitor {decision monitored}⟩"

/-! ## Batches -/

def request : Decoder (List (List String)) := fun j => do
  let o ← object ["formulas", "histories", "policies", "situations"] j
  let formulas := (← o.optional "formulas" (listOf formula)).getD []
  let histories := (← o.optional "histories" (listOf history)).getD []
  let policies := (← o.optional "policies" (listOf policy)).getD []
  let situation : Decoder (Call × Snapshot × List Event) := fun j => do
    let o ← object ["call", "snapshot", "journal"] j
    return (← o.required "call" call, ← o.required "snapshot" snapshot, ← o.required "journal" (listOf event))
  let situations := (← o.optional "situations" (listOf situation)).getD []
  return (formulas.map fun f => histories.map fun h => verdicts f f.start [] h) ++
    policies.map fun p => situations.map fun (c, s, events) => decisions p c s events

/-- The verdicts of each formula on each history, and the decisions of each policy in each situation. -/
def answer (text : String) : Json :=
  match (Json.parse text).mapError (⟨"", ·⟩) >>= request with
  | .ok rows => .arr (rows.map fun row => Json.arr (row.map Json.str).toArray).toArray
  | .error e => .mkObj [("error", .str s!"{e.path}: {e.message}")]

end LeanGuard.Oracle

def main (_ : List String) : IO Unit := do
  let stdin ← IO.getStdin
  let stdout ← IO.getStdout
  repeat
    let line ← stdin.getLine
    if line.isEmpty then break
    -- The mark before an answer tells it from what the portable Lean itself prints.
    stdout.putStr ("\u001e" ++ (LeanGuard.Oracle.answer line).compress ++ "\n")
    stdout.flush
