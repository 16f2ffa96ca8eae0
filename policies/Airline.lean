import Shared

/-!
# Airline

Reservations are booked, changed and cancelled; certificates compensate for disrupted trips. Each rule states sentences of the English policy, in
its order; `unenforced` lists the sentences that no call can break.
-/

namespace LeanGuard.Airline

open Shared

/-! ## Tools -/

declare_symbols
  search_direct_flight search_onestop_flight list_all_airports get_flight_status get_user_details get_reservation_details calculate
  transfer_to_human_agents book_reservation cancel_reservation update_reservation_flights update_reservation_passengers
  update_reservation_baggages send_certificate

declare_symbols
  user_id reservation_id origin destination flight_type cabin flights passengers payment_methods payment_id total_baggages
  nonfree_baggages insurance flight_number date amount users reservations dates status available_seats prices price membership gold silver
  basic_economy economy business first_name last_name dob source credit_card gift_card certificate created_at yes


def userTools : List Symbol := [get_user_details, book_reservation, send_certificate]
def reservationWrites : List Symbol :=
  [cancel_reservation, update_reservation_flights, update_reservation_passengers, update_reservation_baggages]

def text (name : Symbol) : Parameter := ⟨name, .string, true⟩
def whole (name : Symbol) : Parameter := ⟨name, .integer, true⟩
def objects (name : Symbol) : Parameter := ⟨name, .listOf .object, true⟩
def theUser : Option ResourceArgument := some ⟨sym!"user", user_id⟩
def theReservation : Option ResourceArgument := some ⟨sym!"reservation", reservation_id⟩
def search : List Parameter := [text origin, text destination, text date]

def contracts : List Contract := [
  { tool := search_direct_flight, access := .read, parameters := search },
  { tool := search_onestop_flight, access := .read, parameters := search },
  { tool := list_all_airports, access := .read, parameters := [] },
  { tool := get_flight_status, access := .read, parameters := [text flight_number, text date] },
  { tool := get_user_details, access := .read, parameters := [text user_id], resource := theUser },
  { tool := get_reservation_details, access := .read, parameters := [text reservation_id], resource := theReservation },
  { tool := calculate, access := .read, parameters := [text sym!"expression"] },
  { tool := transfer_to_human_agents, access := .read, parameters := [text sym!"summary"]
    effect := "A person takes the conversation over; no booking changes." },
  { tool := book_reservation, access := .write, resource := theUser
    parameters := [
      text user_id, text origin, text destination, text flight_type, text cabin, objects flights,
      objects passengers, objects payment_methods, whole total_baggages, whole nonfree_baggages,
      text insurance]
    effect := "A reservation is made, its seats are taken and its price is charged." },
  { tool := cancel_reservation, access := .write, parameters := [text reservation_id], resource := theReservation
    effect := "The whole reservation is cancelled and its payments are refunded." },
  { tool := update_reservation_flights, access := .write, resource := theReservation
    parameters := [text reservation_id, text cabin, objects flights, text payment_id]
    effect := "All flights and the cabin are replaced, and the price difference is charged or refunded." },
  { tool := update_reservation_passengers, access := .write, parameters := [text reservation_id, objects passengers]
    resource := theReservation, effect := "The passengers are replaced." },
  { tool := update_reservation_baggages, access := .write, resource := theReservation
    parameters := [text reservation_id, whole total_baggages, whole nonfree_baggages, text payment_id]
    effect := "The checked bags are replaced, and new ones beyond the allowance are charged." },
  { tool := send_certificate, access := .write, parameters := [text user_id, whole amount], resource := theUser
    effect := "The customer receives a travel certificate." }]

/-! ## What the rules read -/

/-- The reservation that the call names. -/
def reservation (p : Pending) : Find Fields := named p reservations reservation_id

/-- A flight number on a date. -/
structure Leg where
  flight : Symbol
  day : Symbol
deriving DecidableEq

def legs (fields : Fields) : Read (List Leg) := do
  (← objectsIn fields flights).mapM fun f => return ⟨← f.needSymbol flight_number, ← f.needSymbol date⟩

/-- How many passengers a reservation or a booking has. -/
def size (fields : Fields) : Read Nat := return (← fields.needList passengers).length

/-- The flight of that number. -/
def flight (p : Pending) (l : Leg) : Find Fields := row p flights l.flight

/-- How the flight stands on its date. -/
def onDate (p : Pending) (l : Leg) : Find Fields := do
  match ← (← (← flight p l).needFields dates).need l.day with
  | .null => failure
  | v => v.asFields "dates"

/-- Whether any flight of the reservation has one of the statuses. -/
def anyFlight (p : Pending) (statuses : List Symbol) (reservation : Fields) : Find Bool := do
  anyOf (fun l => return statuses.contains (← (← onDate p l).needSymbol status)) (← legs reservation)

/-- A flight of the reservation has taken off. -/
def flown (p : Pending) (reservation : Fields) : Find Bool := anyFlight p [sym!"flying", sym!"landed"] reservation

def checkCabin (name : Symbol) : Find Unit := guard ([basic_economy, economy, business].contains name)

/-- The price of a seat on a flight that can be booked and has that many seats in the cabin. -/
def fare (p : Pending) (cabin : Symbol) (seats : Nat) (l : Leg) : Find Quantity := do
  checkCabin cabin
  let i ← onDate p l
  guard ((← i.needSymbol status) == sym!"available")
  guard (.ofInt seats ≤ (← (← i.needFields available_seats).needQuantity cabin))
  (← i.needFields prices).needQuantity cabin

/-- The airports after each of the flights, which lead on from the airport `here` without a gap. -/
def stops (p : Pending) (here : Symbol) : List Leg → Find (List Symbol)
  | [] => return []
  | l :: ls => do
    let flight ← flight p l
    guard ((← flight.needSymbol origin) == here)
    let next ← flight.needSymbol destination
    return next :: (← stops p next ls)

/-- The flights lead from the trip's origin to its destination, and back again if it is a round trip. -/
def checkRoute (p : Pending) (ls : List Leg) (trip : Fields) : Find Unit := do
  let from_ ← trip.needSymbol origin
  let to ← trip.needSymbol destination
  let stops ← stops p from_ ls
  let type ← trip.needSymbol flight_type
  guard (stops.contains to)
  guard (if type == sym!"one_way" then stops.getLast? == some to else type == sym!"round_trip" && stops.getLast? == some from_)

/-- How many bags a passenger checks free of charge. -/
def allowance (member : Symbol) (class_ : Symbol) : Nat :=
  (if member == gold then 2 else if member == silver then 1 else 0) + (if class_ == business then 2 else if class_ == economy then 1 else 0)

/-- How many of the bags are beyond the customer's allowance. -/
def extraBags (account : Fields) (class_ : Symbol) (passengers : Nat) (bags : Quantity) : Read Quantity := do
  let extra := bags - .ofInt (allowance (← account.needSymbol membership) class_ * passengers)
  return if extra < 0 then 0 else extra

/-- Fifty dollars for each of the bags. -/
def bagPrice (bags : Quantity) : Quantity := (50 : Nat) * bags

/-- Each passenger has the names and the date of birth that a booking needs. -/
def checkPassengers (call : Fields) : Find Unit := do
  for passenger in ← objectsIn call passengers do
    for name in [first_name, last_name, dob] do guard ((← (← found (passenger.find? name)).asSymbol name.text) != sym!"")

/-- The account's payment method of that id covers the amount (a credit card always does); returns its kind. -/
def settle (account : Fields) (id : Symbol) (amount : Quantity) : Find Symbol := do
  let method ← entry (← account.needFields payment_methods) id
  let kind ← method.needSymbol source
  if kind != credit_card then guard (amount ≤ (← method.needQuantity Airline.amount))
  return kind

/-- A credit card or gift card of the account settles what is due. -/
def settleByCard (account call : Fields) (due : Quantity) : Find Unit := do
  guard ((← settle account (← call.needSymbol payment_id) due) != certificate)

/-- The payments are from the account, each once, no more of a kind than is allowed, each covered, and pay the price exactly. -/
def checkPayments (account : Fields) (payments : List Fields) (price : Quantity) : Find Unit := do
  let ids ← payments.mapM (·.needSymbol payment_id)
  let kinds ← payments.mapM fun payment => do
    let part ← payment.needQuantity Airline.amount
    guard (0 ≤ part)
    settle account (← payment.needSymbol payment_id) part
  guard (ids.eraseDups.length == ids.length)
  guard (kinds.count certificate ≤ 1 ∧ kinds.count credit_card ≤ 1 ∧ kinds.count gift_card ≤ 3)
  guard ((← sum payments (·.needQuantity Airline.amount)) == price)

/-- The flights lead where the call says, its bags are counted right, and its passengers are one to five. -/
def bookingFits : Pending → Read Bool := holds fun p => do
  let call := p.arguments
  checkCabin (← call.needSymbol cabin)
  checkPassengers call
  guard (1 ≤ (← size call) ∧ (← size call) ≤ 5)
  checkRoute p (← legs call) call
  let bags ← call.needQuantity total_baggages
  guard (0 ≤ bags)
  guard ((← call.needQuantity nonfree_baggages) == (← extraBags (← account p users) (← call.needSymbol cabin) (← size call) bags))

/-- The price of the booking that the call proposes. -/
def bookingPrice (p : Pending) : Find Quantity := do
  let call := p.arguments
  let fares ← sum (← legs call) (fare p (← call.needSymbol cabin) (← size call))
  let choice ← call.needSymbol insurance
  guard (choice == yes || choice == sym!"no")
  return (← size call) * (if choice == yes then fares + 30 else fares) + bagPrice (← call.needQuantity nonfree_baggages)

/-- The call's payments pay the booking. -/
def bookingPaid : Pending → Read Bool := holds fun p => do
  checkPayments (← account p users) (← objectsIn p.arguments payment_methods) (← bookingPrice p)

/-- Flights other than the reservation's lead on the same trip and do not replace basic economy; another cabin needs that nothing was flown. -/
def changeFits : Pending → Read Bool := holds fun p => do
  let r ← reservation p
  checkCabin (← p.arguments.needSymbol cabin)
  if (← legs p.arguments) != (← legs r) then
    guard ((← r.needSymbol cabin) != basic_economy)
    checkRoute p (← legs p.arguments) r
  if (← p.arguments.needSymbol cabin) != (← r.needSymbol cabin) then guard !(← flown p r)

/-- The price of a flight of the new reservation: as it was if the flight and the cabin are kept, today's if not. -/
def newPrice (p : Pending) (r : Fields) (l : Leg) : Find Quantity := do
  let class_ ← p.arguments.needSymbol cabin
  let held := (← legs r).zip (← objectsIn r flights)
  match if class_ == (← r.needSymbol cabin) then held.lookup l else none with
  | some kept => kept.needQuantity price
  | none => fare p class_ (← size r) l

/-- The new flights have seats, and a card of the customer settles the difference. -/
def changePaid : Pending → Read Bool := holds fun p => do
  let r ← reservation p
  let before ← sum (← objectsIn r flights) (·.needQuantity price)
  let after ← sum (← legs p.arguments) (newPrice p r)
  settleByCard (← account p users) p.arguments ((← size r) * (after - before))

/-- The reservation has as many passengers as the call. -/
def passengersFit : Pending → Read Bool := holds fun p => do
  guard ((← size p.arguments) == (← size (← reservation p)))
  checkPassengers p.arguments

/-- Bags are only added, those beyond the allowance charged, to a card that covers them. -/
def baggageFits : Pending → Read Bool := holds fun p => do
  let r ← reservation p
  let bags ← p.arguments.needQuantity total_baggages
  let charged ← p.arguments.needQuantity nonfree_baggages
  let before ← r.needQuantity nonfree_baggages
  let needed ← extraBags (← account p users) (← r.needSymbol cabin) (← size r) bags
  guard ((← r.needQuantity total_baggages) ≤ bags)
  guard (needed ≤ charged ∧ (charged ≤ needed ∨ charged ≤ before))
  settleByCard (← account p users) p.arguments (bagPrice (if before < charged then charged - before else 0))

/-- The reservation was made in the 24 hours before now. -/
def bookedToday (p : Pending) (r : Fields) : Read Bool := do
  let age := Quantity.ofInt p.snapshot.time - (← r.needQuantity created_at)
  return decide (0 ≤ age ∧ age ≤ .ofInt (24 * 60 * 60 * 1000))

/-- The reservation is insured, or in business class. -/
def isProtected (r : Fields) : Read Bool :=
  return (← r.needSymbol insurance) == yes || (← r.needSymbol cabin) == business

/-- Nothing of the reservation was flown, and one of the grounds for cancellation holds. -/
def cancellable : Pending → Read Bool := holds fun p => do
  let r ← reservation p
  guard !(← flown p r)
  guard ((← bookedToday p r) || (← anyFlight p [sym!"cancelled"] r) || (← isProtected r))

def amountIs (amount : Nat) : Pending → Read Bool := holds fun p => do
  guard ((← p.arguments.needQuantity Airline.amount) == .ofInt amount)

def isMember : Pending → Read Bool := holds fun p => do
  guard ([silver, gold].contains (← (← account p users).needSymbol membership))

/-- The customer has a reservation with a flight that the airline cancelled, is entitled to compensation for it, and the amount is 100 for each
of its passengers. -/
def cancelledTripFits : Pending → Read Bool := holds fun p => do
  let all ← (← p.state).needFields reservations
  let fits := fun (id, _) => do
    let r ← row p reservations id
    let entitled := (← isMember p) || (← isProtected r)
    return isCustomer p (← r.needSymbol user_id) && entitled && (← anyFlight p [sym!"cancelled"] r) && (← amountIs (100 * (← size r)) p)
  guard (← anyOf fits all)

/-- A reservation with a late flight and that many passengers was changed or cancelled: an event that the adapter records, with what the
reservation was before. -/
def delayedTripChanged (size : Nat) (anyone : Bool) : Formula :=
  .happened s!"a delayed trip of {size} was changed or cancelled" fun e => do
    if e.kind != sym!"delayed_trip_changed" then return false
    return (← e.data.needQuantity passengers) == .ofInt size && (anyone || (← isProtected e.data))

/-- The amount is 50 for each of that many passengers of a delayed trip that was changed or cancelled in this conversation. -/
def delayedTripFits (size : Nat) : Formula :=
  .and (.now s!"the amount is {50 * size}" (amountIs (50 * size))) <| .within [.conversation, .principal] <| .or
    (.once .unbounded (delayedTripChanged size false))
    (.and (.now "the customer is a member" isMember) (.once .unbounded (delayedTripChanged size true)))

/-! ## Rules -/

/-- Flights and airports are no one's. "First, the agent must obtain the user id and reservation id." -/
def readPermit : Rule where
  id := "airline.read_permit"
  kind := .permit
  tools := .these [
    search_direct_flight, search_onestop_flight, list_all_airports, get_flight_status, get_user_details, get_reservation_details, calculate,
    transfer_to_human_agents]
  category := .policyProhibition
  hint := "This look-up is not permitted."
  sentence := "Flights may be searched for anyone; customers may be told of their own profile and reservations."
  condition := .top

/-- "You can help users book, modify, or cancel flight reservations. You also handle refunds and compensation." -/
def changePermit : Rule where
  id := "airline.change_permit"
  kind := .permit
  tools := .writing
  category := .policyProhibition
  hint := "This change is not permitted."
  sentence := "Reservations may be booked, changed and cancelled, and disrupted trips compensated."
  condition := .top

/-- "The agent must first obtain the user id from the user." "The user must provide their user id." -/
def identity : Rule where
  id := "airline.identity"
  kind := .require
  tools := .these (get_reservation_details :: userTools ++ reservationWrites)
  category := .temporalIncompatibility
  hint := "Ask the customer for their user id first."
  sentence := "The customer has given their user id before their data are read or changed."
  condition := authenticated

/-- "The user must provide their user id": what is done for a customer is done with that user's profile. -/
def userOwner : Rule where
  id := "airline.user_owner"
  kind := .require
  tools := .these userTools
  category := .authorizationFailure
  hint := "This profile belongs to someone else. Only the customer of this conversation can be helped."
  sentence := "Only the customer's own profile is read, booked for or compensated."
  condition := .now "the profile is the customer's" fun p => return isCustomer p (← p.arguments.needSymbol user_id)

/-- "First, the agent must obtain the user id and reservation id": of a reservation of that user. -/
def reservationOwner : Rule where
  id := "airline.reservation_owner"
  kind := .require
  tools := .these (get_reservation_details :: reservationWrites)
  category := .authorizationFailure
  hint := "This is no reservation of the customer. Only their own reservations can be handled; the profile lists them."
  sentence := "Only the customer's own reservations are read or changed."
  condition := .now "the reservation is the customer's" <| holds fun p => do
    guard (isCustomer p (← (← reservation p).needSymbol user_id))

/-- "The API does not check these for the agent, so the agent must make sure the rules apply before calling the API!" "The
API does not check that cancellation rules are met, so the agent must make sure the rules apply before calling the API!" "All payment methods must
already be in user profile." "Always confirms the facts before offering compensation." -/
def observed : Rule where
  id := "airline.observed"
  kind := .require
  tools := .writing
  category := .temporalIncompatibility
  hint := "First read the reservation (get_reservation_details), or the profile (get_user_details) for a booking or a certificate."
  sentence := "The agent has read what the rules depend on, the reservation or the profile, before it changes anything."
  condition := Shared.observed

/-- A cancelled reservation is over: it can't be changed, nor cancelled again. -/
def active : Rule where
  id := "airline.active"
  kind := .require
  tools := .these reservationWrites
  category := .stateIncompatibility
  hint := "This reservation is cancelled already."
  sentence := "Only a reservation that is not cancelled can be changed or cancelled."
  condition := .now "the reservation is active" <| holds fun p => do
    guard ((← (← reservation p).needSymbol status) != sym!"cancelled")

/-- "Cabin class must be the same across all the flights in a reservation." "Each reservation can have at most five passengers." "Each reservation
can use at most one travel certificate, at most one credit card, and at most three gift cards." "All payment methods must already be in user
profile." "The agent needs to collect the first name, last name, and date of birth for each passenger. All passengers must fly the same flights in
the same cabin." "If the booking user is a regular member ... 4 free checked bags for each business passenger. Each extra baggage is 50 dollars."
"The travel insurance is 30 dollars per passenger." "If the status is delayed or on time, the flight has not taken off, cannot be booked." "If the
status is flying, the flight has taken off but not landed, cannot be booked." -/
def booking : Rule where
  id := "airline.booking"
  kind := .require
  tools := .these [book_reservation]
  category := .policyProhibition
  hint := "Flights free and on the trip; 1 to 5 complete passengers; extra bags 50, insurance 30 each; at most 1 certificate, \
    1 credit card, 3 gift cards of the profile, paying the exact price."
  sentence := "A booking has available flights in one cabin, one to five passengers, the right number of charged bags, and payment methods of the \
    profile (at most one certificate, one credit card, three gift cards) that pay the price."
  condition := .and (.now "the booking fits" bookingFits) (.now "the booking is paid" bookingPaid)

/-- "Basic economy flights cannot be modified. Other reservations can be modified without changing the origin, destination, and trip type."
"Cabin cannot be changed if any flight in the reservation has already been flown. In other cases, all reservations, including basic economy, can
change cabin without changing the flights. Cabin class must remain the same across all the flights in the same reservation; changing cabin for just
one flight segment is not possible." "If the price after cabin change is higher than the original price, the user is required to pay for the
difference." "If the flights are changed, the user needs to provide a
single gift card or credit card for payment or refund method. The payment method must already be in user profile." -/
def flightsRule : Rule where
  id := "airline.flights"
  kind := .require
  tools := .these [update_reservation_flights]
  category := .policyProhibition
  hint := "Basic economy flights stay (only the cabin may change); so do route and trip type, and the cabin once flown; seats must \
    be free; pay by a card of the profile that covers it."
  sentence := "Flights other than basic economy may be changed for available ones on the same route, the cabin only while nothing was flown; a \
    credit card or gift card of the profile settles the difference."
  condition := .and (.now "the change fits" changeFits) (.now "the change is paid" changePaid)

/-- "The user can modify passengers but cannot modify the number of passengers. Even a human agent cannot modify the number of passengers." -/
def passengersRule : Rule where
  id := "airline.passengers"
  kind := .require
  tools := .these [update_reservation_passengers]
  category := .policyProhibition
  hint := "The number of passengers can't change; give each one's first_name, last_name and dob."
  sentence := "Passengers may be changed, their number may not."
  condition := .now "the number of passengers stays" passengersFit

/-- "The user can add but not remove checked bags." "Each extra baggage is 50 dollars." -/
def baggage : Rule where
  id := "airline.baggage"
  kind := .require
  tools := .these [update_reservation_baggages]
  category := .policyProhibition
  hint := "Bags can only be added; count those beyond the free allowance as non-free, and pay them by a card of the profile that \
    covers them."
  sentence := "Checked bags may be added, not removed; each beyond the allowance costs 50 dollars."
  condition := .now "the bags fit" baggageFits

/-- "If any portion of the flight has already been flown, the agent cannot help." "Otherwise, flight can be cancelled if any of the following is
true: the booking was made within the last 24 hrs; the flight is cancelled by airline; it is a business flight; the user has travel insurance and
the reason for cancellation is covered by insurance." The reason is in the conversation alone: insurance is what a call can be held to. -/
def cancel : Rule where
  id := "airline.cancel"
  kind := .require
  tools := .these [cancel_reservation]
  category := .policyProhibition
  hint := "Not once flown; else within 24 hours of booking, if the airline cancelled a flight, in business class, or insured (health \
    or weather)."
  sentence := "A reservation of which nothing was flown can be cancelled within 24 hours of booking, if the airline cancelled a flight, in business \
    class, or with insurance."
  condition := .now "the reservation may be cancelled" cancellable

/-- "Do not compensate if the user is regular member and has no travel insurance and flies (basic) economy." "Only compensate if the
user is a silver/gold member or has travel insurance or flies business." "If the user complains about cancelled flights in a reservation, the agent
can offer a certificate ... $100 times the number of passengers." "If the user complains about delayed flights in a reservation and wants to change
or cancel the reservation, the agent can offer a certificate ... $50 times the number of passengers." "Do not offer compensation for any other
reason than the ones listed above." -/
def compensation : Rule where
  id := "airline.compensation"
  kind := .require
  tools := .these [send_certificate]
  category := .policyProhibition
  hint := "Only for members, insured or business trips: 100 a passenger for a cancelled flight; 50 for a delayed one whose \
    reservation was changed or cancelled here."
  sentence := "An entitled customer receives 100 dollars a passenger for a cancelled flight, or 50 for a delayed one whose reservation was changed or \
    cancelled; nothing else is compensated."
  condition := .any (.now "a cancelled trip is compensated" cancelledTripFits :: [1, 2, 3, 4, 5].map delayedTripFits)

/-- "Before taking any actions that update the booking database ..., you must list the action details and obtain explicit user confirmation (yes)
to proceed." -/
def confirmation : Rule where
  id := "airline.confirmation"
  kind := .require
  tools := .writing
  category := .authorizationFailure
  hint := "List the details of this exact call to the customer and get their confirmation. A confirmation counts once, for these arguments and this state."
  sentence := "Before a change is made, its details are listed and the customer confirms them explicitly."
  condition := confirmed

/-! ## Sentences without a rule -/

/-- No tool call can break these; the reason stands with each. -/
def unenforced : List Unenforced := [
  { sentences := ["The current time is 2024-05-15 15:00:00 EST."], reason := "The snapshot has the trusted time." },
  { sentences := [
      "You should not provide any information, knowledge, or procedures not provided by the user or available tools, or give subjective \
        recommendations or comments."]
    reason := "It is about the text that the customer reads." },
  { sentences := [
      "You should only make one tool call at a time ... If you respond to the user, you should not make a tool call at the same time."]
    reason := "It is about the model's turn, which no call shows; that two calls on one reservation never overlap is host.no_overlap." },
  { sentences := ["You should deny user requests that are against this policy."]
    reason := "The rules deny the calls; the refusal itself is text." },
  { sentences := [
      "You should transfer the user to a human agent if and only if the request cannot be handled within the scope of your actions. To transfer, \
        first make a tool call to transfer_to_human_agents, and then send the message ... to the user."]
    reason := "Whether a request can be handled is in the conversation; a transfer changes nothing of the bookings." },
  { sections := ["Domain Basic"], reason := "Facts about the data; which statuses can be booked is in airline.booking and airline.flights." },
  { sentences := [
      "The agent should then ask for the trip type, origin, destination.",
      "The agent should ask if the user wants to buy the travel insurance.",
      "If the user doesn't know their reservation id, the agent should help locate it using available tools."]
    reason := "Questions to the customer; the call has the answers." },
  { sentences := ["The remaining amount of a travel certificate is not refundable."]
    reason := "The airline keeps these accounts; no argument of a call asks for a refund." },
  { sentences := ["Do not add checked bags that the user does not need."]
    reason := "What the customer needs is in the conversation; they confirm the number." },
  { sentences := [
      "The travel insurance ... enables full refund if the user needs to cancel the flight given health or weather reasons.",
      "The agent must also obtain the reason for cancellation (change of plan, airline cancelled flight, or other reasons)"]
    reason := "No argument of a call has the reason for a cancellation; that there is insurance is in airline.cancel." },
  { sentences := [
      "Some flight segments can be kept, but their prices will not be updated based on the current price.",
      "If the price after cabin change is lower than the original price, the user is should be refunded the difference.",
      "The refund will go to original payment methods within 5 to 7 business days."]
    reason := "The airline does this once the call is made." },
  { sentences := ["The user cannot add insurance after initial booking."], reason := "No tool adds insurance to a reservation." },
  { sentences := ["Do not proactively offer a compensation unless the user explicitly asks for one."]
    reason := "Who asked is in the conversation." }]

def policy : Policy where
  name := "airline"
  title := "Airline: reservations and compensation"
  contracts := contracts
  rules := [
    readPermit, changePermit, identity, userOwner, reservationOwner, observed, active, booking, flightsRule, passengersRule, baggage, cancel,
    compensation, confirmation, noOverlap]
  unenforced := unenforced

end LeanGuard.Airline
