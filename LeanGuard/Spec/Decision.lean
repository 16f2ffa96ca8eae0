import LeanGuard.Spec.Policy

/-! # Decisions: what the checkpoint answers -/

namespace LeanGuard

/-- A rule that a denied call failed. -/
structure Failure where
  id : String
  kind : RuleKind
  category : Category
  hint : String
deriving DecidableEq

/-- A rule that could not be evaluated, and why. -/
structure RuleError where
  rule : String
  error : EvalError
deriving DecidableEq

/-- Admitted, or denied with every rule that failed and every error. -/
inductive Decision where
  | admit
  | deny (failed : List Failure) (errors : List RuleError)
deriving DecidableEq

/-- What a rule came to. -/
structure Result where
  rule : Rule
  truth : Checked

/-- The failure that reports a rule. -/
def Rule.failure (r : Rule) : Failure := ⟨r.id, r.kind, r.category, r.hint⟩

namespace Host

/-- No contract names the tool: what it would do is not known. -/
def unknownTool : Failure :=
  ⟨"host.unknown_tool", .require, .invalidInvocation, "This tool is not in the policy. Use one of the tools that it names."⟩

/-- The arguments do not fit the tool's contract. -/
def arguments : Failure :=
  ⟨"host.arguments", .require, .invalidInvocation, "The arguments do not fit the tool's schema. Correct them and call again."⟩

/-- No permit is about the tool. -/
def noPermit : Failure :=
  ⟨"host.no_permit", .permit, .policyProhibition, "No rule of the policy permits this tool."⟩

end Host
end LeanGuard
