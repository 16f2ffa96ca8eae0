import LeanGuard.Spec.Call

/-!
# Formulas

Conditions: atoms over one moment, combined by ⊤ ⊥ ¬ ∧ ∨ and the past operators `previous`, `once`, `since`, `within`.
Every operator looks from the moment at which it stands towards older moments, that moment included (but for `previous`).
-/

namespace LeanGuard

/-- Why a condition could not be evaluated. -/
structure EvalError where
  message : String
deriving DecidableEq, Repr

/-- A truth value, or the reason that there is none. -/
abbrev Checked := Except EvalError Bool

def Checked.isTrue : Checked → Bool
  | .ok b => b
  | .error _ => false

def Checked.isFalse : Checked → Bool
  | .ok b => !b
  | .error _ => false

/-- A time bound, measured from the moment at which the operator stands. -/
inductive Window where
  | unbounded
  | milliseconds (bound : Nat)
deriving DecidableEq, Repr

namespace Window

def seconds (n : Nat) : Window := .milliseconds (n * 1000)
def minutes (n : Nat) : Window := seconds (n * 60)
def hours (n : Nat) : Window := minutes (n * 60)
def days (n : Nat) : Window := hours (n * 24)

/-- Whether a moment at time `t` lies in the window that reaches back from `anchor`. -/
def covers : Window → (anchor t : Time) → Bool
  | .unbounded, _, _ => true
  | .milliseconds bound, anchor, t => decide (anchor - t ≤ bound)

end Window

/-- What a scope may compare. -/
inductive Dimension where
  | principal
  | conversation
  | resource
  | revision
  /-- The exact proposal: tool and arguments. -/
  | proposal
  | tool
  /-- One argument of the call, by name. -/
  | argument (name : Symbol)
deriving DecidableEq

/-- What this moment has in that dimension; none if it has nothing there. -/
def Dimension.read : Dimension → Moment → Option Value
  | .principal, m => m.principal.map .sym
  | .conversation, m => m.conversation.map .sym
  | .resource, m => m.resource.map fun r => .list [.sym r.type, .sym r.id]
  | .revision, m => m.revision.map .sym
  | .proposal, m => m.call.map fun c => .list [.sym c.tool, .record c.arguments]
  | .tool, m => m.call.map fun c => .sym c.tool
  | .argument name, m => m.call.bind fun c => c.arguments.find? name

/-- The dimensions in which an event must be as the moment at which the operator stands. -/
abbrev Scope := List Dimension

/-- What a moment has in each dimension of a scope. -/
abbrev Key := List Value

/-- The moment's key; none if a dimension is missing. -/
def Scope.key (scope : Scope) (m : Moment) : Option Key := scope.mapM (·.read m)

/-- The part of a past that lies in the scope with that key. -/
def Scope.project (scope : Scope) (key : Key) (past : Past) : Past :=
  past.filter fun m => scope.key m == some key

/-- A condition of a rule. -/
inductive Formula where
  /-- A predicate on one moment; the name is for people. -/
  | atom (name : String) (holds : Moment → Checked)
  | top
  | bot
  | not (p : Formula)
  | and (p q : Formula)
  | or (p q : Formula)
  /-- `p` at the moment just before, if that lies in the window. -/
  | previous (w : Window) (p : Formula)
  /-- `p` at this moment or an earlier one in the window. -/
  | once (w : Window) (p : Formula)
  /-- `q` at this moment or an earlier one in the window, and `p` at every moment after that one. -/
  | since (w : Window) (p q : Formula)
  /-- `p` on the part of the history that agrees with this moment in the scope. -/
  | within (scope : Scope) (p : Formula)

namespace Formula

/-- An atom about the pending call and its snapshot. It can't be evaluated at an event: there is no snapshot of then. -/
def now (name : String) (holds : Pending → Checked) : Formula :=
  .atom name fun
    | .pending p => holds p
    | .event _ => .error ⟨s!"the condition “{name}” is about the pending call, and stands under a past operator"⟩

/-- An atom about an event. At the pending moment it is false: a call is not yet an event. -/
def happened (name : String) (holds : Event → Checked) : Formula :=
  .atom name fun
    | .pending _ => .ok false
    | .event e => holds e

/-- If `p` then `q`. -/
def implies (p q : Formula) : Formula := .or (.not p) q

/-- All of them. -/
def all : List Formula → Formula
  | [] => .top
  | [p] => p
  | p :: ps => .and p (all ps)

/-- At least one of them. -/
def any : List Formula → Formula
  | [] => .bot
  | [p] => p
  | p :: ps => .or p (any ps)

end Formula
end LeanGuard
