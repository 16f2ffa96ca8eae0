import LeanGuard.Repair.Facts

/-!
# Repairs and decisions as theorems, at run time

What the compiled code found is stated as a theorem about the decoded call, snapshot and journal, and checked by the kernel. The kernel has the
last word: where it refuses, nothing is returned. What is known of a tool (its contract, the rules about it) is proved once and kept.
-/

namespace LeanGuard

namespace Prove

open Lean
open Facts

/-! ### What the process keeps -/

/-- The prover: the symbols that it has met, what is proved of tools, the axioms that constants rest on. -/
structure Prover where
  /-- As it was imported. -/
  base : Environment
  quote : Quote.State
  tools : Std.HashMap (Name × String) ToolFacts := {}
  sources : Std.HashMap (Name × Nat) (Option (Expr × Expr)) := {}
  axioms : Std.HashMap Name (List Name) := {}
  /-- Whether the core library's proofs can be looked into. -/
  coreProofs : Bool

def Prover.start (env : Environment) : Prover :=
  { base := env, quote := { env }, coreProofs := (env.find? ``Nat.add_comm).any (· matches .thmInfo _) }

/-- With more symbols than this the prover begins anew: the environment must not grow for ever. -/
def mostSymbols : Nat := 50000

abbrev ProveM := StateT Prover (Except String)

def quoted (x : Quote.QuoteM α) : ProveM α := do
  let p ← get
  match x.run p.quote with
  | .ok (a, quote) => set { p with quote }; return a
  | .error e => throw e

/-- What is proved of a tool: once, and kept. -/
def toolFacts (domain : Domain) (tool : Symbol) : ProveM (Option ToolFacts) := do
  if let some facts := (← get).tools[(domain.policyName, tool.text)]? then return some facts
  match ← Facts.tool (← get).quote.env domain.policyName tool.text with
  | none => return none
  | some (env, facts) =>
    modify fun p => { p with quote.env := env, tools := p.tools.insert (domain.policyName, tool.text) facts }
    return some facts

/-- What is proved of a source: once, and kept. -/
def sourceFacts (domain : Domain) (source : Nat) : ProveM (Option (Expr × Expr)) := do
  if let some facts := (← get).sources[(domain.intentName, source)]? then return facts
  let (env, facts) := Facts.source (← get).quote.env domain.intentName source
  modify fun p => { p with quote.env := env, sources := p.sources.insert (domain.intentName, source) facts }
  return facts

/-! ### Axioms -/

/-- The axioms that a proof may rest on. -/
def expectedAxioms : List Name := [``propext, ``Quot.sound, ``Classical.choice]

/-- Axioms by which a proof would rest on something else than the kernel, whatever module they are in. -/
def untrustedAxioms : List Name := [``sorryAx, `Lean.ofReduceBool, `Lean.ofReduceNat, `Lean.trustCompiler]

/-- Whether the constant is of Lean's own library. -/
def isCore (env : Environment) (n : Name) : Bool :=
  match env.getModuleIdxFor? n with
  | some i => [`Init, `Std, `Lean].contains ((env.header.moduleNames[i.toNat]?).getD .anonymous).getRoot
  | none => false

/-- Both lists, each item once. -/
def union (a b : List Name) : List Name := b.foldl (fun a n => if a.contains n then a else a ++ [n]) a

/-- The axioms that a constant rests on. Where the core library comes without proofs, its theorems look like axioms; they are told by their
module, and not looked into. -/
partial def axiomsOf (env : Environment) (coreProofs : Bool) (n : Name) : StateM (Std.HashMap Name (List Name)) (List Name) := do
  if let some known := (← get)[n]? then return known
  modify (·.insert n [])
  let core := isCore env n
  let found ← match env.find? n with
    | some (.axiomInfo _) =>
      if expectedAxioms.contains n || untrustedAxioms.contains n || !core then pure [n] else pure []
    | some info =>
      if core && !coreProofs then pure [] else
      info.getUsedConstantsAsSet.foldlM (init := []) fun found c => return union found (← axiomsOf env coreProofs c)
    | none => pure [n]
  modify (·.insert n found)
  return found

/-- The axioms of a constant that was just declared. -/
def axioms (env : Environment) (n : Name) : ProveM (List Name) := do
  let p ← get
  let (found, memo) := (axiomsOf env p.coreProofs n).run p.axioms
  set { p with axioms := memo }
  return found

/-- What stands in an answer of a theorem that the kernel checked. -/
structure Proved where
  /-- The statement, with `call`, `edited`, `snapshot` and `journal` for what the request has. -/
  statement : String
  axioms : List Name

/-! ### A request's data -/

def callName : Name := `LeanGuard.Request.call
def editedName : Name := `LeanGuard.Request.edited
def snapshotName : Name := `LeanGuard.Request.snapshot
def journalName : Name := `LeanGuard.Request.journal

/-- The axioms, if a proof may rest on them all. -/
def checkedAxioms (env : Environment) (names : List Name) : ProveM (List Name) := do
  let all ← names.foldlM (init := []) fun found n => return union found (← axioms env n)
  -- Names of the request mean something else in the next one.
  modify fun p => { p with axioms := (names ++ [callName, editedName, snapshotName, journalName]).foldl (·.erase ·) p.axioms }
  match all.filter (!expectedAxioms.contains ·) with
  | [] => return expectedAxioms.filter all.contains
  | bad => throw s!"the proof rests on {", ".intercalate (bad.map toString)}"

/-- Forgets symbols and what is proved of tools when there are too many; called between requests. -/
def tidy : ProveM Unit := do
  if (← get).quote.symbols.size > mostSymbols then modify fun p => Prover.start p.base

/-- Declares the request's call, snapshot and journal. The environment is dropped with the request; symbols are kept. -/
def declareRequest (call : Call) (snapshot : Snapshot) (journal : Journal) : ProveM Environment := do
  let c ← quoted (Quote.call call)
  let s ← quoted (Quote.snapshot snapshot)
  let j ← quoted (Quote.journal journal)
  let env := (← get).quote.env
  let env ← Quote.declare env (Quote.definition callName callType c)
  let env ← Quote.declare env (Quote.definition snapshotName snapshotType s)
  Quote.declare env (Quote.definition journalName journalType j)

/-- Declares a theorem, with a bound on the kernel's work. -/
def prove (env : Environment) (name : Name) (type value : Expr) (work : Nat) : Except String Environment :=
  Quote.declare env (theoremDecl name type value) work

/-- Gets everything ready that requests share, so that the first one is as fast as the others. -/
def warm (domains : List Domain) : ProveM Unit := do
  for domain in domains do
    for contract in domain.policy.contracts do
      if let some facts ← toolFacts domain contract.tool then
        for n in [facts.found, facts.applicable, facts.admits.2] ++ facts.checks.toList.filterMap (·.map (·.2)) do
          discard <| axioms (← get).quote.env n.constName!
    for i in [0:domain.intent.sources.length] do
      if let some (_, equal) ← sourceFacts domain i then discard <| axioms (← get).quote.env equal.constName!
  for n in [``Fast.admit_of, ``Fast.denied_of_rule, ``Fast.denied_of_permits, ``Fast.denied_of_arguments, ``Fast.denied_of_tool,
      ``Fast.admitted_now, ``Fast.admitted_with_consent, ``Fast.editOK_of, ``Fast.Edited.changed, ``Repair.mk] do
    discard <| axioms (← get).quote.env n

/-! ### Decisions -/

/-- How costly a condition is to evaluate, roughly: conditions about the past go through the journal. -/
def cost : Formula → Nat
  | .atom .. | .top | .bot => 1
  | .not p => cost p
  | .and p q | .or p q => cost p + cost q
  | .previous _ p => 4 + cost p
  | .once _ p | .within _ p => 4 + cost p
  | .since _ p q => 4 + cost p + cost q

/-- The place of the cheapest rule that did not come to what its kind asks. -/
def cheapestFailure (results : List Result) : Option Nat :=
  let failing := results.zipIdx.filter fun (r, _) => r.violated || r.error?.isSome
  (failing.foldl (init := none) fun (best : Option (Nat × Nat)) (r, i) =>
    let c := cost r.rule.condition
    match best with
    | some (c', _) => if c < c' then some (c, i) else best
    | none => some (c, i)).map (·.2)

/-- Proves that the call is admitted, or that it is not, in this snapshot and journal. A denial is proved by the cheapest reason for it. -/
def decision (domain : Domain) (call : Call) (snapshot : Snapshot) (journal : Journal) (work : Nat) : ProveM (Decision × Proved) := do
  let verdict := domain.policy.decide call snapshot journal
  let facts ← toolFacts domain call.tool
  let env ← declareRequest call snapshot journal
  let policy : Expr := .const domain.policyName []
  let c : Expr := .const callName []
  let s : Expr := .const snapshotName []
  let j : Expr := .const journalName []
  let front : Expr := .app (.const ``Option.none [0]) (.const ``Event [])
  let yes := admitted policy c s j
  let no := mkApp3 (.const ``Ne [1]) (.const ``Decision []) (decideTerm policy c s j) (.const ``Decision.admit [])
  let name := `LeanGuard.Request.decision
  let yesText := s!"{domain.policyName}.decide call snapshot journal = .admit"
  let noText := s!"{domain.policyName}.decide call snapshot journal ≠ .admit"
  let (text, type, value) ← match verdict, facts, domain.policy.contract? call.tool with
    | .admit, some facts, some _ =>
      let pending := mkApp3 (.const ``Contract.pending []) facts.contract c s
      pure (yesText, yes, mkAppN (.const ``Fast.admit_of []) #[j, front, policy, facts.contract, facts.rules, c, s, facts.found, facts.applicable,
        .app (.const ``Fast.agrees_none []) pending, evaluated boolType (admitsTerm facts c s front j) (some facts.admits) #[c, s, front, j] (bool true)])
    | .deny .., some facts, some contract =>
      if !(contract.violations call.arguments).isEmpty then
        pure (noText, no, mkAppN (.const ``Fast.denied_of_arguments []) #[j, policy, facts.contract, c, s, facts.found, refl boolType (bool false)])
      else
        let results := domain.policy.results contract (contract.pending call snapshot) journal
        match cheapestFailure results with
        | some place =>
          let some rule := facts.rule[place]? | throw "the rules about the tool are not those that were evaluated"
          let some? := Quote.optionOf ruleType (some rule)
          let pending := mkApp3 (.const ``Contract.pending []) facts.contract c s
          pure (noText, no, mkAppN (.const ``Fast.denied_of_rule []) #[j, policy, facts.contract, facts.rules, rule, c, s, facts.found,
            facts.applicable, Quote.nat place, refl (.app (.const ``Option [0]) ruleType) some?,
            evaluated boolType (checkTerm rule pending front j) (facts.checks[place]?.join) #[pending, front, j] (bool false)])
        | none =>
          pure (noText, no, mkAppN (.const ``Fast.denied_of_permits []) #[j, policy, facts.contract, facts.rules, c, s, facts.found,
            facts.applicable, refl boolType (bool false)])
    | .deny .., none, _ =>
      let optionType := .app (.const ``Option [0]) contractType
      pure (noText, no, mkAppN (.const ``Fast.denied_of_tool []) #[j, policy, c, s,
        refl optionType (.app (.const ``Option.none [0]) contractType)])
    | _, _, _ => throw "the kernel does not find the contract that compiled code finds"
  let env ← prove env name type value work
  return (verdict, ⟨text, ← checkedAxioms env [name]⟩)

/-- Proves the whole decision: which rules failed, in order. Only for a decision without errors, whose messages the kernel does not build. -/
def exactDecision (domain : Domain) (call : Call) (snapshot : Snapshot) (journal : Journal) (work : Nat) : ProveM (Decision × Proved) := do
  let verdict := domain.policy.decide call snapshot journal
  match verdict with
  | .deny failed [] =>
    let policy : Expr := .const domain.policyName []
    let lhs := decideTerm policy (.const callName []) (.const snapshotName []) (.const journalName [])
    let contract := domain.policy.contract? call.tool
    let failures : List Expr ← match ← toolFacts domain call.tool, contract with
      | some facts, some contract =>
        let rules := domain.policy.applicable contract
        failed.mapM fun f => match rules.findIdx? (·.failure == f) with
          | some i => return .app (.const ``Rule.failure []) (facts.rule[i]?.getD default)
          | none => return .const ``Host.noPermit []
      | _, _ => pure [.const ``Host.unknownTool []]
    let env ← declareRequest call snapshot journal
    let type := eq (.const ``Decision []) lhs (mkApp2 (.const ``Decision.deny [])
      (Quote.listOf (.const ``Failure []) failures) (.app (.const ``List.nil [0]) (.const ``RuleError [])))
    let name := `LeanGuard.Request.decision
    let env ← prove env name type (refl (.const ``Decision []) lhs) work
    return (verdict, ⟨s!"{domain.policyName}.decide call snapshot journal = .deny [{", ".intercalate (failed.map (·.id))}] []",
      ← checkedAxioms env [name]⟩)
  | _ => decision domain call snapshot journal work

/-! ### Repairs -/

/-- The source and the place in it at which a value is offered for an argument. -/
def whereOffered (intent : Intent) (original : Pending) (name : Symbol) (v : Value) : Option (Nat × Nat) :=
  intent.sources.zipIdx.findSome? fun (source, i) =>
    if source.argument == name && source.tools.contains original.call.tool then
      ((source.candidates original).findIdx? (· == v)).map (i, ·)
    else none

/-- A proof that the arguments were edited one by one. -/
def editedProof (domain : Domain) (pending : Pending) (intent pendingE : Expr) : Fields → Fields → ProveM Expr
  | [], [] => return mkApp2 (.const ``Fast.Edited.nil []) intent pendingE
  | (name, v) :: before, (_, v') :: after => do
    let rest ← editedProof domain pending intent pendingE before after
    let nameE ← quoted (Quote.symbol name)
    let vE ← quoted (Quote.value v)
    let beforeE ← quoted (Quote.fields before)
    let afterE ← quoted (Quote.fields after)
    if v == v' then
      return mkAppN (.const ``Fast.Edited.same []) #[intent, pendingE, nameE, vE, beforeE, afterE, rest]
    else
      let some (source, place) := whereOffered domain.intent pending name v' | throw s!"no source offers this value of “{name}”"
      let v'E ← quoted (Quote.value v')
      let value := mkAppN (.const ``Fast.offer []) #[intent, pendingE, nameE, Quote.nat source, Quote.nat place]
      let offered := evaluated (.app (.const ``Option [0]) Quote.valueType) value (← sourceFacts domain source)
        #[pendingE, nameE, Quote.nat place] (Quote.optionOf Quote.valueType (some v'E))
      return mkAppN (.const ``Fast.Edited.changed [])
        #[intent, pendingE, nameE, vE, v'E, Quote.nat source, Quote.nat place, beforeE, afterE, offered, rest]
  | _, _ => throw "the arguments do not correspond"

/-- Proves that an edited call is a repair: that it keeps the intent, and that it is admitted. -/
def repair (domain : Domain) (original : Call) (snapshot : Snapshot) (journal : Journal) (edited : Call) (needsConsent : Bool)
    (work : Nat) : ProveM Proved := do
  let some facts ← toolFacts domain original.tool | throw "the tool has no contract"
  -- The edited call's symbols too, before the request's environment branches off.
  let editedE ← quoted (Quote.call edited)
  let policy : Expr := .const domain.policyName []
  let intent : Expr := .const domain.intentName []
  let c : Expr := .const callName []
  let e : Expr := .const editedName []
  let s : Expr := .const snapshotName []
  let j : Expr := .const journalName []
  let pendingE := mkApp3 (.const ``Policy.pendingOf []) policy c s
  let edits ← editedProof domain (domain.policy.pendingOf original snapshot) intent pendingE original.arguments edited.arguments
  let env ← declareRequest original snapshot journal
  let env ← Quote.declare env (Quote.definition editedName callType editedE)
  let toolE ← quoted (Quote.symbol original.tool)
  let keepsType := mkAppN (.const ``EditOK []) #[policy, intent, s, c, e]
  let keeps := mkAppN (.const ``Fast.editOK_of []) #[policy, s, intent, c, e, refl Quote.symbolType toolE, edits, refl boolType (bool true)]
  let env ← prove env `LeanGuard.Request.keepsIntent keepsType keeps work
  let front := Quote.optionOf (.const ``Event []) (if needsConsent then some (mkApp3 (.const ``Policy.consentFor []) policy e s) else none)
  let journalE := mkAppN (.const ``Policy.consented []) #[policy, bool needsConsent, e, s, j]
  let admittedValue := mkAppN (.const (if needsConsent then ``Fast.admitted_with_consent else ``Fast.admitted_now) [])
    #[j, policy, facts.contract, facts.rules, e, s, facts.found, facts.applicable,
      evaluated boolType (admitsTerm facts e s front j) (some facts.admits) #[e, s, front, j] (bool true)]
  let env ← prove env `LeanGuard.Request.admitted (admitted policy e s journalE) admittedValue work
  let repairType := mkAppN (.const ``Repair []) #[policy, intent, s, j, c]
  let value := mkAppN (.const ``Repair.mk []) #[policy, intent, s, j, c, e, bool needsConsent,
    .const `LeanGuard.Request.keepsIntent [], .const `LeanGuard.Request.admitted []]
  let env ← Quote.declare env (Quote.definition `LeanGuard.Request.repair repairType value) work
  let admission := if needsConsent
    then s!"{domain.policyName}.decide edited snapshot ({domain.policyName}.consentFor edited snapshot :: journal) = .admit"
    else s!"{domain.policyName}.decide edited snapshot journal = .admit"
  return ⟨s!"EditOK {domain.policyName} {domain.intentName} snapshot call edited ∧ {admission}",
    ← checkedAxioms env [`LeanGuard.Request.keepsIntent, `LeanGuard.Request.admitted, `LeanGuard.Request.repair]⟩

end Prove
end LeanGuard
