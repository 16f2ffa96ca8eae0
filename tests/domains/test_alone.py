"""Rules that mostly deny beside others, in situations where they alone do."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import Chat, airline, retail, telecom

from leanguard_host.adapters.tau2.backend import Backend

LAMP = {"item_ids": ["lamp-a"], "new_item_ids": ["lamp-b"], "payment_method_id": "card_1"}


@pytest.mark.parametrize(
    ("backend", "customer", "tool", "arguments"),
    [
        (retail(), "ada_1", "get_user_details", {"user_id": "ada_1"}),
        (airline(), "ada_1", "get_user_details", {"user_id": "ada_1"}),
        (telecom(), "C1", "get_bills_for_customer", {"customer_id": "C1"}),
    ],
    ids=["retail", "airline", "telecom"],
)
def test_another_conversations_customer_is_not_identified_here(
    engine: Any, backend: Backend, customer: str, tool: str, arguments: dict[str, str]
) -> None:
    """The host knows who writes, from an earlier conversation; the policy asks for an authentication in this one."""
    earlier = Chat(engine, backend, "chat-0").login()
    chat = Chat(engine, backend, "chat-1")
    chat.session.principal = customer
    chat.session.journal += earlier.session.journal
    chat.no("identity", tool, **arguments)
    earlier.ok(tool, **arguments)


def test_an_exchanged_order_that_is_delivered_again_stays_exchanged(engine: Any) -> None:
    chat = Chat(engine, retail()).login().ok("get_order_details", order_id="#D1")
    chat.ok("exchange_delivered_order_items", order_id="#D1", **LAMP)
    chat.session.backend.need("orders", "#D1", "")["status"] = "delivered"
    chat.no("exchange_once", "exchange_delivered_order_items", order_id="#D1", **LAMP)


@pytest.mark.parametrize(
    ("backend", "read", "tool", "arguments"),
    [
        (retail(), "get_order_details", "cancel_pending_order", {"order_id": "#P1", "reason": "no longer needed"}),
        (
            airline(),
            "get_reservation_details",
            "update_reservation_passengers",
            {"reservation_id": "R1", "passengers": [{"first_name": "A", "last_name": "B", "dob": "2000-01-01"}]},
        ),
    ],
    ids=["retail", "airline"],
)
def test_one_call_in_flight_for_a_thing(
    engine: Any, backend: Backend, read: str, tool: str, arguments: dict[str, Any]
) -> None:
    chat = Chat(engine, backend).login().ok(read, **dict([next(iter(arguments.items()))]))
    call, decision = chat.decide(tool, True, arguments)
    assert decision.admitted
    sent = chat.session._event("reservation", call, revision="r", resource=chat.session._resource(call))
    back = chat.session._event("outcome", call, status="failed", resource=chat.session._resource(call))
    chat.session.journal.append(sent)
    chat.no("host.no_overlap", tool, **arguments)
    chat.session.journal.append(back)
    chat.ok(tool, **arguments)
