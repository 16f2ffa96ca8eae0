import LeanGuard.Eval.Formula
import LeanGuard.LeanLTL.OfList
import LeanGuard.Spec.Interpretation

/-!
# The evaluator decides the temporal logic

The evaluator's three answers, true, false and an error, are the three cases of the interpretation: defined and satisfied, defined and not
satisfied, not defined.
-/

namespace LeanGuard

open LeanLTL
open scoped LeanLTL

/-! ### The interpretation of scopes and anchors on a history -/

theorem anchored_iff {p : Moment → TraceSet Moment} {m : Moment} {past : Past} :
    traceOf m past ⊨ anchored p ↔ traceOf m past ⊨ p m := Iff.rfl

theorem Window.sat_interp_iff {w : Window} {anchor m : Moment} {past : Past} :
    traceOf m past ⊨ w.interp anchor ↔ w.covers anchor.time m.time = true := Iff.rfl

theorem Scope.sat_interp_iff {scope : Scope} {p : TraceSet Moment} {m : Moment} {past : Past} :
    traceOf m past ⊨ scope.interp p ↔ ∃ key, scope.key m = some key ∧ traceOf m (scope.project key past) ⊨ p := by
  constructor
  · rintro ⟨m', past', key, e, h⟩
    obtain ⟨rfl, rfl⟩ := Trace.ofList_inj.mp e
    exact ⟨key, h⟩
  · rintro ⟨key, h⟩
    exact ⟨m, past, key, rfl, h⟩

namespace Temporal

/-- The answer is true, false or an error as the two statements say. -/
private def Means (answer : Checked) (defined holds : Prop) : Prop :=
  match answer with
  | .ok b => defined ∧ (b = true ↔ holds)
  | .error _ => ¬ defined

private theorem means_once {covers : Moment → Bool} {p : Moment → Past → Checked} {D I : TraceSet Moment}
    (h : ∀ m past, Means (p m past) (traceOf m past ⊨ D) (traceOf m past ⊨ I)) (m : Moment) (past : Past) :
    Means (evalOnce covers p m past) (traceOf m past ⊨ 𝐆 D)
      (traceOf m past ⊨ 𝐅 ((TraceSet.of fun x => covers x = true).and I)) := by
  induction past generalizing m with
  | nil =>
    have := h m []
    simp only [evalOnce, traceOf, TraceSet.globally_singleton, TraceSet.finally_singleton]
    cases e : p m [] <;> simp_all [Means, traceOf, bind, Except.bind, pure, Except.pure]
  | cons x past ih =>
    have := h m (x :: past)
    have := ih x
    simp only [evalOnce, traceOf, TraceSet.globally_cons, TraceSet.finally_cons]
    cases e : p m (x :: past) <;> cases e' : evalOnce covers p x past <;>
      simp_all [Means, traceOf, bind, Except.bind, pure, Except.pure]

private theorem means_since {covers : Moment → Bool} {p q : Moment → Past → Checked} {D E I J : TraceSet Moment}
    (hp : ∀ m past, Means (p m past) (traceOf m past ⊨ D) (traceOf m past ⊨ I))
    (hq : ∀ m past, Means (q m past) (traceOf m past ⊨ E) (traceOf m past ⊨ J)) (m : Moment) (past : Past) :
    Means (evalSince covers p q m past) (traceOf m past ⊨ 𝐆 (D.and E))
      (traceOf m past ⊨ I 𝐔 ((TraceSet.of fun x => covers x = true).and J)) := by
  induction past generalizing m with
  | nil =>
    have := hp m []
    have := hq m []
    simp only [evalSince, traceOf, TraceSet.globally_singleton, TraceSet.until_singleton]
    cases e : p m [] <;> cases e' : q m [] <;> simp_all [Means, traceOf, bind, Except.bind, pure, Except.pure]
  | cons x past ih =>
    have := hp m (x :: past)
    have := hq m (x :: past)
    have := ih x
    simp only [evalSince, traceOf, TraceSet.globally_cons, TraceSet.until_cons]
    cases e : p m (x :: past) <;> cases e' : q m (x :: past) <;> cases e'' : evalSince covers p q x past <;>
      simp_all [Means, traceOf, bind, Except.bind, pure, Except.pure]

private theorem means_eval (f : Formula) (m : Moment) (past : Past) :
    Means (f.eval m past) (traceOf m past ⊨ f.defined) (traceOf m past ⊨ f.interp) := by
  induction f generalizing m past with
  | atom name holds =>
    show Means (holds m) (∃ b, holds m = .ok b) (holds m = .ok true)
    cases holds m <;> simp [Means]
  | top => simp [Formula.eval, Formula.defined, Formula.interp, Means]
  | bot => simp [Formula.eval, Formula.defined, Formula.interp, Means]
  | not p ih =>
    have := ih m past
    simp only [Formula.eval, Formula.defined, Formula.interp]
    cases e : p.eval m past <;> simp_all [Means, bind, Except.bind, pure, Except.pure]
    grind
  | and p q ihp ihq | or p q ihp ihq =>
    have := ihp m past
    have := ihq m past
    simp only [Formula.eval, Formula.defined, Formula.interp]
    cases e : p.eval m past <;> cases e' : q.eval m past <;> simp_all [Means, bind, Except.bind, pure, Except.pure]
  | previous w p ih =>
    simp only [Formula.defined, Formula.interp, anchored_iff]
    cases past with
    | nil => simp [Formula.eval, Means, traceOf]
    | cons x past =>
      have := ih x past
      simp only [Formula.eval, traceOf, TraceSet.snext_cons, TraceSet.wnext_cons]
      cases e : p.eval x past <;>
        simp_all [Means, traceOf, Window.interp, bind, Except.bind, pure, Except.pure]
  | once w p ih => exact means_once ih m past
  | since w p q ihp ihq => exact means_since ihp ihq m past
  | within scope p ih =>
    simp only [Formula.eval, Formula.defined, Formula.interp, Scope.sat_interp_iff]
    cases scope.key m with
    | none => simp [Means]
    | some key => simpa using ih m (scope.project key past)

/-- The evaluator answers true exactly when the history has a truth value for the formula and satisfies its interpretation. -/
theorem eval_iff_sat (f : Formula) (m : Moment) (past : Past) :
    f.eval m past = .ok true ↔ traceOf m past ⊨ f.defined ∧ traceOf m past ⊨ f.interp := by
  have := means_eval f m past
  cases e : f.eval m past <;> simp_all [Means]

/-- The evaluator answers false exactly when the history has a truth value for the formula and does not satisfy its interpretation. -/
theorem eval_false_iff (f : Formula) (m : Moment) (past : Past) :
    f.eval m past = .ok false ↔ traceOf m past ⊨ f.defined ∧ ¬ traceOf m past ⊨ f.interp := by
  have := means_eval f m past
  cases e : f.eval m past with
  | error => simp_all [Means]
  | ok b => cases b <;> simp_all [Means]

/-- The evaluator answers with an error exactly when the history has no truth value for the formula. -/
theorem eval_error_iff (f : Formula) (m : Moment) (past : Past) :
    (∃ e, f.eval m past = .error e) ↔ ¬ traceOf m past ⊨ f.defined := by
  have := means_eval f m past
  cases e : f.eval m past <;> simp_all [Means]

/-- A total formula has a truth value on every history. -/
theorem defined_of_total {f : Formula} (h : f.Total) (m : Moment) (past : Past) : traceOf m past ⊨ f.defined := by
  induction f generalizing m past with
  | atom name holds => exact h m
  | top | bot => trivial
  | not p ih => exact ih h m past
  | and p q ihp ihq | or p q ihp ihq => exact ⟨ihp h.1 m past, ihq h.2 m past⟩
  | previous w p ih => exact TraceSet.wnext_ofList.mpr fun x older _ => ih h x older
  | once w p ih => exact TraceSet.globally_iff_forall_suffix.mpr fun x older _ => ih h x older
  | since w p q ihp ihq =>
    exact TraceSet.globally_iff_forall_suffix.mpr fun x older _ => ⟨ihp h.1 x older, ihq h.2 x older⟩
  | within scope p ih =>
    obtain ⟨key, hk⟩ := h.1 m
    exact Scope.sat_interp_iff.mpr ⟨key, hk, ih h.2 m _⟩

/-- For a formula whose atoms never err, the evaluator answers true exactly when the history satisfies the interpretation. -/
theorem eval_iff_sat_of_total {f : Formula} (h : f.Total) (m : Moment) (past : Past) :
    f.eval m past = .ok true ↔ traceOf m past ⊨ f.interp := by
  simp [eval_iff_sat, defined_of_total h]

end Temporal
end LeanGuard
