import LeanGuard.Repair.Facts
import LeanGuard.Repair.Rules
import LeanGuard.Thm.Repair
import Retail

/-!
# Retail: what a repair may change

The customer asked for these items of this order; how the difference is settled is a means, and any of their own payment methods may stand in
for another. So the payment method is the one argument that may change: the order and the items stay, because no source is about them. Where
the payment method is itself what the customer wants changed, it stays too.
-/

namespace LeanGuard.Retail

/-- The payment method with which the order was paid, if its history says so and it is still on the customer's account. -/
def originalPayment (p : Pending) : Read (List Value) := do
  let methods ← (← account p).needFields sym!"payment_methods"
  let payments ← (← (← order p).needList sym!"payment_history").mapM (·.asFields "payment_history")
  let ids ← payments.mapM (·.needSymbol sym!"payment_method_id")
  return (ids.filter fun id => (methods.find? id).isSome).map .sym

/-- Every payment method on the customer's account. -/
def ownPayments (p : Pending) : Read (List Value) := do
  let methods ← (← account p).needFields sym!"payment_methods"
  return methods.map fun (id, _) => .sym id

/-- The tools whose payment method is a means to settle what the call costs or refunds. -/
def settledTools : List Symbol := [exchange_delivered_order_items, modify_pending_order_items, return_delivered_order_items]

/-- What an edit of a retail call may change. -/
def intent : Intent where
  sources := [
    { tools := settledTools, argument := sym!"payment_method_id"
      description := "the payment method of the order", values := originalPayment },
    { tools := settledTools, argument := sym!"payment_method_id"
      description := "another payment method of the customer", values := ownPayments }]

/-- A repair settles a call otherwise; the order, the items, and whatever else the call says stay. -/
@[guard_rule]
theorem only_payment_changes {snapshot : Snapshot} {original edited : Call} (ok : EditOK policy intent snapshot original edited)
    {name : Symbol} {before after : Value} (pair : ((name, before), (name, after)) ∈ original.arguments.zip edited.arguments)
    (other : name ≠ sym!"payment_method_id") : after = before := by
  rcases ok.values _ pair with h | ⟨source, member, -, argument, -⟩
  · exact h
  · simp only [intent, List.mem_cons, List.not_mem_nil, or_false] at member
    rcases member with rfl | rfl <;> exact absurd argument.symm other

guard_facts policy intent

end LeanGuard.Retail
