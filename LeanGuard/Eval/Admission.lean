import LeanGuard.Spec.Decision
import LeanGuard.Eval.Formula

/-!
# The fail-closed decision

A call is admitted exactly when at least one permit for its tool holds, every requirement about it holds, no forbid about it holds, and every
rule about it could be evaluated. Everything else is a denial that names every rule that failed and every error.
-/

namespace LeanGuard

namespace Result

/-- A permit that holds. -/
def permits (r : Result) : Bool := r.rule.kind == .permit && Checked.isTrue r.truth

/-- A requirement that does not hold, or a forbid that does. -/
def violated (r : Result) : Bool :=
  match r.rule.kind with
  | .permit => false
  | .require => Checked.isFalse r.truth
  | .forbid => Checked.isTrue r.truth

/-- The error of a rule that could not be evaluated. -/
def error? (r : Result) : Option RuleError :=
  match r.truth with
  | .ok _ => none
  | .error e => some ⟨r.rule.id, e⟩

end Result

/-- The permits that failed: all of them if none holds (and `Host.noPermit` if there is none at all). -/
def failedPermits (results : List Result) : List Failure :=
  if results.any Result.permits then []
  else
    match results.filter (fun r => r.rule.kind == .permit) with
    | [] => [Host.noPermit]
    | permits => (permits.filter (fun r => Checked.isFalse r.truth)).map (·.rule.failure)

/-- Decides from what the applicable rules came to. -/
def conclude (results : List Result) : Decision :=
  let failed := failedPermits results ++ (results.filter Result.violated).map (·.rule.failure)
  let errors := results.filterMap Result.error?
  if results.any Result.permits && failed.isEmpty && errors.isEmpty then .admit else .deny failed errors

/-- What the applicable rules come to at the pending moment. -/
def Policy.results (policy : Policy) (contract : Contract) (pending : Pending) (journal : Journal) : List Result :=
  (policy.applicable contract).map fun rule => ⟨rule, rule.condition.eval (.pending pending) journal.past⟩

/-- Decides a call whose arguments are known to fit or not, given how rules are evaluated. -/
def Policy.decideWith (policy : Policy) (call : Call) (snapshot : Snapshot)
    (results : Contract → Pending → List Result) : Decision :=
  match policy.contract? call.tool with
  | none => .deny [Host.unknownTool] []
  | some contract =>
    match contract.violations call.arguments with
    | [] => conclude (results contract (contract.pending call snapshot))
    | violations => .deny [Host.arguments] (violations.map (⟨Host.arguments.id, ·⟩))

/-- The decision of record: by the evaluator, over the whole journal. -/
def Policy.decide (policy : Policy) (call : Call) (snapshot : Snapshot) (journal : Journal) : Decision :=
  policy.decideWith call snapshot fun contract pending => policy.results contract pending journal

end LeanGuard
