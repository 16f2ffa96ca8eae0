"""Repairs and proved decisions, through the warm process; and the Lean tests beside this file."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from leanguard_host.wire import RefusedError

HERE = Path(__file__).parent
AXIOMS = {"propext", "Quot.sound", "Classical.choice"}
NOW = 1772446540000
ORDER = "#W1"
TIMEOUT = 60.0
Json = dict[str, Any]


def call(payment: str, order: str = ORDER, tool: str = "exchange_delivered_order_items") -> Json:
    """An exchange that is settled by this method."""
    arguments = {"order_id": order, "item_ids": ["i1"], "new_item_ids": ["i2"], "payment_method_id": payment}
    return {"tool": tool, "arguments": arguments}


def event(kind: str, **more: Any) -> Json:
    """Something that happened in Mia's conversation."""
    return {"kind": kind, "time": NOW - 1000, "principal": "mia", "conversation": "c1", **more}


def snapshot() -> Json:
    """Mia's delivered order, paid by card, and her two payment methods."""
    order = {
        "user_id": "mia",
        "status": "delivered",
        "items": [{"item_id": "i1", "product_id": "p1", "price": 40.5}],
        "payment_history": [{"transaction_type": "payment", "amount": 40.5, "payment_method_id": "card"}],
    }
    methods = {"card": {"source": "credit_card"}, "gift": {"source": "gift_card", "balance": 3}}
    state = {
        "orders": {ORDER: order, "#W2": None},
        "users": {"mia": {"payment_methods": methods}},
        "products": {"p1": {"variants": {"i2": {"available": True, "price": 45.25}}}},
    }
    return {"revision": "r1", "time": NOW, "principal": "mia", "conversation": "c1", "state": state}


def journal() -> list[Json]:
    """Mia is authenticated and her order was read."""
    read = {"tool": "get_order_details", "arguments": {"order_id": ORDER}}
    return [
        event("authentication"),
        event("observation", resource={"type": "order", "id": ORDER}, revision="r1", call=read),
    ]


def consent(to: Json, revision: str = "r1") -> Json:
    """Mia confirmed this call."""
    return event("consent", call=to, revision=revision, resource={"type": "order", "id": ORDER})


@pytest.fixture
def ask(engine: Any) -> Any:
    """Ask for a repair or a proof."""

    def question(op: str, proposed: Json, events: list[Json] | None = None, **more: Any) -> Json:
        fields = {
            "policy": "retail",
            "call": proposed,
            "snapshot": snapshot(),
            "journal": journal() if events is None else events,
        }
        answer = engine.ask({"op": op, **fields, **more}, TIMEOUT)
        assert isinstance(answer, dict)
        return answer

    return question


def failed(answer: Json) -> set[str]:
    """The rules that denied."""
    return {rule["id"] for rule in answer["failed_rules"]}


@pytest.mark.parametrize("file", sorted(path.name for path in HERE.glob("*.lean")))
def test_lean(engine: Any, file: str) -> None:
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    # The process has imported everything already, and a command can't import.
    answer = engine.process.command("\n".join(line for line in lines if not line.startswith("import ")), timeout=180)
    assert [m for m in answer.get("messages", []) if m["severity"] == "error"] == []


def test_another_customers_gift_card_is_repaired_to_the_orders_own_payment_method(ask: Any) -> None:
    answer = ask("repair", call("gift_666"))
    assert failed(answer) == {"retail.payment", "retail.confirmation"}
    repair = answer["repair"]
    assert repair["call"] == call("card")
    assert repair["edits"] == [
        {
            "argument": "payment_method_id",
            "before": "gift_666",
            "after": "card",
            "source": "the payment method of the order",
        }
    ]
    assert repair["needs_consent"] is True
    assert "consentFor" in repair["theorem"]
    assert set(repair["axioms"]) <= AXIOMS


def test_a_consent_to_the_denied_call_does_not_carry_over(ask: Any) -> None:
    answer = ask("repair", call("gift_666"), [*journal(), consent(call("gift_666"))])
    assert answer["repair"]["needs_consent"] is True


def test_a_consent_to_the_repaired_call_counts_and_only_at_its_revision(ask: Any) -> None:
    assert ask("repair", call("gift_666"), [*journal(), consent(call("card"))])["repair"]["needs_consent"] is False
    assert ask("repair", call("gift_666"), [*journal(), consent(call("card"), "r0")])["repair"]["needs_consent"] is True


def test_a_state_that_changed_denies_the_confirmed_repair(ask: Any) -> None:
    events = [*journal(), consent(call("card"))]
    assert ask("prove", call("card"), events)["verdict"] == "admit"
    later = {**snapshot(), "revision": "r2"}
    answer = ask("prove", call("card"), events, snapshot=later)
    assert answer["verdict"] == "deny"
    assert answer["proved"] is True


def test_every_rejected_candidate_says_what_stopped_it(ask: Any) -> None:
    state = snapshot()
    state["state"]["orders"][ORDER]["payment_history"] = []
    del state["state"]["users"]["mia"]["payment_methods"]["card"]
    answer = ask("repair", call("gift_666"), snapshot=state)
    assert answer["repair"] is None
    assert answer["note"] == "No candidate passes."
    (rejected,) = answer["rejected"]
    assert rejected["stopped_by"] == "policy"
    assert failed(rejected) == {"retail.payment"}


def test_nothing_to_repair(ask: Any) -> None:
    assert ask("repair", call("card"), [*journal(), consent(call("card"))])["note"] == "The call is admitted as it is."
    only_consent = ask("repair", call("card"))
    assert only_consent["repair"] is None
    assert only_consent["note"] == "The call needs no edit: the customer has to confirm it."


def test_no_candidates(ask: Any) -> None:
    cancel = {"tool": "cancel_pending_order", "arguments": {"order_id": ORDER, "reason": "no longer needed"}}
    assert ask("repair", cancel)["note"] == "No argument of this tool may be changed."
    assert ask("repair", {"tool": "nothing", "arguments": {}})["note"] == "No argument of this tool may be changed."
    bare = {**snapshot(), "state": {}}
    assert ask("repair", call("gift_666"), snapshot=bare)["note"].startswith(
        "The values that may be offered can't be read"
    )


@pytest.mark.parametrize(
    ("budget", "note"),
    [({"candidates": 0}, "The budget is spent: 0 of 2 candidates"), ({"kernel_work": 1000}, "No candidate passes.")],
)
def test_a_search_beyond_its_budget_says_so(ask: Any, budget: Json, note: str) -> None:
    answer = ask("repair", call("gift_666"), **budget)
    assert answer["verdict"] == "deny"
    assert answer["repair"] is None
    assert answer["note"].startswith(note)
    if "kernel_work" in budget:
        assert answer["rejected"][0]["message"] == "the kernel ran out of its budget"


@pytest.mark.parametrize(
    "proposed",
    [
        call("gift_666"),
        call("card", order="#W2"),
        call("card", order="#W9"),
        call("card", tool="nothing"),
        {"tool": "exchange_delivered_order_items", "arguments": {"order_id": 3}},
        {"tool": "cancel_pending_order", "arguments": {"order_id": ORDER, "reason": "I said so"}},
        {"tool": "get_user_details", "arguments": {"user_id": "bob"}},
    ],
)
def test_every_denial_is_a_theorem(ask: Any, proposed: Json) -> None:
    for events in ([], journal(), [*journal(), consent(proposed)]):
        answer = ask("prove", proposed, events)
        assert answer["verdict"] == "deny"
        assert answer["proved"] is True, answer
        assert answer["theorem"].endswith("≠ .admit")
        assert set(answer["axioms"]) <= AXIOMS


def test_a_denial_can_be_proved_with_the_rules_that_failed(ask: Any) -> None:
    answer = ask("prove", call("gift_666"), exact=True)
    assert answer["proved"] is True
    assert answer["theorem"].endswith(".deny [retail.payment, retail.confirmation] []")


def test_an_admission_is_a_theorem(ask: Any) -> None:
    answer = ask("prove", call("card"), [*journal(), consent(call("card"))])
    assert answer["verdict"] == "admit"
    assert answer["proved"] is True
    assert answer["theorem"].endswith("= .admit")


@pytest.mark.parametrize(
    ("change", "path", "expected"),
    [
        ({"policy": "nothing"}, "guard.policy", "no policy named"),
        ({"candidates": "many"}, "guard.candidates", "expected a whole number"),
        ({"candidates": -1}, "guard.candidates", "zero or more"),
        ({"exact": 3}, "guard.exact", "expected true or false"),
        ({"journal": None}, "guard.journal", "expected a list"),
        ({"more": 1}, "guard.more", "unknown field"),
    ],
)
def test_bad_input(ask: Any, change: Json, path: str, expected: str) -> None:
    with pytest.raises(RefusedError, match=expected) as caught:
        ask("repair", call("gift_666"), **copy.deepcopy(change))
    assert path in str(caught.value)
