import LeanGuard.LeanLTL.Notation

/-!
# Lemmas about traces and the operators

Traces: `Trace.ext`, positions and lengths of `singleton`, `unshift`, `shift`, `map`, `unshift_cases`, `unshift_induction`.

Meaning of each operator: `sat_of_iff`, `sat_const_iff`, `sat_true_iff`, `sat_false_iff`, `sat_not_iff`, `sat_and_iff`, `sat_or_iff`,
`sat_imp_iff`, `sat_iff_iff`, `sat_exists_iff`, `sat_forall_iff` (simp lemmas), `sat_wshift_iff`, `sat_sshift_iff`,
`sat_until_iff`, `sat_release_iff`, `sat_finally_iff`, `sat_globally_iff`.

Unfolding: `until_eq_or_and`, `release_eq_and_or`, `finally_eq_or_finally`, `globally_eq_and_globally`.

Duality: `not_sshift`, `not_wshift`, `not_until`, `not_release`, `not_finally`, `not_globally`, `not_and`, `not_or`.

Monotonicity: `sshift_mono`, `wshift_mono`, `until_mono`, `release_mono`, `finally_mono`, `globally_mono`, `not_anti`, and others.

Also: distribution (`until_or_distrib`, ...), idempotence (`until_until`, ...), `globally_induction`, `globally_finally_iff_of_finite`.

One state, one more state: `singleton_sat_*` and `unshift_sat_*`. Lists are in `OfList.lean`.
-/

namespace LeanGuard.LeanLTL

universe u v

namespace Trace

variable {σ : Type u} {σ' : Type v}

/-- The state at an inner position, as an option. -/
theorem toFun?_eq_some_toFun (t : Trace σ) (n : Nat) (h : n < t.length) : t.toFun? n = some (t.toFun n h) := by
  simp [Trace.toFun]

/-- Two traces with the same states are equal. -/
@[ext] protected theorem ext {t t' : Trace σ} (h : ∀ i, t.toFun? i = t'.toFun? i) : t = t' := by
  have hlen : t.length = t'.length := Length.ext_of_lt fun i => by rw [t.defined, t'.defined, h]
  cases t; cases t'
  obtain rfl := funext h
  cases hlen
  rfl

/-- There is a state at exactly the positions below the length. -/
@[simp] theorem isSome_toFun?_iff (t : Trace σ) (i : Nat) : (t.toFun? i).isSome ↔ Length.finite i < t.length :=
  (t.defined i).symm

/-- The state at position 0 is the head. -/
@[simp] theorem toFun?_zero (t : Trace σ) : t.toFun? 0 = some t.head := by simp [head, Trace.toFun]

/-- The state at position 0 is the head. -/
@[simp] theorem toFun_zero (t : Trace σ) (h : (0 : Nat) < t.length) : t.toFun 0 h = t.head := rfl

/-- A trace of one state has length 1. -/
@[simp] theorem singleton_length (s : σ) : (Trace.singleton s).length = .finite 1 := rfl

/-- The state of a trace of one state. -/
@[simp] theorem singleton_head (s : σ) : (Trace.singleton s).head = s := rfl

/-- A trace of one state has no second state. -/
@[simp] theorem singleton_toFun?_succ (s : σ) (i : Nat) : (Trace.singleton s).toFun? (i + 1) = none := rfl

/-- Dropping `n` states shortens a trace by `n`. -/
@[simp] theorem shift_length (t : Trace σ) (n : Nat) (h : n < t.length) : (t.shift n h).length = t.length - n := rfl

/-- The states after a shift. -/
@[simp] theorem shift_toFun? (t : Trace σ) (i n : Nat) (h : i < t.length) :
    (t.shift i h).toFun? n = t.toFun? (n + i) := rfl

/-- The first state after a shift. -/
theorem shift_head (t : Trace σ) (i : Nat) (h : i < t.length) : (t.shift i h).head = t.toFun i h := by
  simp [head, Trace.toFun]

/-- A state in front makes a trace longer by one. -/
@[simp] theorem unshift_length (s : σ) (t : Trace σ) : (Trace.unshift s t).length = t.length + Length.finite 1 := rfl

/-- The state put in front is the first. -/
@[simp] theorem unshift_head (s : σ) (t : Trace σ) : (Trace.unshift s t).head = s := rfl

/-- The states behind the one put in front. -/
@[simp] theorem unshift_toFun?_succ (s : σ) (t : Trace σ) (i : Nat) :
    (Trace.unshift s t).toFun? (i + 1) = t.toFun? i := rfl

/-- Mapping keeps the length. -/
@[simp] theorem map_length (f : σ → σ') (t : Trace σ) : (t.map f).length = t.length := rfl

/-- The states of a mapped trace. -/
@[simp] theorem map_toFun? (f : σ → σ') (t : Trace σ) (n : Nat) : (t.map f).toFun? n = (t.toFun? n).map f := rfl

/-- The first state of a mapped trace. -/
@[simp] theorem map_head (f : σ → σ') (t : Trace σ) : (t.map f).head = f t.head := by
  apply Option.some.inj
  rw [← toFun?_zero, map_toFun?, toFun?_zero, Option.map_some]

/-- Mapping commutes with a shift. -/
theorem shift_map (f : σ → σ') (t : Trace σ) (i : Nat) (h : i < t.length) :
    (t.map f).shift i h = (t.shift i h).map f := rfl

/-- A shift by nothing changes nothing. -/
@[simp] theorem shift_zero (t : Trace σ) (h : (0 : Nat) < t.length) : t.shift 0 h = t := by
  ext i : 1
  simp

/-- Two shifts are one. -/
@[simp] theorem shift_shift (t : Trace σ) (m n : Nat) (h₁ : m < t.length) (h₂ : n < (t.shift m h₁).length) :
    (t.shift m h₁).shift n h₂ = t.shift (n + m) (by simpa using h₂) := by
  ext i : 1
  simp [Nat.add_assoc]

/-- A shift past the state in front is a shift of the rest. -/
@[simp] theorem shift_unshift_succ (s : σ) (t : Trace σ) {n : Nat} (h : (n + 1 : Nat) < (Trace.unshift s t).length) :
    (Trace.unshift s t).shift (n + 1) h = t.shift n (by simpa using h) := by
  ext i : 1
  simp [← Nat.add_assoc]

/-- A shift by the state in front gives the rest. -/
@[simp] theorem shift_unshift_one (s : σ) (t : Trace σ) (h : (1 : Nat) < (Trace.unshift s t).length) :
    (Trace.unshift s t).shift 1 h = t := by
  ext i : 1
  simp

/-- The length of a trace with a state in front is more than 1. -/
theorem one_lt_unshift_length (s : σ) (t : Trace σ) : (1 : Nat) < (Trace.unshift s t).length := by
  simp

/-- A trace of length 1 is a single state. -/
theorem eq_singleton (t : Trace σ) (h : t.length = .finite 1) : t = Trace.singleton t.head := by
  ext i : 1
  have := t.defined i
  cases i with
  | zero => simp
  | succ i => cases e : t.toFun? (i + 1) <;> simp_all

/-- A trace with a second state is its head in front of the rest. -/
theorem eq_unshift (t : Trace σ) (h : (1 : Nat) < t.length) : t = Trace.unshift t.head (t.shift 1 h) := by
  ext i : 1
  cases i <;> simp

/-- A trace has one state or at least two. -/
theorem length_eq_one_or (t : Trace σ) : t.length = .finite 1 ∨ Length.finite 1 < t.length := by
  have := t.nempty
  cases h : t.length with
  | finite n => simp_all; omega
  | infinite => simp

/-- Every trace is a single state, or a state in front of a trace. -/
@[elab_as_elim] theorem unshift_cases {motive : Trace σ → Prop} (singleton : ∀ s, motive (Trace.singleton s))
    (unshift : ∀ s t, motive (Trace.unshift s t)) (t : Trace σ) : motive t := by
  rcases t.length_eq_one_or with h | h
  · rw [t.eq_singleton h]; exact singleton _
  · rw [t.eq_unshift h]; exact unshift _ _

/-- A trace of one state is finite. -/
@[simp] theorem singleton_finite (s : σ) : (Trace.singleton s).Finite := by simp [Trace.Finite]

/-- A trace is finite or infinite, not both. -/
@[simp] theorem not_finite {t : Trace σ} : ¬ t.Finite ↔ t.Infinite := by
  unfold Trace.Finite Trace.Infinite
  cases t.length <;> simp

/-- A trace is finite or infinite, not both. -/
@[simp] theorem not_infinite {t : Trace σ} : ¬ t.Infinite ↔ t.Finite := by
  unfold Trace.Finite Trace.Infinite
  cases t.length <;> simp

/-- A shift is finite exactly when the trace is. -/
@[simp] theorem finite_shift_iff (t : Trace σ) {i : Nat} {h : i < t.length} : (t.shift i h).Finite ↔ t.Finite := by
  unfold Trace.Finite
  rw [shift_length]
  cases t.length <;> simp

/-- A shift is infinite exactly when the trace is. -/
@[simp] theorem infinite_shift_iff (t : Trace σ) {i : Nat} {h : i < t.length} :
    (t.shift i h).Infinite ↔ t.Infinite := by
  rw [← not_finite, finite_shift_iff, not_finite]

/-- A state in front keeps a trace finite. -/
@[simp] theorem finite_unshift_iff (s : σ) (t : Trace σ) : (Trace.unshift s t).Finite ↔ t.Finite := by
  unfold Trace.Finite
  rw [unshift_length]
  cases t.length <;> simp

/-- A state in front keeps a trace infinite. -/
@[simp] theorem infinite_unshift_iff (s : σ) (t : Trace σ) : (Trace.unshift s t).Infinite ↔ t.Infinite := by
  rw [← not_finite, finite_unshift_iff, not_finite]

/-- An infinite trace has every position. -/
theorem coe_lt_length_of_infinite {t : Trace σ} (h : t.Infinite) (n : Nat) : n < t.length := by
  rw [Trace.Infinite] at h
  simp [h]

/-- A finite trace has a positive length. -/
protected theorem Finite.exists {t : Trace σ} (h : t.Finite) : ∃ n : Nat, 0 < n ∧ t.length = n := by
  have := t.nempty
  unfold Trace.Finite at h
  cases e : t.length <;> simp_all

/-- What holds of single states, and is kept by a state in front, holds of every finite trace. -/
@[elab_as_elim] theorem unshift_induction {motive : (t : Trace σ) → t.Finite → Prop}
    (singleton : ∀ s, motive (Trace.singleton s) (singleton_finite s))
    (unshift : ∀ s t (h : t.Finite), motive t h → motive (Trace.unshift s t) ((finite_unshift_iff s t).mpr h))
    (t : Trace σ) (h : t.Finite) : motive t h := by
  obtain ⟨n, h₀, hn⟩ := h.exists
  induction n generalizing t with
  | zero => omega
  | succ n ih =>
    cases t using unshift_cases with
    | singleton s => exact singleton s
    | unshift s t =>
      have hf : t.Finite := by simpa using h
      obtain ⟨m, hm, e⟩ := hf.exists
      refine unshift s t hf (ih t hf ?_ ?_) <;> simp_all

end Trace

namespace TraceSet

variable {σ : Type u} {α : Sort v} {t : Trace σ} {p q r p' q' : TraceSet σ}

/-- Two trace sets with the same traces are equal. -/
@[ext] protected theorem ext (h : ∀ t, t ⊨ p ↔ t ⊨ q) : p = q := by
  cases p; cases q
  exact congrArg TraceSet.mk (funext fun t => propext (h t))

/-! ### Meaning of each operator -/

/-- `of P` speaks of the first state. -/
@[simp, grind =] theorem sat_of_iff {P : σ → Prop} : t ⊨ TraceSet.of P ↔ P t.head := Iff.rfl

/-- A constant holds of a trace when it holds. -/
@[simp, grind =] theorem sat_const_iff {P : Prop} : t ⊨ TraceSet.const P ↔ P := Iff.rfl

/-- Every trace satisfies true. -/
@[simp, grind =] theorem sat_true_iff : t ⊨ TraceSet.true ↔ True := Iff.rfl

/-- No trace satisfies false. -/
@[simp, grind =] theorem sat_false_iff : t ⊨ TraceSet.false ↔ False := Iff.rfl

/-- The meaning of not. -/
@[simp, grind =] theorem sat_not_iff : t ⊨ p.not ↔ ¬ t ⊨ p := Iff.rfl

/-- The meaning of and. -/
@[simp, grind =] theorem sat_and_iff : t ⊨ p.and q ↔ t ⊨ p ∧ t ⊨ q := Iff.rfl

/-- The meaning of or. -/
@[simp, grind =] theorem sat_or_iff : t ⊨ p.or q ↔ t ⊨ p ∨ t ⊨ q := Iff.rfl

/-- The meaning of implication. -/
@[simp, grind =] theorem sat_imp_iff : t ⊨ p.imp q ↔ (t ⊨ p → t ⊨ q) := Iff.rfl

/-- The meaning of equivalence. -/
@[simp, grind =] theorem sat_iff_iff : t ⊨ p.iff q ↔ (t ⊨ p ↔ t ⊨ q) := Iff.rfl

/-- The meaning of an existential quantifier. -/
@[simp, grind =] theorem sat_exists_iff {p : α → TraceSet σ} : t ⊨ TraceSet.exists p ↔ ∃ x, t ⊨ p x := Iff.rfl

/-- The meaning of a universal quantifier. -/
@[simp, grind =] theorem sat_forall_iff {p : α → TraceSet σ} : t ⊨ TraceSet.forall p ↔ ∀ x, t ⊨ p x := Iff.rfl

/-- The meaning of a weak shift. -/
theorem sat_wshift_iff {i : Nat} : t ⊨ 𝐗ʷ(i) p ↔ ∀ h : i < t.length, t.shift i h ⊨ p := Iff.rfl

/-- The meaning of a strong shift. -/
theorem sat_sshift_iff {i : Nat} : t ⊨ 𝐗ˢ(i) p ↔ ∃ h : i < t.length, t.shift i h ⊨ p := Iff.rfl

/-- The meaning of until. -/
theorem sat_until_iff : t ⊨ p 𝐔 q ↔ ∃ n, (∀ i < n, t ⊨ 𝐗ʷ(i) p) ∧ t ⊨ 𝐗ˢ(n) q := Iff.rfl

/-- Until, with strong shifts alone. -/
theorem sat_until_iff_sshift : t ⊨ p 𝐔 q ↔ ∃ n, (∀ i < n, t ⊨ 𝐗ˢ(i) p) ∧ t ⊨ 𝐗ˢ(n) q := by
  simp only [sat_until_iff, sat_wshift_iff, sat_sshift_iff]
  refine exists_congr fun n => and_congr_left fun ⟨hn, _⟩ => forall_congr' fun i => forall_congr' fun hi => ?_
  exact ⟨fun h => ⟨_, h (Length.lt_of_le_of_lt (Nat.le_of_lt hi) hn)⟩, fun ⟨_, h⟩ _ => h⟩

/-- The meaning of finally. -/
theorem sat_finally_iff : t ⊨ 𝐅 p ↔ ∃ n, t ⊨ 𝐗ˢ(n) p := by
  simp [TraceSet.finally, sat_until_iff, sat_wshift_iff]

/-- A negated strong shift is a weak shift of the negation. -/
theorem not_sshift (i : Nat) : (𝐗ˢ(i) p).not = 𝐗ʷ(i) p.not := by ext; simp [sat_sshift_iff, sat_wshift_iff]

/-- A negated weak shift is a strong shift of the negation. -/
theorem not_wshift (i : Nat) : (𝐗ʷ(i) p).not = 𝐗ˢ(i) p.not := by ext; simp [sat_sshift_iff, sat_wshift_iff]

/-- What a trace refuses after `i` steps. -/
theorem not_sat_sshift_iff {i : Nat} : ¬ t ⊨ 𝐗ˢ(i) p ↔ t ⊨ 𝐗ʷ(i) p.not := by simp [sat_sshift_iff, sat_wshift_iff]

/-- What a trace may refuse after `i` steps. -/
theorem not_sat_wshift_iff {i : Nat} : ¬ t ⊨ 𝐗ʷ(i) p ↔ t ⊨ 𝐗ˢ(i) p.not := by simp [sat_sshift_iff, sat_wshift_iff]

/-- The meaning of globally. -/
theorem sat_globally_iff : t ⊨ 𝐆 p ↔ ∀ n, t ⊨ 𝐗ʷ(n) p := by
  simp [TraceSet.globally, sat_finally_iff, sat_sshift_iff, sat_wshift_iff]

/-- The meaning of release. -/
theorem sat_release_iff : t ⊨ p 𝐑 q ↔ ∀ n, (∀ i < n, ¬ t ⊨ 𝐗ˢ(i) p) → t ⊨ 𝐗ʷ(n) q := by
  simp [TraceSet.release, sat_until_iff, sat_sshift_iff, sat_wshift_iff]

/-- The meaning of release, as a disjunction. -/
theorem sat_release_iff' : t ⊨ p 𝐑 q ↔ ∀ n, (∃ i < n, t ⊨ 𝐗ˢ(i) p) ∨ t ⊨ 𝐗ʷ(n) q := by
  rw [sat_release_iff]
  refine forall_congr' fun n => ?_
  by_cases h : ∃ i < n, t ⊨ 𝐗ˢ(i) p <;> grind

/-! ### Negation -/

/-- Two negations cancel. -/
@[simp] theorem not_not : p.not.not = p := by ext; simp

/-- The negation of true. -/
@[simp] theorem not_true : (TraceSet.true : TraceSet σ).not = TraceSet.false := by ext; simp

/-- The negation of false. -/
@[simp] theorem not_false : (TraceSet.false : TraceSet σ).not = TraceSet.true := by ext; simp

/-- The negation of a statement about the first state. -/
theorem not_of {P : σ → Prop} : (TraceSet.of P).not = TraceSet.of fun s => ¬ P s := rfl

/-- The negation of a conjunction. -/
theorem not_and : (p.and q).not = p.not.or q.not := by ext; simp; grind

/-- The negation of a disjunction. -/
theorem not_or : (p.or q).not = p.not.and q.not := by ext; simp

/-- The negation of an implication. -/
theorem not_imp : (p.imp q).not = p.and q.not := by ext; simp

/-- An implication is a disjunction. -/
theorem imp_eq_not_or : p.imp q = p.not.or q := by ext; simp; grind

/-- The negation of until is release of the negations. -/
theorem not_until : (p 𝐔 q).not = p.not 𝐑 q.not := by simp [TraceSet.release]

/-- The negation of release is until of the negations. -/
theorem not_release : (p 𝐑 q).not = p.not 𝐔 q.not := by simp [TraceSet.release]

/-- The negation of finally is globally of the negation. -/
theorem not_finally : (𝐅 p).not = 𝐆 p.not := by simp [TraceSet.globally]

/-- The negation of globally is finally of the negation. -/
theorem not_globally : (𝐆 p).not = 𝐅 p.not := by simp [TraceSet.globally]

/-- Release by until. -/
theorem release_eq_not_until_not : p 𝐑 q = (p.not 𝐔 q.not).not := rfl

/-- Until by release. -/
theorem until_eq_not_release_not : p 𝐔 q = (p.not 𝐑 q.not).not := by simp [TraceSet.release]

/-- Finally by globally. -/
theorem finally_eq_not_globally_not : 𝐅 p = (𝐆 p.not).not := by simp [TraceSet.globally]

/-- Globally by finally. -/
theorem globally_eq_not_finally_not : 𝐆 p = (𝐅 p.not).not := rfl

/-- Finally is until with nothing asked on the way. -/
theorem finally_eq_true_until : 𝐅 p = TraceSet.true 𝐔 p := rfl

/-- Globally is release with nothing that releases. -/
theorem globally_eq_false_release : 𝐆 p = TraceSet.false 𝐑 p := by
  simp [TraceSet.globally, TraceSet.release, TraceSet.finally]

/-! ### Shifts -/

/-- A strong shift by nothing changes nothing. -/
@[simp] theorem sshift_zero : 𝐗ˢ(0) p = p := by ext; simp [sat_sshift_iff]

/-- A weak shift by nothing changes nothing. -/
@[simp] theorem wshift_zero : 𝐗ʷ(0) p = p := by ext; simp [sat_wshift_iff]

/-- Two strong shifts are one. -/
@[simp] theorem sshift_sshift (m n : Nat) : 𝐗ˢ(n) (𝐗ˢ(m) p) = 𝐗ˢ(m + n) p := by
  ext t
  simp only [sat_sshift_iff, Trace.shift_length, Trace.shift_shift, Length.lt_sub_iff]
  exact ⟨fun ⟨_, h, h'⟩ => ⟨h, h'⟩, fun ⟨h, h'⟩ => ⟨Length.lt_of_le_of_lt (Nat.le_add_left ..) h, h, h'⟩⟩

/-- Two weak shifts are one. -/
@[simp] theorem wshift_wshift (m n : Nat) : 𝐗ʷ(n) (𝐗ʷ(m) p) = 𝐗ʷ(m + n) p := by
  rw [← not_not (p := 𝐗ʷ(n) _), ← not_not (p := 𝐗ʷ(m + n) _)]
  simp only [not_wshift, sshift_sshift]

/-- A strong shift asks more than a weak one. -/
theorem sat_wshift_of_sat_sshift {i : Nat} (h : t ⊨ 𝐗ˢ(i) p) : t ⊨ 𝐗ʷ(i) p := fun _ => h.2

/-- A trace that satisfies a strong shift is that long. -/
theorem lt_of_sat_sshift {i : Nat} (h : t ⊨ 𝐗ˢ(i) p) : i < t.length := h.1

/-- A weak shift past the end holds. -/
theorem sat_wshift_of_not_lt {i : Nat} (h : ¬ Length.finite i < t.length) : t ⊨ 𝐗ʷ(i) p := fun h' => (h h').elim

/-- A strong shift past the end fails. -/
theorem not_sat_sshift_of_not_lt {i : Nat} (h : ¬ Length.finite i < t.length) : ¬ t ⊨ 𝐗ˢ(i) p := fun h' => h h'.1

/-- On a trace that is long enough, a strong shift is satisfaction by the shifted trace. -/
theorem shift_sat_iff_sat_sshift {i : Nat} (h : i < t.length) : t.shift i h ⊨ p ↔ t ⊨ 𝐗ˢ(i) p :=
  ⟨fun h' => ⟨h, h'⟩, fun h' => h'.2⟩

/-- On a trace that is long enough, a weak shift is satisfaction by the shifted trace. -/
theorem shift_sat_iff_sat_wshift {i : Nat} (h : i < t.length) : t.shift i h ⊨ p ↔ t ⊨ 𝐗ʷ(i) p :=
  ⟨fun h' _ => h', fun h' => h' h⟩

/-- A weak shift of true is true. -/
@[simp] theorem wshift_true (i : Nat) : 𝐗ʷ(i) (TraceSet.true : TraceSet σ) = TraceSet.true := by
  ext; simp [sat_wshift_iff]

/-- A strong shift of false is false. -/
@[simp] theorem sshift_false (i : Nat) : 𝐗ˢ(i) (TraceSet.false : TraceSet σ) = TraceSet.false := by
  ext; simp [sat_sshift_iff]

/-- A strong shift of true says how long the trace is. -/
theorem sat_sshift_true_iff {i : Nat} : t ⊨ 𝐗ˢ(i) TraceSet.true ↔ Length.finite i < t.length := by
  simp [sat_sshift_iff]

/-- A strong shift distributes over and. -/
theorem sshift_and_distrib (i : Nat) : 𝐗ˢ(i) (p.and q) = (𝐗ˢ(i) p).and (𝐗ˢ(i) q) := by
  ext; simp [sat_sshift_iff]; grind

/-- A strong shift distributes over or. -/
theorem sshift_or_distrib (i : Nat) : 𝐗ˢ(i) (p.or q) = (𝐗ˢ(i) p).or (𝐗ˢ(i) q) := by
  ext; simp [sat_sshift_iff]; grind

/-- A weak shift distributes over and. -/
theorem wshift_and_distrib (i : Nat) : 𝐗ʷ(i) (p.and q) = (𝐗ʷ(i) p).and (𝐗ʷ(i) q) := by
  ext; simp [sat_wshift_iff]; grind

/-- A weak shift distributes over or. -/
theorem wshift_or_distrib (i : Nat) : 𝐗ʷ(i) (p.or q) = (𝐗ʷ(i) p).or (𝐗ʷ(i) q) := by
  ext; simp [sat_wshift_iff]; grind

/-! ### Unfolding -/

/-- Until holds now because of its goal, or it continues. -/
theorem sat_until_iff_or : t ⊨ p 𝐔 q ↔ t ⊨ q ∨ t ⊨ p ∧ t ⊨ 𝐗ˢ (p 𝐔 q) := by
  constructor
  · rintro ⟨n, hp, hq⟩
    cases n with
    | zero => exact .inl (by simpa using hq)
    | succ n =>
      rw [← sshift_sshift] at hq
      refine .inr ⟨by simpa using hp 0 (by omega), hq.1, n, fun i hi => ?_, hq.2⟩
      have := hp (i + 1) (by omega)
      rw [← wshift_wshift] at this
      exact this hq.1
  · rintro (h | ⟨hp, h₁, n, hp', hq⟩)
    · exact ⟨0, fun i hi => by omega, by simpa using h⟩
    · refine ⟨n + 1, fun i hi => ?_, ?_⟩
      · cases i with
        | zero => simpa using hp
        | succ i =>
          rw [← wshift_wshift]
          exact fun _ => hp' i (by omega)
      · rw [← sshift_sshift]
        exact ⟨h₁, hq⟩

/-- Release holds now with its goal, and either it is released or it continues. -/
theorem sat_release_iff_and : t ⊨ p 𝐑 q ↔ t ⊨ q ∧ (t ⊨ p ∨ t ⊨ 𝐗ʷ (p 𝐑 q)) := by
  have h : t ⊨ p.not 𝐔 q.not ↔ _ := sat_until_iff_or
  rw [← not_release, ← not_wshift] at h
  simp only [sat_not_iff] at h
  grind

/-- Finally holds now or later. -/
theorem sat_finally_iff_or : t ⊨ 𝐅 p ↔ t ⊨ p ∨ t ⊨ 𝐗ˢ (𝐅 p) := by
  have h : t ⊨ TraceSet.true 𝐔 p ↔ _ := sat_until_iff_or
  simpa [← finally_eq_true_until] using h

/-- Globally holds now and later. -/
theorem sat_globally_iff_and : t ⊨ 𝐆 p ↔ t ⊨ p ∧ t ⊨ 𝐗ʷ (𝐆 p) := by
  have h : t ⊨ TraceSet.false 𝐑 p ↔ _ := sat_release_iff_and
  simpa [← globally_eq_false_release] using h

/-- Until, unfolded once. -/
theorem until_eq_or_and : p 𝐔 q = q.or (p.and (𝐗ˢ (p 𝐔 q))) := TraceSet.ext fun _ => sat_until_iff_or

/-- Release, unfolded once. -/
theorem release_eq_and_or : p 𝐑 q = q.and (p.or (𝐗ʷ (p 𝐑 q))) := TraceSet.ext fun _ => sat_release_iff_and

/-- Release, unfolded once, as a disjunction of its two ways to hold. -/
theorem release_eq_or_and : p 𝐑 q = (p.and q).or (q.and (𝐗ʷ (p 𝐑 q))) := by
  ext t
  have := sat_release_iff_and (t := t) (p := p) (q := q)
  simp only [sat_or_iff, sat_and_iff]
  grind

/-- Finally, unfolded once. -/
theorem finally_eq_or_finally : 𝐅 p = p.or (𝐗ˢ (𝐅 p)) := TraceSet.ext fun _ => sat_finally_iff_or

/-- Globally, unfolded once. -/
theorem globally_eq_and_globally : 𝐆 p = p.and (𝐗ʷ (𝐆 p)) := TraceSet.ext fun _ => sat_globally_iff_and

/-- What holds now holds finally. -/
theorem sat_finally_of (h : t ⊨ p) : t ⊨ 𝐅 p := sat_finally_iff_or.mpr (.inl h)

/-- What holds globally holds now. -/
theorem sat_of_sat_globally (h : t ⊨ 𝐆 p) : t ⊨ p := (sat_globally_iff_and.mp h).1

/-- What holds now, and at the next moment whenever it holds, holds globally. -/
theorem globally_induction (base : t ⊨ p) (step : t ⊨ 𝐆 (p.imp (𝐗ʷ p))) : t ⊨ 𝐆 p := by
  rw [sat_globally_iff] at step ⊢
  intro n
  induction n with
  | zero => simpa using base
  | succ n ih =>
    rw [Nat.add_comm, ← wshift_wshift]
    exact fun h => step n h (ih h)

/-! ### Traces of one state, and one more state in front -/

/-- A single state has no next one. -/
@[simp, grind =] theorem singleton_sat_snext_iff {s : σ} : Trace.singleton s ⊨ 𝐗ˢ p ↔ False := by simp [sat_sshift_iff]

/-- After a single state everything holds weakly. -/
@[simp, grind =] theorem singleton_sat_wnext_iff {s : σ} : Trace.singleton s ⊨ 𝐗ʷ p ↔ True := by simp [sat_wshift_iff]

/-- Until on a single state. -/
@[simp, grind =] theorem singleton_sat_until_iff {s : σ} : Trace.singleton s ⊨ p 𝐔 q ↔ Trace.singleton s ⊨ q := by
  rw [sat_until_iff_or]; simp

/-- Release on a single state. -/
@[simp, grind =] theorem singleton_sat_release_iff {s : σ} : Trace.singleton s ⊨ p 𝐑 q ↔ Trace.singleton s ⊨ q := by
  rw [sat_release_iff_and]; simp

/-- Finally on a single state. -/
@[simp, grind =] theorem singleton_sat_finally_iff {s : σ} : Trace.singleton s ⊨ 𝐅 p ↔ Trace.singleton s ⊨ p := by
  rw [sat_finally_iff_or]; simp

/-- Globally on a single state. -/
@[simp, grind =] theorem singleton_sat_globally_iff {s : σ} : Trace.singleton s ⊨ 𝐆 p ↔ Trace.singleton s ⊨ p := by
  rw [sat_globally_iff_and]; simp

/-- Strong next behind a state in front. -/
@[simp, grind =] theorem unshift_sat_snext_iff {s : σ} : Trace.unshift s t ⊨ 𝐗ˢ p ↔ t ⊨ p := by
  simp [sat_sshift_iff, Trace.one_lt_unshift_length, -Trace.unshift_length]

/-- Weak next behind a state in front. -/
@[simp, grind =] theorem unshift_sat_wnext_iff {s : σ} : Trace.unshift s t ⊨ 𝐗ʷ p ↔ t ⊨ p := by
  simp [sat_wshift_iff, Trace.one_lt_unshift_length, -Trace.unshift_length]

/-- Until with one more state in front. -/
theorem unshift_sat_until_iff {s : σ} :
    Trace.unshift s t ⊨ p 𝐔 q ↔ Trace.unshift s t ⊨ q ∨ Trace.unshift s t ⊨ p ∧ t ⊨ p 𝐔 q := by
  rw [sat_until_iff_or]; simp

/-- Release with one more state in front. -/
theorem unshift_sat_release_iff {s : σ} :
    Trace.unshift s t ⊨ p 𝐑 q ↔ Trace.unshift s t ⊨ q ∧ (Trace.unshift s t ⊨ p ∨ t ⊨ p 𝐑 q) := by
  rw [sat_release_iff_and]; simp

/-- Finally with one more state in front. -/
theorem unshift_sat_finally_iff {s : σ} : Trace.unshift s t ⊨ 𝐅 p ↔ Trace.unshift s t ⊨ p ∨ t ⊨ 𝐅 p := by
  rw [sat_finally_iff_or]; simp

/-- Globally with one more state in front. -/
theorem unshift_sat_globally_iff {s : σ} : Trace.unshift s t ⊨ 𝐆 p ↔ Trace.unshift s t ⊨ p ∧ t ⊨ 𝐆 p := by
  rw [sat_globally_iff_and]; simp

/-! ### Constants -/

/-- Until with nothing allowed on the way is its goal now. -/
@[simp] theorem false_until : TraceSet.false 𝐔 p = p := by ext; rw [sat_until_iff_or]; simp

/-- Until with a goal that always holds always holds. -/
@[simp] theorem until_true : p 𝐔 TraceSet.true = TraceSet.true := by ext; rw [sat_until_iff_or]; simp

/-- Until with a goal that never holds never holds. -/
@[simp] theorem until_false : p 𝐔 TraceSet.false = TraceSet.false := by ext; simp [sat_until_iff]

/-- Release that is released at once is its goal now. -/
@[simp] theorem true_release : TraceSet.true 𝐑 p = p := by simp [TraceSet.release]

/-- Release of a goal that always holds always holds. -/
@[simp] theorem release_true : p 𝐑 TraceSet.true = TraceSet.true := by simp [TraceSet.release]

/-- Release of a goal that never holds never holds. -/
@[simp] theorem release_false : p 𝐑 TraceSet.false = TraceSet.false := by simp [TraceSet.release]

/-- Finally true is true, since a trace is never empty. -/
@[simp] theorem finally_true : 𝐅 (TraceSet.true : TraceSet σ) = TraceSet.true := by simp [TraceSet.finally]

/-- Finally false is false. -/
@[simp] theorem finally_false : 𝐅 (TraceSet.false : TraceSet σ) = TraceSet.false := by simp [TraceSet.finally]

/-- Globally true is true. -/
@[simp] theorem globally_true : 𝐆 (TraceSet.true : TraceSet σ) = TraceSet.true := by simp [TraceSet.globally]

/-- Globally false is false, since a trace is never empty. -/
@[simp] theorem globally_false : 𝐆 (TraceSet.false : TraceSet σ) = TraceSet.false := by simp [TraceSet.globally]

/-! ### Monotonicity -/

/-- Every trace set implies itself. -/
theorem sem_imp_refl : p ⇒ p := fun _ => id

/-- Implications of trace sets compose. -/
theorem sem_imp_trans (h : p ⇒ q) (h' : q ⇒ r) : p ⇒ r := fun t => h' t ∘ h t

/-- Implication is validity of the implication. -/
theorem sem_imp_iff_sem_entail : p ⇒ q ↔ ⊨ p.imp q := Iff.rfl

/-- Trace sets that imply each other are equal. -/
theorem sem_imp_antisymm (h : p ⇒ q) (h' : q ⇒ p) : p = q := TraceSet.ext fun t => ⟨h t, h' t⟩

/-- An equivalence that is valid is an equality. -/
theorem sem_entail_iff_iff : ⊨ p.iff q ↔ p = q := ⟨fun h => TraceSet.ext h, fun h _ => by simp [h]⟩

/-- What is valid is valid on finite and on infinite traces, and the other way round. -/
theorem sem_entail_iff_fin_and_inf : ⊨ p ↔ ⊨ᶠ p ∧ ⊨ⁱ p :=
  ⟨fun h => ⟨fun t _ => h t, fun t _ => h t⟩, fun h t => by
    by_cases hf : t.Finite
    · exact h.1 t hf
    · exact h.2 t (Trace.not_finite.mp hf)⟩

/-- Not turns implication round. -/
theorem not_anti (h : p ⇒ q) : q.not ⇒ p.not := fun t => mt (h t)

/-- And keeps implication. -/
theorem and_mono (h : p ⇒ p') (h' : q ⇒ q') : p.and q ⇒ p'.and q' := fun t ht => ⟨h t ht.1, h' t ht.2⟩

/-- Or keeps implication. -/
theorem or_mono (h : p ⇒ p') (h' : q ⇒ q') : p.or q ⇒ p'.or q' := fun t => Or.imp (h t) (h' t)

/-- Strong shift keeps implication. -/
theorem sshift_mono {i : Nat} (h : p ⇒ q) : 𝐗ˢ(i) p ⇒ 𝐗ˢ(i) q := fun _ ht => ⟨ht.1, h _ ht.2⟩

/-- Weak shift keeps implication. -/
theorem wshift_mono {i : Nat} (h : p ⇒ q) : 𝐗ʷ(i) p ⇒ 𝐗ʷ(i) q := fun _ ht hi => h _ (ht hi)

/-- Strong next keeps implication. -/
theorem snext_mono (h : p ⇒ q) : 𝐗ˢ p ⇒ 𝐗ˢ q := sshift_mono h

/-- Weak next keeps implication. -/
theorem wnext_mono (h : p ⇒ q) : 𝐗ʷ p ⇒ 𝐗ʷ q := wshift_mono h

/-- Until keeps implication in both places. -/
theorem until_mono (h : p ⇒ p') (h' : q ⇒ q') : p 𝐔 q ⇒ p' 𝐔 q' := fun t ⟨n, hp, hq⟩ =>
  ⟨n, fun i hi => wshift_mono h t (hp i hi), sshift_mono h' t hq⟩

/-- Release keeps implication in both places. -/
theorem release_mono (h : p ⇒ p') (h' : q ⇒ q') : p 𝐑 q ⇒ p' 𝐑 q' :=
  not_anti (until_mono (not_anti h) (not_anti h'))

/-- Finally keeps implication. -/
theorem finally_mono (h : p ⇒ q) : 𝐅 p ⇒ 𝐅 q := until_mono sem_imp_refl h

/-- Globally keeps implication. -/
theorem globally_mono (h : p ⇒ q) : 𝐆 p ⇒ 𝐆 q := not_anti (finally_mono (not_anti h))

/-- Until asks that its goal be reached. -/
theorem finally_of_until : p 𝐔 q ⇒ 𝐅 q := until_mono (fun _ _ => True.intro) sem_imp_refl

/-! ### Distribution and idempotence -/

/-- Until distributes over or in its goal. -/
theorem until_or_distrib : p 𝐔 (q.or r) = (p 𝐔 q).or (p 𝐔 r) := by
  ext t
  simp only [sat_until_iff, sshift_or_distrib, sat_or_iff]
  grind

/-- Release distributes over and in its goal. -/
theorem release_and_distrib : p 𝐑 (q.and r) = (p 𝐑 q).and (p 𝐑 r) := by
  simp [TraceSet.release, not_and, until_or_distrib, not_or]

/-- Finally distributes over or. -/
theorem finally_or_distrib : 𝐅 (p.or q) = (𝐅 p).or (𝐅 q) := until_or_distrib

/-- Globally distributes over and. -/
theorem globally_and_distrib : 𝐆 (p.and q) = (𝐆 p).and (𝐆 q) := by
  simp [globally_eq_false_release, release_and_distrib]

/-- Finally twice is finally. -/
@[simp] theorem finally_finally : 𝐅 (𝐅 p) = 𝐅 p := by
  ext t
  refine ⟨fun h => ?_, sat_finally_of⟩
  obtain ⟨n, h⟩ := sat_finally_iff.mp h
  obtain ⟨m, h'⟩ := sat_finally_iff.mp h.2
  have : t ⊨ 𝐗ˢ(n) (𝐗ˢ(m) p) := ⟨h.1, h'⟩
  exact sat_finally_iff.mpr ⟨m + n, by simpa using this⟩

/-- Globally twice is globally. -/
@[simp] theorem globally_globally : 𝐆 (𝐆 p) = 𝐆 p := by simp [TraceSet.globally]

/-- Until of until is until. -/
@[simp] theorem until_until : p 𝐔 (p 𝐔 q) = p 𝐔 q := by
  ext t
  refine ⟨fun ⟨n, hp, h, m, hp', hq⟩ => ?_, fun h => sat_until_iff_or.mpr (.inl h)⟩
  have hq' : t ⊨ 𝐗ˢ(n) (𝐗ˢ(m) q) := ⟨h, hq⟩
  refine ⟨m + n, fun i hi => ?_, by simpa using hq'⟩
  by_cases hn : i < n
  · exact hp i hn
  · have hi' : t ⊨ 𝐗ʷ(n) (𝐗ʷ(i - n) p) := fun _ => hp' (i - n) (by omega)
    rw [wshift_wshift, Nat.sub_add_cancel (by omega)] at hi'
    exact hi'

/-- Release of release is release. -/
@[simp] theorem release_release : p 𝐑 (p 𝐑 q) = p 𝐑 q := by simp [TraceSet.release]

/-- On a finite trace, always again is the same as from some moment on. -/
theorem globally_finally_iff_of_finite (h : t.Finite) : t ⊨ 𝐆 (𝐅 p) ↔ t ⊨ 𝐅 (𝐆 p) := by
  induction t, h using Trace.unshift_induction with
  | singleton s => simp
  | unshift s t h ih =>
    have h₁ : t ⊨ 𝐆 (𝐅 p) → t ⊨ 𝐅 p := sat_of_sat_globally
    have h₂ : t ⊨ 𝐆 p → t ⊨ 𝐅 (𝐆 p) := sat_finally_of
    simp only [unshift_sat_globally_iff, unshift_sat_finally_iff, ih]
    grind

end TraceSet

end LeanGuard.LeanLTL
