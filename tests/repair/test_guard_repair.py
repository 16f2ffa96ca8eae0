"""Repairs through the Python API and the command line, on real Lean."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import EXAMPLES, leanguard, load, options

from leanguard_host import AsyncGuard, Call, Decision, Execution, Guard
from leanguard_host.engine import Engine

Json = dict[str, Any]
EDIT = 'payment_method_id: "gift_card_6666" → "credit_card_5521" (the payment method of the order)'
AUTHENTICATION = {"kind": "authentication", "principal": "nora_feld", "conversation": "chat-0117"}


@pytest.fixture
def injected() -> Json:
    """The exchange that an instruction in a delivery note had billed to somebody else's gift card."""
    return dict(load("call_injected.json"))


@pytest.fixture
def guard(engine: Engine) -> Iterator[Guard]:
    with Guard("retail", engine=engine, timeout=20.0) as made:
        yield made


def repaired(decision: Decision) -> str:
    """The edits of the repair; "" if there is none."""
    assert not decision.admitted
    return decision.repair.diff() if decision.repair else ""


def test_the_gift_card_exchange_is_repaired(
    guard: Guard, injected: Json, call: Json, snapshot: Json, events: list[Json]
) -> None:
    decision = guard.check(injected, snapshot=snapshot, journal=events, repair=True)
    assert repaired(decision) == EDIT
    assert decision.repair is not None
    assert decision.repair.call.wire() == call
    # The customer has confirmed just that call.
    assert not decision.repair.needs_consent
    assert guard.check(decision.repair.call, snapshot=snapshot, journal=events).admitted
    assert "EditOK" in decision.repair.theorem and "= .admit" in decision.repair.theorem
    assert 'in place of "gift_card_6666"' in decision.feedback()
    unconfirmed = guard.check(injected, snapshot=snapshot, journal=events[:-1], repair="suggest")
    assert unconfirmed.repair is not None and unconfirmed.repair.needs_consent


def test_a_confirmation_of_the_denied_call_carries_nothing_over(
    guard: Guard, injected: Json, snapshot: Json, events: list[Json]
) -> None:
    of_denied = [*events[:-1], {**events[-1], "call": injected}]
    decision = guard.check(injected, snapshot=snapshot, journal=of_denied, repair=True)
    assert decision.repair is not None and decision.repair.needs_consent
    again = guard.check(decision.repair.call, snapshot=snapshot, journal=of_denied)
    assert [rule.id for rule in again.failed_rules] == ["retail.confirmation"]


def test_settings(engine: Engine, guard: Guard, injected: Json, snapshot: Json, events: list[Json]) -> None:
    for off in (
        guard.check(injected, snapshot=snapshot, journal=events, repair=False),
        guard.check(injected, snapshot=snapshot, journal=events),
    ):
        assert off.repair is None and off.repair_search is None
        assert "in place of" not in off.feedback()
    with pytest.raises(ValueError, match="repair must be"):
        guard.check(injected, snapshot=snapshot, repair="always")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="repair must be"):
        Guard("retail", engine=engine, repair="auto")  # type: ignore[arg-type]
    with Guard("retail", engine=engine, repair="suggest", timeout=20.0) as suggesting:
        assert repaired(suggesting.check(injected, snapshot=snapshot, journal=events)) == EDIT
        assert asyncio.run(suggesting.acheck(injected, snapshot=snapshot, journal=events)).repair is not None
        admitted = suggesting.check(load("call.json"), snapshot=snapshot, journal=events)
        assert admitted.admitted and admitted.repair is None and admitted.repair_search is None
    with Guard("retail", engine=engine, repair=True, repair_candidates=0, timeout=20.0) as frugal:
        spent = frugal.check(injected, snapshot=snapshot, journal=events)
        assert repaired(spent) == "" and "budget is spent: 0 of" in str(spent.repair_search)


def test_a_state_that_changed_in_between(guard: Guard, injected: Json, snapshot: Json, events: list[Json]) -> None:
    decision = guard.check(injected, snapshot=snapshot, journal=events, repair=True)
    assert decision.repair is not None
    later = {**snapshot, "revision": "backend-4183"}
    again = guard.check(decision.repair.call, snapshot=later, journal=events)
    assert "retail.confirmation" in [rule.id for rule in again.failed_rules]


class Backend:
    """The example's backend: its tool counts what it did."""

    def __init__(self) -> None:
        self.state, self.revision, self.done = load("snapshot.json")["state"], "r1", [""][:0]

    def snapshot(self, call: Call) -> Json:
        return {
            "revision": self.revision,
            "principal": "nora_feld",
            "conversation": "chat-0117",
            "state": self.state,
        }

    def exchange(self, payment_method_id: str, **rest: Any) -> str:
        self.done.append(payment_method_id)
        return "exchanged"

    def read(self, order_id: str) -> str:
        return "an order"


def prepared(guard: Guard, backend: Backend) -> None:
    guard.record(AUTHENTICATION)
    read = {"tool": "get_order_details", "arguments": {"order_id": "#L20417"}}
    assert guard.execute(read, backend.read, adapter=backend).executed


def proposed(done: Execution) -> tuple[str, Call]:
    assert done.status == "denied" and done.decision.repair is not None and done.repair_proposal_id
    return done.repair_proposal_id, done.decision.repair.call


def test_a_repair_is_proposed_confirmed_and_then_made_once(engine: Engine, injected: Json, tmp_path: Path) -> None:
    backend = Backend()
    with Guard("retail", f"sqlite:///{tmp_path / 'j.db'}", engine=engine, timeout=20.0, repair="propose") as guard:
        prepared(guard, backend)
        proposal, call = proposed(guard.execute(injected, backend.exchange, adapter=backend))
        assert backend.done == []  # nothing runs a repair by itself
        assert guard.execute(call, backend.exchange, adapter=backend).status == "needs_confirmation"
        assert guard.confirm(proposal, by="nora_feld").accepted
        assert guard.execute(injected, backend.exchange, adapter=backend).status == "denied"
        assert guard.execute(call, backend.exchange, adapter=backend).executed
        assert not guard.execute(call, backend.exchange, adapter=backend).executed
    assert backend.done == ["credit_card_5521"]


def test_a_repair_that_was_confirmed_before_the_state_changed_is_denied(
    engine: Engine, injected: Json, tmp_path: Path
) -> None:
    backend = Backend()
    with Guard("retail", f"sqlite:///{tmp_path / 'j.db'}", engine=engine, timeout=20.0, repair="propose") as guard:
        prepared(guard, backend)
        proposal, call = proposed(guard.execute(injected, backend.exchange, adapter=backend))
        assert guard.confirm(proposal, by="nora_feld").accepted
        backend.revision = "r2"
        assert guard.execute(call, backend.exchange, adapter=backend).status == "needs_confirmation"
    assert backend.done == []


def test_a_suggestion_is_recorded_nowhere(engine: Engine, injected: Json, tmp_path: Path) -> None:
    backend = Backend()
    with Guard("retail", f"sqlite:///{tmp_path / 'j.db'}", engine=engine, timeout=20.0, repair=True) as guard:
        prepared(guard, backend)
        done = guard.execute(injected, backend.exchange, adapter=backend)
        assert done.decision.repair is not None and done.repair_proposal_id is None
        assert "in place of" in done.feedback()
        snapshot = {"time": 0, **backend.snapshot(done.decision.repair.call)}
        assert repaired(guard.check(injected, snapshot=snapshot)) == EDIT


def test_asynchronous(engine: Engine, injected: Json, tmp_path: Path) -> None:
    async def story() -> tuple[Execution, Decision]:
        backend = Backend()
        guard = Guard("retail", f"sqlite:///{tmp_path / 'j.db'}", engine=engine, timeout=20.0, repair="propose")
        async with AsyncGuard(guard) as guarding:
            await asyncio.to_thread(prepared, guard, backend)
            done = await guarding.execute(injected, backend.exchange, adapter=backend)
            snapshot = {"time": 0, **backend.snapshot(Call.model_validate(injected))}
            return done, await guarding.check(injected, snapshot=snapshot, repair="suggest")

    done, checked = asyncio.run(story())
    assert proposed(done)[1] == checked.repair.call if checked.repair else False


# --- the command line ---


@pytest.mark.usefixtures("daemon")
def test_check_repair_in_json() -> None:
    ran = leanguard("check", *options(call=EXAMPLES / "call_injected.json"), "--repair", "--json")
    assert ran.code == 1
    assert ran.json["verdict"] == "deny"
    assert ran.json["repair"]["call"] == load("call.json")
    assert set(ran.json["repair"]) == {"call", "edits", "needs_consent", "theorem", "axioms", "axioms_exact"}
    assert ran.json["repair_search"]["note"] is None
    plain = leanguard("check", *options(call=EXAMPLES / "call_injected.json"), "--json")
    assert plain.json["repair"] is None and plain.json["repair_search"] is None
    admitted = leanguard("check", *options(), "--repair", "--json")
    assert admitted.code == 0 and admitted.json["repair"] is None


@pytest.mark.usefixtures("daemon")
def test_check_repair_for_people() -> None:
    journal = EXAMPLES / "journal.jsonl"
    ran = leanguard("check", *options(call=EXAMPLES / "call_injected.json", journal=journal), "--repair")
    assert ran.code == 1
    assert 'payment_method_id: "gift_card_6666" → "credit_card_5521"' in ran.out
    assert "The customer has to confirm exactly this call first." in ran.out
    told = leanguard("check", *options(call=EXAMPLES / "call_injected.json"), "--repair", "--feedback", "hints")
    assert 'with payment_method_id "credit_card_5521" in place of "gift_card_6666"' in told.out.replace("\n", " ")
    none = leanguard("check", *options(journal="/dev/null"), "--repair")
    assert none.code == 1 and "no repair: " in none.out


def test_check_repair_without_the_background_process(lean: None) -> None:
    ran = leanguard("check", *options(call=EXAMPLES / "call_injected.json"), "--repair", "--json", "--no-daemon")
    assert ran.json["repair"]["call"] == load("call.json")


# --- replay ---


class Lying:
    """An engine whose proofs fail, or say the opposite."""

    def __init__(self, engine: Engine, **changes: Any) -> None:
        self.engine, self.changes, self.digests = engine, changes, engine.digests

    def decide(self, *question: Any) -> Decision:
        return self.engine.decide(*question)

    def prove(self, *question: Any) -> Any:
        return self.engine.prove(*question).model_copy(update=self.changes)


def test_replay_counts_proofs(engine: Engine, injected: Json, snapshot: Json, events: list[Json]) -> None:
    from leanguard_host.models import Event, Snapshot
    from leanguard_host.replay.proving import Proving, proofs

    proving = [Proving(engine)]
    state, history = Snapshot.model_validate(snapshot), [Event.model_validate(event) for event in events]
    for proposal in (injected, load("call.json"), {"tool": "nothing", "arguments": {}}):
        proving[0].decide("retail", Call.model_validate(proposal), state, history, 20.0)
    found = proofs(proving)
    assert (found["proved"], found["failed"]) == (3, 0)
    assert set(found["axioms"]) <= {"propext", "Quot.sound", "Classical.choice"}
    for changes in ({"verdict": "admit"}, {"proved": False, "message": "no"}):
        lying = Proving(Lying(engine, **changes))  # type: ignore[arg-type]
        assert not lying.decide("retail", Call.model_validate(injected), state, history, 20.0).admitted
        assert proofs([lying])["failed"] == 1


def test_replay_prove_goes_with_no_page(tmp_path: Path) -> None:
    episodes = tmp_path / "e.json"
    episodes.write_text(json.dumps([]), encoding="utf-8")
    ran = leanguard(
        "replay", episodes, "--policy", "retail", "--data", tmp_path, "--prove", "--html", tmp_path / "p.html"
    )
    assert ran.code == 2
