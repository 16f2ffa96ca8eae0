import LeanGuard.LeanLTL.Trace

/-!
# Sets of traces, and the operators of linear temporal logic on them

A formula stands for the set of traces that satisfy it. The names and definitions are those of LeanLTL.
-/

namespace LeanGuard.LeanLTL

universe u v

/-- A `TraceSet` is a set of traces; `t ⊨ p` says that `t` is in `p`. -/
structure TraceSet (σ : Type u) where
  /-- Membership. -/
  sat : Trace σ → Prop

/-- `t ⊨ p` says that the trace `t` satisfies `p`. -/
scoped notation:50 t:51 " ⊨ " p:51 => TraceSet.sat p t

namespace TraceSet

variable {σ : Type u} {α : Sort v}

/-- `p` holds of every trace. -/
def sem_entail (p : TraceSet σ) : Prop := ∀ t : Trace σ, t ⊨ p

/-- `p` holds of every finite trace. -/
def sem_entail_fin (p : TraceSet σ) : Prop := ∀ t : Trace σ, t.Finite → t ⊨ p

/-- `p` holds of every infinite trace. -/
def sem_entail_inf (p : TraceSet σ) : Prop := ∀ t : Trace σ, t.Infinite → t ⊨ p

/-- Every trace that satisfies `p` satisfies `q`. -/
def sem_imp (p q : TraceSet σ) : Prop := ∀ t : Trace σ, t ⊨ p → t ⊨ q

/-- Every finite trace that satisfies `p` satisfies `q`. -/
def sem_imp_fin (p q : TraceSet σ) : Prop := ∀ t : Trace σ, t.Finite → t ⊨ p → t ⊨ q

/-- Every infinite trace that satisfies `p` satisfies `q`. -/
def sem_imp_inf (p q : TraceSet σ) : Prop := ∀ t : Trace σ, t.Infinite → t ⊨ p → t ⊨ q

/-! ### Propositional logic -/

/-- The traces whose first state satisfies `P`. -/
protected def of (P : σ → Prop) : TraceSet σ where
  sat t := P (t.toFun 0)

/-- All traces if `P`, no trace otherwise. -/
protected def const (P : Prop) : TraceSet σ where
  sat _ := P

/-- The traces whose membership in `p` satisfies `g`. -/
protected def map (g : Prop → Prop) (p : TraceSet σ) : TraceSet σ where
  sat t := g (t ⊨ p)

/-- The traces whose memberships in `p` and `q` satisfy `g`. -/
protected def map₂ (g : Prop → Prop → Prop) (p q : TraceSet σ) : TraceSet σ where
  sat t := g (t ⊨ p) (t ⊨ q)

/-- All traces. -/
protected def true : TraceSet σ := TraceSet.const True

/-- No trace. -/
protected def false : TraceSet σ := TraceSet.const False

/-- The traces outside `p`. -/
protected def not (p : TraceSet σ) : TraceSet σ := TraceSet.map (¬ ·) p

/-- The traces in both `p` and `q`. -/
protected def and (p q : TraceSet σ) : TraceSet σ := TraceSet.map₂ (· ∧ ·) p q

/-- The traces in `p`, in `q` or in both. -/
protected def or (p q : TraceSet σ) : TraceSet σ := TraceSet.map₂ (· ∨ ·) p q

/-- The traces that are in `q` if they are in `p`. -/
protected def imp (p q : TraceSet σ) : TraceSet σ := TraceSet.map₂ (· → ·) p q

/-- The traces that are in both `p` and `q` or in neither. -/
protected def iff (p q : TraceSet σ) : TraceSet σ := TraceSet.map₂ (· ↔ ·) p q

/-- The traces in some `p x`. -/
protected def «exists» (p : α → TraceSet σ) : TraceSet σ where
  sat t := ∃ x, t ⊨ p x

/-- The traces in every `p x`. -/
protected def «forall» (p : α → TraceSet σ) : TraceSet σ where
  sat t := ∀ x, t ⊨ p x

/-! ### Temporal operators -/

/-- Weak shift: `p` holds after `i` steps, if the trace is that long. -/
protected def wshift (i : Nat) (p : TraceSet σ) : TraceSet σ where
  sat t := ∀ h : i < t.length, t.shift i h ⊨ p

/-- Strong shift: the trace has a state after `i` steps, and `p` holds there. -/
protected def sshift (i : Nat) (p : TraceSet σ) : TraceSet σ where
  sat t := ∃ h : i < t.length, t.shift i h ⊨ p

/-- Weak next: `p` holds at the next moment, if there is one. -/
protected abbrev wnext (p : TraceSet σ) : TraceSet σ := p.wshift 1

/-- Strong next: there is a next moment, and `p` holds there. -/
protected abbrev snext (p : TraceSet σ) : TraceSet σ := p.sshift 1

/-- Until: `q` holds at some moment, and `p` at every earlier one. -/
protected def «until» (p q : TraceSet σ) : TraceSet σ where
  sat t := ∃ n, (∀ i < n, t ⊨ p.wshift i) ∧ t ⊨ q.sshift n

/-- Release, the dual of until: `q` holds up to and including the first moment at which `p` does. -/
protected def release (p q : TraceSet σ) : TraceSet σ := (p.not.until q.not).not

/-- Finally: `p` holds at some moment. -/
protected def «finally» (p : TraceSet σ) : TraceSet σ := TraceSet.true.until p

/-- Globally: `p` holds at every moment. -/
protected def globally (p : TraceSet σ) : TraceSet σ := p.not.finally.not

end TraceSet

end LeanGuard.LeanLTL
