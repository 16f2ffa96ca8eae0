import LeanGuard.Spec.Formula

/-!
# The evaluator

The executable evaluator of formulas: the specification of record for every faster one. It is strict: an error in any part that an
operator looks at is the operator's error, whatever the other parts say. So an error is never read as false, and never turned
into true by a negation.
-/

namespace LeanGuard

/-- Whether `p` held, in the window back from `anchor`, here or earlier. -/
def evalOnce (covers : Moment → Bool) (p : Moment → Past → Checked) : Moment → Past → Checked
  | m, [] => do
    let here ← p m []
    return covers m && here
  | m, e :: past => do
    let here ← p m (e :: past)
    let earlier ← evalOnce covers p e past
    return (covers m && here) || earlier

/-- Whether `q` held, in the window back from `anchor`, here or earlier, and `p` at every moment after that. -/
def evalSince (covers : Moment → Bool) (p q : Moment → Past → Checked) : Moment → Past → Checked
  | m, [] => do
    let _ ← p m []
    let witness ← q m []
    return covers m && witness
  | m, e :: past => do
    let held ← p m (e :: past)
    let witness ← q m (e :: past)
    let earlier ← evalSince covers p q e past
    return (covers m && witness) || (held && earlier)

/-- The error of a scope of which the moment lacks a dimension. -/
def Scope.missing (_ : Scope) : EvalError :=
  ⟨"the call has no value in a dimension of the rule's scope (principal, conversation, resource or argument missing)"⟩

/-- The truth of a formula at a moment with that past, or the error that leaves it without one. -/
def Formula.eval : Formula → Moment → Past → Checked
  | .atom _ holds, m, _ => holds m
  | .top, _, _ => .ok true
  | .bot, _, _ => .ok false
  | .not p, m, past => do
    let a ← p.eval m past
    return !a
  | .and p q, m, past => do
    let a ← p.eval m past
    let b ← q.eval m past
    return a && b
  | .or p q, m, past => do
    let a ← p.eval m past
    let b ← q.eval m past
    return a || b
  | .previous _ _, _, [] => .ok false
  | .previous w p, m, e :: past => do
    let a ← p.eval e past
    return w.covers m.time e.time && a
  | .once w p, m, past => evalOnce (fun x => w.covers m.time x.time) p.eval m past
  | .since w p q, m, past => evalSince (fun x => w.covers m.time x.time) p.eval q.eval m past
  | .within scope p, m, past =>
    match scope.key m with
    | none => .error scope.missing
    | some key => p.eval m (scope.project key past)

end LeanGuard
