"""The telecom policy's rules, one by one, on an invented operator."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import Chat, line, telecom

L1 = {"customer_id": "C1", "line_id": "L1"}


def test_the_customer_is_identified_first(engine: Any) -> None:
    chat = Chat(engine, telecom())
    chat.no("identity detail_owner", "get_details_by_id", id="L1")
    chat.no("identity customer", "get_bills_for_customer", customer_id="C1")
    chat.no("identity customer line_owner", "get_data_usage", **L1)
    chat.ok("transfer_to_human_agents", summary="help").ok("get_customer_by_id", customer_id="C1")
    chat.ok("get_bills_for_customer", customer_id="C1", limit=3).ok("get_data_usage", **L1)


def test_the_customer_stays_the_same(engine: Any) -> None:
    chat = Chat(engine, telecom()).login()
    chat.no("stable_identity", "get_customer_by_id", customer_id="C2")
    chat.no("stable_identity", "get_customer_by_phone", phone_number="555-000-0009")
    chat.no("stable_identity", "get_customer_by_name", full_name="bob moss", dob="1980-02-29")
    chat.ok("get_customer_by_name", full_name="ADA MOSS", dob="1980-02-29").ok("get_customer_by_id", customer_id="C1")
    for account in ("C2", "c1", " C1", ""):
        chat.no("customer", "get_bills_for_customer", customer_id=account)
    chat.no("line_owner", "get_data_usage", customer_id="C1", line_id="L9")
    chat.no("customer line_owner roaming", "enable_roaming", customer_id="C2", line_id="L9")


def test_details_of_the_own_things_and_of_plans(engine: Any) -> None:
    chat = Chat(engine, telecom()).login()
    for key in ("C1", "L1", "B1", "D1", "P1"):
        chat.ok("get_details_by_id", id=key)
    for key in ("C2", "L9", "B9", "D9", "P2", "l1", "L1 ", ""):
        chat.no("detail_owner", "get_details_by_id", id=key)


def test_payment_is_asked_for_an_overdue_bill_that_was_read(engine: Any) -> None:
    call = {"customer_id": "C1", "bill_id": "B1"}
    chat = Chat(engine, telecom()).login()
    chat.no("bill_observed", "send_payment_request", **call)
    chat.ok("get_bills_for_customer", customer_id="C1")
    chat.no("payment_request", "send_payment_request", customer_id="C1", bill_id="B2")
    chat.no("bill_observed payment_request", "send_payment_request", customer_id="C1", bill_id="B9")
    chat.no("bill_observed payment_request", "send_payment_request", customer_id="C1", bill_id="B7")
    chat.ok("send_payment_request", **call)
    chat.no("payment_request", "send_payment_request", **call)
    one = Chat(engine, telecom()).login().ok("get_details_by_id", id="B1")
    one.ok("send_payment_request", **call)


@pytest.mark.parametrize(
    ("bill", "end", "status", "admitted"),
    [
        ("Overdue", "2026-01-01", "Active", True),
        ("Paid", "2026-01-01", "Active", False),
        ("Paid", "2025-02-25", "Active", False),  # ends today
        ("Paid", "2025-02-24", "Active", True),
        ("Paid", "2024-02-29", "Active", True),
        ("Overdue", "2026-01-01", "Suspended", False),
    ],
)
def test_when_a_line_is_suspended(engine: Any, bill: str, end: str, status: str, admitted: bool) -> None:
    chat = Chat(engine, telecom(bill, L2=line(status, end))).login()
    call = {"customer_id": "C1", "line_id": "L2", "reason": "as agreed"}
    if admitted:
        chat.ok("suspend_line", **call)
    else:
        chat.no("suspend", "suspend_line", **call)


@pytest.mark.parametrize(
    ("bill", "end", "status", "admitted"),
    [
        ("Paid", "2026-01-01", "Suspended", True),
        ("Paid", "2025-02-25", "Suspended", True),
        ("Paid", "2025-02-24", "Suspended", False),
        ("Overdue", "2026-01-01", "Suspended", False),
        ("Awaiting Payment", "2026-01-01", "Suspended", False),
        ("Issued", "2026-01-01", "Suspended", True),
        ("Paid", "2026-01-01", "Active", False),
    ],
)
def test_when_a_suspension_is_lifted(engine: Any, bill: str, end: str, status: str, admitted: bool) -> None:
    chat = Chat(engine, telecom(bill, L2=line(status, end))).login()
    if admitted:
        chat.ok("resume_line", customer_id="C1", line_id="L2")
    else:
        chat.no("resume", "resume_line", customer_id="C1", line_id="L2")


def test_roaming_is_checked_and_then_switched(engine: Any) -> None:
    chat = Chat(engine, telecom(L2=line(roaming=True))).login()
    chat.no("roaming", "enable_roaming", **L1)
    chat.ok("get_details_by_id", id="L1").ok("get_details_by_id", id="L2")
    chat.no("roaming", "disable_roaming", **L1)
    chat.no("roaming", "enable_roaming", customer_id="C1", line_id="L2")
    chat.ok("enable_roaming", **L1)
    chat.ok("disable_roaming", customer_id="C1", line_id="L2")


def test_at_most_2_gb(engine: Any) -> None:
    chat = Chat(engine, telecom()).login()
    for amount in (0, -1, 2.000001, 1_000_000_000):
        chat.no("refuel", "refuel_data", **L1, gb_amount=amount)
    chat.no("host.arguments", "refuel_data", **L1, gb_amount="2")
    chat.no("refuel_confirm", "refuel_data", confirm=False, **L1, gb_amount=1.5)
    chat.ok("refuel_data", **L1, gb_amount=1.5)
    chat.no("refuel", "refuel_data", **L1, gb_amount=0.6)
    chat.ok("refuel_data", **L1, gb_amount=0.5)


@pytest.mark.parametrize("tool", ["toggle_data", "reboot_device", "make_payment", "grant_app_permission"])
def test_the_customers_phone_is_not_the_agents(engine: Any, tool: str) -> None:
    Chat(engine, telecom()).login().no("host.unknown_tool", tool)


def test_one_call_in_flight_for_a_line(engine: Any) -> None:
    chat = Chat(engine, telecom(bill="Paid", L2=line("Suspended"))).login()
    call, _ = chat.decide("resume_line", True, {"customer_id": "C1", "line_id": "L2"})
    chat.session.journal.append(
        chat.session._event("reservation", call, revision="r", resource=chat.session._resource(call))
    )
    chat.no("host.no_overlap", "resume_line", customer_id="C1", line_id="L2")
