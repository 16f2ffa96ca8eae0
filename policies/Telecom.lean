import Shared

/-!
# Telecom

Lines are suspended and resumed, roaming is switched, data refuelled, and payment requests sent. Each rule states sentences of the English
policy, in its order; `unenforced` lists the sentences that no call can break. The tools of the customer's own phone are not here: a call of
one is a call of a tool that the policy does not know.
-/

namespace LeanGuard.Telecom

open Shared

/-! ## Tools -/

declare_symbols
  get_customer_by_phone get_customer_by_id get_customer_by_name get_details_by_id get_bills_for_customer get_data_usage
  transfer_to_human_agents send_payment_request suspend_line resume_line enable_roaming disable_roaming refuel_data

declare_symbols
  customer_id line_id bill_id customers lines bills plans found_customers line_ids bill_ids device_id status contract_end
  roaming_enabled data_refueling_gb gb_amount

def lookups : List Symbol := [get_customer_by_phone, get_customer_by_id, get_customer_by_name]
def lineWrites : List Symbol := [suspend_line, resume_line, enable_roaming, disable_roaming, refuel_data]
def customerTools : List Symbol := get_bills_for_customer :: get_data_usage :: send_payment_request :: lineWrites

def text (name : Symbol) : Parameter := ⟨name, .string, true⟩
def theLine : Option ResourceArgument := some ⟨sym!"line", line_id⟩
def ofLine : List Parameter := [text customer_id, text line_id]

def contracts : List Contract := [
  { tool := get_customer_by_phone, access := .read, parameters := [text sym!"phone_number"] },
  { tool := get_customer_by_id, access := .read, parameters := [text customer_id], resource := some ⟨sym!"customer", customer_id⟩ },
  { tool := get_customer_by_name, access := .read, parameters := [text sym!"full_name", text sym!"dob"] },
  { tool := get_details_by_id, access := .read, parameters := [text sym!"id"], resource := some ⟨sym!"record", sym!"id"⟩ },
  { tool := get_bills_for_customer, access := .read, parameters := [text customer_id, ⟨sym!"limit", .integer, false⟩]
    resource := some ⟨sym!"customer", customer_id⟩ },
  { tool := get_data_usage, access := .read, parameters := ofLine, resource := theLine },
  { tool := transfer_to_human_agents, access := .read, parameters := [text sym!"summary"]
    effect := "A person takes the conversation over; nothing of the account changes." },
  { tool := send_payment_request, access := .write, parameters := [text customer_id, text bill_id]
    resource := some ⟨sym!"bill", bill_id⟩, effect := "The bill awaits payment, and the customer is asked to pay it." },
  { tool := suspend_line, access := .write, parameters := ofLine ++ [text sym!"reason"], resource := theLine
    effect := "The line has no service from now on." },
  { tool := resume_line, access := .write, parameters := ofLine, resource := theLine, effect := "The line has service again." },
  { tool := enable_roaming, access := .write, parameters := ofLine, resource := theLine
    effect := "The line can be used outside its home network, at no cost." },
  { tool := disable_roaming, access := .write, parameters := ofLine, resource := theLine
    effect := "The line can't be used outside its home network." },
  { tool := refuel_data, access := .write, parameters := ofLine ++ [⟨gb_amount, .number, true⟩], resource := theLine
    effect := "The line has more data this month, at the plan's price for each GB." }]

/-! ## What the rules read -/

/-- The authenticated customer. -/
def customer (p : Pending) : Find Fields := account p customers

/-- The line that the call names. -/
def line (p : Pending) : Find Fields := named p lines line_id

/-- Whether any of the customer's bills has one of the statuses. -/
def anyBill (p : Pending) (statuses : List Symbol) : Find Bool := do
  anyOf (fun b => return statuses.contains (← (← row p bills b).needSymbol status)) (← (← customer p).needSymbols bill_ids)

/-- The line's contract ended before today: `contract_end` is when its last day begins. -/
def contractEnded (p : Pending) : Find Bool := do
  return decide ((← (← line p).needQuantity contract_end) + .ofInt (24 * 60 * 60 * 1000) ≤ .ofInt p.snapshot.time)

/-- The details that the call asks for are the customer's: their own, of their lines, bills and devices, or of a plan. -/
def detailsFit : Pending → Read Bool := holds fun p => do
  let wanted ← p.arguments.needSymbol sym!"id"
  let c ← customer p
  let own ← c.needSymbols line_ids
  let isDevice := own |> anyOf fun l => do
    let device ← found ((← row p lines l).find? device_id)
    return device == .sym wanted
  guard (isCustomer p wanted || own.contains wanted || (← c.needSymbols bill_ids).contains wanted ||
    ((← (← p.state).needFields plans).find? wanted).isSome || (← isDevice <|> return false))

def lineIs (wanted : Symbol) (p : Pending) : Find Unit := do guard ((← (← line p).needSymbol status) == wanted)

/-! ## Rules -/

/-- "You can look up customer information using: phone number, customer ID, full name with date of birth." -/
def readPermit : Rule where
  id := "telecom.read_permit"
  kind := .permit
  tools := .these (lookups ++ [get_details_by_id, get_bills_for_customer, get_data_usage, transfer_to_human_agents])
  category := .policyProhibition
  hint := "This look-up is not permitted."
  sentence := "The customer is found by phone number, customer id, or name with date of birth; their own data may be read, and a person may be \
    asked to take over."
  condition := .top

/-- "You can help users with technical support, overdue bill payment, line suspension, and plan options." "You can help the user make a payment for
an overdue bill." "We offer data roaming to users who are traveling outside their home network." "You can add more data to the line by refueling
data at a price per GB specified by the plan." -/
def changePermit : Rule where
  id := "telecom.change_permit"
  kind := .permit
  tools := .writing
  category := .policyProhibition
  hint := "This change is not permitted."
  sentence := "Payment may be asked for, lines suspended and resumed, roaming switched and data refuelled."
  condition := .top

/-- "You must first identify the customer." -/
def identity : Rule where
  id := "telecom.identity"
  kind := .require
  tools := .these (get_details_by_id :: customerTools)
  category := .temporalIncompatibility
  hint := "Identify the customer first: by phone number, by customer id, or by full name and date of birth."
  sentence := "The customer is identified before anything else is read or changed."
  condition := authenticated

/-- "You must first identify the customer": the one of this conversation, who stays the same. Stricter than the benchmark, where any look-up is
open at any time. -/
def stableIdentity : Rule where
  id := "telecom.stable_identity"
  kind := .require
  tools := .these lookups
  category := .authorizationFailure
  hint := "Another customer was identified in this conversation. Only that customer can be helped here."
  sentence := "Once a customer is identified, no other customer is looked up in the conversation."
  stricter := true
  condition := .now "the look-up finds no one but the customer" fun p => do
    let others := (← (← p.state).needFields found_customers).filter fun (c, _) => !isCustomer p c
    return p.snapshot.principal.isNone || others.isEmpty

/-- "You must first identify the customer": what is done is done for that customer's account. -/
def customerRule : Rule where
  id := "telecom.customer"
  kind := .require
  tools := .these customerTools
  category := .authorizationFailure
  hint := "This customer id is not the identified customer's."
  sentence := "Only the identified customer's account is read or changed."
  condition := .now "the account is the customer's" fun p => return isCustomer p (← p.arguments.needSymbol customer_id)

/-- "Apply the refueled data to the line associated with the phone number the user provided": lines of the customer, no others. -/
def lineOwner : Rule where
  id := "telecom.line_owner"
  kind := .require
  tools := .these (get_data_usage :: lineWrites)
  category := .authorizationFailure
  hint := "This is no line of the customer. Use one of the line ids of their profile."
  sentence := "Only the identified customer's own lines are read or changed."
  condition := .now "the line is the customer's" <| holds fun p => do
    guard ((← (← customer p).needSymbols line_ids).contains (← p.arguments.needSymbol line_id))

/-- "You must first identify the customer": details are given of that customer's things, and of plans. -/
def detailOwner : Rule where
  id := "telecom.detail_owner"
  kind := .require
  tools := .these [get_details_by_id]
  category := .authorizationFailure
  hint := "These are no details of the customer's. Only their own lines, bills and devices, and plans, can be looked up."
  sentence := "Details are read only of the customer's own lines, bills and devices, and of plans."
  condition := .now "the details are the customer's" detailsFit

/-- "Check the bill status to make sure it is overdue. Check the bill amount due." -/
def billObserved : Rule where
  id := "telecom.bill_observed"
  kind := .require
  tools := .these [send_payment_request]
  category := .temporalIncompatibility
  hint := "Read this bill first, with get_details_by_id or get_bills_for_customer."
  sentence := "The bill's status and amount are read before payment is asked for."
  condition := observed

/-- "Send the user a payment request for the overdue bill." "You should always check that the bill is overdue before sending a payment request." "A
user can only have one bill in the AWAITING PAYMENT status at a time." -/
def paymentRequest : Rule where
  id := "telecom.payment_request"
  kind := .require
  tools := .these [send_payment_request]
  category := .stateIncompatibility
  hint := "Payment can be asked for only an overdue bill of the customer, and only while no other bill of theirs awaits payment."
  sentence := "Payment is asked for only an overdue bill of the customer, one bill at a time."
  condition := .now "the bill is overdue and alone" <| holds fun p => do
    guard ((← (← customer p).needSymbols bill_ids).contains (← p.arguments.needSymbol bill_id))
    guard ((← (← named p bills bill_id).needSymbol status) == sym!"Overdue")
    guard !(← anyBill p [sym!"Awaiting Payment"])

/-- "A line can be suspended for the following reasons: the user has an overdue bill; the line's contract end date is in the past." -/
def suspend : Rule where
  id := "telecom.suspend"
  kind := .require
  tools := .these [suspend_line]
  category := .stateIncompatibility
  hint := "Only an active line can be suspended, and only because the customer has an overdue bill or the line's contract has ended."
  sentence := "An active line is suspended only for an overdue bill or an ended contract."
  condition := .now "the line may be suspended" <| holds fun p => do
    lineIs sym!"Active" p
    guard ((← anyBill p [sym!"Overdue"]) || (← contractEnded p))

/-- "You are allowed to lift the suspension after the user has paid all their overdue bills. You are not allowed to lift the suspension if the
line's contract end date is in the past." A bill that awaits payment was overdue and is not paid. -/
def resume : Rule where
  id := "telecom.resume"
  kind := .require
  tools := .these [resume_line]
  category := .stateIncompatibility
  hint := "Only a suspended line can be resumed, once every overdue bill is paid, and not if its contract has ended."
  sentence := "A suspension is lifted only when all overdue bills are paid and the line's contract has not ended."
  condition := .now "the line may be resumed" <| holds fun p => do
    lineIs sym!"Suspended" p
    guard !(← anyBill p [sym!"Overdue", sym!"Awaiting Payment"])
    guard !(← contractEnded p)

/-- "If a user is traveling outside their home network, you should check if the line is roaming enabled. If it is not, you should enable it at no
cost for the user." -/
def roaming : Rule where
  id := "telecom.roaming"
  kind := .require
  tools := .these [enable_roaming, disable_roaming]
  category := .stateIncompatibility
  hint := "Read the line with get_details_by_id first; enable roaming only where it is off, disable it only where it is on."
  sentence := "Whether the line roams is checked first, and roaming is enabled only where it is not."
  condition := .and observed <| .now "roaming would change" fun p => holds (fun p => do
    guard ((← (← line p).needBool roaming_enabled) == (p.call.tool == disable_roaming))) p

/-- "The maximum amount of data that can be refueled is 2GB." -/
def refuel : Rule where
  id := "telecom.refuel"
  kind := .require
  tools := .these [refuel_data]
  category := .policyProhibition
  hint := "A line can be refuelled by more than 0 and, with what was refuelled already, at most 2 GB."
  sentence := "At most 2 GB can be refuelled on a line."
  condition := .now "at most 2 GB are refuelled" <| holds fun p => do
    let amount ← p.arguments.needQuantity gb_amount
    guard (0 < amount)
    guard ((← (← line p).needQuantity data_refueling_gb) + amount ≤ 2)

/-- "To refuel data you should: ask them how much data they want to refuel, confirm the price." -/
def refuelConfirm : Rule where
  id := "telecom.refuel_confirm"
  kind := .require
  tools := .these [refuel_data]
  category := .authorizationFailure
  hint := "Tell the customer the amount and its price, and get their confirmation. It counts once, for this amount, line and state."
  sentence := "The customer confirms the amount of data and its price before it is refuelled."
  condition := confirmed

/-! ## Sentences without a rule -/

/-- No tool call can break these; the reason stands with each. -/
def unenforced : List Unenforced := [
  { sentences := ["The current time is 2025-02-25 12:08:00 EST."], reason := "The snapshot has the trusted time." },
  { sentences := [
      "You should not provide any information, knowledge, or procedures not provided by the user or available tools, or give subjective \
        recommendations or comments."]
    reason := "It is about the text that the customer reads." },
  { sentences := [
      "You should only make one tool call at a time ... If you respond to the user, you should not make a tool call at the same time."]
    reason := "It is about the model's turn, which no call shows; that two calls on one line never overlap is host.no_overlap." },
  { sentences := ["You should deny user requests that are against this policy."]
    reason := "The rules deny the calls; the refusal itself is text." },
  { sentences := [
      "You should transfer the user to a human agent if and only if the request cannot be handled within the scope of your actions. To transfer, \
        first make a tool call to transfer_to_human_agents, and then send the message ... to the user.",
      "You should try your best to resolve the issue for the user before transferring the user to a human agent."]
    reason := "Whether a request can be handled is in the conversation; a transfer changes nothing of the account." },
  { sections := ["Domain Basics"], reason := "Facts about the data." },
  { sentences := ["For name lookup, date of birth is required for verification purposes."], reason := "The tool's schema requires it." },
  { sentences := ["To do so you need to follow these steps", "The send payement request tool will not check if the bill is overdue."]
    reason := "They introduce what the rules state." },
  { sentences := [
      "Inform the user that a payment request has been sent. ... Check their payment requests using the check_payment_request tool. If \
        the user accepts the payment request, use the make_payment tool to make the payment.",
      "After you resume the line, the user will have to reboot their device to get service."]
    reason := "Text, and the customer's own phone, whose tools are not the agent's." },
  { sentences := [
      "This will change the status of the bill to AWAITING PAYMENT.",
      "After the payment is made, the bill status will be updated to PAID.",
      "When a line is suspended, the user will not have service.",
      "Each plan specify the maxium data usage per month.",
      "If the user's data usage for a line exceeds the plan's data limit, data connectivity will be lost.",
      "If a line is roaming enabled, the user can use their phone's data connection in areas outside their home network."]
    reason := "Facts about the network and what it does." },
  { sentences := ["Always check that the bill status is updated to PAID before informing the user that the bill has been paid."]
    reason := "It is about what is said; telecom.resume reads the bills itself." },
  { sections := ["Change Plan"], reason := "No tool of the agent changes a plan." },
  { sections := ["Phone Device - Technical Support Troubleshooting Workflow"]
    reason := "Steps that the customer takes on their own phone; its line suspension, refuelling and roaming are the rules above." }]

def policy : Policy where
  name := "telecom"
  title := "Telecom: bills, lines, roaming and data"
  contracts := contracts
  rules := [
    readPermit, changePermit, identity, customerRule, lineOwner, detailOwner, billObserved, paymentRequest, suspend, resume, roaming, refuel,
    refuelConfirm, noOverlap, stableIdentity]
  unenforced := unenforced

end LeanGuard.Telecom
