import LeanGuard.Spec.Formula

/-!
# Contracts, rules, policies

A policy is a list of tool contracts and a list of rules. The contract says what a call of the tool must look like; the rules say when it
may run.
-/

namespace LeanGuard

/-- The taxonomy of denied calls. -/
inductive Category where
  | invalidInvocation
  | stateIncompatibility
  | temporalIncompatibility
  | authorizationFailure
  | policyProhibition
  | effectNotModelled
deriving DecidableEq, Repr

/-- The category's name in the wire format. -/
def Category.name : Category → String
  | .invalidInvocation => "invalid invocation"
  | .stateIncompatibility => "state incompatibility"
  | .temporalIncompatibility => "temporal incompatibility"
  | .authorizationFailure => "authorization failure"
  | .policyProhibition => "policy prohibition"
  | .effectNotModelled => "effect not modelled"

/-- The type of one argument. -/
inductive ArgumentType where
  | string
  | integer
  | number
  | boolean
  | listOf (item : ArgumentType)
  /-- Any JSON object. -/
  | object
deriving Repr

namespace ArgumentType

def describe : ArgumentType → String
  | .string => "a string"
  | .integer => "a whole number"
  | .number => "a number"
  | .boolean => "true or false"
  | .listOf item => "a list, each item " ++ item.describe
  | .object => "an object"

/-- Whether the value is of the type. -/
def accepts : ArgumentType → Value → Bool
  | .string, .sym _ => true
  | .string, .text _ => true
  | .integer, .num q => q.toInt?.isSome
  | .number, .num _ => true
  | .boolean, .bool _ => true
  | .listOf item, .list values => values.all item.accepts
  | .object, .record _ => true
  | _, _ => false

end ArgumentType

structure Parameter where
  name : Symbol
  type : ArgumentType
  required : Bool := true

inductive Access where
  | read
  | write
deriving DecidableEq, Repr

/-- The argument that names the resource, and the resource's type. -/
structure ResourceArgument where
  type : Symbol
  argument : Symbol

/-- The reviewed description of one tool. -/
structure Contract where
  tool : Symbol
  access : Access
  parameters : List Parameter
  resource : Option ResourceArgument := none
  /-- What the tool changes, for people. -/
  effect : String := ""

/-- What the call's arguments lack of the contract; empty if they fit. -/
def Contract.violations (c : Contract) (arguments : Fields) : List EvalError :=
  (c.parameters.flatMap fun p =>
    match arguments.find? p.name with
    | none => if p.required then [⟨s!"arguments.{p.name}: missing, expected {p.type.describe}"⟩] else []
    | some v =>
      if p.type.accepts v then []
      else [⟨s!"arguments.{p.name}: expected {p.type.describe}, found {v.typeName}"⟩]) ++
  ((arguments.filter fun (name, _) => !(c.parameters.any (·.name == name))).map fun (name, _) =>
    ⟨s!"arguments.{name}: the tool has no such argument"⟩)

/-- The resource that a call of the tool touches. -/
def Contract.resourceOf (c : Contract) (arguments : Fields) : Option Resource :=
  c.resource.bind fun r =>
    match arguments.find? r.argument with
    | some (.sym id) => some ⟨r.type, id⟩
    | _ => none

/-- A permit lets its tools run, a requirement must hold, a forbid must not. -/
inductive RuleKind where
  | permit
  | require
  | forbid
deriving DecidableEq, Repr

def RuleKind.name : RuleKind → String
  | .permit => "permit"
  | .require => "require"
  | .forbid => "forbid"

/-- The tools that a rule is about. -/
inductive Tools where
  | every
  /-- Every tool whose contract says that it writes. -/
  | writing
  | these (names : List Symbol)

/-- Whether the rule is about the contract's tool. -/
def Tools.include : Tools → Contract → Bool
  | .every, _ => true
  | .writing, c => c.access == .write
  | .these names, c => names.contains c.tool

structure Rule where
  /-- `domain.name`. -/
  id : String
  kind : RuleKind
  tools : Tools
  category : Category
  /-- What the model is told when the rule fails. -/
  hint : String
  /-- The sentence of the English policy that the rule states. -/
  sentence : String := ""
  /-- Asks for more than the policy's source holds itself to; can be left out (`Policy.withoutStricter`). -/
  stricter : Bool := false
  condition : Formula

/-- Sentences of the English policy that no rule states, and why not. -/
structure Unenforced where
  /-- As they stand in the policy; `...` stands for words left out. -/
  sentences : List String := []
  /-- Whole sections, by their headings. -/
  sections : List String := []
  reason : String

structure Policy where
  name : String
  title : String := ""
  contracts : List Contract
  rules : List Rule
  /-- What the English policy says besides. -/
  unenforced : List Unenforced := []

/-- The contract of a tool. -/
def Policy.contract? (p : Policy) (tool : Symbol) : Option Contract :=
  p.contracts.find? (·.tool == tool)

/-- The rules about the contract's tool. -/
def Policy.applicable (p : Policy) (c : Contract) : List Rule :=
  p.rules.filter (·.tools.include c)

/-- What stands behind the name of a policy without its stricter rules. -/
def withoutStricterSuffix : String := ":without-stricter"

/-- The rule may be left out: it is marked as stricter, and it is no permit, so that without it nothing more is denied. -/
def Rule.optional (r : Rule) : Bool := r.stricter && r.kind != .permit

/-- The policy without its stricter rules, under a name that says so. -/
def Policy.withoutStricter (p : Policy) : Policy :=
  { p with name := p.name ++ withoutStricterSuffix, rules := p.rules.filter (!·.optional) }

/-- The pending moment of a call whose contract is known. -/
def Contract.pending (c : Contract) (call : Call) (snapshot : Snapshot) : Pending :=
  { call, snapshot, resource := c.resourceOf call.arguments }

end LeanGuard
