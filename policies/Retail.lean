import Shared

/-!
# Retail

Pending orders are cancelled or changed, delivered orders returned or exchanged. Each rule states one sentence of the English policy, in its
order; `unenforced` lists the sentences that no call can break.
-/

namespace LeanGuard.Retail

open Shared

/-! ## Tools -/

declare_symbols
  find_user_id_by_email find_user_id_by_name_zip get_user_details get_order_details get_product_details get_item_details
  list_all_product_types calculate transfer_to_human_agents cancel_pending_order modify_pending_order_address modify_pending_order_payment
  modify_pending_order_items return_delivered_order_items exchange_delivered_order_items modify_user_address

declare_symbols
  order_id user_id address1 address2 city state country zip item_ids new_item_ids payment_method_id email first_name last_name product_id
  item_id expression summary reason orders status items products variants available users payment_methods source gift_card balance
  payment_history price amount

def pendingOrderTools : List Symbol :=
  [cancel_pending_order, modify_pending_order_address, modify_pending_order_payment, modify_pending_order_items]
def modifyTools : List Symbol := [modify_pending_order_address, modify_pending_order_payment, modify_pending_order_items]
def deliveredOrderTools : List Symbol := [return_delivered_order_items, exchange_delivered_order_items]
def profileTools : List Symbol := [get_user_details, modify_user_address]
def orderWrites : List Symbol := pendingOrderTools ++ deliveredOrderTools

def text (name : Symbol) : Parameter := ⟨name, .string, true⟩
def texts (name : Symbol) : Parameter := ⟨name, .listOf .string, true⟩
def theOrder : Option ResourceArgument := some ⟨sym!"order", order_id⟩
def theUser : Option ResourceArgument := some ⟨sym!"user", user_id⟩
def address : List Parameter :=
  [text address1, text address2, text city, text state, text country, text zip]
def replacement : List Parameter :=
  [text order_id, texts item_ids, texts new_item_ids, text payment_method_id]

def contracts : List Contract := [
  { tool := find_user_id_by_email, access := .read, parameters := [text email] },
  { tool := find_user_id_by_name_zip, access := .read
    parameters := [text first_name, text last_name, text zip] },
  { tool := get_user_details, access := .read, parameters := [text user_id], resource := theUser },
  { tool := get_order_details, access := .read, parameters := [text order_id], resource := theOrder },
  { tool := get_product_details, access := .read, parameters := [text product_id]
    resource := some ⟨sym!"product", product_id⟩ },
  { tool := get_item_details, access := .read, parameters := [text item_id]
    resource := some ⟨sym!"item", item_id⟩ },
  { tool := list_all_product_types, access := .read, parameters := [] },
  { tool := calculate, access := .read, parameters := [text expression] },
  { tool := transfer_to_human_agents, access := .read, parameters := [text summary]
    effect := "A person takes the conversation over; nothing of the store changes." },
  { tool := cancel_pending_order, access := .write, parameters := [text order_id, text reason], resource := theOrder
    effect := "The order is cancelled and its payments are refunded." },
  { tool := modify_pending_order_address, access := .write, parameters := text order_id :: address, resource := theOrder
    effect := "The order is sent to the new address." },
  { tool := modify_pending_order_payment, access := .write
    parameters := [text order_id, text payment_method_id], resource := theOrder
    effect := "The new payment method is charged and the original one refunded." },
  { tool := modify_pending_order_items, access := .write, parameters := replacement, resource := theOrder
    effect := "The order's items are replaced, the price difference is charged or refunded, and the order can't be changed any more." },
  { tool := return_delivered_order_items, access := .write
    parameters := [text order_id, texts item_ids, text payment_method_id], resource := theOrder
    effect := "The order's items are to be returned, and refunded." },
  { tool := exchange_delivered_order_items, access := .write, parameters := replacement, resource := theOrder
    effect := "The order's items are to be exchanged, and the price difference is charged or refunded." },
  { tool := modify_user_address, access := .write, parameters := text user_id :: address, resource := theUser
    effect := "The customer's default address is replaced." }]

/-! ## What the rules read -/

/-- The order that the call names, which must be there. -/
def order (p : Pending) : Read Fields := do p.row orders (← p.arguments.needSymbol order_id)

/-- The account of the authenticated customer, who must be there. -/
def account (p : Pending) : Read Fields := do p.row users (← p.customer)

/-- The order that the call names, if there is one. -/
def theirOrder (p : Pending) : Find Fields := named p orders order_id

def orderHasStatus (wanted : Symbol) : Pending → Read Bool := holds fun p => do
  guard ((← (← theirOrder p).needSymbol status) == wanted)

/-- Takes the first item of that id out of the list. -/
def take (id : Symbol) : List Fields → Find (Fields × List Fields)
  | [] => failure
  | item :: items => do
    if (← item.needSymbol item_id) == id then return (item, items)
    else
      let (taken, left) ← take id items
      return (taken, item :: left)

/-- Takes items out of the list, once for each time that they are named. -/
def takeAll : List Symbol → List Fields → Find (List Fields)
  | [], _ => return []
  | id :: ids, items => do
    let (taken, left) ← take id items
    return taken :: (← takeAll ids left)

/-- The items of the order that the call names: at least one, and none more often than it is there. -/
def namedItems (p : Pending) : Find (List Fields) := do
  let items ← takeAll (← p.arguments.needSymbols item_ids) (← objectsIn (← theirOrder p) items)
  guard !items.isEmpty
  return items

/-- The items that the call names, each with the variant of the same product that is to replace it. -/
def replacements (p : Pending) : Find (List (Fields × Fields)) := do
  let items ← namedItems p
  let wanted ← p.arguments.needSymbols new_item_ids
  guard (items.length == wanted.length)
  (items.zip wanted).mapM fun (item, new) => do
    guard ((← item.needSymbol item_id) != new)
    let product ← row p products (← item.needSymbol product_id)
    return (item, ← entry (← product.needFields variants) new)

def replacementsFit : Pending → Read Bool := holds fun p => do
  for (_, new) in ← replacements p do guard (← new.needBool available)

/-- The payment method of the call, on the customer's account. -/
def method (p : Pending) : Find Fields := do
  entry (← (← Shared.account p users).needFields payment_methods) (← p.arguments.needSymbol payment_method_id)

def isGiftCard (method : Fields) : Read Bool := return (← method.needSymbol source) == gift_card

/-- A gift card must cover the amount. -/
def settle (method : Fields) (amount : Quantity) : Find Unit := do
  if ← isGiftCard method then guard (amount ≤ (← method.needQuantity balance))

/-- The payments and refunds of the order, oldest first. -/
def payments (p : Pending) : Find (List Fields) := do objectsIn (← theirOrder p) payment_history

/-- Whether a payment was made by the method that the call names. -/
def madeByMethod (p : Pending) (payment : Fields) : Read Bool :=
  return (← payment.needSymbol payment_method_id) == (← p.arguments.needSymbol payment_method_id)

/-- What the new items cost beyond the replaced ones. -/
def priceDifference (p : Pending) : Find Quantity := do
  sum (← replacements p) fun (old, new) => return (← new.needQuantity price) - (← old.needQuantity price)

/-- The payment method is the customer's and settles the price difference, if there is one: whether the items fit is another rule. -/
def differenceFits : Pending → Read Bool := holds fun p => do
  settle (← method p) (← priceDifference p <|> return 0)

/-- The customer's payment method is another one than that of the order's only payment, and covers it. -/
def newPaymentFits : Pending → Read Bool := holds fun p => do
  let [payment] ← payments p | failure
  guard !(← madeByMethod p payment)
  settle (← method p) (← payment.needQuantity amount)

/-- The items are in the order, and the refund goes to the order's payment method or to a gift card of the customer. -/
def returnFits : Pending → Read Bool := holds fun p => do
  let _ ← namedItems p
  let payment :: _ ← payments p | failure
  guard ((← isGiftCard (← method p)) || (← madeByMethod p payment))

/-! ## Rules -/

/-- "Locating their user id via email, or via name + zip code": anyone may be looked up, since that is how a customer is authenticated; products
are no one's. -/
def lookupPermit : Rule where
  id := "retail.lookup_permit"
  kind := .permit
  tools := .these [
    find_user_id_by_email, find_user_id_by_name_zip, get_product_details, get_item_details, list_all_product_types, calculate,
    transfer_to_human_agents]
  category := .policyProhibition
  hint := "This look-up is not permitted."
  sentence := "The customer is found by e-mail address or by name and zip code; product details may be given to anyone, and a person may \
    always be asked to take over."
  condition := .top

/-- "Once the user has been authenticated, you can provide the user with information about order, product, profile information." "Provide information
about their own profile, orders, and related products." -/
def readPermit : Rule where
  id := "retail.read_permit"
  kind := .permit
  tools := .these [get_user_details, get_order_details]
  category := .policyProhibition
  hint := "This record can't be read."
  sentence := "The customer's own profile and orders may be read."
  condition := .top

/-- "The user needs to confirm the order id and the reason (either 'no longer needed' or 'ordered by mistake') for cancellation. Other reasons
are not acceptable." -/
def cancelPermit : Rule where
  id := "retail.cancel_permit"
  kind := .permit
  tools := .these [cancel_pending_order]
  category := .policyProhibition
  hint := "An order can be cancelled only because it is “no longer needed” or was “ordered by mistake”, in these words."
  sentence := "An order can be cancelled only because it is no longer needed or was ordered by mistake."
  condition := .now "the reason is acceptable" fun p => do
    return [sym!"no longer needed", sym!"ordered by mistake"].contains (← p.arguments.needSymbol reason)

/-- "As a retail agent, you can help users: cancel or modify pending orders, return or exchange delivered orders, modify their default user address." "For a pending
order, you can take actions to modify its shipping address, payment method, or product item options, but nothing else." -/
def changePermit : Rule where
  id := "retail.change_permit"
  kind := .permit
  tools := .these (modify_user_address :: return_delivered_order_items :: modifyTools)
  category := .policyProhibition
  hint := "This change is not permitted."
  sentence := "Pending orders may be changed, delivered orders returned, and the customer's default address replaced."
  condition := .top

/-- "Return or exchange delivered orders." -/
def exchangePermit : Rule where
  id := "retail.exchange_permit"
  kind := .permit
  tools := .these [exchange_delivered_order_items]
  category := .policyProhibition
  hint := "Exchanges are not permitted."
  sentence := "Items of a delivered order may be exchanged for other options of the same product."
  condition := .top

/-- "At the beginning of the conversation, you have to authenticate the user identity by locating their user id via email, or via name + zip
code. This has to be done even when the user already provides the user id." A given id is no authentication. -/
def identity : Rule where
  id := "retail.identity"
  kind := .require
  tools := .these (get_order_details :: profileTools ++ orderWrites)
  category := .temporalIncompatibility
  hint := "Authenticate the customer first: find the user id by e-mail address, or by name and zip code."
  sentence := "The customer is authenticated before anything else is done for them."
  condition := authenticated

/-- "You can only help one user per conversation ..., and must deny any requests for tasks related to any other user." -/
def profileOwner : Rule where
  id := "retail.profile_owner"
  kind := .require
  tools := .these profileTools
  category := .authorizationFailure
  hint := "This profile belongs to someone else. Only the authenticated customer can be helped in this conversation."
  sentence := "Only the authenticated customer's own profile may be read or changed."
  condition := .now "the profile is the customer's" fun p => do
    return isCustomer p (← p.arguments.needSymbol user_id)

/-- "You can only help one user per conversation ..., and must deny any requests for tasks related to any other user." -/
def orderOwner : Rule where
  id := "retail.order_owner"
  kind := .require
  tools := .these (get_order_details :: orderWrites)
  category := .authorizationFailure
  hint := "This is no order of the authenticated customer. Only their own orders can be handled; order ids look like #W0000000."
  sentence := "Only the authenticated customer's own orders may be read or changed."
  condition := .now "the order is the customer's" <| holds fun p => do
    guard (isCustomer p (← (← theirOrder p).needSymbol user_id))

/-- "You should check its status before taking the action." -/
def statusObserved : Rule where
  id := "retail.status_observed"
  kind := .require
  tools := .these orderWrites
  category := .temporalIncompatibility
  hint := "Read this order with get_order_details before you change it."
  sentence := "The order's status is checked before the order is changed."
  condition := observed

/-- "Generally, you can only take action on pending or delivered orders." "An order can only be cancelled if its status is 'pending'." "An order
can only be modified if its status is 'pending'." Once its items were changed the status is another one: "This action can only be called once,
and will change the order status to 'pending (items modifed)'. The agent will not be able to modify or cancel the order anymore." -/
def pending : Rule where
  id := "retail.pending"
  kind := .require
  tools := .these pendingOrderTools
  category := .stateIncompatibility
  hint := "Only an order whose status is “pending” can be cancelled or changed; not one whose items were changed already."
  sentence := "An order can be cancelled or changed only if its status is pending and its items have not been changed."
  condition := .now "the order is pending" (orderHasStatus sym!"pending")

/-- "Generally, you can only take action on pending or delivered orders." "An order can only be returned if its status is 'delivered'." "An order
can only be exchanged if its status is 'delivered'." -/
def delivered : Rule where
  id := "retail.delivered"
  kind := .require
  tools := .these deliveredOrderTools
  category := .stateIncompatibility
  hint := "Only an order whose status is “delivered” can be returned or exchanged."
  sentence := "An order can be returned or exchanged only if its status is delivered."
  condition := .now "the order is delivered" (orderHasStatus sym!"delivered")

/-- "Exchange or modify order tools can only be called once per order." Stricter than the benchmark, whose own solutions change the address of
an order and then its items. -/
def modifyOnce : Rule where
  id := "retail.modify_once"
  kind := .forbid
  tools := .these modifyTools
  category := .temporalIncompatibility
  hint := "This order has been changed already; a pending order can be changed only once."
  sentence := "A pending order can be changed once, whatever is changed."
  stricter := true
  condition := .within [.resource] (.once .unbounded (.any (modifyTools.map succeeded)))

/-- "Exchange or modify order tools can only be called once per order. Be sure that all items to be changed are collected into a list." -/
def exchangeOnce : Rule where
  id := "retail.exchange_once"
  kind := .forbid
  tools := .these [exchange_delivered_order_items]
  category := .temporalIncompatibility
  hint := "This order has been exchanged already; it can be exchanged only once. Collect all items into one exchange next time."
  sentence := "An exchange can be made once for an order, with all its items together."
  condition := .within [.resource] (.once .unbounded (succeeded exchange_delivered_order_items))

/-- "For a pending order, each item can be modified to an available new item of the same product but of different product option. There cannot be
any change of product types." -/
def modifyItems : Rule where
  id := "retail.modify_items"
  kind := .require
  tools := .these [modify_pending_order_items]
  category := .policyProhibition
  hint := "Each item must be in the order, and its new item another available option of the same product, in the same order."
  sentence := "Each item can be changed only to an available item of the same product with other options."
  condition := .now "the new items fit" replacementsFit

/-- "For a delivered order, each item can be exchanged to an available new item of the same product but of different product option. There cannot
be any change of product types." -/
def exchangeItems : Rule where
  id := "retail.exchange_items"
  kind := .require
  tools := .these [exchange_delivered_order_items]
  category := .policyProhibition
  hint := "Each returned item must be in the order, and its new item another available option of the same product, in the same order."
  sentence := "Each item can be exchanged only for an available item of the same product with other options."
  condition := .now "the new items fit" replacementsFit

/-- "The user must provide a payment method to pay or receive refund of the price difference. If the user provides a gift card, it must have
enough balance to cover the price difference." "The user can only choose a single payment method different from the original payment method."
"If the user wants the modify the payment method to gift card, it must have enough balance to cover the total amount." -/
def payment : Rule where
  id := "retail.payment"
  kind := .require
  tools := .these [exchange_delivered_order_items, modify_pending_order_items, modify_pending_order_payment]
  category := .policyProhibition
  hint := "Use a payment method that is on the customer's account, for a change of payment another one than the order's; a gift card must \
    cover what is due."
  sentence := "What is due is settled by a payment method on the customer's account; a gift card must have balance enough; a change of payment \
    needs another method than the original one."
  condition := .now "the payment method fits" fun p =>
    if p.call.tool == modify_pending_order_payment then newPaymentFits p else differenceFits p

/-- "The user needs to provide a payment method to receive the refund. The refund must either go to the original payment method, or an existing gift
card." -/
def return_ : Rule where
  id := "retail.return"
  kind := .require
  tools := .these [return_delivered_order_items]
  category := .policyProhibition
  hint := "The items must be in the order, and the refund must go to the order's original payment method or to a gift card of the customer."
  sentence := "Items of the order are returned, and refunded to the original payment method or to an existing gift card."
  condition := .now "the return fits" returnFits

/-- "Before taking any action that updates the database (cancel, modify, return, exchange), you must list the action details and obtain
explicit user confirmation (yes) to proceed." "You must confirm all the details are correct and be cautious before taking this action." "The user
needs to confirm the order id and the list of items to be returned." -/
def confirmation : Rule where
  id := "retail.confirmation"
  kind := .require
  tools := .writing
  category := .authorizationFailure
  hint := "List the details of this exact call to the customer and get their confirmation. A confirmation counts once, for these arguments and this state."
  sentence := "Before a change is made, its details are listed and the customer confirms them explicitly."
  condition := confirmed

/-! ## Sentences without a rule -/

/-- No tool call can break these; the reason stands with each. -/
def unenforced : List Unenforced := [
  { sentences := [
      "You should not make up any information or knowledge or procedures not provided by the user or the tools, or give subjective \
        recommendations or comments."]
    reason := "It is about the text that the customer reads." },
  { sentences := [
      "You should at most make one tool call at a time ... If you respond to the user, you should not make a tool call at the same time."]
    reason := "It is about the model's turn, which no call shows; that two calls on one order never overlap is host.no_overlap." },
  { sentences := ["You should deny user requests that are against this policy."]
    reason := "The rules deny the calls; the refusal itself is text." },
  { sentences := [
      "You should transfer the user to a human agent if and only if the request cannot be handled within the scope of your actions. To transfer, \
        first make a tool call to transfer_to_human_agents, and then send the message ... to the user."]
    reason := "Whether a request can be handled is in the conversation; a transfer changes nothing of the store." },
  { sections := ["Domain basic"], reason := "Facts about the data." },
  { sentences := [
      "Be sure that all items to be changed are collected into a list before making the tool call!!!",
      "In particular, remember to remind the customer to confirm they have provided all the items they want to modify.",
      "In particular, remember to remind the customer to confirm they have provided all items to be exchanged."]
    reason := "What the customer still wants is in the conversation; retail.exchange_once and retail.pending keep a second call out." },
  { sentences := [
      "After user confirmation, the order status will be changed to 'cancelled', and the total will be refunded via the original payment method \
        immediately if it is gift card, otherwise in 5 to 7 business days.",
      "After user confirmation, the order status will be kept as 'pending'. The original payment method will be refunded immediately if it is a \
        gift card, otherwise it will be refunded within 5 to 7 business days.",
      "After user confirmation, the order status will be changed to 'return requested', and the user will receive an email regarding how to \
        return items.",
      "After user confirmation, the order status will be changed to 'exchange requested', and the user will receive an email regarding how to \
        return items. There is no need to place a new order."]
    reason := "The store does this once the call is made." }]

def policy : Policy where
  name := "retail"
  title := "Retail: pending and delivered orders, the customer's address"
  contracts := contracts
  rules := [
    lookupPermit, readPermit, cancelPermit, changePermit, exchangePermit, identity, profileOwner, orderOwner, statusObserved, pending,
    delivered, exchangeOnce, modifyItems, exchangeItems, payment, return_, confirmation, noOverlap,
    modifyOnce]
  unenforced := unenforced

end LeanGuard.Retail
