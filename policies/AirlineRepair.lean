import LeanGuard.Repair.Facts
import LeanGuard.Repair.Rules
import LeanGuard.Thm.Repair
import Airline

/-!
# Airline: what a repair may change

The customer asked for these flights, passengers and bags. How they are paid is a means: another card of the account may stand in, for the same
amounts. How many bags are charged is arithmetic that follows from the bags, the cabin and the membership. Everything else stays, because no
source is about it.
-/

namespace LeanGuard.Airline

/-- The payment methods on the customer's account. -/
def ownMethods (p : Pending) : Read Fields := do
  (← p.row users (← p.customer)).needFields payment_methods

/-- The cards on the customer's account: a certificate can't pay a change. -/
def ownCards (p : Pending) : Read (List Value) := do
  let kinds ← (← ownMethods p).mapM fun (id, method) => return (id, ← (← method.asFields "payment_methods").needSymbol source)
  return (kinds.filter (·.2 != certificate)).map (.sym ·.1)

/-- The payments of a booking, with this method in the place of each that is not on the account. The amounts stay. -/
def paidBy (own : Fields) (method : Symbol) (payments : List Fields) : Read Value := do
  return .list (← payments.mapM fun payment => do
    if (own.find? (← payment.needSymbol payment_id)).isSome then return .record payment
    return .record (payment.map fun (name, v) => (name, if name == payment_id then .sym method else v)))

/-- The same amounts, paid by the customer's own payment methods. -/
def ownPayments (p : Pending) : Read (List Value) := do
  let own ← ownMethods p
  let payments ← Shared.objectsIn p.arguments payment_methods
  own.mapM fun (id, _) => paidBy own id payments

/-- The bags of the call that are beyond the allowance. -/
def chargedBags (p : Pending) (trip : Fields) : Read (List Value) := do
  let account ← p.row users (← p.customer)
  return [.num (← extraBags account (← trip.needSymbol cabin) (← size trip) (← p.arguments.needQuantity total_baggages))]

/-- What is paid, part by part. -/
def paidAmounts (p : Pending) : Read Value := do
  return .list (← (← Shared.objectsIn p.arguments payment_methods).mapM (·.need Airline.amount))

/-- What an edit of an airline call may change. -/
def intent : Intent where
  sources := [
    { tools := [update_reservation_baggages], argument := nonfree_baggages
      description := "the bags beyond the allowance"
      values := fun p => do chargedBags p (← p.row reservations (← p.arguments.needSymbol reservation_id)) },
    { tools := [book_reservation], argument := nonfree_baggages
      description := "the bags beyond the allowance", values := fun p => chargedBags p p.arguments },
    { tools := [update_reservation_flights, update_reservation_baggages], argument := payment_id
      description := "a card of the customer", values := ownCards },
    { tools := [book_reservation], argument := payment_methods
      description := "the same amounts by a payment method of the customer", values := ownPayments }]
  keeps := [{ tools := [book_reservation], description := "the amounts that are paid", measure := paidAmounts }]

/-- A repair changes how a call is paid and how many bags are charged; the reservation, the flights, the passengers and the bags stay. -/
@[guard_rule]
theorem only_payment_and_charge_change {snapshot : Snapshot} {original edited : Call}
    (ok : EditOK policy intent snapshot original edited) {name : Symbol} {before after : Value}
    (pair : ((name, before), (name, after)) ∈ original.arguments.zip edited.arguments)
    (other : name ≠ nonfree_baggages ∧ name ≠ payment_id ∧ name ≠ payment_methods) : after = before := by
  rcases ok.values _ pair with h | ⟨source, member, -, argument, -⟩
  · exact h
  · simp only [intent, List.mem_cons, List.not_mem_nil, or_false] at member
    rcases member with rfl | rfl | rfl | rfl
    · exact absurd argument.symm other.1
    · exact absurd argument.symm other.1
    · exact absurd argument.symm other.2.1
    · exact absurd argument.symm other.2.2

guard_facts policy intent

end LeanGuard.Airline
