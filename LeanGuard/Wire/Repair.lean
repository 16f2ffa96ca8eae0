import LeanGuard.Repair.Search
import LeanGuard.Repair.Prove
import LeanGuard.Wire.Decode
import LeanGuard.Wire.Encode

/-!
# The `repair` and `prove` operations

`repair` searches an admitted neighbour of a denied call and proves it; `prove` proves the decision on a call. Both take the whole journal with
the request, since a proof speaks of it. Neither executes anything, and nothing of a request is elaborated.
-/

namespace LeanGuard.Wire

open Lean (Json JsonNumber toJson)
open Prove (Prover)

/-- The operations that need the prover. -/
def provingOperations : List String := ["repair", "prove"]

/-- The fields that these requests may have. -/
def provingKnown : List String := ["id", "op", "policy", "call", "snapshot", "journal", "candidates", "milliseconds", "kernel_work", "exact"]

/-! ### Values out -/

def quantityJson (q : Quantity) : Json :=
  let rec shorten : Nat → Int → Nat → JsonNumber
    | 0, m, e => ⟨m, e⟩
    | fuel + 1, m, e => if e > 0 && m % 10 == 0 then shorten fuel (m / 10) (e - 1) else ⟨m, e⟩
  .num (shorten 6 q.millionths 6)

mutual
partial def valueJson : Value → Json
  | .null => .null
  | .bool b => .bool b
  | .num q => quantityJson q
  | .sym s => .str s.text
  | .text s => .str s
  | .list items => .arr (items.map valueJson).toArray
  | .record fields => fieldsJson fields
partial def fieldsJson (fields : Fields) : Json := .mkObj (fields.map fun (name, v) => (name.text, valueJson v))
end

def callJson (c : Call) : Json := .mkObj [("tool", .str c.tool.text), ("arguments", fieldsJson c.arguments)]

/-- What an edit changes: argument, before, after, and where the new value comes from. -/
def editsJson (intent : Intent) (pending : Pending) (original edited : Call) : Json :=
  .arr <| ((original.arguments.zip edited.arguments).filterMap fun ((name, before), (_, after)) =>
    if before == after then none else
      let source := (Prove.whereOffered intent pending name after).bind fun (i, _) => intent.sources[i]?
      some (.mkObj [("argument", .str name.text), ("before", valueJson before), ("after", valueJson after),
        ("source", match source with | some s => .str s.description | none => .null)])).toArray

def stopFields : Stop → List (String × Json)
  | .intent => [("stopped_by", "intent"), ("failed_rules", .arr #[]), ("errors", .arr #[])]
  | .denied failed errors => [("stopped_by", "policy"), ("failed_rules", .arr (failed.map Failure.json).toArray),
      ("errors", .arr (errors.map RuleError.json).toArray)]

def provedFields (proved : Prove.Proved) (coreProofs : Bool) : List (String × Json) :=
  [("theorem", .str proved.statement), ("axioms", .arr (proved.axioms.map fun n => Json.str n.toString).toArray),
    ("axioms_exact", .bool coreProofs)]

/-! ### Requests in -/

def wrongField {α : Type} (name message : String) : Except WireError α := .error (WireError.inField ⟨"", message⟩ name)

structure ProvingRequest where
  domain : Domain
  call : Call
  snapshot : Snapshot
  /-- Newest first. -/
  journal : Journal
  candidates : Nat
  milliseconds : Nat
  work : Nat
  exact : Bool

def natural (o : Object) (name : String) (default : Nat) : Except WireError Nat := do
  match ← o.optional name integer with
  | none => return default
  | some (.ofNat n) => return n
  | some _ => wrongField name "expected a whole number, zero or more"

def provingRequest (domains : List Domain) (o : Object) : Except WireError ProvingRequest := do
  let name ← o.required "policy" string
  let some domain := domains.find? (·.policy.name == name)
    | wrongField "policy" s!"no policy named “{name}” has repairs; there are: {", ".intercalate (domains.map (·.policy.name))}"
  let exact ← match o.get? "exact" with
    | none | some .null => pure false
    | some (.bool b) => pure b
    | some j => wrongField "exact" s!"expected true or false, found {describe j}"
  return {
    domain
    call := ← o.required "call" call
    snapshot := ← o.required "snapshot" snapshot
    journal := (← o.required "journal" (listOf event)).reverse
    candidates := ← natural o "candidates" 64
    milliseconds := ← natural o "milliseconds" 1000
    work := ← natural o "kernel_work" Facts.defaultWork
    exact }

/-! ### repair -/

/-- Why a search ended. -/
inductive Ending where
  | repaired (edited : Call) (needsConsent : Bool) (proved : Prove.Proved)
  | notNeeded (note : String)
  | none (note : String)

/-- Tries the candidates in order, within the budgets. A candidate counts as a repair only when the kernel has checked its proof. -/
def searchAndProve (r : ProvingRequest) (decision : Decision) (started : Nat) : StateT Prover IO (Ending × List Json × Nat × Nat) := do
  let pending := r.domain.policy.pendingOf r.call r.snapshot
  match decision with
  | .admit => return (.notNeeded "The call is admitted as it is.", [], 0, 0)
  | .deny .. => pure ()
  if let .admit := r.domain.policy.decide r.call r.snapshot (r.domain.policy.consented true r.call r.snapshot r.journal) then
    return (.notNeeded "The call needs no edit: the customer has to confirm it.", [], 0, 0)
  let candidates := r.domain.intent.candidates pending
  if candidates.isEmpty then
    let concerned := r.domain.intent.sources.filter fun s => s.tools.contains r.call.tool
    let unreadable := concerned.filterMap fun s => match s.values pending with
      | .error e => some s!"{s.description}: {e.message}"
      | .ok _ => none
    let note := if concerned.isEmpty then "No argument of this tool may be changed."
      else if unreadable.isEmpty then "No other value is offered for the arguments that may change."
      else s!"The values that may be offered can't be read: {"; ".intercalate unreadable}"
    return (.none note, [], 0, 0)
  let mut rejected : Array Json := #[]
  let mut tried := 0
  for edited in candidates do
    let spent := (← IO.monoMsNow) - started
    if tried ≥ r.candidates || (tried > 0 && spent > r.milliseconds) then
      return (.none s!"The budget is spent: {tried} of {candidates.length} candidates in {spent} ms.", rejected.toList, tried, candidates.length)
    tried := tried + 1
    let edits := editsJson r.domain.intent pending r.call edited
    match tryCandidate r.domain.policy r.domain.intent r.snapshot r.journal r.call edited with
    | .error stop => rejected := rejected.push (.mkObj (("edits", edits) :: stopFields stop))
    | .ok needsConsent =>
      match (Prove.repair r.domain r.call r.snapshot r.journal edited needsConsent r.work).run (← get) with
      | .ok (proved, prover) =>
        set prover
        return (.repaired edited needsConsent proved, rejected.toList, tried, candidates.length)
      | .error why =>
        rejected := rejected.push (.mkObj [("edits", edits), ("stopped_by", "proof"), ("message", .str why),
          ("failed_rules", .arr #[]), ("errors", .arr #[])])
  return (.none "No candidate passes.", rejected.toList, tried, candidates.length)

def repair (r : ProvingRequest) : StateT Prover IO (List (String × Json)) := do
  let started ← IO.monoMsNow
  let decision := r.domain.policy.decide r.call r.snapshot r.journal
  let pending := r.domain.policy.pendingOf r.call r.snapshot
  let (ending, rejected, tried, candidates) ← searchAndProve r decision started
  let coreProofs := (← get).coreProofs
  let (repair, note) : Json × Json := match ending with
    | .repaired edited needsConsent proved => (.mkObj ([("call", callJson edited),
        ("edits", editsJson r.domain.intent pending r.call edited), ("needs_consent", .bool needsConsent)] ++
        provedFields proved coreProofs), .null)
    | .notNeeded note | .none note => (.null, .str note)
  return decisionFields decision ++ [("repair", repair), ("note", note), ("rejected", .arr rejected.toArray),
    ("tried", toJson tried), ("candidates", toJson candidates)]

/-! ### prove -/

/-- A decision with its theorem; `proved` is false where the kernel refused, and then says why. -/
def prove (r : ProvingRequest) : StateT Prover IO (List (String × Json)) := do
  let prover ← get
  let proof := if r.exact then Prove.exactDecision r.domain r.call r.snapshot r.journal r.work
    else Prove.decision r.domain r.call r.snapshot r.journal r.work
  match proof.run prover with
  | .ok ((decision, proved), prover) =>
    set prover
    return decisionFields decision ++ [("proved", .bool true)] ++ provedFields proved prover.coreProofs
  | .error why =>
    return decisionFields (r.domain.policy.decide r.call r.snapshot r.journal) ++ [("proved", .bool false), ("message", .str why)]

/-! ### The whole -/

/-- Whether a `guard` request is for the prover. -/
def isProving (request : Json) : Bool :=
  match request.getObjVal? "op" with
  | .ok (.str op) => provingOperations.contains op
  | _ => false

/-- Answers the body of a `repair` or `prove` request. The answer repeats the request's `id`. -/
def answerProving (domains : List Domain) (request : Json) : StateT Prover IO Json := do
  let id := (request.getObjVal? "id").toOption.getD .null
  match Prove.tidy.run (← get) with
  | .ok ((), prover) => set prover
  | .error _ => pure ()
  match object provingKnown request >>= provingRequest domains with
  | .error e =>
    return .mkObj [("id", id), ("ok", .bool false), ("error", .mkObj [("path", .str ("guard" ++ e.path)), ("message", e.message)])]
  | .ok r =>
    let fields ← if (request.getObjVal? "op").toOption == some (.str "repair") then repair r else prove r
    return .mkObj ([("id", id), ("ok", .bool true), ("policy", .str r.domain.policy.name), ("revision", .str r.snapshot.revision.text)] ++ fields)

/-- The same, for a process that keeps the prover between requests: the first of them imports the environment and makes the prover ready. The
prover of a request that ended in an exception is lost, and the next request makes another. -/
def serveProving (environment : IO Lean.Environment) (domains : List Domain) (prover : Option Prover) (request : Json) :
    IO (Prover × Json) := do
  let prover ← match prover with
    | some prover => pure prover
    | none =>
      let prover := Prover.start (← environment)
      match (Prove.warm domains).run prover with
      | .ok ((), prover) => pure prover
      | .error why => throw (IO.userError s!"the prover did not start: {why}")
  let (answer, prover) ← (answerProving domains request).run prover
  return (prover, answer)

end LeanGuard.Wire
