import LeanGuard.Repair.Tactic
import AirlineRepair
import TelecomRepair

/-! # What a repair of an airline or telecom call may change, and edits that change more -/

namespace LeanGuard.Test.Domains

/-- The call with one argument set. -/
def edited (call : Call) (name : Symbol) (v : Value) : Call := call.change (name, v)

def text (s : Symbol) : Value := .sym s
def number (n : Int) : Value := .num (.ofInt n)

/-! ## Airline -/

section
open Airline

def trip : Value := .record [
  (sym!"cabin", text sym!"economy"), (sym!"created_at", number 1715000000000), (sym!"destination", text sym!"BBB"),
  (sym!"flight_type", text sym!"one_way"), (sym!"flights", .list []), (sym!"insurance", text sym!"no"),
  (sym!"nonfree_baggages", number 0), (sym!"origin", text sym!"AAA"),
  (sym!"passengers", .list [.record []]), (sym!"status", text sym!"active"), (sym!"total_baggages", number 1),
  (sym!"user_id", text sym!"ann")]

def plane : Snapshot where
  revision := sym!"r1"
  time := 1715785200000
  principal := some sym!"ann"
  conversation := some sym!"c1"
  state := .record [
    (sym!"flights", .record []), (sym!"reservations", .record [(sym!"R1", trip)]),
    (sym!"users", .record [(sym!"ann", .record [
      (sym!"membership", text sym!"regular"),
      (sym!"payment_methods", .record [
        (sym!"card", .record [(sym!"source", text sym!"credit_card")]),
        (sym!"paper", .record [(sym!"amount", number 500), (sym!"source", text sym!"certificate")])])])])]

def journal (kind : Symbol) (id : Symbol) (tool : Symbol) : Journal := [
  { kind := sym!"observation", time := 1715785100000, principal := some sym!"ann", conversation := some sym!"c1"
    resource := some ⟨kind, id⟩, revision := some sym!"r1", call := some ⟨tool, []⟩ },
  { kind := sym!"authentication", time := 1715785000000, principal := some sym!"ann", conversation := some sym!"c1" }]

def bags (payment : Symbol) (charged total : Int) (reservation : Symbol := sym!"R1") : Call where
  tool := update_reservation_baggages
  arguments := [(nonfree_baggages, number charged), (payment_id, text payment), (reservation_id, text reservation),
    (total_baggages, number total)]

def wrongBags : Call := bags sym!"stranger" 0 3

/-- Two bags are beyond the allowance of one, and the card is the customer's: two arguments are repaired at once. -/
example : Repair policy intent plane (journal sym!"reservation" sym!"R1" get_reservation_details) wrongBags := by guard_repair?

def keeps (edited : Call) : Bool := intent.permits policy plane wrongBags edited

#guard keeps (bags sym!"card" 2 3)
-- As many charged bags as the allowance says, no other number.
#guard !keeps (bags sym!"card" 1 3)
-- A certificate pays no change, and a stranger's card is no source.
#guard !keeps (bags sym!"paper" 2 3)
#guard !keeps (bags sym!"other" 2 3)
-- The bags and the reservation stay.
#guard !keeps (bags sym!"card" 2 4)
#guard !keeps (bags sym!"card" 2 3 sym!"R2")

def booking (method : Symbol) (amount : Int) : Call where
  tool := book_reservation
  arguments := [
    (cabin, text sym!"economy"), (destination, text sym!"BBB"), (flight_type, text sym!"one_way"), (flights, .list []),
    (insurance, text sym!"no"), (nonfree_baggages, number 0), (origin, text sym!"AAA"), (passengers, .list [.record []]),
    (payment_methods, .list [.record [(amount', number amount), (payment_id, text method)]]), (total_baggages, number 1),
    (user_id, text sym!"ann")]
where amount' := Airline.amount

def books (edited : Call) : Bool := intent.permits policy plane (booking sym!"stranger" 100) edited

#guard books (booking sym!"card" 100)
-- The amount stays, and so do passengers, flights and the customer.
#guard !books (booking sym!"card" 90)
#guard !books (edited (booking sym!"card" 100) passengers (.list []))
#guard !books (edited (booking sym!"card" 100) flights (.list [.null]))
#guard !books (edited (booking sym!"card" 100) user_id (text sym!"bob"))
#guard !books (edited (booking sym!"card" 100) insurance (text sym!"yes"))
-- A payment of the customer's stays where it is.
#guard !intent.permits policy plane (booking sym!"paper" 100) (booking sym!"card" 100)
-- Nothing else of the airline's tools has a source.
#guard (intent.candidates (policy.pendingOf ⟨cancel_reservation, [(reservation_id, text sym!"R1")]⟩ plane)).isEmpty
#guard (intent.candidates (policy.pendingOf ⟨send_certificate, [(Airline.amount, number 500), (user_id, text sym!"ann")]⟩ plane)).isEmpty

end

/-! ## Telecom -/

section
open Telecom

def phone : Snapshot where
  revision := sym!"r1"
  time := 1740485280000
  principal := some sym!"C1"
  conversation := some sym!"c1"
  state := .record [
    (sym!"bills", .record [
      (sym!"B1", .record [(sym!"status", text sym!"Paid")]), (sym!"B2", .record [(sym!"status", text sym!"Overdue")]),
      (sym!"B9", .record [(sym!"status", text sym!"Overdue")])]),
    (sym!"customers", .record [(sym!"C1", .record [
      (sym!"bill_ids", .list [text sym!"B1", text sym!"B2"]), (sym!"line_ids", .list [text sym!"L1"])])]),
    (sym!"found_customers", .record []),
    (sym!"lines", .record [(sym!"L1", .record [(sym!"data_refueling_gb", .num ⟨500000⟩)])]), (sym!"plans", .record [])]

def request (bill : Symbol) (customer : Symbol := sym!"C1") : Call where
  tool := send_payment_request
  arguments := [(bill_id, text bill), (customer_id, text customer)]

def seen : Journal := [
  { kind := sym!"observation", time := 1740485200000, principal := some sym!"C1", conversation := some sym!"c1"
    resource := some ⟨sym!"bill", sym!"B2"⟩, revision := some sym!"r1", call := some ⟨get_details_by_id, []⟩ },
  { kind := sym!"authentication", time := 1740485100000, principal := some sym!"C1", conversation := some sym!"c1" }]

/-- The bill is paid; the overdue one is another. -/
example : Repair policy intent phone seen (request sym!"B1") := by guard_repair?

def asks (edited : Call) : Bool := intent.permits policy phone (request sym!"B1") edited

#guard asks (request sym!"B2")
-- A bill of someone else, a bill that is not there, another customer.
#guard !asks (request sym!"B9")
#guard !asks (request sym!"B3")
#guard !asks (request sym!"B2" sym!"C2")

def refuelling (gb : Quantity) (line : Symbol := sym!"L1") : Call where
  tool := refuel_data
  arguments := [(customer_id, text sym!"C1"), (gb_amount, .num gb), (line_id, text line)]

/-- Half a GB was refuelled, so that one and a half of the two are left. -/
example : Repair policy intent phone seen (refuelling 2) := by guard_repair?

def refuels (edited : Call) : Bool := intent.permits policy phone (refuelling 2) edited

#guard refuels (refuelling ⟨1500000⟩)
-- No other amount, no other line.
#guard !refuels (refuelling 1)
#guard !refuels (refuelling 3)
#guard !refuels (refuelling ⟨1500000⟩ sym!"L2")
-- Never more than was asked for.
#guard (intent.candidates (policy.pendingOf (refuelling 1) phone)).isEmpty

end
end LeanGuard.Test.Domains
