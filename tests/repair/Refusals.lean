import LeanGuard.Repair.Tactic
import RetailRepair

/-! # Edits that are no repairs, and searches that find none -/

namespace LeanGuard.Test.Refusals

open Retail

def snapshot : Snapshot where
  revision := sym!"r1"
  time := 1772446540000
  principal := some sym!"mia"
  conversation := some sym!"c1"
  state := .record [
    (sym!"orders", .record [(sym!"#W1", .record [
      (sym!"items", .list [.record [(sym!"item_id", .sym sym!"i1"), (sym!"price", .num ⟨40000000⟩), (sym!"product_id", .sym sym!"p1")]]),
      (sym!"payment_history", .list [.record [(sym!"amount", .num ⟨40000000⟩), (sym!"payment_method_id", .sym sym!"gone")]]),
      (sym!"status", .sym sym!"delivered"), (sym!"user_id", .sym sym!"mia")])]),
    (sym!"products", .record [(sym!"p1", .record [(sym!"variants", .record [
      (sym!"i2", .record [(sym!"available", .bool true), (sym!"price", .num ⟨45000000⟩)])])])]),
    (sym!"users", .record [(sym!"mia", .record [(sym!"payment_methods", .record [
      (sym!"empty_card", .record [(sym!"balance", .num ⟨0⟩), (sym!"source", .sym sym!"gift_card")]),
      (sym!"full_card", .record [(sym!"balance", .num ⟨90000000⟩), (sym!"source", .sym sym!"gift_card")])])])])]

def exchange (payment order new : Symbol) : Call where
  tool := exchange_delivered_order_items
  arguments := [
    (sym!"item_ids", .list [.sym sym!"i1"]), (sym!"new_item_ids", .list [.sym new]),
    (sym!"order_id", .sym order), (sym!"payment_method_id", .sym payment)]

def original : Call := exchange sym!"foreign" sym!"#W1" sym!"i2"

def journal : Journal := [
  { kind := sym!"observation", time := 1772446400250, principal := some sym!"mia", conversation := some sym!"c1"
    resource := some ⟨sym!"order", sym!"#W1"⟩, revision := some sym!"r1"
    call := some ⟨get_order_details, [(sym!"order_id", .sym sym!"#W1")]⟩ },
  { kind := sym!"authentication", time := 1772446323000, principal := some sym!"mia", conversation := some sym!"c1" }]

/-- The first candidate is a gift card that does not cover the difference; the second one does. -/
example : Repair policy intent snapshot journal original := by guard_repair?

/-! ## What the intent refuses -/

/-- The edit passes. -/
def passes (edited : Call) : Bool := intent.permits policy snapshot original edited

#guard passes (exchange sym!"full_card" sym!"#W1" sym!"i2")
#guard passes original
-- A payment method of someone else.
#guard !passes (exchange sym!"stranger" sym!"#W1" sym!"i2")
-- The order's own payment method, which the customer no longer has.
#guard !passes (exchange sym!"gone" sym!"#W1" sym!"i2")
-- Another order, another item.
#guard !passes (exchange sym!"full_card" sym!"#W2" sym!"i2")
#guard !passes (exchange sym!"full_card" sym!"#W1" sym!"i3")
-- Another tool, an argument left out, an argument more, another order of the arguments.
#guard !passes { exchange sym!"full_card" sym!"#W1" sym!"i2" with tool := return_delivered_order_items }
#guard !passes { original with arguments := original.arguments.tail }
#guard !passes { original with arguments := original.arguments ++ [(sym!"note", .sym sym!"x")] }
#guard !passes { original with arguments := original.arguments.reverse }

/-! ## Searches -/

def found (call : Call) (journal : Journal) (budget : Nat) : Found := searchRepair policy intent snapshot journal call budget

#guard ((found original journal 8).found.map (·.2)) == some true
-- The rejected candidate says which rule stopped it.
#guard ((found original journal 8).rejected.map fun (_, stop) => match stop with
  | .denied failed _ => failed.map (·.id)
  | .intent => []) == [["retail.payment"]]
-- A budget that does not reach the second candidate.
#guard (found original journal 1).found.isNone && (found original journal 1).untried == 1
#guard (found original journal 0).found.isNone
-- No journal: the customer is not authenticated, and no edit helps.
#guard (found original [] 8).found.isNone && (found original [] 8).rejected.length == 2
-- A tool without sources, and one that the policy does not know.
#guard (intent.candidates (policy.pendingOf ⟨cancel_pending_order, [(sym!"order_id", .sym sym!"#W1"), (sym!"reason", .sym sym!"x")]⟩ snapshot)).isEmpty
#guard (found ⟨sym!"nothing", []⟩ journal 8).found.isNone
-- A source that can't be read offers nothing.
#guard (searchRepair policy intent { snapshot with state := .record [] } journal original 8).found.isNone

/-- A state that changed in between: what the customer confirmed at the old revision admits nothing at the new one. -/
def confirmed : Journal := policy.consentFor (exchange sym!"full_card" sym!"#W1" sym!"i2") snapshot :: journal

#guard policy.decide (exchange sym!"full_card" sym!"#W1" sym!"i2") snapshot confirmed == .admit
#guard policy.decide (exchange sym!"full_card" sym!"#W1" sym!"i2") { snapshot with revision := sym!"r2" } confirmed != .admit

end LeanGuard.Test.Refusals
