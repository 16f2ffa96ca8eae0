"""Calls with bad identifiers, amounts and dates, and episode files that are damaged: each is denied, or told with its
place, and nothing of it is carried out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded import call, episode
from test_airline import BOOKING, KEPT, MOVED, pay
from worlds import Chat as Recording
from worlds import Row, airline, line, reservation, retail, telecom

from leanguard_host.adapters.tau2.episodes import Episode, Unreadable, read_episodes
from leanguard_host.models import Call, Decision
from leanguard_host.replay import replay

WRONG = "host.arguments"
ADDRESS = {"address1": "2 Oak", "address2": "", "city": "Ely", "state": "ME", "country": "USA", "zip": "04403"}
SWAP = {"item_ids": ["lamp-a"], "new_item_ids": ["lamp-b"], "payment_method_id": "card_1"}


class Chat(Recording):
    """A conversation that is not kept for the tests of planted faults: these have enough to decide again."""

    def _record(self, call: Call, decision: Decision) -> None:
        pass


@pytest.fixture(scope="module")
def chats(engine: Any) -> dict[str, Chat]:
    """A conversation in each domain in which Ada is known and everything of hers was read. What is denied in it changes
    nothing, so that the tests can share it."""
    store = Chat(engine, retail()).login()
    for order in ("#P1", "#D1", "#D2"):
        store.ok("get_order_details", order_id=order)
    flights = Chat(engine, airline()).login().ok("get_user_details", user_id="ada_1")
    flights.ok("get_reservation_details", reservation_id="R1")
    lines = Chat(engine, telecom(L2=line("Suspended"))).login().ok("get_bills_for_customer", customer_id="C1")
    for key in ("L1", "L2"):
        lines.ok("get_details_by_id", id=key)
    return {"retail": store, "airline": flights, "telecom": lines}


def denied(chats: dict[str, Chat], domain: str, rules: str, tool: str, arguments: Row) -> None:
    """The call is denied by these rules, and what the backend has is as before."""
    chat = chats[domain]
    backend = chat.session.backend
    if tool in backend.writes and arguments.get(backend.resources[tool][1]) == "":  # what has no id can't be confirmed
        rules += {"telecom": " refuel_confirm" if tool == "refuel_data" else ""}.get(domain, " confirmation")
    before, events = json.dumps(backend.data, default=str), len(chat.session.journal)
    chat.no(rules, tool, **arguments)
    del chat.session.journal[events:]
    assert json.dumps(backend.data, default=str) == before


UNKNOWN = ["nobody", "ADA_1", " ada_1", "ada_1 ", "ada_1\n", "ada_1\u0000", "", "\u0430da_1"]  # the last is Cyrillic
"""Ids of users that there are not."""


@pytest.mark.parametrize("user", UNKNOWN)
def test_users_that_there_are_not(chats: dict[str, Chat], user: str) -> None:
    denied(chats, "retail", "profile_owner", "get_user_details", {"user_id": user})
    denied(chats, "retail", "profile_owner", "modify_user_address", {"user_id": user, **ADDRESS})
    denied(chats, "airline", "user_owner", "get_user_details", {"user_id": user})
    denied(chats, "airline", "user_owner observed", "book_reservation", {**BOOKING, "user_id": user})
    denied(chats, "airline", "user_owner observed compensation", "send_certificate", {"user_id": user, "amount": 100})


@pytest.mark.parametrize("order", ["#X1", "#p1", "#P1 ", " #P1", "P1", "##P1", "", "#P1\u0000", "\uff03P1"])
def test_orders_that_there_are_not(chats: dict[str, Chat], order: str) -> None:
    denied(chats, "retail", "order_owner", "get_order_details", {"order_id": order})
    rules = "order_owner status_observed pending"
    denied(chats, "retail", rules, "cancel_pending_order", {"order_id": order, "reason": "no longer needed"})
    rules = "order_owner status_observed delivered exchange_items"
    denied(chats, "retail", rules, "exchange_delivered_order_items", {"order_id": order, **SWAP})


@pytest.mark.parametrize("key", ["X9", "r1", "R1 ", " R1", "", "R1\t"])
def test_reservations_that_there_are_not(chats: dict[str, Chat], key: str) -> None:
    denied(chats, "airline", "reservation_owner", "get_reservation_details", {"reservation_id": key})
    rules = "reservation_owner observed active cancel"
    denied(chats, "airline", rules, "cancel_reservation", {"reservation_id": key})
    rules = "reservation_owner observed active flights"
    change = {"reservation_id": key, "cabin": "economy", "flights": MOVED, "payment_id": "card_1"}
    denied(chats, "airline", rules, "update_reservation_flights", change)


@pytest.mark.parametrize("number", ["F9", "f1", "F1 ", " F1", ""])
@pytest.mark.parametrize("day", ["2024-05-21"])
def test_flights_that_there_are_not(chats: dict[str, Chat], number: str, day: str) -> None:
    legs = [{"flight_number": number, "date": day}, BOOKING["flights"][1]]
    denied(chats, "airline", "booking", "book_reservation", {**BOOKING, "flights": legs})
    change = {"reservation_id": "R1", "cabin": "economy", "flights": legs, "payment_id": "card_1"}
    denied(chats, "airline", "flights", "update_reservation_flights", change)


@pytest.mark.parametrize("key", ["L7", "l1", "L1 ", " L1", ""])
def test_lines_that_there_are_not(chats: dict[str, Chat], key: str) -> None:
    own = {"customer_id": "C1", "line_id": key}
    denied(chats, "telecom", "line_owner", "get_data_usage", own)
    denied(chats, "telecom", "line_owner suspend", "suspend_line", {**own, "reason": "as agreed"})
    denied(chats, "telecom", "line_owner resume", "resume_line", own)
    denied(chats, "telecom", "line_owner roaming", "enable_roaming", own)
    denied(chats, "telecom", "line_owner refuel", "refuel_data", {**own, "gb_amount": 1})


@pytest.mark.parametrize("key", ["B7", "b1", "B1 ", " B1", "", "B9"])
def test_bills_that_there_are_not(chats: dict[str, Chat], key: str) -> None:
    rules = "bill_observed payment_request"
    denied(chats, "telecom", rules, "send_payment_request", {"customer_id": "C1", "bill_id": key})
    denied(chats, "telecom", "detail_owner", "get_details_by_id", {"id": key})


@pytest.mark.parametrize("value", [None, 7, True, ["#P1"], {"id": "#P1"}])
def test_ids_of_another_type(chats: dict[str, Chat], value: object) -> None:
    denied(chats, "retail", WRONG, "get_order_details", {"order_id": value})
    denied(chats, "airline", WRONG, "get_reservation_details", {"reservation_id": value})
    denied(chats, "telecom", WRONG, "get_details_by_id", {"id": value})


# ---- amounts ----


@pytest.mark.parametrize("amount", [-1, 0, 2.000001, 3, 10**15, -(10**15), 1_000_000_000.5])
def test_amounts_of_data(chats: dict[str, Chat], amount: float) -> None:
    denied(chats, "telecom", "refuel", "refuel_data", {"customer_id": "C1", "line_id": "L1", "gb_amount": amount})


@pytest.mark.parametrize("amount", ["1", True, None, [1], {}])
def test_amounts_that_are_no_numbers(chats: dict[str, Chat], amount: object) -> None:
    denied(chats, "telecom", WRONG, "refuel_data", {"customer_id": "C1", "line_id": "L1", "gb_amount": amount})
    denied(chats, "airline", WRONG, "send_certificate", {"user_id": "ada_1", "amount": amount})
    denied(chats, "airline", WRONG, "book_reservation", {**BOOKING, "total_baggages": amount})


@pytest.mark.parametrize("amount", [0, -100, 10**15, -(10**15)])
def test_amounts_of_certificates(chats: dict[str, Chat], amount: int) -> None:
    denied(chats, "airline", "compensation", "send_certificate", {"user_id": "ada_1", "amount": amount})


@pytest.mark.parametrize(
    ("total", "charged"), [(-1, 0), (1, -1), (10**15, 0), (10**15, 10**15 - 1), (1, 1), (0, 1), (2, 0)]
)
def test_numbers_of_bags(chats: dict[str, Chat], total: int, charged: int) -> None:
    bags = {"total_baggages": total, "nonfree_baggages": charged}
    denied(chats, "airline", "booking", "book_reservation", {**BOOKING, **bags})
    change = {"reservation_id": "R1", **bags, "payment_id": "gift_1"}
    denied(chats, "airline", "baggage", "update_reservation_baggages", change)


@pytest.mark.parametrize("amounts", [(1.5,), (0.000001,)])
def test_numbers_of_bags_are_whole(chats: dict[str, Chat], amounts: tuple[float]) -> None:
    for name in ("total_baggages", "nonfree_baggages"):
        denied(chats, "airline", WRONG, "book_reservation", {**BOOKING, name: amounts[0]})


@pytest.mark.parametrize(
    "parts",
    [
        [("card_1", 0)],
        [("card_1", -200)],
        [("card_1", 199.999999)],
        [("card_1", 200.000001)],
        [("card_1", 10**15)],
        [("card_1", 10**15), ("gift_1", -(10**15) + 200)],
        [("card_1", 200), ("card_1", 0)],
        [("card_1", 200), ("card_1", 200)],
        [("CARD_1", 200)],
        [("card_1 ", 200)],
        [("card_2", 200)],  # Bob's
        [("", 200)],
    ],
)
def test_payments(chats: dict[str, Chat], parts: list[tuple[str, float]]) -> None:
    denied(chats, "airline", "booking", "book_reservation", {**BOOKING, **pay(*parts)})


@pytest.mark.parametrize("method", ["card_2", "CARD_1", "card_1 ", " card_1", "card_1\u0000", ""])
def test_someone_elses_payment_method(chats: dict[str, Chat], method: str) -> None:
    swap = {**SWAP, "payment_method_id": method}
    denied(chats, "retail", "payment", "exchange_delivered_order_items", {"order_id": "#D1", **swap})
    denied(chats, "retail", "payment", "modify_pending_order_items", {"order_id": "#P1", **swap})
    payment = {"order_id": "#P1", "payment_method_id": method}
    denied(chats, "retail", "payment", "modify_pending_order_payment", payment)
    back = {"order_id": "#D1", "item_ids": ["lamp-a"], "payment_method_id": method}
    denied(chats, "retail", "return", "return_delivered_order_items", back)
    change = {"reservation_id": "R1", "cabin": "economy", "flights": MOVED, "payment_id": method}
    denied(chats, "airline", "flights", "update_reservation_flights", change)
    bags = {"reservation_id": "R1", "total_baggages": 2, "nonfree_baggages": 1, "payment_id": method}
    denied(chats, "airline", "baggage", "update_reservation_baggages", bags)


# ---- what is named twice ----


def test_items_named_more_often_than_they_are_there(chats: dict[str, Chat]) -> None:
    for items in (["mug-a", "mug-a"], ["lamp-a"] * 3, ["mug-a", "lamp-a", "mug-a"]):
        back = {"order_id": "#D1", "item_ids": items, "payment_method_id": "card_1"}
        denied(chats, "retail", "return", "return_delivered_order_items", back)
        new = ["mug-b" if item == "mug-a" else "lamp-b" for item in items]
        swap = {"order_id": "#D1", "item_ids": items, "new_item_ids": new, "payment_method_id": "card_1"}
        denied(chats, "retail", "exchange_items", "exchange_delivered_order_items", swap)


def test_a_flight_named_twice(chats: dict[str, Chat]) -> None:
    first, second = BOOKING["flights"]
    for legs in ([first, first, second], [first, second, second], [first, second, first, second]):
        denied(chats, "airline", "booking", "book_reservation", {**BOOKING, "flights": legs})
    legs = [KEPT[0], KEPT[0], KEPT[1]]
    change = {"reservation_id": "R1", "cabin": "economy", "flights": legs, "payment_id": "card_1"}
    denied(chats, "airline", "flights", "update_reservation_flights", change)


# ---- dates ----


@pytest.mark.parametrize(
    "day",
    [
        "2024-05-15",  # today; late
        "2024-05-14",  # in the air
        "2024-05-10",
        "2024-05-28",  # not on sale
        "2023-02-29",  # there was none
        "2024-02-29",
        "2024-02-30",
        "2024-5-21",
        "2024-05-21 ",
        "2024-05-21T00:00:00",
        "2024-05-21T00:00:00Z",
        "21/05/2024",
        "tomorrow",
        "",
    ],
)
def test_days_on_which_no_flight_can_be_booked(chats: dict[str, Chat], day: str) -> None:
    legs = [{"flight_number": "F1", "date": day}, BOOKING["flights"][1]]
    denied(chats, "airline", "booking", "book_reservation", {**BOOKING, "flights": legs})


def leaving(status: str) -> Any:
    """An airline whose flight F1 of today has that status, and Ada's reservations on it."""
    legs = [{"flight_number": "F1", "date": "2024-05-15", "price": 90, "origin": "AAA", "destination": "BBB"}]
    today = airline(today=reservation(flights=legs, destination="BBB", cabin="business"))
    seats = {"status": "available", "available_seats": {"economy": 5, "business": 5}, "prices": {"economy": 100}}
    today.data["flights"]["F1"]["dates"]["2024-05-15"] = seats if status == "available" else {"status": status}
    return today


@pytest.mark.parametrize("status", ["available", "on time", "delayed", "flying", "landed", "cancelled"])
def test_the_day_of_departure(engine: Any, status: str) -> None:
    chat = Chat(engine, leaving(status)).login().ok("get_user_details", user_id="ada_1")
    chat.ok("get_reservation_details", reservation_id="today")
    legs = [{"flight_number": "F1", "date": "2024-05-15"}]
    booking = {**BOOKING, "destination": "BBB", "flights": legs, **pay(("card_1", 100))}
    if status == "available":  # it has not taken off
        chat.ok("book_reservation", **booking)
    else:
        chat.no("booking", "book_reservation", **booking)
    if status in ("flying", "landed"):
        chat.no("cancel", "cancel_reservation", reservation_id="today")
    else:
        chat.ok("cancel_reservation", reservation_id="today")


@pytest.mark.parametrize(
    ("created", "admitted"),
    [
        ("2024-05-14T15:00:00", True),  # 24 hours
        ("2024-05-14T14:59:59.999", False),
        ("2024-05-14T15:00:00.001", True),
        ("2024-05-15T15:00:00", True),  # now
        ("2024-05-15T15:00:00.001", False),
        ("2024-05-14T20:00:00Z", True),  # the same moment in other zones
        ("2024-05-14T19:59:59Z", False),
        ("2024-05-15T01:30:00+05:30", True),
        ("2024-05-15T01:29:59+05:30", False),
        ("2024-05-14T15:00:00-04:00", False),  # an hour earlier than in winter time
        ("2024-05-14T16:00:00-04:00", True),
        ("2024-02-29T15:00:00", False),
        ("1970-01-01T00:00:00Z", False),
        ("0001-01-01T00:00:00Z", False),
        ("9999-12-31T23:59:59Z", False),
    ],
)
def test_24_hours(engine: Any, created: str, admitted: bool) -> None:
    chat = Chat(engine, airline(X=reservation(created_at=created))).login()
    chat.ok("get_reservation_details", reservation_id="X")
    if admitted:
        chat.ok("cancel_reservation", reservation_id="X")
    else:
        chat.no("cancel", "cancel_reservation", reservation_id="X")


@pytest.mark.parametrize(
    ("end", "admitted"),
    [("2025-02-24", False), ("2025-02-25", True), ("2025-02-26", True), ("2024-02-29", False), ("2028-02-29", True)],
)
def test_a_contract_ends_with_its_day(engine: Any, end: str, admitted: bool) -> None:
    chat = Chat(engine, telecom("Paid", L2=line("Suspended", end))).login()
    if admitted:
        chat.ok("resume_line", customer_id="C1", line_id="L2")
    else:
        chat.no("resume", "resume_line", customer_id="C1", line_id="L2")


# ---- episode files ----


def run(engine: Any, folder: Path, content: bytes, name: str = "episodes.jsonl") -> dict[str, Any]:
    """Replay a file of that content."""
    file = folder / name
    file.write_bytes(content)
    return replay(file, "airline", folder, [engine], assume_consent=True).as_json()


def parts() -> list[dict[str, Any]]:
    """A read and a change, as they are recorded."""
    return [*call("get_reservation_details", reservation_id="R1"), *call("get_user_details", user_id="ada_1")]


def test_a_file_cut_anywhere(tmp_path: Path) -> None:
    whole = (episode(parts()) + "\n" + episode([{"role": "user", "content": "Grüße 👋"}, *parts()])).encode()
    first = whole.index(b"\n")
    file = tmp_path / "episodes.jsonl"
    for end in range(len(whole)):
        file.write_bytes(whole[:end])
        found = list(read_episodes(file))
        good = [item for item in found if isinstance(item, Episode)]
        assert len(good) == (end >= first)
        bad = [item for item in found if isinstance(item, Unreadable)]
        assert len(bad) == (end > 0 and end not in (first, first + 1))
        assert all(item.place == f"episodes.jsonl, line {1 if end < first else 2}" for item in bad)
        assert all("is it cut?" in item.reason for item in bad)


@pytest.mark.parametrize("name", ["results.json", "list.json"])
def test_a_json_file_cut_in_the_middle_has_no_episodes(engine: Any, folder: Path, name: str) -> None:
    message = {"role": "assistant", "tool_calls": [{"id": "1", "name": "list_all_airports", "arguments": {}}]}
    results: dict[str, Any] = {"simulations": [{"task_id": "1", "trial": 0, "messages": [message]}]}
    whole = json.dumps(results if name == "results.json" else [json.loads(episode(parts()))]).encode()
    assert run(engine, folder, whole, name)["calls"] > 0
    cut = run(engine, folder, whole[: len(whole) // 2], name)
    assert (cut["episodes"], cut["calls"]) == (0, 0)
    assert [item["place"] for item in cut["unreadable"]] == [name]


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe{}",
        b"\0\0\0\0",
        b'{"traj": 5}',
        b'{"traj": [1, "x", null, {"role": 5}, {"role": "assistant", "tool_calls": "x"}]}',
        b'{"traj": [{"role": "assistant", "tool_calls": [{"function": "x"}, {"function": {"name": []}}, 7]}]}',
        b'{"messages": [{"role": "assistant", "tool_calls": [{}]}]}',
        b'{"evaluation_criteria": {"actions": [{"name": 5, "arguments": []}, 3]}, "initial_state": "x"}',
        b'{"evaluation_criteria": {"actions": null}, "user_scenario": [], "initial_state": {}}',
        b'{"evaluation_criteria": {"actions": []}, "initial_state": {"initialization_actions": 1}}',
        b'{"simulations": [5, {"messages": {}}, {"task_id": [], "messages": []}], "tasks": [{"id": 1}, 2]}',
        b"[" * 5000,
    ],
)
def test_odd_lines_deny_or_are_told(engine: Any, folder: Path, line: bytes) -> None:
    good = episode(call("get_reservation_details", reservation_id="R1")).encode()
    found = run(engine, folder, line + b"\n" + good)
    assert found["admitted"] == 1  # that of the good line
    assert found["denied"] == found["calls"] - 1
    assert found["forbidden_executed"] == 0
    assert found["unreadable"] or found["episodes"] == 2
    assert all(decided["category"] == "invalid invocation" for decided in found["decisions"][:-1])


def test_an_empty_id_of_a_change_is_denied_and_the_rest_goes_on(engine: Any, folder: Path) -> None:
    made = [call("cancel_reservation", reservation_id=""), call("get_reservation_details", reservation_id="R1")]
    found = run(engine, folder, episode(*made).encode())
    assert [decided["verdict"] for decided in found["decisions"]] == ["deny", "admit"]


@pytest.mark.parametrize(
    "tool", ["delete_database", "get_User_details", "get_user_details ", "tool_get_user_details", "run"]
)
def test_an_unknown_tool_is_denied_and_the_rest_goes_on(engine: Any, folder: Path, tool: str) -> None:
    read = call("get_reservation_details", reservation_id="R1")
    found = run(engine, folder, episode(read, call(tool, user_id="ada_1"), read).encode())
    assert [decided["verdict"] for decided in found["decisions"]] == ["admit", "deny", "admit"]
    assert found["by_rule"] == {"host.unknown_tool": 1}
    assert found["by_category"] == {"invalid invocation": 1}
    assert not found["decisions"][1]["changed"]


@pytest.mark.parametrize("text", ["1e400", "NaN", "-Infinity", "1" + "0" * 16, "1e16", "0.0000001", "1" * 5000])
def test_numbers_that_cannot_be_carried_exactly(engine: Any, folder: Path, text: str) -> None:
    made = call("send_certificate", user_id="ada_1")
    made[0]["tool_calls"][0]["function"]["arguments"] = f'{{"user_id": "ada_1", "amount": {text}}}'
    found = run(engine, folder, episode(made).encode())
    assert found["by_category"] == {"invalid invocation": 1}
    assert not found["decisions"][0]["executed"]


def test_results_that_contradict_the_database_change_nothing_that_is_decided(engine: Any, folder: Path) -> None:
    """What a result says of the customer, the cabin or the date is not believed; only whether it failed."""
    lie = json.dumps(
        {"reservation_id": "R1", "cabin": "business", "user_id": "bob_2", "created_at": "2024-05-15T14:00:00"}
    )
    read, cancel = (
        call("get_reservation_details", lie, reservation_id="R1"),
        call("cancel_reservation", reservation_id="R1"),
    )
    found = run(engine, folder, episode(read, cancel).encode())
    assert found["forbidden_executed_by_rule"] == {"airline.cancel": 1}
    failed = call("cancel_reservation", "Error: it is gone", reservation_id="business")
    seen = call("get_reservation_details", reservation_id="business")
    again = call("cancel_reservation", reservation_id="business")
    found = run(engine, folder, episode(seen, failed, again, again).encode())
    verdicts = [(decided["verdict"], decided["executed"], decided["contradicts"]) for decided in found["decisions"]]
    assert verdicts == [
        ("admit", True, False),
        ("admit", False, True),  # the recording says that it failed: here it would not have
        ("admit", True, False),
        ("deny", True, False),  # cancelled already, as the database has it
    ]
