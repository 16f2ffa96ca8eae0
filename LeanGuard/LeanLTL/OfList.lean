import LeanGuard.LeanLTL.Basic

/-!
# Finite traces given by a list

`Trace.ofList a l` is the trace with first state `a` and later states `l`. The lemmas here turn every operator into structural
recursion on `l`. All of them are simp lemmas, except those marked with a star.

| operator | on `ofList a []` | on `ofList a (b :: l)` | on `ofList a l` |
|---|---|---|---|
| `of P` | | | `of_ofList`* |
| `𝐗ˢ p` | `snext_singleton` | `snext_cons` | `snext_ofList`* |
| `𝐗ʷ p` | `wnext_singleton` | `wnext_cons` | `wnext_ofList`* |
| `𝐅 p` | `finally_singleton` | `finally_cons` | `finally_iff_exists_suffix`*, `finally_of_ofList` |
| `𝐆 p` | `globally_singleton` | `globally_cons` | `globally_iff_forall_suffix`*, `globally_of_ofList` |
| `p 𝐔 q` | `until_singleton` | `until_cons` | `until_iff_exists_append`* |
| `p 𝐑 q` | `release_singleton` | `release_cons` | |
| `𝐗ˢ(n + 1) p` | `sshift_singleton` | `sshift_cons` | |
| `𝐗ʷ(n + 1) p` | `wshift_singleton` | `wshift_cons` | |

Traces: `ofList_length`, `ofList_toFun?`, `ofList_head`, `ofList_finite`, `ofList_inj`, `ofList_nil`*, `ofList_cons`*,
`shift_ofList_cons`, `map_ofList`, `exists_ofList_of_finite`*, `finite_iff_exists_ofList`*.
-/

namespace LeanGuard.LeanLTL

universe u v

namespace Trace

variable {σ : Type u} {σ' : Type v}

/-- A list of `n` later states gives a trace of length `n + 1`. -/
@[simp] theorem ofList_length (a : σ) (l : List σ) : (ofList a l).length = .finite (l.length + 1) := rfl

/-- The state at position `n` is the element of the list at `n`. -/
@[simp] theorem ofList_toFun? (a : σ) (l : List σ) (n : Nat) : (ofList a l).toFun? n = (a :: l)[n]? := rfl

/-- The first state of the trace. -/
@[simp, grind =] theorem ofList_head (a : σ) (l : List σ) : (ofList a l).head = a := rfl

/-- A trace given by a list is finite. -/
@[simp] theorem ofList_finite (a : σ) (l : List σ) : (ofList a l).Finite := by simp [Trace.Finite]

/-- Without later states the trace is a single state. -/
theorem ofList_nil (a : σ) : ofList a [] = Trace.singleton a := by
  ext i : 1
  cases i <;> simp

/-- A trace with a later state is its first state in front of the rest. -/
theorem ofList_cons (a b : σ) (l : List σ) : ofList a (b :: l) = Trace.unshift a (ofList b l) := by
  ext i : 1
  cases i <;> simp

/-- After one step the trace is the rest of the list. -/
@[simp] theorem shift_ofList_cons (a b : σ) (l : List σ) (n : Nat) (h : (n + 1 : Nat) < (ofList a (b :: l)).length) :
    (ofList a (b :: l)).shift (n + 1) h = (ofList b l).shift n (by simpa using h) := by
  ext i : 1
  simp [← Nat.add_assoc]

/-- Mapping the trace maps the list. -/
@[simp] theorem map_ofList (f : σ → σ') (a : σ) (l : List σ) : (ofList a l).map f = ofList (f a) (l.map f) := by
  ext i : 1
  cases i <;> simp

/-- Different lists give different traces. -/
@[simp] theorem ofList_inj {a b : σ} {l m : List σ} : ofList a l = ofList b m ↔ a = b ∧ l = m := by
  refine ⟨fun h => ?_, fun ⟨h, h'⟩ => by rw [h, h']⟩
  have : a :: l = b :: m := List.ext_getElem? fun i => congrFun (congrArg Trace.toFun? h) i
  simpa using this

/-- Every finite trace is given by a list. -/
theorem exists_ofList_of_finite {t : Trace σ} (h : t.Finite) : ∃ a l, t = ofList a l := by
  induction t, h using unshift_induction with
  | singleton s => exact ⟨s, [], (ofList_nil s).symm⟩
  | unshift s t _ ih =>
    obtain ⟨a, l, rfl⟩ := ih
    exact ⟨s, a :: l, (ofList_cons s a l).symm⟩

/-- The finite traces are those given by lists. -/
theorem finite_iff_exists_ofList {t : Trace σ} : t.Finite ↔ ∃ a l, t = ofList a l :=
  ⟨exists_ofList_of_finite, fun ⟨a, l, h⟩ => by simp [h]⟩

end Trace

namespace TraceSet

variable {σ : Type u} {p q : TraceSet σ} {P Q : σ → Prop} {a b : σ} {l : List σ} {n : Nat}

/-- `of P` speaks of the first state. -/
theorem of_ofList : Trace.ofList a l ⊨ TraceSet.of P ↔ P a := by simp

/-! ### Next -/

/-- The last state has no next one. -/
@[simp, grind =] theorem snext_singleton : Trace.ofList a [] ⊨ 𝐗ˢ p ↔ False := by simp [Trace.ofList_nil]

/-- Strong next moves to the rest of the list. -/
@[simp, grind =] theorem snext_cons : Trace.ofList a (b :: l) ⊨ 𝐗ˢ p ↔ Trace.ofList b l ⊨ p := by simp [Trace.ofList_cons]

/-- Strong next holds exactly when there is a rest of the list, and it holds there. -/
theorem snext_ofList : Trace.ofList a l ⊨ 𝐗ˢ p ↔ ∃ b m, l = b :: m ∧ Trace.ofList b m ⊨ p := by
  cases l <;> grind

/-- At the last state everything holds weakly next. -/
@[simp, grind =] theorem wnext_singleton : Trace.ofList a [] ⊨ 𝐗ʷ p ↔ True := by simp [Trace.ofList_nil]

/-- Weak next moves to the rest of the list. -/
@[simp, grind =] theorem wnext_cons : Trace.ofList a (b :: l) ⊨ 𝐗ʷ p ↔ Trace.ofList b l ⊨ p := by simp [Trace.ofList_cons]

/-- Weak next holds exactly when it holds of the rest of the list, if there is one. -/
theorem wnext_ofList : Trace.ofList a l ⊨ 𝐗ʷ p ↔ ∀ b m, l = b :: m → Trace.ofList b m ⊨ p := by
  cases l <;> simp

/-- A strong shift past the last state fails. -/
@[simp, grind =] theorem sshift_singleton : Trace.ofList a [] ⊨ 𝐗ˢ(n + 1) p ↔ False := by simp [sat_sshift_iff]

/-- A strong shift moves to the rest of the list. -/
@[simp, grind =] theorem sshift_cons : Trace.ofList a (b :: l) ⊨ 𝐗ˢ(n + 1) p ↔ Trace.ofList b l ⊨ 𝐗ˢ(n) p := by
  simp [sat_sshift_iff]

/-- A weak shift past the last state holds. -/
@[simp, grind =] theorem wshift_singleton : Trace.ofList a [] ⊨ 𝐗ʷ(n + 1) p ↔ True := by simp [sat_wshift_iff]

/-- A weak shift moves to the rest of the list. -/
@[simp, grind =] theorem wshift_cons : Trace.ofList a (b :: l) ⊨ 𝐗ʷ(n + 1) p ↔ Trace.ofList b l ⊨ 𝐗ʷ(n) p := by
  simp [sat_wshift_iff]

/-! ### Until and release -/

/-- At the last state, until is its goal. -/
@[simp, grind =] theorem until_singleton : Trace.ofList a [] ⊨ p 𝐔 q ↔ Trace.ofList a [] ⊨ q := by simp [Trace.ofList_nil]

/-- Until holds when its goal does, or when it holds of the rest of the list and its condition does now. -/
@[simp, grind =] theorem until_cons : Trace.ofList a (b :: l) ⊨ p 𝐔 q ↔
    Trace.ofList a (b :: l) ⊨ q ∨ Trace.ofList a (b :: l) ⊨ p ∧ Trace.ofList b l ⊨ p 𝐔 q := by
  rw [sat_until_iff_or, snext_cons]

/-- At the last state, release is its goal. -/
@[simp, grind =] theorem release_singleton : Trace.ofList a [] ⊨ p 𝐑 q ↔ Trace.ofList a [] ⊨ q := by simp [Trace.ofList_nil]

/-- Release holds when its goal does, and when it is released now or holds of the rest of the list. -/
@[simp, grind =] theorem release_cons : Trace.ofList a (b :: l) ⊨ p 𝐑 q ↔
    Trace.ofList a (b :: l) ⊨ q ∧ (Trace.ofList a (b :: l) ⊨ p ∨ Trace.ofList b l ⊨ p 𝐑 q) := by
  rw [sat_release_iff_and, wnext_cons]

/-- Until splits the list where its goal holds; its condition holds of every longer rest. -/
theorem until_iff_exists_append : Trace.ofList a l ⊨ p 𝐔 q ↔
    ∃ xs b m, a :: l = xs ++ b :: m ∧ Trace.ofList b m ⊨ q ∧
      ∀ ys c zs, xs = ys ++ c :: zs → Trace.ofList c (zs ++ b :: m) ⊨ p := by
  induction l generalizing a with
  | nil =>
    rw [until_singleton]
    constructor
    · exact fun h => ⟨[], a, [], rfl, h, by simp⟩
    · rintro ⟨xs, b, m, e, h, -⟩
      cases xs <;> simp_all
  | cons c l ih =>
    rw [until_cons, ih]
    constructor
    · rintro (h | ⟨hp, xs, b, m, e, h, hxs⟩)
      · exact ⟨[], a, c :: l, rfl, h, by simp⟩
      · refine ⟨a :: xs, b, m, by simp [e], h, fun ys d zs e' => ?_⟩
        cases ys with
        | nil => simp_all
        | cons y ys => exact hxs ys d zs (by simp_all)
    · rintro ⟨xs, b, m, e, h, hxs⟩
      cases xs with
      | nil => simp_all
      | cons x xs =>
        simp only [List.cons_append, List.cons.injEq] at e
        obtain ⟨rfl, e⟩ := e
        refine .inr ⟨?_, xs, b, m, e, h, fun ys d zs e' => hxs (a :: ys) d zs (by simp [e'])⟩
        rw [e]
        exact hxs [] a xs rfl

/-! ### Finally and globally -/

/-- At the last state, finally is now. -/
@[simp, grind =] theorem finally_singleton : Trace.ofList a [] ⊨ 𝐅 p ↔ Trace.ofList a [] ⊨ p := by simp [Trace.ofList_nil]

/-- Finally holds now or of the rest of the list. -/
@[simp, grind =] theorem finally_cons : Trace.ofList a (b :: l) ⊨ 𝐅 p ↔
    Trace.ofList a (b :: l) ⊨ p ∨ Trace.ofList b l ⊨ 𝐅 p := by
  rw [sat_finally_iff_or, snext_cons]

/-- At the last state, globally is now. -/
@[simp, grind =] theorem globally_singleton : Trace.ofList a [] ⊨ 𝐆 p ↔ Trace.ofList a [] ⊨ p := by simp [Trace.ofList_nil]

/-- Globally holds now and of the rest of the list. -/
@[simp, grind =] theorem globally_cons : Trace.ofList a (b :: l) ⊨ 𝐆 p ↔
    Trace.ofList a (b :: l) ⊨ p ∧ Trace.ofList b l ⊨ 𝐆 p := by
  rw [sat_globally_iff_and, wnext_cons]

/-- Finally holds of some rest of the list. -/
theorem finally_iff_exists_suffix : Trace.ofList a l ⊨ 𝐅 p ↔ ∃ b m, b :: m <:+ a :: l ∧ Trace.ofList b m ⊨ p := by
  induction l generalizing a with
  | nil =>
    rw [finally_singleton]
    simp only [List.suffix_cons_iff, List.suffix_nil]
    grind
  | cons c l ih =>
    rw [finally_cons, ih]
    simp only [List.suffix_cons_iff (l₂ := c :: l), List.cons.injEq]
    grind

/-- Globally holds of every rest of the list. -/
theorem globally_iff_forall_suffix : Trace.ofList a l ⊨ 𝐆 p ↔ ∀ b m, b :: m <:+ a :: l → Trace.ofList b m ⊨ p := by
  rw [globally_eq_not_finally_not, sat_not_iff, finally_iff_exists_suffix]
  simp

/-- A property of states holds finally exactly when a state of the list has it. -/
@[simp] theorem finally_of_ofList : Trace.ofList a l ⊨ 𝐅 (TraceSet.of P) ↔ ∃ s ∈ a :: l, P s := by
  induction l generalizing a with
  | nil => simp
  | cons c l ih => rw [finally_cons, ih]; simp

/-- A property of states holds globally exactly when every state of the list has it. -/
@[simp] theorem globally_of_ofList : Trace.ofList a l ⊨ 𝐆 (TraceSet.of P) ↔ ∀ s ∈ a :: l, P s := by
  induction l generalizing a with
  | nil => simp
  | cons c l ih => rw [globally_cons, ih]; simp

end TraceSet

end LeanGuard.LeanLTL
