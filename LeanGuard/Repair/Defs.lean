import LeanGuard.Spec.Read
import LeanGuard.Eval.Admission

/-!
# Repairs

A denied call may have an admitted neighbour: the same call but for the value of an argument, which the domain lets change. What may change,
to what, and what must stay is the domain's **intent**, declared beside its policy. A repair is an edited call with two proofs: that it keeps
the intent, and that the policy admits it, once the customer has confirmed it where the policy asks for that.
-/

namespace LeanGuard

/-- Where the values of one argument come from: closest first, and finitely many, since it is a list that is read of the snapshot. -/
structure Source where
  /-- The tools whose argument it is. -/
  tools : List Symbol
  argument : Symbol
  /-- What the values are, for people. -/
  description : String
  values : Pending → Read (List Value)

/-- Something that an edit must leave as it was, though the arguments that it concerns may change. -/
structure Keep where
  tools : List Symbol
  /-- What stays, for people. -/
  description : String
  /-- What is kept, read of the call: the same before and after. -/
  measure : Pending → Read Value

/-- What edits leave a call's purpose as it was. An argument without a source may not change at all. -/
structure Intent where
  sources : List Source
  keeps : List Keep := []

/-- No edit keeps the intent: for a policy that declares no sources. -/
def Intent.fixed : Intent where
  sources := []

/-- The pending moment of a call, with the resource that the tool's contract names. -/
def Policy.pendingOf (policy : Policy) (call : Call) (snapshot : Snapshot) : Pending :=
  { call, snapshot, resource := (policy.contract? call.tool).bind (·.resourceOf call.arguments) }

/-- The values that a source has for a call; none if it can't be read. -/
def Source.candidates (source : Source) (pending : Pending) : List Value :=
  match source.values pending with
  | .ok values => values
  | .error _ => []

/-- The value may stand for an argument of that name: a source says so. -/
def Intent.offers (intent : Intent) (original : Pending) (name : Symbol) (v : Value) : Bool :=
  intent.sources.any fun source =>
    source.argument == name && source.tools.contains original.call.tool && (source.candidates original).contains v

/-- The arguments correspond one to one: the same names, each with its old value or one that a source offers. -/
def Intent.argumentsOK (intent : Intent) (original : Pending) : Fields → Fields → Bool
  | [], [] => true
  | (name, v) :: before, (name', v') :: after =>
    name == name' && (v == v' || intent.offers original name v') && intent.argumentsOK original before after
  | _, _ => false

/-- What is to be kept is readable and the same. -/
def Keep.holds (keep : Keep) (original edited : Pending) : Bool :=
  !keep.tools.contains original.call.tool ||
    match keep.measure original, keep.measure edited with
    | .ok a, .ok b => a == b
    | _, _ => false

/-- Decides whether an edit keeps the intent. -/
def Intent.permits (intent : Intent) (policy : Policy) (snapshot : Snapshot) (original edited : Call) : Bool :=
  let before := policy.pendingOf original snapshot
  let after := policy.pendingOf edited snapshot
  edited.tool == original.tool && intent.argumentsOK before original.arguments edited.arguments &&
    intent.keeps.all (·.holds before after)

/-- The edit keeps the intent of the call: the tool stays, every argument stays but those that may change, these take values that the
domain offers, and what must be kept is kept. -/
structure EditOK (policy : Policy) (intent : Intent) (snapshot : Snapshot) (original edited : Call) : Prop where
  tool : edited.tool = original.tool
  /-- The same arguments, in the same places. -/
  names : edited.arguments.map (·.1) = original.arguments.map (·.1)
  /-- Each argument has its old value, or one that a source of this tool and argument offers for the original call. -/
  values : ∀ pair ∈ original.arguments.zip edited.arguments, pair.2.2 = pair.1.2 ∨
    ∃ source ∈ intent.sources, original.tool ∈ source.tools ∧ source.argument = pair.1.1 ∧
      pair.2.2 ∈ source.candidates (policy.pendingOf original snapshot)
  /-- What the domain wants kept can be read before and after, and is the same. -/
  keeps : ∀ keep ∈ intent.keeps, original.tool ∈ keep.tools → ∃ v,
    keep.measure (policy.pendingOf original snapshot) = .ok v ∧ keep.measure (policy.pendingOf edited snapshot) = .ok v

/-- The event by which the customer of this conversation confirms exactly this call in this state. -/
def Policy.consentFor (policy : Policy) (call : Call) (snapshot : Snapshot) : Event where
  kind := sym!"consent"
  time := snapshot.time
  principal := snapshot.principal
  conversation := snapshot.conversation
  resource := (policy.pendingOf call snapshot).resource
  revision := some snapshot.revision
  call := some call

/-- The journal at which a repaired call is admitted: as it is, or with the one consent in front that the customer has yet to give. -/
def Policy.consented (policy : Policy) (needsConsent : Bool) (call : Call) (snapshot : Snapshot) (journal : Journal) : Journal :=
  bif needsConsent then policy.consentFor call snapshot :: journal else journal

/-- An edit of a call that keeps its intent and that the policy admits. Consent is bound to the exact call, so that no edit carries one over:
where the policy asks for one, the admission is that of the journal in which the customer has confirmed the edited call. -/
structure Repair (policy : Policy) (intent : Intent) (snapshot : Snapshot) (journal : Journal) (call : Call) where
  edited : Call
  /-- Whether the customer has yet to confirm the edited call. -/
  needsConsent : Bool
  keepsIntent : EditOK policy intent snapshot call edited
  admitted : policy.decide edited snapshot (policy.consented needsConsent edited snapshot journal) = .admit

end LeanGuard
