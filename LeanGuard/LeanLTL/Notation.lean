import LeanGuard.LeanLTL.TraceSet

/-!
# Notation

`open scoped LeanGuard.LeanLTL` gives `t ⊨ p` (declared with `TraceSet`), the symbols below, and `LLTL[...]`, which reads the
connectives of Lean as those of trace sets: `LLTL[p ∧ 𝐗ˢ (q 𝐔 r) → 𝐅 ¬p]`.
-/

namespace LeanGuard.LeanLTL

/-- `⊨ p` says that every trace satisfies `p`. -/
scoped notation:50 "⊨ " p:51 => TraceSet.sem_entail p
/-- `⊨ᶠ p` says that every finite trace satisfies `p`. -/
scoped notation:50 "⊨ᶠ " p:51 => TraceSet.sem_entail_fin p
/-- `⊨ⁱ p` says that every infinite trace satisfies `p`. -/
scoped notation:50 "⊨ⁱ " p:51 => TraceSet.sem_entail_inf p
/-- `p ⇒ q` says that every trace that satisfies `p` satisfies `q`. -/
scoped notation:50 p:51 " ⇒ " q:51 => TraceSet.sem_imp p q
/-- `p ⇒ᶠ q` says that every finite trace that satisfies `p` satisfies `q`. -/
scoped notation:50 p:51 " ⇒ᶠ " q:51 => TraceSet.sem_imp_fin p q
/-- `p ⇒ⁱ q` says that every infinite trace that satisfies `p` satisfies `q`. -/
scoped notation:50 p:51 " ⇒ⁱ " q:51 => TraceSet.sem_imp_inf p q

/-- `𝐗ˢ(i) p` is the strong shift by `i`. -/
scoped notation:max "𝐗ˢ(" i ") " p:max => TraceSet.sshift i p
/-- `𝐗ʷ(i) p` is the weak shift by `i`. -/
scoped notation:max "𝐗ʷ(" i ") " p:max => TraceSet.wshift i p
/-- `𝐗ˢ p` is strong next. -/
scoped notation:max "𝐗ˢ " p:max => TraceSet.sshift 1 p
/-- `𝐗ʷ p` is weak next. -/
scoped notation:max "𝐗ʷ " p:max => TraceSet.wshift 1 p
/-- `𝐅 p` is finally. -/
scoped notation:max "𝐅 " p:max => TraceSet.finally p
/-- `𝐆 p` is globally. -/
scoped notation:max "𝐆 " p:max => TraceSet.globally p
/-- `p 𝐔 q` is until. -/
scoped notation:70 p:71 " 𝐔 " q:71 => TraceSet.until p q
/-- `p 𝐑 q` is release. -/
scoped notation:70 p:71 " 𝐑 " q:71 => TraceSet.release p q

/-- `LLTL[p]` reads the connectives in `p` as operators on trace sets. -/
scoped syntax "LLTL[" term "]" : term

scoped macro_rules
  | `(LLTL[$p]) => do
    match p with
    | `(($p)) => `(LLTL[$p])
    | `(True) => `(TraceSet.true)
    | `(False) => `(TraceSet.false)
    | `(¬ $p) => `(TraceSet.not LLTL[$p])
    | `($p ∧ $q) => `(TraceSet.and LLTL[$p] LLTL[$q])
    | `($p ∨ $q) => `(TraceSet.or LLTL[$p] LLTL[$q])
    | `($p → $q) => `(TraceSet.imp LLTL[$p] LLTL[$q])
    | `($p ↔ $q) => `(TraceSet.iff LLTL[$p] LLTL[$q])
    | `(𝐗ˢ $p) => `(TraceSet.sshift 1 LLTL[$p])
    | `(𝐗ʷ $p) => `(TraceSet.wshift 1 LLTL[$p])
    | `(𝐗ˢ($i) $p) => `(TraceSet.sshift $i LLTL[$p])
    | `(𝐗ʷ($i) $p) => `(TraceSet.wshift $i LLTL[$p])
    | `(𝐅 $p) => `(TraceSet.finally LLTL[$p])
    | `(𝐆 $p) => `(TraceSet.globally LLTL[$p])
    | `($p 𝐔 $q) => `(TraceSet.until LLTL[$p] LLTL[$q])
    | `($p 𝐑 $q) => `(TraceSet.release LLTL[$p] LLTL[$q])
    | _ => return p

end LeanGuard.LeanLTL
