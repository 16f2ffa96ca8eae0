import LeanGuard.Spec.Symbol

/-!
# Values

What a call's arguments, a snapshot and an event's data are made of once they are decoded. Strings are symbols (long texts, which no
policy compares with an identifier, stay texts) and numbers are exact.
-/

namespace LeanGuard

/-- An exact number: a count of millionths. `3`, `50` and sums are written as usual. -/
structure Quantity where
  millionths : Int
deriving DecidableEq, Hashable, Inhabited

namespace Quantity

def ofInt (n : Int) : Quantity := ⟨n * 1000000⟩

instance : OfNat Quantity n := ⟨ofInt n⟩
instance : Add Quantity := ⟨fun a b => ⟨a.millionths + b.millionths⟩⟩
instance : Sub Quantity := ⟨fun a b => ⟨a.millionths - b.millionths⟩⟩
instance : Neg Quantity := ⟨fun a => ⟨-a.millionths⟩⟩
instance : HMul Nat Quantity Quantity := ⟨fun n a => ⟨n * a.millionths⟩⟩
instance : LE Quantity := ⟨fun a b => a.millionths ≤ b.millionths⟩
instance : LT Quantity := ⟨fun a b => a.millionths < b.millionths⟩
instance (a b : Quantity) : Decidable (a ≤ b) := inferInstanceAs (Decidable (a.millionths ≤ b.millionths))
instance (a b : Quantity) : Decidable (a < b) := inferInstanceAs (Decidable (a.millionths < b.millionths))

/-- The whole number that this quantity is, if it is one. -/
def toInt? (q : Quantity) : Option Int :=
  if q.millionths % 1000000 = 0 then some (q.millionths / 1000000) else none

end Quantity

/-- A decoded JSON value. The fields of a record are ordered by name and no name occurs twice (the decoder sees to both),
so that equal JSON objects are equal records. -/
inductive Value where
  | null
  | bool (b : Bool)
  | num (q : Quantity)
  | sym (s : Symbol)
  | text (s : String)
  | list (items : List Value)
  | record (fields : List (Symbol × Value))
deriving Inhabited

/-- Named values: a call's arguments, a record's fields. -/
abbrev Fields := List (Symbol × Value)

namespace Value

mutual
/-- Equality as a function. -/
def beq : Value → Value → Bool
  | .null, .null => true
  | .bool a, .bool b => a == b
  | .num a, .num b => a == b
  | .sym a, .sym b => a == b
  | .text a, .text b => a == b
  | .list a, .list b => beqItems a b
  | .record a, .record b => beqFields a b
  | _, _ => false
/-- Equality of lists of values. -/
def beqItems : List Value → List Value → Bool
  | [], [] => true
  | a :: as, b :: bs => beq a b && beqItems as bs
  | _, _ => false
/-- Equality of fields. -/
def beqFields : List (Symbol × Value) → List (Symbol × Value) → Bool
  | [], [] => true
  | (n, a) :: as, (m, b) :: bs => n == m && beq a b && beqFields as bs
  | _, _ => false
end

mutual
theorem eq_of_beq : (a b : Value) → beq a b = true → a = b
  | .null, b, h => by cases b <;> simp_all [beq]
  | .bool _, b, h => by cases b <;> simp_all [beq]
  | .num _, b, h => by cases b <;> simp_all [beq]
  | .sym _, b, h => by cases b <;> simp_all [beq]
  | .text _, b, h => by cases b <;> simp_all [beq]
  | .list as, b, h => by
    cases b <;> simp [beq] at h
    rw [eq_of_beqItems _ _ h]
  | .record as, b, h => by
    cases b <;> simp [beq] at h
    rw [eq_of_beqFields _ _ h]
theorem eq_of_beqItems : (as bs : List Value) → beqItems as bs = true → as = bs
  | [], bs, h => by cases bs <;> simp_all [beqItems]
  | a :: as, bs, h => by
    cases bs <;> simp [beqItems] at h
    rw [eq_of_beq _ _ h.1, eq_of_beqItems _ _ h.2]
theorem eq_of_beqFields : (as bs : List (Symbol × Value)) → beqFields as bs = true → as = bs
  | [], bs, h => by cases bs <;> simp_all [beqFields]
  | (n, a) :: as, bs, h => by
    rcases bs with _ | ⟨⟨m, b⟩, bs⟩ <;> simp [beqFields] at h
    rw [h.1.1, eq_of_beq _ _ h.1.2, eq_of_beqFields _ _ h.2]
end

mutual
theorem beq_refl : (a : Value) → beq a a = true
  | .null | .bool _ | .num _ | .sym _ | .text _ => by simp [beq]
  | .list as => by simp [beq, beqItems_refl as]
  | .record as => by simp [beq, beqFields_refl as]
theorem beqItems_refl : (as : List Value) → beqItems as as = true
  | [] => by simp [beqItems]
  | a :: as => by simp [beqItems, beq_refl a, beqItems_refl as]
theorem beqFields_refl : (as : List (Symbol × Value)) → beqFields as as = true
  | [] => by simp [beqFields]
  | (_, a) :: as => by simp [beqFields, beq_refl a, beqFields_refl as]
end

instance : DecidableEq Value := fun a b =>
  if h : beq a b = true then isTrue (eq_of_beq a b h) else isFalse (fun e => h (e ▸ beq_refl a))

mutual
/-- A hash that equal values share. -/
def hashCode : Value → UInt64
  | .null => 11
  | .bool b => mixHash 13 (hash b)
  | .num q => mixHash 17 (hash q)
  | .sym s => mixHash 19 (hash s)
  | .text s => mixHash 23 (hash s)
  | .list items => mixHash 29 (hashItems items)
  | .record fields => mixHash 31 (hashFields fields)
def hashItems : List Value → UInt64
  | [] => 7
  | a :: as => mixHash (hashCode a) (hashItems as)
def hashFields : List (Symbol × Value) → UInt64
  | [] => 7
  | (n, a) :: as => mixHash (hash n) (mixHash (hashCode a) (hashFields as))
end

instance : Hashable Value := ⟨hashCode⟩

/-- The name of a value's type, for messages. -/
def typeName : Value → String
  | .null => "null"
  | .bool _ => "a boolean"
  | .num _ => "a number"
  | .sym _ => "a string"
  | .text _ => "a long string"
  | .list _ => "a list"
  | .record _ => "an object"

end Value

/-- The value of the first field of that name. -/
def Fields.find? (fields : Fields) (name : Symbol) : Option Value :=
  fields.lookup name

end LeanGuard
