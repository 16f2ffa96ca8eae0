"""Whatever an episode says, each of its calls gets a decision: nothing ends a replay."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import airline, line, reservation, retail, telecom

from leanguard_host.adapters.tau2 import Backend
from leanguard_host.adapters.tau2.episodes import Episode, steps_of
from leanguard_host.models import Call, Decision, Event, Snapshot
from leanguard_host.replay import CATEGORIES, replay_episode

WORLDS: dict[str, Backend] = {
    "retail": retail(),
    "airline": airline(X=reservation()),
    "telecom": telecom(L2=line("Suspended")),
}
GOOD = {
    "user_id": "ada_1",
    "reservation_id": "R1",
    "order_id": "#D1",
    "customer_id": "C1",
    "line_id": "L1",
    "bill_id": "B1",
    "payment_id": "card_1",
    "payment_method_id": "card_1",
    "cabin": "economy",
    "item_ids": ["lamp-a"],
    "new_item_ids": ["lamp-b"],
    "gb_amount": 1.5,
}
BOOKING = ("origin", "destination", "flight_type", "cabin", "flights", "passengers", "payment_methods")
texts = st.sampled_from(["ada_1", "bob_2", "R1", "#P1", "lamp-a", "gift_1", "L9", "C2", "", "x" * 300, "\ud800", "\0"])
numbers = st.sampled_from([0, 1, -1, 2.5, True, None, 10**15, 10**16, 1e300, float("nan"), 0.1234567])
odd = st.sampled_from(["", 10**15, []])
anything = st.recursive(
    texts | numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "date"]), inner, max_size=3),
    max_leaves=6,
)
leg = st.fixed_dictionaries(
    {"flight_number": st.just("F1") | anything, "date": st.just("2024-05-20") | anything},
    optional={"payment_id": texts, "amount": numbers},
)


def parameters(backend: Backend, tool: str) -> list[str]:
    """What the tool takes."""
    found = inspect.signature(getattr(backend, f"tool_{tool}")).parameters.values()
    named = [each.name for each in found if each.kind is not each.VAR_KEYWORD]
    return [*named, *BOOKING] if tool == "book_reservation" else named


@st.composite
def calls(draw: st.DrawFn, backend: Backend) -> list[dict[str, Any]]:
    """A call and its result, if it has one."""
    tools = sorted(name.removeprefix("tool_") for name in dir(backend) if name.startswith("tool_"))
    tool = draw(st.sampled_from(tools))
    arguments: Any = {
        name: draw((st.just(GOOD[name]) if name in GOOD else st.lists(leg, max_size=2)) | odd | anything)
        for name in parameters(backend, tool)
    }
    made = {
        "name": draw(st.just(tool) | anything) if draw(st.booleans()) else tool,
        "arguments": draw(anything) if draw(st.integers(0, 9)) == 0 else arguments,
        "requestor": draw(st.sampled_from(["assistant"] * 5 + ["user"])),
    }
    answer = draw(st.sampled_from(["ok", "Error: no", None, 5]))
    results = [] if answer is None else [{"role": "tool", "content": answer}]
    return [{"role": "assistant", "content": None, "tool_calls": [made]}, *results]


class Admitting:
    """Admits everything that can be carried to Lean, so that all is done that a recording can have done."""

    digests: Mapping[str, str] = {}

    def decide(self, policy: str, call: Call, snapshot: Snapshot, journal: list[Event], timeout: float) -> Decision:
        """Admit a call."""
        wire = [call.wire(), snapshot.wire(), [event.wire() for event in journal]]
        assert json.loads(json.dumps(wire, allow_nan=False)) == wire
        return Decision(
            verdict="admit",
            failed_rules=(),
            errors=(),
            revision=snapshot.revision,
            policy=policy,
            policy_digest="none",
            toolchain="none",
            elapsed_ms=0,
        )


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), name=st.sampled_from(sorted(WORLDS)), consent=st.booleans())
def test_each_call_gets_a_decision(data: st.DataObject, name: str, consent: bool) -> None:
    login = {
        "retail": ("find_user_id_by_email", {"email": "ada@example.com"}),
        "airline": ("list_all_airports", {}),
        "telecom": ("get_customer_by_id", {"customer_id": "C1"}),
    }[name]
    messages: list[Any] = [
        {"role": "user", "content": data.draw(st.sampled_from(["I am ada_1", "hello", ""]))},
        {"role": "assistant", "tool_calls": [{"name": login[0], "arguments": login[1]}]},
    ]
    for made in data.draw(st.lists(calls(WORLDS[name]), max_size=5)):
        messages += made
    episode = Episode("any", list(steps_of(messages)))
    decided = list(replay_episode(episode, WORLDS[name].fork(), name, Admitting(), assume_consent=consent))
    assert len(decided) == sum(step.kind == "call" for step in episode.steps)
    for each in decided:
        assert (each.category in CATEGORIES) == each.denied


def test_a_database_that_cannot_be_carried_to_lean_denies() -> None:
    refuel = {"customer_id": "C1", "line_id": "L1", "gb_amount": 10**15}  # 2.5 times as many dollars
    made = [
        ("get_customer_by_id", {"customer_id": "C1"}),
        ("refuel_data", refuel),
        ("suspend_line", {"customer_id": "C1", "line_id": "L1", "reason": "x"}),
    ]
    messages = [{"role": "assistant", "tool_calls": [{"name": tool, "arguments": given}]} for tool, given in made]
    episode = Episode("any", list(steps_of(messages)))
    decided = list(replay_episode(episode, WORLDS["telecom"].fork(), "telecom", Admitting()))
    assert [each.verdict for each in decided] == ["admit", "admit", "deny"]
    assert decided[2].category == "not evaluated"
    assert not decided[2].executed
