import LeanGuard.LeanLTL.Length

/-!
# Traces

A trace is a non-empty sequence of states, finite or infinite. The names are those of LeanLTL.
-/

namespace LeanGuard.LeanLTL

universe u v

/-- A trace over `σ` is a non-empty sequence, finite or infinite, of states from `σ`. -/
structure Trace (σ : Type u) where
  /-- The state at each position, `none` from the end of a finite trace on. -/
  toFun? : Nat → Option σ
  /-- The number of states. -/
  length : Length
  /-- A trace has at least one state. -/
  nempty : (0 : Nat) < length
  /-- There is a state at exactly the positions below the length. -/
  defined : ∀ i : Nat, i < length ↔ (toFun? i).isSome

attribute [simp] Trace.nempty

namespace Trace

variable {σ : Type u} {σ' : Type v}

/-- The state at position `n`, given a proof that the trace is that long. -/
protected def toFun (t : Trace σ) (n : Nat) (h : n < t.length := by simp) : σ :=
  (t.toFun? n).get ((t.defined n).mp h)

/-- The first state of a trace. -/
def head (t : Trace σ) : σ := t.toFun 0

/-- The trace with `f` applied to every state. -/
protected def map (f : σ → σ') (t : Trace σ) : Trace σ' where
  toFun? n := (t.toFun? n).map f
  length := t.length
  nempty := t.nempty
  defined := by simp [t.defined]

/-- The trace with one state. -/
protected def singleton (s : σ) : Trace σ where
  toFun?
    | 0 => some s
    | _ + 1 => none
  length := .finite 1
  nempty := by simp
  defined := by rintro (_ | i) <;> simp

/-- The trace without its first `i` states. -/
protected def shift (t : Trace σ) (i : Nat) (h : i < t.length) : Trace σ where
  toFun? n := t.toFun? (n + i)
  length := t.length - i
  nempty := by simpa using h
  defined := by simp [t.defined]

/-- The trace with one more state in front. -/
protected def unshift (s : σ) (t : Trace σ) : Trace σ where
  toFun?
    | 0 => some s
    | n + 1 => t.toFun? n
  length := t.length + Length.finite 1
  nempty := by simp
  defined := by rintro (_ | i) <;> simp [t.defined]

/-- The finite trace whose first state is `a` and whose later states are those of `l`. -/
def ofList (a : σ) (l : List σ) : Trace σ where
  toFun? n := (a :: l)[n]?
  length := .finite (l.length + 1)
  nempty := by simp
  defined := by simp

/-- A trace is finite when its length is below infinity. -/
protected def Finite (t : Trace σ) : Prop := t.length < .infinite

/-- A trace is infinite when its length is. -/
protected def Infinite (t : Trace σ) : Prop := t.length = .infinite

instance [Inhabited σ] : Inhabited (Trace σ) := ⟨Trace.singleton default⟩

end Trace

end LeanGuard.LeanLTL
