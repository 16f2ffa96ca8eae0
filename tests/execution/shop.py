"""A shop whose orders can be exchanged, and what the tests ask of it."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leanguard_host import Call, Execution, Guard, Reservation
from leanguard_host.jsonfiles import FILE_LIMIT, parse, read

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "retail_exchange"
STATE = parse(read(str(EXAMPLES / "snapshot.json"), FILE_LIMIT))["state"]
CUSTOMER, CHAT = "nora_feld", "chat-0117"
AUTHENTICATION = {"kind": "authentication", "principal": CUSTOMER, "conversation": CHAT}


class Shop:
    """The backend and its adapter. What took effect is in a file, which outlives whoever is killed."""

    def __init__(self, ledger: Path, revision: str = "r1") -> None:
        self.ledger, self.revision = ledger, revision
        self.hooks: dict[str, Callable[[], None]] = {}

    def snapshot(self, call: Call) -> dict[str, Any]:
        order = call.arguments.get("order_id", "#none")
        state = copy.deepcopy(STATE)
        state["orders"] = {order: copy.deepcopy(STATE["orders"]["#L20417"])}
        return {"revision": self.revision, "principal": CUSTOMER, "conversation": CHAT, "state": state}

    def reconcile(self, reservation: Reservation) -> str:
        return "succeeded" if self.effects(reservation.call.arguments["order_id"]) else "failed"

    def effects(self, order: str) -> int:
        """How often the order was exchanged."""
        if not self.ledger.exists():
            return 0
        return self.ledger.read_text(encoding="utf-8").split("\n").count(order)

    def exchange(self, order_id: str, item_ids: Any, new_item_ids: Any, payment_method_id: str) -> str:
        """The tool."""
        self._hook("before")
        with self.ledger.open("a", encoding="utf-8") as file:
            file.write(order_id + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._hook("after")
        return "exchanged"

    def read(self, order_id: str) -> str:
        """A tool that only reads."""
        return "an order"

    def _hook(self, name: str) -> None:
        if hook := self.hooks.get(name):
            hook()


def exchange(order: str, payment: str = "credit_card_5521") -> dict[str, Any]:
    """A call."""
    arguments = {"item_ids": ["lamp-brass"], "new_item_ids": ["lamp-black"], "payment_method_id": payment}
    return {"tool": "exchange_delivered_order_items", "arguments": {"order_id": order, **arguments}}


def prepare(guard: Guard, shop: Shop, order: str) -> None:
    """The customer is authenticated and the order was read."""
    guard.record(AUTHENTICATION)
    done = guard.execute({"tool": "get_order_details", "arguments": {"order_id": order}}, shop.read, adapter=shop)
    assert done.executed, done.feedback()


def confirm(guard: Guard, shop: Shop, call: dict[str, Any], **options: Any) -> Execution:
    """The call is proposed and confirmed."""
    asked = guard.execute(call, shop.exchange, adapter=shop)
    assert asked.status == "needs_confirmation", (asked.status, asked.decision)
    assert asked.proposal_id
    assert guard.confirm(asked.proposal_id, by=CUSTOMER, **options).accepted
    return asked


def failed(done: Execution) -> set[str]:
    """The rules that a call failed."""
    return {rule.id for rule in done.decision.failed_rules} | {error.rule for error in done.decision.errors}
