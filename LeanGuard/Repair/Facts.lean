import LeanGuard.Repair.Quote
import LeanGuard.Repair.Specialize
import LeanGuard.Thm.RepairKernel

/-!
# What is proved of a policy, once

For each tool: its contract, the rules about it, and the decision as a function that is unfolded as far as possible. For each rule and each
candidate source: the same. Every one is a definition and a theorem, checked by the kernel; where the kernel refuses an unfolded form, the
thing is evaluated as it is written. `guard_facts` puts them into the policy's own module when it is built; what is missing is proved when a
process needs it first.
-/

namespace LeanGuard

/-- A policy, what edits keep the intent of its calls, and their names as constants. -/
structure Domain where
  policy : Policy
  intent : Intent
  policyName : Lean.Name
  intentName : Lean.Name

/-- `domain! p i` is the domain of the policy constant `p` and the intent constant `i`. -/
macro "domain! " p:ident i:ident : term => `(Domain.mk $p $i ``$p ``$i)

/-- What is proved of a tool: constants for its contract and for the rules about it, and the two theorems that say so. -/
structure ToolFacts where
  contract : Lean.Expr
  rules : Lean.Expr
  /-- The rules about the tool, in order. -/
  rule : Array Lean.Expr
  found : Lean.Expr
  applicable : Lean.Expr
  /-- For each rule, whether it came to what its kind asks, as a function of the pending moment, the consent in front and the journal that is
  unfolded as far as possible, and the theorem that it is that; none if the kernel refused it. -/
  checks : Array (Option (Lean.Expr × Lean.Expr))
  /-- The same for the whole decision, of call, snapshot, front and journal. -/
  admits : Lean.Expr × Lean.Expr

namespace Facts

open Lean

/-! ### Terms -/

def policyType : Expr := .const ``Policy []
def contractType : Expr := .const ``Contract []
def ruleType : Expr := .const ``Rule []
def callType : Expr := .const ``Call []
def snapshotType : Expr := .const ``Snapshot []
def journalType : Expr := .const ``Journal []
def pendingType : Expr := .const ``Pending []
def frontType : Expr := .app (.const ``Option [0]) (.const ``Event [])
def boolType : Expr := .const ``Bool []
def bool (b : Bool) : Expr := .const (if b then ``Bool.true else ``Bool.false) []
def eq (type a b : Expr) : Expr := mkApp3 (.const ``Eq [1]) type a b
def refl (type a : Expr) : Expr := mkApp2 (.const ``Eq.refl [1]) type a

/-- `a && b`, as the kernel evaluates it fastest. -/
def both (a b : Expr) : Expr := mkApp4 (.const ``Bool.rec [1]) (.lam `b boolType boolType .default) (bool false) b a

def decideTerm (policy call snapshot journal : Expr) : Expr := mkApp4 (.const ``Policy.decide []) policy call snapshot journal
def admitted (policy call snapshot journal : Expr) : Expr :=
  eq (.const ``Decision []) (decideTerm policy call snapshot journal) (.const ``Decision.admit [])

def admitsTerm (facts : ToolFacts) (c s f j : Expr) : Expr := mkAppN (.const ``Fast.admits []) #[facts.contract, facts.rules, c, s, f, j]

def ruleOKTerm (rule condition pending f j : Expr) : Expr :=
  mkApp2 (.const ``Fast.ruleOK []) (.app (.const ``Rule.kind []) rule) (mkApp4 (.const ``Fast.eval []) condition pending f j)

/-- Whether a rule came to what its kind asks. -/
def checkTerm (rule pending f j : Expr) : Expr := ruleOKTerm rule (.app (.const ``Rule.condition []) rule) pending f j

def theoremDecl (name : Name) (type value : Expr) : Declaration := .thmDecl { name, levelParams := [], type, value }

/-- The kernel's weak head normal form. -/
def whnf (env : Environment) (e : Expr) : Except String Expr := (Kernel.whnf env {} e).mapError Quote.kernelReason

/-- Heartbeats of the kernel for one theorem: far more than a decision needs, and finite. -/
def defaultWork : Nat := 2000000000

/-- The items of a list that the kernel evaluates, as far as their heads. -/
partial def listItems (env : Environment) (e : Expr) (items : Array Expr := #[]) : Except String (Array Expr) := do
  let e ← whnf env e
  match e.getAppFnArgs with
  | (``List.cons, #[_, item, rest]) => listItems env rest (items.push item)
  | (``List.nil, _) => return items
  | _ => throw "a list did not evaluate"

/-! ### Unfolded forms -/

def theoremOf (function : Name) : Name := .str function "eq"

/-- Closes a term over its loose variables. -/
def close (mk : Name → Expr → Expr → BinderInfo → Expr) (binders : List Expr) (e : Expr) : Expr :=
  binders.foldr (fun t e => mk `x t e .default) e

def readType : Expr :=
  .forallE `fields (.const ``Fields []) (.forallE `name Quote.symbolType (.app (.const ``Option [0]) Quote.valueType) .default) .default

def sameType : Expr := .forallE `a Quote.symbolType (.forallE `b Quote.symbolType boolType .default) .default

def needType : Expr :=
  .forallE `fields (.const ``Fields []) (.forallE `name Quote.symbolType (.app (.const ``Read []) Quote.valueType) .default) .default

/-- The term as a function of the ways to read a field, to compare symbols, and to read a field that must be there. -/
def overWays (e : Expr) : Expr := .lam `read readType (.lam `same sameType (.lam `need needType (go e 0) .default) .default) .default
where
  /-- `depth` binders of the term are passed. -/
  go (e : Expr) (depth : Nat) : Expr :=
    match e with
    | .const ``Fields.find? _ => .bvar (depth + 2)
    | .app (.app (.const ``BEq.beq _) (.const ``Symbol _)) _ => .bvar (depth + 1)
    | .const ``Fields.need _ => .bvar depth
    | .const .. | .sort .. | .lit .. | .fvar .. | .mvar .. => e
    | .bvar i => if i ≥ depth then .bvar (i + 3) else e
    | .app f a => .app (go f depth) (go a depth)
    | .lam n t b i => .lam n (go t depth) (go b (depth + 1)) i
    | .forallE n t b i => .forallE n (go t depth) (go b (depth + 1)) i
    | .letE n t v b d => .letE n (go t depth) (go v depth) (go b (depth + 1)) d
    | .mdata _ e => go e depth
    | .proj s i e => .proj s i (go e depth)

/-- Declares a function of the loose variables, of these types, and the theorem that it is equal to the body. The function is the unfolded body
(or the one given, equal by definition), with fields read and symbols compared in the kernel's way. None if the kernel refuses. Found again if it is declared. -/
def unfolded (env : Environment) (name : Name) (binders : List Expr) (type body : Expr) (start : Expr := body) :
    Environment × Option (Expr × Expr) :=
  let function : Expr := .const name []
  let answer := (function, Expr.const (theoremOf name) [])
  if env.contains (theoremOf name) then (env, some answer) else
  let applied := mkAppN function ((List.range binders.length).reverse.map Expr.bvar).toArray
  let ways := overWays (Specialize.unfold env start)
  let find : Expr := .const ``Fast.find []
  let same : Expr := .const ``Fast.sameSymbol []
  let need : Expr := .const ``Fast.need []
  let special := Specialize.unfold env (ways.beta #[find, same, need])
  let result := do
    let env ← Quote.declare env (Quote.definition name (close Expr.forallE binders type) (close Expr.lam binders special)) defaultWork
    let fold (types : List Expr) : Expr := types.foldr (fun t rest => .forallE `x t rest .default) type
    let declaredFind : Expr := .const ``Fields.find? []
    let declaredNeed : Expr := .const ``Fields.need []
    let reading := mkAppN (.const ``congrArg [1, 1])
      #[readType, fold [sameType, needType], declaredFind, find, ways, .const ``Fast.find_fun []]
    let comparing := mkAppN (.const ``congr [1, 1]) #[sameType, fold [needType], .app ways declaredFind, .app ways find,
      .const ``Fast.declaredSame [], same, reading, .const ``Fast.same_fun []]
    let proof := mkAppN (.const ``congr [1, 1]) #[needType, type, mkApp2 ways declaredFind (.const ``Fast.declaredSame []), mkApp2 ways find same,
      declaredNeed, need, comparing, .const ``Fast.need_fun []]
    Quote.declare env (theoremDecl (theoremOf name) (close Expr.forallE binders (eq type body applied)) (close Expr.lam binders proof)) defaultWork
  match result with
  | .ok env => (env, some answer)
  | .error _ => (env, none)

/-- The unfolded form at arguments, and the proof that the body is that; the body itself where there is none. -/
def formAt (form : Option (Expr × Expr)) (arguments : Array Expr) (body : Expr) : Expr × Expr :=
  match form with
  | some (function, proof) => (mkAppN function arguments, mkAppN proof arguments)
  | none => (body, refl boolType body)

/-- A proof that a term is what the kernel evaluates it to: through its unfolded form where there is one. -/
def evaluated (type value : Expr) (form : Option (Expr × Expr)) (arguments : Array Expr) (result : Expr) : Expr :=
  let by_ := refl type result
  match form with
  | some (function, equal) => mkAppN (.const ``Eq.trans [1])
    #[type, value, mkAppN function arguments, result, mkAppN equal arguments, by_]
  | none => by_

/-! ### Rules, tools, sources -/

def base (name : Name) : Name := `LeanGuard.Facts ++ name

/-- A rule's unfolded form. -/
def rule (env : Environment) (policyName tool : Name) (place : Nat) (r : Expr) : Environment × Option (Expr × Expr) :=
  let name := match r with
    | .const n _ => base policyName ++ `rule ++ n
    | _ => base policyName ++ tool ++ .num `rule place
  if env.contains (theoremOf name) then (env, some (.const name [], .const (theoremOf name) [])) else
  let condition := Expr.app (.const ``Rule.condition []) r
  match Specialize.formula env condition with
  | .error _ => (env, none)
  | .ok formula =>
    unfolded env name [pendingType, frontType, journalType] boolType (checkTerm r (.bvar 2) (.bvar 1) (.bvar 0))
      (ruleOKTerm r formula (.bvar 2) (.bvar 1) (.bvar 0))

/-- What contract a tool has, which rules are about it, and the whole decision; none if it has no contract. -/
def tool (env : Environment) (policyName : Name) (toolText : String) : Except String (Option (Environment × ToolFacts)) := do
  let policy : Expr := .const policyName []
  let names := base policyName ++ .str .anonymous toolText
  let contract : Expr := .const (.str names "contract") []
  let rules : Expr := .const (.str names "rules") []
  let found := .str names "found"
  let applicableName := .str names "applicable"
  let ruleList := .app (.const ``List [0]) ruleType
  let applicable := mkApp2 (.const ``Policy.applicable []) policy contract
  let env ← if env.contains applicableName then pure env else do
    let lookup := mkApp2 (.const ``Policy.contract? []) policy (Quote.symbolTerm toolText)
    match (← whnf env lookup).getAppFnArgs with
    | (``Option.some, #[_, value]) => do
      let env ← Quote.declare env (Quote.definition contract.constName! contractType value)
      let items ← listItems env applicable
      let env ← Quote.declare env (Quote.definition rules.constName! ruleList (Quote.listOf ruleType items.toList))
      let some? := Quote.optionOf contractType (some contract)
      let optionType := .app (.const ``Option [0]) contractType
      let env ← Quote.declare env (theoremDecl found (eq optionType lookup some?) (refl optionType some?))
      Quote.declare env (theoremDecl applicableName (eq ruleList applicable rules) (refl ruleList rules))
    | _ => return none
  let items ← listItems env rules
  let mut env := env
  let mut checks : Array (Option (Expr × Expr)) := #[]
  for i in [0:items.size] do
    let (env', check) := rule env policyName (.str .anonymous toolText) i items[i]!
    env := env'
    checks := checks.push check
  -- The whole decision, from the unfolded forms of its parts: of call, snapshot, front and journal.
  let admits := .str names "admits"
  unless env.contains (theoremOf admits) do
    let c : Expr := .bvar 3
    let s : Expr := .bvar 2
    let f : Expr := .bvar 1
    let j : Expr := .bvar 0
    let pending := mkApp3 (.const ``Contract.pending []) contract c s
    let arguments := .app (.const ``Call.arguments []) c
    let (env₁, fits) := unfolded env (.str names "fits") [.const ``Fields []] boolType (mkApp2 (.const ``Fast.fits []) contract (.bvar 0))
    let (env₂, permitted) := unfolded env₁ (.str names "permitted") [pendingType, frontType, journalType] boolType
      (mkApp4 (.const ``Fast.permitted []) rules (.bvar 2) (.bvar 1) (.bvar 0))
    let (fitsForm, fitsProof) := formAt fits #[arguments] (mkApp2 (.const ``Fast.fits []) contract arguments)
    let (permittedForm, permittedProof) := formAt permitted #[pending, f, j] (mkApp4 (.const ``Fast.permitted []) rules pending f j)
    let (_, allForm, allProof) := (items.zip checks).foldr (init := (([] : List Expr), bool true, refl boolType (bool true)))
      fun (r, check) (rest, form, proof) =>
        let (one, oneProof) := formAt check #[pending, f, j] (checkTerm r pending f j)
        (r :: rest, both one form, mkAppN (.const ``Fast.allOK_cons [])
          #[r, Quote.listOf ruleType rest, pending, f, j, one, form, oneProof, proof])
    let form := both fitsForm (both allForm permittedForm)
    let proof := mkAppN (.const ``Fast.admits_parts [])
      #[contract, rules, c, s, f, j, fitsForm, allForm, permittedForm, fitsProof, allProof, permittedProof]
    let binders := [callType, snapshotType, frontType, journalType]
    let body := mkAppN (.const ``Fast.admits []) #[contract, rules, c, s, f, j]
    let env₃ ← Quote.declare env₂ (Quote.definition admits (close Expr.forallE binders boolType) (close Expr.lam binders form)) defaultWork
    env ← Quote.declare env₃ (theoremDecl (theoremOf admits) (close Expr.forallE binders (eq boolType body (mkApp4 (.const admits []) c s f j)))
      (close Expr.lam binders proof)) defaultWork
  let facts : ToolFacts := {
    contract, rules, rule := items, found := .const found [], applicable := .const applicableName [], checks
    admits := (.const admits [], .const (theoremOf admits) []) }
  return some (env, facts)

/-- A source's unfolded form: of the pending moment, the argument's name and the place. -/
def source (env : Environment) (intentName : Name) (i : Nat) : Environment × Option (Expr × Expr) :=
  let intent : Expr := .const intentName []
  match listItems env (.app (.const ``Intent.sources []) intent) with
  | .error _ => (env, none)
  | .ok items =>
    match items[i]? with
    | none => (env, none)
    | some s =>
      unfolded env (base intentName ++ .num `source i) [pendingType, Quote.symbolType, .const ``Nat []]
        (.app (.const ``Option [0]) Quote.valueType)
        (mkAppN (.const ``Fast.offer []) #[intent, .bvar 2, .bvar 1, Quote.nat i, .bvar 0])
        (mkAppN (.const ``Fast.offerOf []) #[s, .bvar 2, .bvar 1, .bvar 0])

/-! ### At build time -/

open Elab Command Meta

private unsafe def evaluateUnsafe (e : Expr) : MetaM (List String) :=
  evalExpr (List String) (.app (.const ``List [0]) (.const ``String [])) e

@[implemented_by evaluateUnsafe]
private opaque evaluate (e : Expr) : MetaM (List String)

/-- The texts of a policy's tools. -/
def toolTexts (policy : Policy) : List String := policy.contracts.map (·.tool.text)

/-- `guard_facts policy intent` proves of every tool, rule and source what proofs at run time start from, and keeps it in this module. -/
elab "guard_facts " policy:ident intent:ident : command => do
  let policyName ← liftCoreM <| realizeGlobalConstNoOverloadWithInfo policy
  let intentName ← liftCoreM <| realizeGlobalConstNoOverloadWithInfo intent
  let tools ← liftTermElabM <| evaluate (.app (.const ``toolTexts []) (.const policyName []))
  for text in tools do
    match tool (← getEnv) policyName text with
    | .ok (some (env, facts)) =>
      setEnv env
      for (r, check) in facts.rule.zip facts.checks do
        if check.isNone then logWarning m!"the kernel does not take the unfolded form of {r}; proofs about it are slower"
    | .ok none => throwError "no contract for {text}"
    | .error why => throwError "{text}: {why}"
  let sources ← match listItems (← getEnv) (.app (.const ``Intent.sources []) (.const intentName [])) with
    | .ok items => pure items
    | .error why => throwError why
  for i in [0:sources.size] do
    let (env, form) := source (← getEnv) intentName i
    setEnv env
    if form.isNone then logWarning m!"the kernel does not take the unfolded form of source {i}; proofs about it are slower"

end Facts
end LeanGuard
