/-!
# Lengths of traces

A length is a natural number or infinity. It plays the part that `ENat` plays in LeanLTL.
-/

namespace LeanGuard.LeanLTL

/-- The length of a trace: a natural number, or infinite. -/
inductive Length where
  /-- A finite length. -/
  | finite (n : Nat)
  /-- The length of an infinite trace. -/
  | infinite
  deriving DecidableEq, Repr

namespace Length

instance : Coe Nat Length := ⟨finite⟩

/-- `a.Lt b` says that `a` is strictly below `b`; infinity is above every natural number and not below itself. -/
protected def Lt : Length → Length → Prop
  | finite a, finite b => a < b
  | finite _, infinite => True
  | infinite, _ => False

/-- `a.add b` is the sum, which is infinite as soon as one part is. -/
protected def add : Length → Length → Length
  | finite a, finite b => finite (a + b)
  | _, _ => infinite

/-- `a.sub n` takes `n` states away; infinity stays infinite. -/
protected def sub : Length → Nat → Length
  | finite a, n => finite (a - n)
  | infinite, _ => infinite

instance : LT Length := ⟨Length.Lt⟩
instance : Add Length := ⟨Length.add⟩
instance : HSub Length Nat Length := ⟨Length.sub⟩

/-- Two finite lengths compare as natural numbers. -/
@[simp, grind =] theorem finite_lt_finite {a b : Nat} : finite a < finite b ↔ a < b := Iff.rfl

/-- A finite length is below infinity. -/
@[simp] theorem finite_lt_infinite {a : Nat} : finite a < infinite := True.intro

/-- Infinity is below nothing. -/
@[simp] theorem not_infinite_lt {a : Length} : ¬ infinite < a := False.elim

/-- The sum of finite lengths is the sum of natural numbers. -/
@[simp] theorem finite_add_finite {a b : Nat} : finite a + finite b = finite (a + b) := rfl

/-- Infinity plus anything is infinite. -/
@[simp] theorem infinite_add {a : Length} : infinite + a = infinite := by cases a <;> rfl

/-- Taking states away from a finite length is subtraction. -/
@[simp] theorem finite_sub {a n : Nat} : finite a - n = finite (a - n) := rfl

/-- Taking states away from an infinite length leaves it infinite. -/
@[simp] theorem infinite_sub {n : Nat} : infinite - n = infinite := rfl

/-- A position is inside what is left exactly when the position moved back is inside the whole. -/
@[simp] theorem lt_sub_iff {a : Length} {n i : Nat} : finite n < a - i ↔ finite (n + i) < a := by
  cases a <;> simp <;> omega

/-- Adding one state moves every position by one. -/
@[simp] theorem succ_lt_add_one {a : Length} {n : Nat} : finite (n + 1) < a + finite 1 ↔ finite n < a := by
  cases a <;> simp

/-- A length with one more state is positive. -/
@[simp] theorem zero_lt_add_one {a : Length} : finite 0 < a + finite 1 := by
  cases a <;> simp

/-- What is below a smaller position is below the length too. -/
theorem lt_of_le_of_lt {a : Length} {m n : Nat} (h : m ≤ n) (h' : finite n < a) : finite m < a := by
  cases a <;> simp_all <;> omega

/-- Two lengths with the same positions are equal. -/
theorem ext_of_lt {a b : Length} (h : ∀ i, finite i < a ↔ finite i < b) : a = b := by
  cases a with
  | finite a =>
    cases b with
    | finite b =>
      have h₁ := h a
      have h₂ := h b
      simp at h₁ h₂
      exact congrArg finite (by omega)
    | infinite => simpa using h a
  | infinite =>
    cases b with
    | finite b => simpa using h b
    | infinite => rfl

end Length

end LeanGuard.LeanLTL
