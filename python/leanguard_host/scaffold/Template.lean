import LeanGuard.Wire.Example
import Shared

/-!
# Template

A library's loans are renewed. Replace this by what your agent does: the tools, the rules in the order of your English policy, the examples.

The English policy:

> Members are identified by their e-mail address before anything else. Only a member's own loans may be read or renewed. A loan can be renewed
> by 1 to 14 days, but not while another member waits for the book. Before a loan is renewed, the member confirms the number of days. Always be
> polite.
-/

namespace LeanGuard.Template

open Shared

/-! ## Tools -/

declare_symbols find_member get_loan renew_loan
declare_symbols email loan_id days loans member waiting

def theLoan : Option ResourceArgument := some ⟨sym!"loan", loan_id⟩

def contracts : List Contract := [
  { tool := find_member, access := .read, parameters := [⟨email, .string, true⟩] },
  { tool := get_loan, access := .read, parameters := [⟨loan_id, .string, true⟩], resource := theLoan },
  { tool := renew_loan, access := .write, parameters := [⟨loan_id, .string, true⟩, ⟨days, .integer, true⟩], resource := theLoan
    effect := "The loan ends so many days later." }]

/-! ## What the rules read -/

/-- The loan that the call names, if there is one. -/
def loan (p : Pending) : Find Fields := named p loans loan_id

/-! ## Rules -/

/-- Anyone may be looked up: that is how a member is identified. -/
def readPermit : Rule where
  id := "template.read_permit"
  kind := .permit
  tools := .these [find_member, get_loan]
  category := .policyProhibition
  hint := "This can't be read."
  sentence := "Members are looked up, and loans read."
  condition := .top

/-- "A loan can be renewed by 1 to 14 days." -/
def renewPermit : Rule where
  id := "template.renew_permit"
  kind := .permit
  tools := .these [renew_loan]
  category := .policyProhibition
  hint := "A loan can be renewed by 1 to 14 days."
  sentence := "A loan can be renewed by 1 to 14 days."
  condition := .now "the days are 1 to 14" fun p => do
    let n ← p.arguments.needQuantity days
    return decide (1 ≤ n ∧ n ≤ 14)

/-- "Members are identified by their e-mail address before anything else." -/
def identity : Rule where
  id := "template.identity"
  kind := .require
  tools := .these [get_loan, renew_loan]
  category := .temporalIncompatibility
  hint := "Identify the member first, with find_member."
  sentence := "The member is identified before anything else."
  condition := authenticated

/-- "Only a member's own loans may be read or renewed." -/
def owner : Rule where
  id := "template.owner"
  kind := .require
  tools := .these [get_loan, renew_loan]
  category := .authorizationFailure
  hint := "This is no loan of the member."
  sentence := "Only a member's own loans may be read or renewed."
  condition := .now "the loan is the member's" <| holds fun p => do
    guard (isCustomer p (← (← loan p).needSymbol member))

/-- "But not while another member waits for the book." -/
def reserved : Rule where
  id := "template.reserved"
  kind := .forbid
  tools := .these [renew_loan]
  category := .stateIncompatibility
  hint := "Another member waits for this book, so the loan can't be renewed."
  sentence := "A loan is not renewed while another member waits for the book."
  condition := .now "another member waits" <| holds fun p => do
    guard (0 < (← (← loan p).needQuantity waiting))

/-- "Before a loan is renewed, the member confirms the number of days." -/
def confirmation : Rule where
  id := "template.confirmation"
  kind := .require
  tools := .writing
  category := .authorizationFailure
  hint := "Tell the member the number of days and get their confirmation. It counts once, for this call."
  sentence := "Before a loan is renewed, the member confirms the number of days."
  condition := confirmed

/-! ## Sentences without a rule -/

def unenforced : List Unenforced := [
  { sentences := ["Always be polite."], reason := "It is about the text that the member reads." }]

def policy : Policy where
  name := "template"
  title := "Template: loans are renewed"
  contracts := contracts
  rules := [readPermit, renewPermit, identity, owner, reserved, confirmation, noOverlap]
  unenforced := unenforced

/-! ## Examples, decided by each build -/

/-- Member m1 has the loan L1; member m2 has L2, for which somebody waits. -/
def state : String := r#""revision": "r1", "time": 1000, "principal": "m1", "conversation": "c1", "state": {"loans": {
  "L1": {"member": "m1", "waiting": 0}, "L2": {"member": "m2", "waiting": 1}, "L3": {"member": "m1", "waiting": 2}}}"#

def identified : String := r#"{"kind": "authentication", "time": 1, "principal": "m1", "conversation": "c1"}"#

/-- The member confirmed that this loan is renewed by a week. -/
def agreed (loan : String) : String := r#"{"kind": "consent", "time": 2, "principal": "m1", "conversation": "c1", "revision": "r1",
  "resource": {"type": "loan", "id": ""# ++ loan ++ r#""},
  "call": {"tool": "renew_loan", "arguments": {"loan_id": ""# ++ loan ++ r#"", "days": 7}}}"#

/-- Renewing a loan by that many days, after these events. -/
def renewing (loan : String) (days : Nat) (events : List String) : List String :=
  denials policy <| r#"{"call": {"tool": "renew_loan", "arguments": {"loan_id": ""# ++ loan ++ r#"", "days": "# ++ toString days ++
    "}}, \"snapshot\": {" ++ state ++ "}, \"journal\": [" ++ ", ".intercalate events ++ "]}"

#guard renewing "L1" 7 [identified, agreed "L1"] == []
#guard renewing "L1" 8 [identified, agreed "L1"] == ["template.confirmation"]
#guard renewing "L1" 15 [identified] == ["template.renew_permit", "template.confirmation"]
#guard renewing "L1" 7 [] == ["template.identity", "template.confirmation"]
#guard renewing "L2" 7 [identified, agreed "L2"] == ["template.owner", "template.reserved"]
#guard renewing "L3" 7 [identified, agreed "L3"] == ["template.reserved"]
#guard renewing "L9" 7 [identified, agreed "L9"] == ["!template.owner", "!template.reserved"]

end LeanGuard.Template
