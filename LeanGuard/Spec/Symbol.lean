/-!
# Symbols

Identifiers (ids, statuses, names, keys) are compared often and never looked into. A symbol carries its string and the one number that
stands for that string. A proof that the kernel checks compares the numbers, at a single step each; compiled code compares the strings, and
never computes the number. The two comparisons are proved to be the same function (`decideByCode_eq_decideByText`), and two symbols are
equal exactly when their strings are (`Symbol.ofString_inj`).
-/

namespace LeanGuard

namespace Symbol

/-- More than any character's number plus one, and a power of two. -/
def base : Nat := 2097152

/-- The characters as the digits, each from 1 to `base - 1`, of a number; least significant first. -/
def encode : List Char → Nat
  | [] => 0
  | c :: cs => (c.toNat + 1) + base * encode cs

theorem toNat_lt (c : Char) : c.toNat < 1114112 := by
  have h := c.valid
  simp only [UInt32.isValidChar, Nat.isValidChar] at h
  show c.val.toNat < 1114112
  omega

theorem toNat_inj {c d : Char} (h : c.toNat = d.toNat) : c = d :=
  Char.ext (UInt32.toNat_inj.mp h)

/-- No two strings share a number. -/
theorem encode_inj {xs ys : List Char} (h : encode xs = encode ys) : xs = ys := by
  induction xs generalizing ys with
  | nil => cases ys with
    | nil => rfl
    | cons y ys => simp [encode] at h; omega
  | cons x xs ih =>
    cases ys with
    | nil => simp [encode] at h
    | cons y ys =>
      have hx := toNat_lt x
      have hy := toNat_lt y
      simp only [encode, base] at h
      have hxy : x.toNat = y.toNat := by omega
      have htl : encode xs = encode ys := by omega
      rw [ih htl, toNat_inj hxy]

end Symbol

/-- An identifier. -/
structure Symbol where
  text : String
  /-- The number that stands for the text; a function, so that compiled code does not compute it. -/
  code : Unit → Nat
  code_eq : code () = Symbol.encode text.toList

namespace Symbol

/-- The symbol of a string. -/
def ofString (s : String) : Symbol := ⟨s, fun _ => encode s.toList, rfl⟩

theorem ext {a b : Symbol} (h : a.text = b.text) : a = b := by
  obtain ⟨s, f, hf⟩ := a
  obtain ⟨t, g, hg⟩ := b
  obtain rfl : s = t := h
  obtain rfl : f = g := funext fun () => hf.trans hg.symm
  rfl

theorem eq_iff_code {a b : Symbol} : a = b ↔ a.code () = b.code () :=
  ⟨fun h => h ▸ rfl, fun h => ext (String.toList_inj.mp (encode_inj (a.code_eq ▸ b.code_eq ▸ h)))⟩

/-- Compares two symbols by their numbers: one step for the kernel. -/
def decideByCode (a b : Symbol) : Decidable (a = b) :=
  if h : a.code () = b.code () then isTrue (eq_iff_code.mpr h) else isFalse fun e => h (e ▸ rfl)

/-- Compares two symbols by their strings: one step for compiled code. -/
def decideByText (a b : Symbol) : Decidable (a = b) :=
  if h : a.text = b.text then isTrue (ext h) else isFalse fun e => h (e ▸ rfl)

/-- The kernel's way and compiled code's way to compare symbols are the same function. -/
@[csimp] theorem decideByCode_eq_decideByText : @decideByCode = @decideByText :=
  funext fun _ => funext fun _ => Subsingleton.elim _ _

instance : DecidableEq Symbol := decideByCode
instance : Hashable Symbol := ⟨fun s => hash s.text⟩
instance : Inhabited Symbol := ⟨ofString ""⟩
instance : ToString Symbol := ⟨text⟩
instance : Repr Symbol := ⟨fun s _ => "sym!" ++ repr s.text⟩

end Symbol

/-- The symbol of a string whose characters and number are known. -/
abbrev Symbol.literal (text : String) (chars : List Char) (code : Nat)
    (text_eq : text = String.ofList chars) (code_eq : code = Symbol.encode chars) : Symbol :=
  ⟨text, fun _ => code, by rw [text_eq, String.toList_ofList, code_eq]⟩

/-- `sym!"delivered"` is the symbol of the string "delivered"; its number is computed when the policy is compiled. -/
macro:max "sym!" s:str : term => do
  let chars := s.getString.toList
  let code := Lean.Syntax.mkNumLit (toString (Symbol.encode chars))
  `(Symbol.literal $s [$((chars.map fun c => Lean.Syntax.mkCharLit c).toArray),*] $code rfl rfl)

end LeanGuard
