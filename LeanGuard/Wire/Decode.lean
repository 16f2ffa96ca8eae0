import Lean.Data.Json
import LeanGuard.Spec.Decision

/-!
# JSON in

Total decoders from JSON to the types of the policy language. Each failure says at which JSON path it stands and what was expected; nothing
is guessed and no field is ignored.
-/

namespace LeanGuard.Wire

open Lean (Json JsonNumber)

/-- What could not be decoded, and where. -/
structure WireError where
  path : String
  message : String

abbrev Decoder (α : Type) := Json → Except WireError α

def fail {α : Type} (message : String) : Except WireError α := .error ⟨"", message⟩

/-- The error as seen from the object that has the field. -/
def WireError.inField (e : WireError) (name : String) : WireError := { e with path := s!".{name}{e.path}" }

/-- The error as seen from the list that has the item. -/
def WireError.inItem (e : WireError) (i : Nat) : WireError := { e with path := s!"[{i}]{e.path}" }

/-- What a JSON value is, for messages. -/
def describe : Json → String
  | .null => "null"
  | .bool _ => "a boolean"
  | .num _ => "a number"
  | .str _ => "a string"
  | .arr _ => "a list"
  | .obj _ => "an object"

/-- Longer strings are texts: no policy compares them with an identifier. In UTF-8 bytes. -/
def longestSymbol : Nat := 256

/-- Numbers beyond this magnitude are refused: no amount, size or time comes near it. -/
def largestNumber : Nat := 1000000000000000

/-- Nesting beyond this depth is refused. -/
def deepestValue : Nat := 32

/-- An exact number of millionths. -/
def decodeQuantity (n : JsonNumber) : Except WireError Quantity :=
  let exact : Option Int :=
    if n.exponent ≤ 6 then some (n.mantissa * 10 ^ (6 - n.exponent))
    else if n.exponent ≤ 40 && n.mantissa % 10 ^ (n.exponent - 6) = 0 then some (n.mantissa / 10 ^ (n.exponent - 6))
    else none
  match exact with
  | some millionths =>
    if millionths.natAbs ≤ largestNumber * 1000000 then .ok ⟨millionths⟩
    else fail s!"number out of range: at most {largestNumber} in magnitude"
  | none => fail "number out of range: at most 6 decimal places"

def decodeString (s : String) : Value :=
  if s.utf8ByteSize ≤ longestSymbol then .sym (.ofString s) else .text s

/-- The items of a list, each decoded, behind those in `done` (in reverse). Long journals come this way: it uses no stack. -/
def decodeItems (item : Decoder α) (done : List α) (i : Nat) : List Json → Except WireError (List α)
  | [] => .ok done.reverse
  | j :: js =>
    match item j with
    | .error e => .error (e.inItem i)
    | .ok v => decodeItems item (v :: done) (i + 1) js

/-- The fields of an object, each decoded, behind those in `done` (in reverse). -/
def decodeFields (item : Decoder Value) (done : Fields) : List (String × Json) → Except WireError Fields
  | [] => .ok done.reverse
  | (name, j) :: rest =>
    if name.utf8ByteSize > longestSymbol then fail "a field's name is too long"
    else
      match item j with
      | .error e => .error (e.inField name)
      | .ok v => decodeFields item ((.ofString name, v) :: done) rest

/-- Any JSON value, to a bounded depth. -/
def decodeValue : (depth : Nat) → Decoder Value
  | 0, _ => fail s!"nested more than {deepestValue} deep"
  | depth + 1, j =>
    match j with
    | .null => .ok .null
    | .bool b => .ok (.bool b)
    | .num n => .num <$> decodeQuantity n
    | .str s => .ok (decodeString s)
    | .arr items => .list <$> decodeItems (decodeValue depth) [] 0 items.toList
    | .obj fields => .record <$> decodeFields (decodeValue depth) [] fields.toList

def value : Decoder Value := decodeValue deepestValue

def string : Decoder String
  | .str s => .ok s
  | j => fail s!"expected a string, found {describe j}"

def symbol : Decoder Symbol
  | .str s =>
    if s.utf8ByteSize ≤ longestSymbol then .ok (.ofString s)
    else fail s!"expected an identifier of at most {longestSymbol} bytes"
  | j => fail s!"expected a string, found {describe j}"

/-- A whole number. -/
def integer : Decoder Int
  | .num n => do
    match (← decodeQuantity n).toInt? with
    | some i => return i
    | none => fail "expected a whole number"
  | j => fail s!"expected a whole number, found {describe j}"

def listOf (item : Decoder α) : Decoder (List α)
  | .arr items => decodeItems item [] 0 items.toList
  | j => fail s!"expected a list, found {describe j}"

/-- An object's fields by name. -/
abbrev Object := Std.TreeMap.Raw String Json

/-- An object; a name that is not known is an error. -/
def object (known : List String) : Decoder Object
  | .obj fields =>
    match fields.toList.find? (fun (name, _) => !known.contains name) with
    | some (name, _) => .error (WireError.inField ⟨"", s!"unknown field; known: {", ".intercalate known}"⟩ name)
    | none => .ok fields
  | j => fail s!"expected an object, found {describe j}"

def Object.required (o : Object) (name : String) (item : Decoder α) : Except WireError α :=
  match o.get? name with
  | some j => (item j).mapError (·.inField name)
  | none => .error (WireError.inField ⟨"", "missing"⟩ name)

/-- Absent and null are both none. -/
def Object.optional (o : Object) (name : String) (item : Decoder α) : Except WireError (Option α) :=
  match o.get? name with
  | none | some .null => .ok none
  | some j => (some <$> item j).mapError (·.inField name)

/-- An object with any fields. -/
def fields : Decoder Fields
  | .obj fields => decodeFields (decodeValue deepestValue) [] fields.toList
  | j => fail s!"expected an object, found {describe j}"

def call : Decoder Call := fun j => do
  let o ← object ["tool", "arguments"] j
  return { tool := ← o.required "tool" symbol, arguments := ← o.required "arguments" fields }

def resource : Decoder Resource := fun j => do
  let o ← object ["type", "id"] j
  return { type := ← o.required "type" symbol, id := ← o.required "id" symbol }

def snapshot : Decoder Snapshot := fun j => do
  let o ← object ["revision", "time", "principal", "conversation", "state"] j
  let state ← o.required "state" fields
  return {
    revision := ← o.required "revision" symbol
    time := ← o.required "time" integer
    principal := ← o.optional "principal" symbol
    conversation := ← o.optional "conversation" symbol
    state := .record state }

/-- What an event of a known kind must have, beyond its kind and time. An event without it would be overlooked by the rules that look for it. -/
def requiredFields : (kind : String) → List String
  | "authentication" => ["principal", "conversation"]
  | "observation" => ["conversation", "call"]
  | "consent" => ["principal", "conversation", "revision", "call"]
  | "reservation" => ["conversation", "revision", "call"]
  | "outcome" => ["conversation", "call", "status"]
  | _ => []

/-- How a call ended. -/
def status : Decoder Symbol := fun j => do
  let s ← symbol j
  match s.text with
  | "succeeded" | "failed" | "unknown" => return s
  | _ => fail "expected one of succeeded, failed, unknown"

def event : Decoder Event := fun j => do
  let o ← object ["kind", "time", "principal", "conversation", "resource", "revision", "call", "status", "data"] j
  let kind ← o.required "kind" symbol
  for name in requiredFields kind.text do
    match o.get? name with
    | none | some .null => .error (WireError.inField ⟨"", s!"missing: an event of kind “{kind}” must have it"⟩ name)
    | some _ => pure ()
  return {
    kind
    time := ← o.required "time" integer
    principal := ← o.optional "principal" symbol
    conversation := ← o.optional "conversation" symbol
    resource := ← o.optional "resource" resource
    revision := ← o.optional "revision" symbol
    call := ← o.optional "call" call
    status := ← o.optional "status" status
    data := (← o.optional "data" fields).getD [] }

end LeanGuard.Wire
