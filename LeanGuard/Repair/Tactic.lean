import Lean
import LeanGuard.Repair.Search
import LeanGuard.Repair.Rules

/-!
# `guard_solve` and `guard_repair?`

`guard_solve` closes a goal about a decision: by evaluation in the kernel where everything is concrete, else by arithmetic, equality
reasoning and instantiation, with the facts of `@[guard_rule]`. `guard_repair?` closes a goal `Repair policy intent snapshot journal call` by
searching the domain's candidates, and suggests the term that it found.
-/

namespace LeanGuard

register_option guard.candidates : Nat := {
  defValue := 64
  descr := "how many candidates `guard_repair?` tries at most" }

register_option guard.milliseconds : Nat := {
  defValue := 5000
  descr := "how long `guard_repair?` goes on to another candidate, in milliseconds" }

namespace Tactics

open Lean Meta Elab Tactic Term

/-! ### guard_solve -/

/-- A closed equation whose sides the kernel evaluates to the same. -/
def closeByEvaluation (goal : MVarId) : MetaM Unit := goal.withContext do
  let type ← instantiateMVars (← goal.getType)
  if type.hasFVar || type.hasExprMVar then throwError "the goal is not concrete"
  let_expr Eq α lhs rhs := type | throwError "the goal is not an equation"
  let u ← getLevel α
  unless (← ofExceptKernelException (Kernel.isDefEq (← getEnv) {} lhs rhs)) do throwError "the two sides evaluate to different values"
  goal.assign (mkApp2 (.const ``Eq.refl [u]) α lhs)

elab "guard_evaluate" : tactic => liftMetaFinishingTactic closeByEvaluation

/-- Runs a tactic that must close the goal; gives the reason when it does not. -/
def attempt (stage : String) (tactic : Syntax) : TacticM (Option MessageData) := do
  let before ← saveState
  try
    withoutRecover <| focusAndDone <| evalTactic tactic
    return none
  catch e =>
    let reason := e.toMessageData
    before.restore
    return some m!"{stage}: {reason}"

/-- Closes a goal about a decision: by evaluation in the kernel where everything is concrete, else by arithmetic, equality reasoning and
instantiation of the facts registered with `@[guard_rule]`. Says what it could not close. -/
elab "guard_solve" : tactic => withMainContext do
  let goal ← getMainGoal
  let rules := GuardRule.names (← getEnv)
  let facts := rules.map fun n => mkIdent n
  let mut reasons := #[]
  let stages : List (String × (TacticM Syntax)) := [
    ("evaluation", `(tactic| guard_evaluate)),
    ("evaluation of the intent", `(tactic| (apply EditOK.of_permits; guard_evaluate))),
    ("decision procedure", `(tactic| decide +kernel)),
    ("arithmetic", `(tactic| omega)),
    ("grind", if facts.isEmpty then `(tactic| grind) else `(tactic| grind [$[$facts:ident],*]))]
  for (stage, tactic) in stages do
    match ← attempt stage (← tactic) with
    | none => return
    | some reason => reasons := reasons.push reason
  throwError "guard_solve could not close\n{goal}\n{MessageData.joinSep reasons.toList "\n"}"

/-! ### Terms that a person can read -/

/-- The term of a symbol. -/
def symbolSyntax (s : Symbol) : MetaM Lean.Term := `(sym!$(Syntax.mkStrLit s.text))

def intSyntax (i : Int) : MetaM Lean.Term :=
  match i with
  | .ofNat n => return Syntax.mkNatLit n
  | .negSucc n => `(-$(Syntax.mkNatLit (n + 1)))

mutual
partial def valueSyntax : Value → MetaM Lean.Term
  | .null => `(.$(mkIdent `null))
  | .bool true => `(.$(mkIdent `bool) true)
  | .bool false => `(.$(mkIdent `bool) false)
  | .num q => do `(.$(mkIdent `num) ⟨$(← intSyntax q.millionths)⟩)
  | .sym s => do `(.$(mkIdent `sym) $(← symbolSyntax s))
  | .text s => `(.$(mkIdent `text) $(Syntax.mkStrLit s))
  | .list items => do
    let items := (← items.mapM valueSyntax).toArray
    `(.$(mkIdent `list) [$items,*])
  | .record fields => do `(.$(mkIdent `record) $(← fieldsSyntax fields))
partial def fieldsSyntax (fields : Fields) : MetaM Lean.Term := do
  let pairs ← fields.mapM fun (name, v) => do `(($(← symbolSyntax name), $(← valueSyntax v)))
  let pairs := pairs.toArray
  `([$pairs,*])
end

def callSyntax (c : Call) : MetaM Lean.Term := do
  `(⟨$(← symbolSyntax c.tool), $(← fieldsSyntax c.arguments)⟩)

/-! ### guard_repair? -/

/-- What an edit changes, one line an argument. -/
def describeEdit (original edited : Call) : MessageData :=
  MessageData.joinSep ((original.arguments.zip edited.arguments).filterMap fun ((name, before), (_, after)) =>
    if before == after then none else some m!"{name}: {valueText before} → {valueText after}") ", "
where
  valueText : Value → MessageData
    | .sym s => m!"{repr s.text}"
    | .text s => m!"{repr s}"
    | .num q => m!"{q.millionths} millionths"
    | .bool b => m!"{b}"
    | v => m!"{v.typeName}"

/-- What stopped a candidate, in a line. -/
def describeStop : Stop → MessageData
  | .intent => "it would change what the call is for"
  | .denied failed errors => MessageData.joinSep (failed.map (m!"{·.id}") ++ errors.map fun e => m!"{e.rule}: {e.error.message}") ", "

private unsafe def evaluateUnsafe (α : Type) (typeName : Name) (e : Expr) : MetaM α := evalExpr α (.const typeName []) e

@[implemented_by evaluateUnsafe]
private opaque evaluate (α : Type) (typeName : Name) (e : Expr) : MetaM α

instance : Inhabited Snapshot := ⟨⟨default, 0, none, none, .null⟩⟩
instance : Inhabited Call := ⟨⟨default, []⟩⟩

/-- Finds a repair by search, proves it, and suggests the term. Says for each candidate that was rejected what stopped it. -/
elab tk:"guard_repair?" : tactic => withMainContext do
  let goal ← getMainGoal
  let type ← whnfR (← instantiateMVars (← goal.getType))
  let_expr Repair policyE intentE snapshotE journalE callE := type
    | throwError "guard_repair? closes goals `Repair policy intent snapshot journal call`; the goal is{indentExpr type}"
  if type.hasFVar || type.hasExprMVar then throwError "guard_repair? needs a concrete policy, snapshot, journal and call"
  let started ← IO.monoMsNow
  let options ← getOptions
  let policy ← evaluate Policy ``Policy policyE
  let intent ← evaluate Intent ``Intent intentE
  let snapshot ← evaluate Snapshot ``Snapshot snapshotE
  let journal ← evaluate Journal ``Journal journalE
  let original ← evaluate Call ``Call callE
  let candidates := intent.candidates (policy.pendingOf original snapshot)
  if candidates.isEmpty then throwError "guard_repair?: nothing may be changed in this call, or no other value is offered"
  let mut rejected : Array MessageData := #[]
  for edited in candidates do
    let spent := (← IO.monoMsNow) - started
    if rejected.size ≥ guard.candidates.get options || spent > guard.milliseconds.get options then
      throwError "guard_repair?: the budget is spent after {rejected.size} of {candidates.length} candidates and {spent} ms\n{MessageData.joinSep rejected.toList "\n"}"
    match tryCandidate policy intent snapshot journal original edited with
    | .error stop => rejected := rejected.push m!"rejected {describeEdit original edited}: {describeStop stop}"
    | .ok needsConsent =>
      let callStx ← callSyntax edited
      let flag : Lean.Term := mkIdent (if needsConsent then `true else `false)
      let term ← `(⟨$callStx, $flag, by guard_solve, by guard_solve⟩)
      let before ← saveState
      try
        withoutRecover <| focusAndDone <| evalTactic (← `(tactic| exact $term))
        Lean.Meta.Tactic.TryThis.addSuggestion tk (← `(tactic| exact $term)) (origSpan? := ← getRef)
        let consent : MessageData := if needsConsent then "; the customer has yet to confirm it" else ""
        logInfoAt tk m!"repaired: {describeEdit original edited}{consent}"
        unless rejected.isEmpty do logInfoAt tk (MessageData.joinSep rejected.toList "\n")
        return
      catch e =>
        let reason := e.toMessageData
        before.restore
        rejected := rejected.push m!"rejected {describeEdit original edited}: not proved\n{reason}"
  throwError "guard_repair?: no candidate passes\n{MessageData.joinSep rejected.toList "\n"}"

end Tactics
end LeanGuard
