import Shared

/-!
# Retail

Exchanges of delivered orders. Each rule states one sentence of the English policy, in its order.
-/

namespace LeanGuard.Retail

open Shared

/-! ## Tools -/

def find_user_id_by_email : Symbol := sym!"find_user_id_by_email"
def get_user_details : Symbol := sym!"get_user_details"
def get_order_details : Symbol := sym!"get_order_details"
def get_product_details : Symbol := sym!"get_product_details"
def exchange_delivered_order_items : Symbol := sym!"exchange_delivered_order_items"

def contracts : List Contract := [
  { tool := find_user_id_by_email, access := .read, parameters := [⟨sym!"email", .string, true⟩] },
  { tool := get_user_details, access := .read, parameters := [⟨sym!"user_id", .string, true⟩],
    resource := some ⟨sym!"user", sym!"user_id"⟩ },
  { tool := get_order_details, access := .read, parameters := [⟨sym!"order_id", .string, true⟩],
    resource := some ⟨sym!"order", sym!"order_id"⟩ },
  { tool := get_product_details, access := .read, parameters := [⟨sym!"product_id", .string, true⟩],
    resource := some ⟨sym!"product", sym!"product_id"⟩ },
  { tool := exchange_delivered_order_items, access := .write
    parameters := [
      ⟨sym!"order_id", .string, true⟩,
      ⟨sym!"item_ids", .listOf .string, true⟩,
      ⟨sym!"new_item_ids", .listOf .string, true⟩,
      ⟨sym!"payment_method_id", .string, true⟩]
    resource := some ⟨sym!"order", sym!"order_id"⟩
    effect := "The order's items are to be exchanged, and the price difference is charged or refunded." }]

/-! ## What the rules read -/

/-- The order that the call names. -/
def order (p : Pending) : Read Fields := do
  p.row sym!"orders" (← p.arguments.needSymbol sym!"order_id")

/-- The account of the authenticated customer. -/
def account (p : Pending) : Read Fields := do
  p.row sym!"users" (← p.customer)

/-- The items of the order that the call gives back, once for each time that it names them; none if it names more than there are. -/
def returnedItems (p : Pending) : Read (Option (List Fields)) := do
  let mut left ← (← (← order p).needList sym!"items").mapM (·.asFields "items")
  let mut returned := []
  for id in ← p.arguments.needSymbols sym!"item_ids" do
    let ids ← left.mapM (·.needSymbol sym!"item_id")
    match (left.zip ids).find? (·.2 == id) with
    | none => return none
    | some (item, _) =>
      returned := returned ++ [item]
      left := left.eraseIdx (ids.idxOf id)
  return some returned

/-- The variant of that id among a product's variants. -/
def variant? (p : Pending) (product item : Symbol) : Read (Option Fields) := do
  match (← (← p.row sym!"products" product).needFields sym!"variants").find? item with
  | none => return none
  | some v => return some (← v.asFields s!"variants.{item}")

/-- Whether each new item is an available variant of the same product as the item that it replaces. -/
def replacementsFit (p : Pending) : Read Bool := do
  let some returned ← returnedItems p | return false
  let wanted ← p.arguments.needSymbols sym!"new_item_ids"
  if returned.isEmpty || returned.length != wanted.length then return false
  for (item, new) in returned.zip wanted do
    match ← variant? p (← item.needSymbol sym!"product_id") new with
    | none => return false
    | some v => if !(← v.needBool sym!"available") then return false
  return true

/-- What the new items cost beyond the returned ones. -/
def priceDifference (p : Pending) : Read Quantity := do
  let some returned ← returnedItems p | return 0
  let mut difference : Quantity := 0
  for (item, new) in returned.zip (← p.arguments.needSymbols sym!"new_item_ids") do
    if let some v ← variant? p (← item.needSymbol sym!"product_id") new then
      difference := difference + (← v.needQuantity sym!"price") - (← item.needQuantity sym!"price")
  return difference

/-- Whether the payment method is on the customer's account and, if it is a gift card, covers the price difference. -/
def paymentFits (p : Pending) : Read Bool := do
  let methods ← (← account p).needFields sym!"payment_methods"
  match methods.find? (← p.arguments.needSymbol sym!"payment_method_id") with
  | none => return false
  | some method =>
    let method ← method.asFields "payment_methods"
    if (← method.needSymbol sym!"source") == sym!"gift_card" then
      return decide ((← priceDifference p) ≤ (← method.needQuantity sym!"balance"))
    else return true

/-! ## Rules -/

/-- Anyone may be looked up: that is how a customer is authenticated; products are no one's. -/
def lookupPermit : Rule where
  id := "retail.lookup_permit"
  kind := .permit
  tools := .these [find_user_id_by_email, get_product_details]
  category := .policyProhibition
  hint := "This look-up is not permitted."
  sentence := "The customer's identity is looked up by e-mail address; product details may be given to anyone."
  condition := .top

/-- The customer's own records may be read. -/
def readPermit : Rule where
  id := "retail.read_permit"
  kind := .permit
  tools := .these [get_user_details, get_order_details]
  category := .policyProhibition
  hint := "This record can't be read."
  sentence := "The customer's own profile and orders may be read."
  condition := .top

/-- Delivered orders may be exchanged. -/
def exchangePermit : Rule where
  id := "retail.exchange_permit"
  kind := .permit
  tools := .these [exchange_delivered_order_items]
  category := .policyProhibition
  hint := "Exchanges are not permitted."
  sentence := "Items of a delivered order may be exchanged for other options of the same product."
  condition := .top

/-- "At the beginning of the conversation the customer is authenticated." -/
def identity : Rule where
  id := "retail.identity"
  kind := .require
  tools := .these [get_user_details, get_order_details, exchange_delivered_order_items]
  category := .temporalIncompatibility
  hint := "Authenticate the customer first: find the user id by e-mail address."
  sentence := "The customer is authenticated before anything else is done for them."
  condition := authenticated

/-- "Only the customer's own profile." -/
def profileOwner : Rule where
  id := "retail.profile_owner"
  kind := .require
  tools := .these [get_user_details]
  category := .authorizationFailure
  hint := "This profile belongs to someone else. Only the authenticated customer can be helped in this conversation."
  sentence := "Only the authenticated customer's own profile may be read."
  condition := .now "the profile is the customer's" fun p => do
    return (← p.arguments.needSymbol sym!"user_id") == (← p.customer)

/-- "Only the customer's own orders." -/
def orderOwner : Rule where
  id := "retail.order_owner"
  kind := .require
  tools := .these [get_order_details, exchange_delivered_order_items]
  category := .authorizationFailure
  hint := "This order belongs to someone else. Only the authenticated customer's own orders can be handled."
  sentence := "Only the authenticated customer's own orders may be read or changed."
  condition := .now "the order is the customer's" fun p => do
    return (← (← order p).needSymbol sym!"user_id") == (← p.customer)

/-- "The order's status is checked before an action is taken." -/
def statusObserved : Rule where
  id := "retail.status_observed"
  kind := .require
  tools := .these [exchange_delivered_order_items]
  category := .temporalIncompatibility
  hint := "Read this order with get_order_details before you change it."
  sentence := "The order's status is checked before the order is changed."
  condition := observed

/-- "Only delivered orders can be exchanged." -/
def delivered : Rule where
  id := "retail.delivered"
  kind := .require
  tools := .these [exchange_delivered_order_items]
  category := .stateIncompatibility
  hint := "Only an order whose status is “delivered” can be exchanged."
  sentence := "An order can be exchanged only if its status is delivered."
  condition := .now "the order is delivered" fun p => do
    return (← (← order p).needSymbol sym!"status") == sym!"delivered"

/-- "An order's items can be exchanged once." -/
def exchangeOnce : Rule where
  id := "retail.exchange_once"
  kind := .forbid
  tools := .these [exchange_delivered_order_items]
  category := .temporalIncompatibility
  hint := "This order has been exchanged already; it can be exchanged only once. Collect all items into one exchange next time."
  sentence := "An exchange can be made once for an order, with all its items together."
  condition := .within [.resource] (.once .unbounded (succeeded exchange_delivered_order_items))

/-- "Each item may be exchanged for an available item of the same product." -/
def exchangeItems : Rule where
  id := "retail.exchange_items"
  kind := .require
  tools := .these [exchange_delivered_order_items]
  category := .policyProhibition
  hint := "Each returned item must be in the order, and its new item an available option of the same product, in the same order."
  sentence := "Each item can be exchanged only for an available item of the same product with other options."
  condition := .now "the new items fit" replacementsFit

/-- "A payment method of the customer pays or receives the difference; a gift card must cover it." -/
def payment : Rule where
  id := "retail.payment"
  kind := .require
  tools := .these [exchange_delivered_order_items]
  category := .policyProhibition
  hint := "Use a payment method that is on the customer's account; a gift card must cover the price difference."
  sentence := "The price difference is settled by a payment method on the customer's account; a gift card must have balance enough."
  condition := .now "the payment method fits" paymentFits

/-- "Before a change its details are listed and the customer confirms them." -/
def confirmation : Rule where
  id := "retail.confirmation"
  kind := .require
  tools := .these [exchange_delivered_order_items]
  category := .authorizationFailure
  hint := "List the details of this exact call to the customer and get their confirmation. A confirmation counts once, for these arguments and this state."
  sentence := "Before a change is made, its details are listed and the customer confirms them explicitly."
  condition := confirmed

def policy : Policy where
  name := "retail"
  title := "Retail: exchanges of delivered orders"
  contracts := contracts
  rules := [
    lookupPermit, readPermit, exchangePermit, identity, profileOwner, orderOwner, statusObserved, delivered, exchangeOnce,
    exchangeItems, payment, confirmation, noOverlap]

end LeanGuard.Retail
