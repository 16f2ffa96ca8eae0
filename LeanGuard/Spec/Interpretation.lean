import LeanGuard.LeanLTL.Notation
import LeanGuard.Spec.Policy

/-!
# What conditions and policies mean, in linear temporal logic

A moment and what came before it are a trace, newest first. Every formula stands for a set of such traces, built with the operators of
`LeanLTL`. Nothing here mentions the evaluator.
-/

namespace LeanGuard

open LeanLTL
open scoped LeanLTL

/-- The history as a trace: the moment at its head, then the past from newest to oldest. -/
def traceOf (m : Moment) (past : Past) : Trace Moment := Trace.ofList m past

/-- A set of traces that depends on the trace's first moment: what a window or a scope is measured from. -/
def anchored (p : Moment → TraceSet Moment) : TraceSet Moment where
  sat t := t ⊨ p t.head

/-- The first moment lies in the window that reaches back from the anchor. -/
def Window.interp (w : Window) (anchor : Moment) : TraceSet Moment :=
  .of fun m => w.covers anchor.time m.time

/-- The traces that are in `p` once their past is reduced to what agrees with the first moment in the scope. -/
def Scope.interp (scope : Scope) (p : TraceSet Moment) : TraceSet Moment where
  sat t := ∃ m past key, t = traceOf m past ∧ scope.key m = some key ∧ traceOf m (scope.project key past) ⊨ p

namespace Formula

/-- The traces of which the formula is true. -/
def interp : Formula → TraceSet Moment
  | .atom _ holds => .of fun m => holds m = .ok true
  | .top => .true
  | .bot => .false
  | .not p => p.interp.not
  | .and p q => p.interp.and q.interp
  | .or p q => p.interp.or q.interp
  | .previous w p => anchored fun m => 𝐗ˢ ((w.interp m).and p.interp)
  | .once w p => anchored fun m => 𝐅 ((w.interp m).and p.interp)
  | .since w p q => anchored fun m => p.interp 𝐔 ((w.interp m).and q.interp)
  | .within scope p => scope.interp p.interp

/-- The traces of which the formula has a truth value: at every place that an operator looks at, each atom can be evaluated and each scope
has a value. -/
def defined : Formula → TraceSet Moment
  | .atom _ holds => .of fun m => ∃ b, holds m = .ok b
  | .top | .bot => .true
  | .not p => p.defined
  | .and p q | .or p q => p.defined.and q.defined
  | .previous _ p => 𝐗ʷ p.defined
  | .once _ p => 𝐆 p.defined
  | .since _ p q => 𝐆 (p.defined.and q.defined)
  | .within scope p => scope.interp p.defined

/-- The formula's atoms never err and its scopes always have a value, whatever the history. -/
def Total : Formula → Prop
  | .atom _ holds => ∀ m, ∃ b, holds m = .ok b
  | .top | .bot => True
  | .not p | .previous _ p | .once _ p => p.Total
  | .and p q | .or p q | .since _ p q => p.Total ∧ q.Total
  | .within scope p => (∀ m, ∃ key, scope.key m = some key) ∧ p.Total

end Formula

/-- The rules about the contract's tool authorize the pending moment at the head of the trace. -/
structure Policy.Authorized (policy : Policy) (contract : Contract) (t : Trace Moment) : Prop where
  /-- At least one permit holds. -/
  permitted : ∃ rule ∈ policy.applicable contract, rule.kind = .permit ∧ t ⊨ rule.condition.interp
  /-- Every requirement holds. -/
  required : ∀ rule ∈ policy.applicable contract, rule.kind = .require → t ⊨ rule.condition.interp
  /-- No forbid holds. -/
  notForbidden : ∀ rule ∈ policy.applicable contract, rule.kind = .forbid → ¬ t ⊨ rule.condition.interp
  /-- Every rule has a truth value. -/
  defined : ∀ rule ∈ policy.applicable contract, t ⊨ rule.condition.defined

/-- The call may run: its tool has a contract, its arguments fit it, and the rules authorize it after this journal. -/
def Policy.Admitted (policy : Policy) (call : Call) (snapshot : Snapshot) (journal : Journal) : Prop :=
  ∃ contract, policy.contract? call.tool = some contract ∧ contract.violations call.arguments = [] ∧
    policy.Authorized contract (traceOf (.pending (contract.pending call snapshot)) journal.past)

end LeanGuard
