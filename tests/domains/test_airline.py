"""The airline policy's rules, one by one, on an invented airline."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import Chat, Row, airline, flown, reservation

BOOKING: Row = {
    "user_id": "ada_1",
    "origin": "AAA",
    "destination": "CCC",
    "flight_type": "one_way",
    "cabin": "economy",
    "flights": [{"flight_number": "F1", "date": "2024-05-21"}, {"flight_number": "F2", "date": "2024-05-21"}],
    "passengers": [{"first_name": "Ada", "last_name": "Moss", "dob": "1980-02-29"}],
    "payment_methods": [{"payment_id": "card_1", "amount": 200}],
    "total_baggages": 1,
    "nonfree_baggages": 0,
    "insurance": "no",
}
KEPT = [{"flight_number": "F1", "date": "2024-05-20"}, {"flight_number": "F2", "date": "2024-05-20"}]
MOVED = [{"flight_number": "F1", "date": "2024-05-20"}, {"flight_number": "F2", "date": "2024-05-21"}]


def chat_on(engine: Any, membership: str = "regular", **reservations: Row) -> Chat:
    """Ada has given her user id; her profile and reservations were read."""
    chat = Chat(engine, airline(membership, **reservations)).login().ok("get_user_details", user_id="ada_1")
    for key in ("R1", *reservations):
        chat.ok("get_reservation_details", reservation_id=key)
    return chat


def pay(*parts: tuple[str, float]) -> Row:
    return {"payment_methods": [{"payment_id": key, "amount": amount} for key, amount in parts]}


def test_nothing_before_the_user_id(engine: Any) -> None:
    chat = Chat(engine, airline())
    chat.ok("search_direct_flight", origin="AAA", destination="BBB", date="2024-05-20").ok("list_all_airports")
    chat.ok("search_onestop_flight", origin="AAA", destination="CCC", date="2024-05-20")
    chat.ok("get_flight_status", flight_number="F1", date="2024-05-20").ok("calculate", expression="2*3")
    chat.ok("transfer_to_human_agents", summary="")
    chat.no("identity user_owner", "get_user_details", user_id="ada_1")
    chat.no("identity reservation_owner", "get_reservation_details", reservation_id="R1")
    chat.session.customer_says("My id is ADA_1.")  # another case, another id
    chat.no("identity user_owner", "get_user_details", user_id="ada_1")
    chat.login().ok("get_user_details", user_id="ada_1")


def test_only_the_own_data(engine: Any) -> None:
    chat = chat_on(engine)
    chat.session.customer_says("Now look at bob_2, please.")
    chat.no("user_owner", "get_user_details", user_id="bob_2")
    chat.no("reservation_owner", "get_reservation_details", reservation_id="B1")
    for key in ("r1", " R1", "NONE", ""):
        chat.no("reservation_owner", "get_reservation_details", reservation_id=key)
    chat.no("reservation_owner observed active cancel", "cancel_reservation", reservation_id="NONE")


def test_facts_are_read_first(engine: Any) -> None:
    chat = Chat(engine, airline(business=reservation(cabin="business"))).login()
    chat.no("observed", "cancel_reservation", reservation_id="business")
    chat.no("observed", "book_reservation", **BOOKING)
    chat.ok("get_reservation_details", reservation_id="business").ok("cancel_reservation", reservation_id="business")
    chat.no("active", "cancel_reservation", reservation_id="business")


@pytest.mark.parametrize(
    "change",
    [
        {"cabin": "first"},
        {"insurance": "maybe"},
        {"flight_type": "round_trip"},
        {"destination": "BBB"},
        {"flights": list(reversed(BOOKING["flights"]))},
        {"flights": []},
        {"flights": [{"flight_number": "F1", "date": "2024-05-15"}, BOOKING["flights"][1]]},  # delayed: can't be booked
        {"flights": [{"flight_number": "F1", "date": "2024-06-31"}, BOOKING["flights"][1]]},  # no such date
        {"flights": [{"flight_number": "f1", "date": "2024-05-21"}, BOOKING["flights"][1]]},
        {"passengers": []},
        {"passengers": BOOKING["passengers"] * 6, **pay(("card_1", 1200)), "total_baggages": 6},
        {"passengers": [{"first_name": "Ada", "last_name": "Moss"}]},
        {"passengers": [{"first_name": "Ada", "last_name": "", "dob": "1980-02-29"}]},
        {"total_baggages": -1},
        {"total_baggages": 2},  # one of them is to be paid
        {"nonfree_baggages": 1, **pay(("card_1", 250))},  # the one is free
        pay(("card_1", 199)),
        pay(("card_2", 200)),  # someone else's
        pay(("card_1", 100), ("card_9", 100)),
        pay(("cert_1", 100), ("cert_9", 100)),
        pay(("card_1", 100), ("card_1", 100)),
        pay(("gift_1", 61), ("card_1", 139)),
        pay(("card_1", 260), ("gift_1", -60)),
        pay(),
    ],
)
def test_a_booking_must_fit(engine: Any, change: Row) -> None:
    chat_on(engine).no("booking", "book_reservation", **{**BOOKING, **change})


@pytest.mark.parametrize(
    "change",
    [
        {},
        pay(("cert_1", 140), ("gift_1", 60)),
        {"total_baggages": 3, "nonfree_baggages": 2, **pay(("card_1", 300))},
        {"insurance": "yes", **pay(("card_1", 230))},
        {"cabin": "business", "total_baggages": 2, **pay(("card_1", 600))},
        {"passengers": BOOKING["passengers"] * 5, **pay(("card_1", 1000)), "total_baggages": 5},
        {
            "flight_type": "round_trip",
            "flights": [*BOOKING["flights"], {"flight_number": "F3", "date": "2024-05-24"}],
            **pay(("card_1", 300)),
        },
    ],
)
def test_a_good_booking(engine: Any, change: Row) -> None:
    chat_on(engine).ok("book_reservation", **{**BOOKING, **change})


def test_free_bags_by_membership(engine: Any) -> None:
    for membership, free in (("regular", 1), ("silver", 2), ("gold", 3)):
        chat = chat_on(engine, membership)
        more = {"total_baggages": free + 1, "nonfree_baggages": 0}
        chat.no("booking", "book_reservation", **{**BOOKING, **more})
        chat.ok("book_reservation", **{**BOOKING, "total_baggages": free})


def test_flights_change_on_the_same_trip(engine: Any) -> None:
    chat = chat_on(engine, basic=reservation(cabin="basic_economy"))
    call = {"reservation_id": "R1", "cabin": "economy", "flights": MOVED, "payment_id": "card_1"}
    chat.no("flights", "update_reservation_flights", **{**call, "flights": MOVED[:1]})
    chat.no("flights", "update_reservation_flights", **{**call, "payment_id": "cert_1"})
    chat.no("flights", "update_reservation_flights", **{**call, "payment_id": "card_2"})
    chat.no("flights", "update_reservation_flights", **{**call, "cabin": "ECONOMY"})
    chat.no("flights", "update_reservation_flights", **{**call, "cabin": "business", "payment_id": "gift_1"})
    chat.no("flights", "update_reservation_flights", **{**call, "reservation_id": "basic", "cabin": "basic_economy"})
    chat.no("flights", "update_reservation_flights", **{**call, "reservation_id": "basic"})
    chat.ok("update_reservation_flights", **{**call, "reservation_id": "basic", "flights": KEPT})  # the cabin alone
    chat.ok("update_reservation_flights", **{**call, "payment_id": "gift_1"})  # 20 more


def test_no_other_cabin_once_flown(engine: Any) -> None:
    legs = [*flown("10"), {**reservation()["flights"][1]}]
    chat = chat_on(engine, begun=reservation(flights=legs))
    new = [{"flight_number": leg["flight_number"], "date": leg["date"]} for leg in legs]
    call = {"reservation_id": "begun", "flights": new, "payment_id": "card_1"}
    chat.no("flights", "update_reservation_flights", cabin="business", **call)
    rest = {**call, "flights": [new[0], MOVED[1]]}
    chat.ok("update_reservation_flights", cabin="economy", **rest)  # the flight to come may change


def test_seats_must_be_free(engine: Any) -> None:
    two = reservation(passengers=BOOKING["passengers"] * 2)
    chat = chat_on(engine, two=two)
    call = {"reservation_id": "two", "flights": KEPT, "payment_id": "card_1"}
    chat.no("flights", "update_reservation_flights", cabin="business", **call)  # one seat is left
    chat.ok("update_reservation_flights", cabin="basic_economy", **call)


def test_the_number_of_passengers_stays(engine: Any) -> None:
    chat, person = chat_on(engine), {"first_name": "Eva", "last_name": "Moss", "dob": "2000-01-01"}
    for people in ([], [person, person], [{"first_name": "Eva"}]):
        chat.no("passengers", "update_reservation_passengers", reservation_id="R1", passengers=people)
    chat.ok("update_reservation_passengers", reservation_id="R1", passengers=[person])


def test_bags_are_only_added(engine: Any) -> None:
    chat = chat_on(engine)
    for bags, charged, method in (
        (0, 0, "card_1"),
        (2, 0, "card_1"),
        (2, 2, "card_1"),
        (2, 1, "cert_1"),
        (3, 2, "gift_1"),
    ):
        call = {"total_baggages": bags, "nonfree_baggages": charged, "payment_id": method}
        chat.no("baggage", "update_reservation_baggages", reservation_id="R1", **call)
    call = {"total_baggages": 2, "nonfree_baggages": 1, "payment_id": "gift_1"}
    chat.ok("update_reservation_baggages", reservation_id="R1", **call)


@pytest.mark.parametrize(
    ("change", "admitted"),
    [
        ({}, False),
        ({"cabin": "business"}, True),
        ({"insurance": "yes"}, True),
        ({"created_at": "2024-05-14T15:00:00"}, True),  # 24 hours ago
        ({"created_at": "2024-05-14T14:59:59"}, False),
        ({"created_at": "2024-05-15T15:00:01"}, False),  # not yet
        ({"created_at": "2024-05-14T20:00:00+00:00"}, True),  # the first, in another zone
        ({"created_at": "2023-02-28T15:00:00"}, False),
        ({"flights": flown("12")}, True),  # the airline cancelled it
        ({"flights": flown("12") + flown("10"), "insurance": "yes"}, False),
        ({"flights": flown("14"), "cabin": "business"}, False),  # in the air
        ({"flights": flown("15"), "cabin": "business"}, True),  # late, but on the ground
        ({"flights": flown("15")}, False),
    ],
)
def test_when_a_reservation_can_be_cancelled(engine: Any, change: Row, admitted: bool) -> None:
    chat = chat_on(engine, X=reservation(**change))
    if admitted:
        chat.ok("cancel_reservation", reservation_id="X")
    else:
        chat.no("cancel", "cancel_reservation", reservation_id="X")


def test_cancelled_flights_are_compensated(engine: Any) -> None:
    two = reservation(flights=flown("12"), passengers=BOOKING["passengers"] * 2)
    chat = chat_on(engine, "silver", X=two)
    for amount in (100, 201, 0, -200, 2_000_000):
        chat.no("compensation", "send_certificate", user_id="ada_1", amount=amount)
    chat.no("host.arguments", "send_certificate", user_id="ada_1", amount=199.5)
    chat.ok("send_certificate", user_id="ada_1", amount=200)
    chat_on(engine, X=two).no("compensation", "send_certificate", user_id="ada_1", amount=200)
    chat_on(engine, X={**two, "insurance": "yes"}).ok("send_certificate", user_id="ada_1", amount=200)
    chat_on(engine, X={**two, "cabin": "business"}).ok("send_certificate", user_id="ada_1", amount=200)


def test_late_flights_are_compensated_once_changed(engine: Any) -> None:
    late = reservation(flights=flown("15"), insurance="yes")
    chat = chat_on(engine, X=late)
    chat.no("compensation", "send_certificate", user_id="ada_1", amount=50)
    chat.ok("cancel_reservation", reservation_id="X")
    chat.no("compensation", "send_certificate", user_id="ada_1", amount=100)
    chat.ok("send_certificate", user_id="ada_1", amount=50)
    plain = chat_on(engine, X=reservation(flights=flown("15"), created_at="2024-05-15T14:00:00"))
    plain.ok("cancel_reservation", reservation_id="X")
    plain.no("compensation", "send_certificate", user_id="ada_1", amount=50)


def test_changes_are_confirmed(engine: Any) -> None:
    chat = chat_on(engine)
    chat.no("confirmation", "book_reservation", confirm=False, **BOOKING)
    chat.decide("book_reservation", True, BOOKING)
    chat.no("confirmation", "book_reservation", confirm=False, **{**BOOKING, **pay(("card_9", 200))})
    chat.ok("book_reservation", confirm=False, **BOOKING)
    chat.no("confirmation", "book_reservation", confirm=False, **BOOKING)


def test_nothing_that_is_missing_admits(engine: Any) -> None:
    chat = chat_on(engine)
    del chat.session.backend.need("users", "ada_1", "")["payment_methods"]["card_1"]["source"]
    chat.no("!booking", "book_reservation", **BOOKING)
    legs = [{"flight_number": "F1"}, {"date": "2024-05-21"}]
    chat.no("!booking", "book_reservation", **{**BOOKING, "flights": legs})
