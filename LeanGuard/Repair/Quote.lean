import Lean
import LeanGuard.Spec.Decision

/-!
# Decoded data as Lean terms

A theorem about one decision speaks of one call, one snapshot and one journal. Here these values, decoded from JSON, become terms of the
logic: built directly, never as text that is elaborated. A symbol becomes a constant that carries its number, so that the kernel checks each
symbol once, and compares numbers ever after.
-/

namespace LeanGuard

namespace Symbol

/-! ## Symbols whose number the kernel checks fast -/

/-- The code points below which every number is a character's. -/
def plainBound : Nat := 55296

/-- The characters with these code points, which are to be below the bound: it is taken off those that are not, so that none has to be checked. -/
noncomputable def plainChars (points : List Nat) : List Char :=
  List.rec [] (fun n _ rest => Char.ofNat (Nat.mod n (nat_lit 55296)) :: rest) points

/-- The number of the string with these code points. -/
noncomputable def plainCode (points : List Nat) : Nat :=
  List.rec (nat_lit 0) (fun n _ rest => Nat.add (Nat.succ (Nat.mod n (nat_lit 55296))) (Nat.mul (nat_lit 2097152) rest)) points

theorem encode_plainChars : (points : List Nat) → encode (plainChars points) = plainCode points
  | [] => rfl
  | n :: rest => by
    have valid : (n % 55296).isValidChar := .inl (Nat.mod_lt n (by decide))
    have char : (Char.ofNat (n % 55296)).toNat = n % 55296 := by
      simp [Char.ofNat, valid, Char.ofNatAux, Char.toNat]
    show (Char.ofNat (n % 55296)).toNat + 1 + base * encode (plainChars rest) = (n % 55296).succ + 2097152 * plainCode rest
    rw [char, encode_plainChars rest]
    rfl

/-- A symbol as a decoded string is quoted: its code points and its number, checked at a few steps a character. -/
noncomputable def quoted (points : List Nat) (code : Nat) (code_eq : Nat.beq code (plainCode points) = true) : Symbol :=
  ⟨String.ofList (plainChars points), fun _ => code, by
    rw [String.toList_ofList, encode_plainChars]
    exact Nat.eq_of_beq_eq_true code_eq⟩

/-- The number of a long string, which the kernel does not compute: it would need a stack as deep as the string is long. -/
opaque longCode (text : String) : { n : Nat // n = encode text.toList } := ⟨_, rfl⟩

/-- A symbol of many characters. A proof that has to compare it with another one fails. -/
noncomputable def long (text : String) : Symbol := ⟨text, fun _ => longCode text, (longCode text).property⟩

end Symbol

namespace Quote

open Lean

/-! ## Terms -/

/-- What is known of the terms so far: an environment with a constant for each symbol met, by text. -/
structure State where
  env : Environment
  symbols : Std.HashMap String Expr := {}

abbrev QuoteM := StateT State (Except String)

def listOf (type : Expr) (items : List Expr) : Expr :=
  items.foldr (fun item rest => mkApp3 (.const ``List.cons [0]) type item rest) (.app (.const ``List.nil [0]) type)

def optionOf (type : Expr) : Option Expr → Expr
  | none => .app (.const ``Option.none [0]) type
  | some e => mkApp2 (.const ``Option.some [0]) type e

/-- The kernel's reason for refusing a declaration. -/
def kernelReason (e : Kernel.Exception) : String :=
  match e with
  | .deterministicTimeout => "the kernel ran out of its budget"
  | .excessiveMemory => "the kernel ran out of memory"
  | .deepRecursion => "the kernel ran out of stack"
  | .interrupted => "the kernel was interrupted"
  | .declTypeMismatch .. => "the statement does not hold by evaluation"
  | .alreadyDeclared .. => "the name is taken"
  | .unknownConstant _ n => s!"unknown constant {n}"
  | _ => "the kernel refused the term"

/-- Declares after a check by the kernel, with a bound on its work (0 is none). -/
def declare (env : Environment) (d : Declaration) (work : Nat := 0) : Except String Environment :=
  match env.addDeclCore work.toUSize d none with
  | .ok env => .ok env
  | .error e => .error (kernelReason e)

/-- A definition that the kernel unfolds at once. -/
def definition (name : Name) (type value : Expr) : Declaration :=
  .defnDecl { name, levelParams := [], type, value, hints := .abbrev, safety := .safe }

def nat (n : Nat) : Expr := .lit (.natVal n)

def int : Int → Expr
  | .ofNat n => .app (.const ``Int.ofNat []) (nat n)
  | .negSucc n => .app (.const ``Int.negSucc []) (nat n)

def symbolType : Expr := .const ``Symbol []
def valueType : Expr := .const ``Value []
def fieldType : Expr := mkApp2 (.const ``Prod [0, 0]) symbolType valueType

/-- Symbols of more characters than this have no number that the kernel computes. -/
def longestNumbered : Nat := 120

/-- The term `Symbol.quoted` of a string, or `Symbol.long` where it is long or has rare characters. -/
def symbolTerm (text : String) : Expr :=
  let chars := text.toList
  if chars.length > longestNumbered || chars.any (Symbol.plainBound ≤ ·.toNat) then .app (.const ``Symbol.long []) (.lit (.strVal text))
  else mkApp3 (.const ``Symbol.quoted [])
    (listOf (.const ``Nat []) (chars.map fun c => nat c.toNat))
    (nat (Symbol.encode chars))
    (mkApp2 (.const ``Eq.refl [1]) (.const ``Bool []) (.const ``Bool.true []))

/-- The constant of a symbol; declared when it is met first. -/
def symbol (s : Symbol) : QuoteM Expr := do
  if let some e := (← get).symbols[s.text]? then return e
  let name := .str `LeanGuard.Sym s.text
  let e : Expr := .const name []
  match declare (← get).env (definition name symbolType (symbolTerm s.text)) with
  | .ok env => modify fun st => { st with env, symbols := st.symbols.insert s.text e }; return e
  | .error why => throw s!"the symbol “{s.text}” can't be quoted: {why}"

mutual
partial def value : Value → QuoteM Expr
  | .null => return .const ``Value.null []
  | .bool b => return .app (.const ``Value.bool []) (.const (if b then ``Bool.true else ``Bool.false) [])
  | .num q => return .app (.const ``Value.num []) (.app (.const ``Quantity.mk []) (int q.millionths))
  | .sym s => return .app (.const ``Value.sym []) (← symbol s)
  | .text s => return .app (.const ``Value.text []) (.lit (.strVal s))
  | .list items => return .app (.const ``Value.list []) (listOf valueType (← items.mapM value))
  | .record fields => return .app (.const ``Value.record []) (← Quote.fields fields)
partial def fields (fields : Fields) : QuoteM Expr := do
  return listOf fieldType (← fields.mapM fun (name, v) => return mkApp4 (.const ``Prod.mk [0, 0]) symbolType valueType (← symbol name) (← value v))
end

def symbol? (s : Option Symbol) : QuoteM Expr := return optionOf symbolType (← s.mapM symbol)

def call (c : Call) : QuoteM Expr := return mkApp2 (.const ``Call.mk []) (← symbol c.tool) (← fields c.arguments)

def resource (r : Resource) : QuoteM Expr := return mkApp2 (.const ``Resource.mk []) (← symbol r.type) (← symbol r.id)

def snapshot (s : Snapshot) : QuoteM Expr := return mkAppN (.const ``Snapshot.mk []) #[
  ← symbol s.revision, int s.time, ← symbol? s.principal, ← symbol? s.conversation, ← value s.state]

def event (e : Event) : QuoteM Expr := return mkAppN (.const ``Event.mk []) #[
  ← symbol e.kind, int e.time, ← symbol? e.principal, ← symbol? e.conversation,
  optionOf (.const ``Resource []) (← e.resource.mapM resource), ← symbol? e.revision,
  optionOf (.const ``Call []) (← e.call.mapM call), ← symbol? e.status, ← fields e.data]

def journal (events : Journal) : QuoteM Expr := return listOf (.const ``Event []) (← events.mapM event)

end Quote
end LeanGuard
