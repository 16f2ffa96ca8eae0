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

/-! ## Conditions in words -/

def Window.text : Window → String
  | .unbounded => ""
  | .milliseconds ms =>
    let units := [(86400000, "days"), (3600000, "hours"), (60000, "minutes"), (1000, "seconds")]
    match units.find? fun (unit, _) => ms % unit == 0 with
    | some (unit, name) => s!" in the last {ms / unit} {name}"
    | none => s!" in the last {ms} milliseconds"

def Dimension.text : Dimension → String
  | .principal => "principal"
  | .conversation => "conversation"
  | .resource => "resource"
  | .revision => "revision"
  | .proposal => "proposal"
  | .tool => "tool"
  | .argument name => s!"argument {name}"

/-- A condition in words, with the names of its atoms. -/
def Formula.text : Formula → String
  | .atom name _ => s!"“{name}”"
  | .top => "true"
  | .bot => "false"
  | .not p => s!"not {Formula.text p}"
  | .and p q => s!"({Formula.text p} and {Formula.text q})"
  | .or p q => s!"({Formula.text p} or {Formula.text q})"
  | .previous w p => s!"just before{Window.text w} {Formula.text p}"
  | .once w p => s!"once{Window.text w} {Formula.text p}"
  | .since w p q => s!"({Formula.text p} since{Window.text w} {Formula.text q})"
  | .within scope p => s!"within [{", ".intercalate (scope.map Dimension.text)}] {Formula.text p}"

def Rule.json (r : Rule) : Json :=
  .mkObj [
    ("id", r.id), ("kind", r.kind.name), ("category", r.category.name), ("hint", r.hint), ("sentence", r.sentence),
    ("stricter", r.optional), ("condition", Formula.text r.condition),
    ("tools", match r.tools with
      | .every => "every"
      | .writing => "writing"
      | .these names => .arr (names.map fun n => Json.str n.text).toArray)]

def Unenforced.json (u : Unenforced) : Json :=
  .mkObj [
    ("sentences", .arr (u.sentences.map Json.str).toArray), ("sections", .arr (u.sections.map Json.str).toArray), ("reason", u.reason)]

def Policy.json (p : Policy) : Json :=
  .mkObj [
    ("name", p.name), ("title", p.title),
    ("contracts", .arr (p.contracts.map Contract.json).toArray),
    ("rules", .arr (p.rules.map Rule.json).toArray),
    ("unenforced", .arr (p.unenforced.map Unenforced.json).toArray)]

end LeanGuard.Wire
