import Lean.Data.Json
import LeanGuard.Spec.Decision

/-! # JSON out -/

namespace LeanGuard.Wire

open Lean (Json toJson)

def Failure.json (f : Failure) : Json :=
  .mkObj [("id", f.id), ("kind", f.kind.name), ("category", f.category.name), ("hint", f.hint)]

def RuleError.json (e : RuleError) : Json :=
  .mkObj [("rule", e.rule), ("message", e.error.message)]

/-- The fields of a decision. -/
def decisionFields : Decision → List (String × Json)
  | .admit => [("verdict", "admit"), ("failed_rules", .arr #[]), ("errors", .arr #[])]
  | .deny failed errors =>
    [("verdict", "deny"), ("failed_rules", .arr (failed.map Failure.json).toArray),
      ("errors", .arr (errors.map RuleError.json).toArray)]

def ArgumentType.json : ArgumentType → Json
  | .string => "string"
  | .integer => "integer"
  | .number => "number"
  | .boolean => "boolean"
  | .listOf item => .mkObj [("list", ArgumentType.json item)]
  | .object => "object"

def Contract.json (c : Contract) : Json :=
  .mkObj [
    ("tool", c.tool.text),
    ("access", match c.access with | .read => "read" | .write => "write"),
    ("parameters", .arr (c.parameters.map fun p =>
      Json.mkObj [("name", p.name.text), ("type", ArgumentType.json p.type), ("required", p.required)]).toArray),
    ("resource", match c.resource with
      | none => .null
      | some r => .mkObj [("type", r.type.text), ("argument", r.argument.text)]),
    ("effect", c.effect)]

def Rule.json (r : Rule) : Json :=
  .mkObj [
    ("id", r.id), ("kind", r.kind.name), ("category", r.category.name), ("hint", r.hint), ("sentence", r.sentence),
    ("tools", match r.tools with
      | .every => "every"
      | .writing => "writing"
      | .these names => .arr (names.map fun n => Json.str n.text).toArray)]

def Policy.json (p : Policy) : Json :=
  .mkObj [
    ("name", p.name), ("title", p.title),
    ("contracts", .arr (p.contracts.map Contract.json).toArray),
    ("rules", .arr (p.rules.map Rule.json).toArray)]

end LeanGuard.Wire
