"""Executing calls: consent, outcomes, tools that misbehave, a journal that fails. On real Lean."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from relay import Link, connect
from shop import AUTHENTICATION, CUSTOMER, Shop, confirm, exchange, failed, prepare

from leanguard_host import (
    Call,
    DefiniteFailure,
    Denied,
    Event,
    Guard,
    GuardUnavailable,
    ToolDenied,
    ToolTimeout,
    TurnEnded,
    execution,
)
from leanguard_host.lean.errors import LeanCrashed
from leanguard_host.store import JournalError, open_store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def ready(guard: Guard, shop: Shop) -> Guard:
    """A guard whose customer has confirmed the exchange of #1."""
    prepare(guard, shop, "#1")
    confirm(guard, shop, exchange("#1"))
    return guard


def kinds(journal: str) -> list[str]:
    with open_store(journal) as store:
        return [stored.event.kind for stored in store.read()]


def test_every_step_is_on_record(ready: Guard, shop: Shop, journal: str) -> None:
    done = ready.execute(exchange("#1"), shop.exchange, adapter=shop)
    assert done.executed and done.value == "exchanged" and done.decision.admitted and done.error is None
    assert done.reservation and done.proposal_id
    assert kinds(journal)[-5:] == ["proposal", "admission", "reservation", "dispatch", "outcome"]
    assert shop.effects("#1") == 1
    assert ready.unsettled() == []


def test_reads_are_observed_and_need_no_consent(guard: Guard, shop: Shop, journal: str) -> None:
    guard.record(AUTHENTICATION)
    call = {"tool": "get_order_details", "arguments": {"order_id": "#1"}}
    assert guard.execute(call, shop.read, adapter=shop).value == "an order"
    assert kinds(journal) == ["authentication", "proposal", "admission", "observation"]

    def broken(order_id: str) -> None:
        raise ConnectionError

    assert guard.execute(call, broken, adapter=shop).status == "failed"
    assert kinds(journal)[-1] == "admission"


def test_check_decides_over_the_store_and_records_nothing(ready: Guard, shop: Shop, journal: str) -> None:
    before = kinds(journal)
    snapshot = {"time": 0, **shop.snapshot(Call.model_validate(exchange("#1")))}
    assert ready.check(exchange("#1"), snapshot=snapshot).admitted
    assert not ready.check(exchange("#1", "gift_card_6666"), snapshot=snapshot).admitted
    assert kinds(journal) == before


# --- consent ---


def test_a_consent_admits_once(ready: Guard, shop: Shop) -> None:
    def refuses(**arguments: Any) -> None:
        raise DefiniteFailure

    assert ready.execute(exchange("#1"), refuses, adapter=shop).status == "failed"
    again = ready.execute(exchange("#1"), shop.exchange, adapter=shop)
    assert again.status == "needs_confirmation" and "protocol.consent_used" in failed(again)
    assert shop.effects("#1") == 0


def test_the_same_denial_again_says_what_would_change_it(guard: Guard, shop: Shop) -> None:
    prepare(guard, shop, "#7")
    call = exchange("#7")
    asked = [guard.execute(call, shop.exchange, adapter=shop) for _ in range(2)]
    assert [done.status for done in asked] == ["needs_confirmation"] * 2
    assert [done.decision.again for done in asked] == [False, True]
    assert "their confirmation of exactly this call" in asked[1].feedback()
    assert asked[1].proposal_id
    assert guard.confirm(asked[1].proposal_id, by=CUSTOMER).accepted
    assert guard.execute(call, shop.exchange, adapter=shop).executed


def test_a_changed_argument(ready: Guard, shop: Shop) -> None:
    done = ready.execute(exchange("#1", "gift_card_7003"), shop.exchange, adapter=shop)
    assert "protocol.arguments_changed" in failed(done) and not done.executed


def test_a_changed_revision(ready: Guard, shop: Shop) -> None:
    shop.revision = "r2"
    done = ready.execute(exchange("#1"), shop.exchange, adapter=shop)
    assert "protocol.revision_changed" in failed(done) and not done.executed


def test_an_expired_consent_stays_expired_when_the_clock_jumps_back(lean_engine: Any, journal: str, shop: Shop) -> None:
    now = [1_800_000_000_000]
    with Guard("retail", journal, engine=lean_engine, timeout=20.0, clock=lambda: now[0]) as guard:
        prepare(guard, shop, "#1")
        confirm(guard, shop, exchange("#1"), expires_in=5)
        now[0] += 5000
        for jump in (0, 3_600_000):
            now[0] -= jump
            done = guard.execute(exchange("#1"), shop.exchange, adapter=shop)
            assert "protocol.consent_expired" in failed(done) and not done.executed
        confirm(guard, shop, exchange("#1"))
        assert guard.execute(exchange("#1"), shop.exchange, adapter=shop).executed
    with open_store(journal) as store:
        times = [stored.event.time for stored in store.read()]
    assert times == sorted(times)


def test_only_the_customer_confirms(guard: Guard, shop: Shop) -> None:
    prepare(guard, shop, "#1")
    asked = guard.execute(exchange("#1"), shop.exchange, adapter=shop)
    for proposal, by, rule in (
        (asked.proposal_id, "mallory", "protocol.principal_changed"),
        ("made-up", CUSTOMER, "protocol.no_such_proposal"),
        ("", CUSTOMER, "protocol.no_such_proposal"),
    ):
        refused = guard.confirm(str(proposal), by=by)
        assert not refused.accepted
        assert rule in [one.id for one in refused.decision.failed_rules] + [e.rule for e in refused.decision.errors]
    with pytest.raises(ValueError, match="more than 0"):
        guard.confirm(str(asked.proposal_id), by=CUSTOMER, expires_in=0)
    for kind in ("consent", "reservation", "outcome"):
        with pytest.raises(ValueError, match="protocol"):
            guard.record({"kind": kind, "status": "succeeded"})
    with pytest.raises(ValueError, match="protocol"):
        guard.record(Event(kind="consent", time=1))


# --- tools that misbehave ---


@pytest.mark.parametrize(
    ("error", "status"),
    [(DefiniteFailure(), "failed"), (ConnectionError("secret"), "unknown"), (ValueError(), "failed")],
)
def test_a_tool_that_raises(ready: Guard, shop: Shop, journal: str, error: Exception, status: str) -> None:
    shop.failed_definitely = lambda raised: isinstance(raised, ValueError)  # type: ignore[attr-defined]

    def raises(**arguments: Any) -> None:
        raise error

    done = ready.execute(exchange("#1"), raises, adapter=shop)
    assert (done.status, done.error) == (status, error)
    with open_store(journal) as store:
        last = store.last()
    assert last and last.event.status == status and "secret" not in last.json
    assert [one.phase for one in ready.unsettled()] == (["unknown"] if status == "unknown" else [])


def test_an_interrupted_tool_is_unknown(ready: Guard, shop: Shop) -> None:
    def interrupted(**arguments: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ready.execute(exchange("#1"), interrupted, adapter=shop)
    assert [one.phase for one in ready.unsettled()] == ["unknown"]
    assert "protocol.outcome_unknown" in failed(ready.execute(exchange("#1"), shop.exchange, adapter=shop))


@pytest.mark.parametrize("point", ["reserved", "begun", "dispatching", "dispatched"])
def test_interrupted_before_the_tool(
    point: str, ready: Guard, shop: Shop, journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(name: str) -> None:
        if name == point:
            monkeypatch.undo()
            raise KeyboardInterrupt

    monkeypatch.setattr(execution, "reached", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ready.execute(exchange("#1"), shop.exchange, adapter=shop)
    assert shop.effects("#1") == 0
    assert ready.unsettled() == []
    with open_store(journal) as store:
        last = store.last()
    # It is on record that nothing was sent, and the order is free again.
    ended = {"begun": "expiry", "dispatching": "expiry", "dispatched": "outcome"}
    assert last and (point == "reserved" or last.event.kind == ended[point])
    again = ready.execute(exchange("#1"), shop.exchange, adapter=shop)
    if again.status == "needs_confirmation":
        confirm(ready, shop, exchange("#1"))
        again = ready.execute(exchange("#1"), shop.exchange, adapter=shop)
    assert again.executed, again.decision


def test_an_exchange_that_turns_out_to_have_happened_counts(ready: Guard, shop: Shop) -> None:
    def cut_off(**arguments: Any) -> None:
        shop.exchange(**arguments)
        raise ConnectionError

    assert ready.execute(exchange("#1"), cut_off, adapter=shop).status == "unknown"
    other = exchange("#1", payment="paypal_0093")
    assert "host.no_overlap" in failed(ready.execute(other, shop.exchange, adapter=shop))  # it may have happened
    assert [one.status for one in ready.reconcile(shop)] == ["succeeded"]
    done = ready.execute(other, shop.exchange, adapter=shop)
    assert "retail.exchange_once" in failed(done) and "host.no_overlap" not in failed(done)


def test_a_tool_that_hangs(ready: Guard, shop: Shop) -> None:
    go = threading.Event()
    shop.hooks["before"] = lambda: go.wait(30) and None
    done = ready.execute(exchange("#1"), shop.exchange, adapter=shop, timeout=0.05)
    assert done.status == "unknown" and isinstance(done.error, ToolTimeout)
    assert [one.phase for one in ready.unsettled()] == ["unknown"]
    # The backend would say that it failed, and the tool may still do it: it is not asked.
    assert ready.reconcile(shop) == []
    assert not ready.execute(exchange("#1"), shop.exchange, adapter=shop).executed
    go.set()
    deadline = time.monotonic() + 20
    while ready.unsettled() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ready.unsettled() == []
    assert shop.effects("#1") == 1
    assert not ready.execute(exchange("#1"), shop.exchange, adapter=shop).executed


def test_a_tool_that_is_in_time(ready: Guard, shop: Shop) -> None:
    assert ready.execute(exchange("#1"), shop.exchange, adapter=shop, timeout=20).executed


def test_the_tool_gets_its_own_arguments(ready: Guard, shop: Shop) -> None:
    call = Call.model_validate(exchange("#1"))

    def greedy(item_ids: list[str], **arguments: Any) -> None:
        item_ids.append("mug-blue")

    assert ready.execute(call, greedy, adapter=shop).executed
    assert call.arguments["item_ids"] == ["lamp-brass"]


# --- denials before anything is sent ---


def test_what_is_denied_before_it_is_sent(ready: Guard, shop: Shop) -> None:
    class Broken(Shop):
        def snapshot(self, call: Call) -> Any:
            return self.hooks["snapshot"]()

    broken = Broken(shop.ledger)
    for answer, rule in (({"revision": 7}, "host.snapshot"), (None, "host.snapshot")):
        broken.hooks["snapshot"] = lambda answer=answer: answer  # type: ignore[misc]
        assert failed(ready.execute(exchange("#1"), shop.exchange, adapter=broken)) == {rule}
    broken.hooks["snapshot"] = lambda: 1 / 0  # type: ignore[assignment,return-value]
    assert failed(ready.execute(exchange("#1"), shop.exchange, adapter=broken)) == {"host.snapshot"}
    assert failed(ready.execute({"tool": "x"}, shop.exchange, adapter=shop)) == {"host.input"}
    unfit = {"tool": "exchange_delivered_order_items", "arguments": {"order": 1}}
    assert failed(ready.execute(unfit, shop.exchange, adapter=shop)) == {"host.arguments"}
    unknown = ready.execute({"tool": "delete_everything", "arguments": {}}, lambda: 1, adapter=shop)
    assert failed(unknown) == {"host.unknown_tool"} and unknown.value is None
    assert ready.execute(exchange("#1"), shop.exchange, adapter=shop).executed


def test_a_snapshot_that_a_finished_call_overtook_is_taken_again(
    ready: Guard, shop: Shop, lean_engine: Any, journal: str
) -> None:
    looks = []

    class Slow(Shop):
        def snapshot(self, call: Call) -> Any:
            looks.append(1)
            found = super().snapshot(call)
            if len(looks) == 1:
                with Guard("retail", journal, engine=lean_engine, timeout=20.0) as other:
                    assert other.execute(exchange("#1"), shop.exchange, adapter=shop).executed
                self.revision = "r2"
            return found

    done = ready.execute(exchange("#1"), shop.exchange, adapter=Slow(shop.ledger))
    assert len(looks) == 2 and not done.executed
    assert shop.effects("#1") == 1


# --- Lean and the journal fail ---


class Failing(Link):
    """Lean that fails at one question, or has forgotten everything."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.fail_at: str | None = None
        self.forget_at: str | None = None

    def guard(self, request: Any, timeout: float) -> dict[str, Any]:
        name = request.get("step", {}).get("step", request["op"])
        if name == self.fail_at:
            raise LeanCrashed("crashed")
        if name == self.forget_at:
            self.forget_at = None
            super().guard({"op": "reset", "journal_id": request["journal_id"]}, timeout)
        return super().guard(request, timeout)


@pytest.fixture
def failing(address: str, journal: str, shop: Shop) -> Iterator[tuple[Failing, Guard]]:
    engine = connect(address)
    link = Failing(address)
    engine.process = link
    with Guard("retail", journal, engine=engine, timeout=20.0) as guard:
        prepare(guard, shop, "#1")
        confirm(guard, shop, exchange("#1"))
        yield link, guard


@pytest.mark.parametrize("at", ["observe", "propose", "decide", "reserve", "dispatch"])
def test_lean_that_fails(at: str, failing: tuple[Failing, Guard], shop: Shop) -> None:
    link, guard = failing
    link.fail_at = at
    done = guard.execute(exchange("#1"), shop.exchange, adapter=shop)
    assert done.status == "denied" and failed(done) == {"host.unavailable"}
    assert shop.effects("#1") == 0
    link.fail_at = None
    again = guard.execute(exchange("#1"), shop.exchange, adapter=shop)
    if at == "dispatch":  # the reservation had used the consent up
        assert again.status == "needs_confirmation"
        confirm(guard, shop, exchange("#1"))
        again = guard.execute(exchange("#1"), shop.exchange, adapter=shop)
    assert again.executed, again.decision
    assert shop.effects("#1") == 1 and guard.unsettled() == []


def test_an_outcome_that_can_not_be_recorded_is_recorded_later(failing: tuple[Failing, Guard], shop: Shop) -> None:
    link, guard = failing
    shop.hooks["after"] = lambda: setattr(link, "fail_at", "outcome")
    done = guard.execute(exchange("#1"), shop.exchange, adapter=shop)
    assert done.executed and done.error is not None
    with pytest.raises(GuardUnavailable):
        guard.unsettled()
    assert not guard.execute(exchange("#1"), shop.exchange, adapter=shop).executed
    link.fail_at = None
    assert guard.unsettled() == []
    assert shop.effects("#1") == 1


@pytest.mark.parametrize("at", ["observe", "admit", "propose", "decide", "reserve", "dispatch", "outcome", "status"])
def test_lean_that_was_restarted_is_told_the_journal_again(
    at: str, failing: tuple[Failing, Guard], shop: Shop, journal: str
) -> None:
    link, guard = failing
    link.forget_at = at
    call = Call.model_validate(exchange("#1"))
    assert guard.check(call, snapshot={"time": 0, **shop.snapshot(call)}).admitted
    assert guard.execute(call, shop.exchange, adapter=shop).executed
    assert guard.unsettled() == []
    assert link.forget_at is None
    assert kinds(journal).count("dispatch") == 1


@pytest.mark.parametrize("at", ["begin", "begun", "dispatching", "settling"])
def test_a_full_disk(at: str, ready: Guard, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on the size of files stands in for a full disk: SQLite is refused in the same way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(name: str = "") -> None:
        if name == at or not name:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))

    monkeypatch.setattr(execution, "reached", fill)
    try:
        if at == "begin":
            fill()
        done = ready.execute(exchange("#1"), shop.exchange, adapter=shop)
    finally:
        monkeypatch.setattr(execution, "reached", lambda name: None)
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    if at == "settling":
        assert done.executed and isinstance(done.error, JournalError)
    else:
        assert done.status == "denied" and failed(done) == {"host.unavailable"}
        assert shop.effects("#1") == 0
    assert ready.unsettled() == []
    again = ready.execute(exchange("#1"), shop.exchange, adapter=shop)
    assert again.executed == (at == "begin")
    assert shop.effects("#1") == (1 if at in ("begin", "settling") else 0)


def test_a_journal_that_can_not_be_used(lean_engine: Any, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to be one")
    for journal in (f"sqlite:///{tmp_path}/text", f"sqlite:///{tmp_path}/no/such", "mongodb://x"):
        with pytest.raises(GuardUnavailable):
            Guard("retail", journal, engine=lean_engine)
    with (
        open_store(tmp_path / "closed.db") as store,
        Guard("retail", store, engine=lean_engine, timeout=20.0) as guard,
    ):
        store.close()
        shop = Shop(tmp_path / "ledger")
        assert failed(guard.execute(exchange("#1"), shop.exchange, adapter=shop)) == {"host.unavailable"}
        with pytest.raises(GuardUnavailable):
            guard.record(AUTHENTICATION)
    with Guard("retail", engine=lean_engine) as guard, pytest.raises(RuntimeError, match="no journal store"):
        guard.execute(exchange("#1"), shop.exchange, adapter=shop)


def test_a_read_only_journal(lean_engine: Any, tmp_path: Path, shop: Shop) -> None:
    path = tmp_path / "journal.db"
    open_store(path).close()
    with (
        open_store(path, read_only=True) as store,
        Guard("retail", store, engine=lean_engine, timeout=20.0) as guard,
    ):
        assert failed(guard.execute(exchange("#1"), shop.exchange, adapter=shop)) == {"host.unavailable"}
    assert shop.effects("#1") == 0


def test_a_long_journal_is_told_in_chunks(lean_engine: Any, journal: str, shop: Shop) -> None:
    with open_store(journal) as store:
        store.append([Event(kind="other", time=number, data={"n": number / 1000}) for number in range(4500)])
    with Guard("retail", journal, engine=lean_engine, timeout=20.0) as guard:
        prepare(guard, shop, "#1")
        confirm(guard, shop, exchange("#1"))
        assert guard.execute(exchange("#1"), shop.exchange, adapter=shop).executed


def test_another_machines_reservations_are_left_alone(ready: Guard, shop: Shop, monkeypatch: Any) -> None:
    from leanguard_host import owners

    with monkeypatch.context() as patch:
        patch.setattr(owners, "new_reservation", lambda: "elsewhere.1.2.3")

        def interrupted(**arguments: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(execution.Session, "settle", lambda *arguments, **named: None)
        with pytest.raises(KeyboardInterrupt):
            ready.execute(exchange("#1"), interrupted, adapter=shop)
    assert [one.phase for one in ready.unsettled()] == ["dispatched"]
    assert ready.reconcile(shop) == []
    assert [one.phase for one in ready.unsettled(elsewhere=True)] == ["unknown"]
    # `started` in this process is the patched id: it does not run here any more.
    owners.ended("elsewhere.1.2.3")
    assert [one.status for one in ready.reconcile(shop)] == ["failed"]


# --- the decorator ---


def test_guarded_functions(ready: Guard, shop: Shop) -> None:
    @ready.tool(adapter=shop, name="exchange_delivered_order_items")
    def guarded(order_id: str, item_ids: Any, new_item_ids: Any, payment_method_id: str) -> str:
        """Exchange."""
        return shop.exchange(order_id, item_ids, new_item_ids, payment_method_id)

    assert guarded.__doc__ == "Exchange."
    denial = guarded("#1", ["lamp-brass"], ["lamp-black"], "gift_card_6666")
    assert isinstance(denial, Denied) and not denial and "retail.payment" in str(denial)
    assert guarded("#1", ["lamp-brass"], ["lamp-black"], payment_method_id="credit_card_5521") == "exchanged"


def test_what_a_denial_does_is_a_setting(guard: Guard, shop: Shop) -> None:
    def get_order_details(order_id: str) -> None:
        raise AssertionError

    raising = guard.tool(get_order_details, adapter=shop, on_denial="raise")
    with pytest.raises(ToolDenied, match=r"retail\.identity"):
        raising("#1")
    with pytest.raises(TurnEnded) as ended:
        guard.tool(get_order_details, adapter=shop, on_denial="end")("#1")
    assert not isinstance(ended.value, Exception)
    with pytest.raises(ValueError, match="on_denial"):
        guard.tool(get_order_details, adapter=shop, on_denial="ignore")  # type: ignore[arg-type]


def test_names_of_parameters_do_not_matter(guard: Guard, shop: Shop) -> None:
    def tool(args: Any, call: Any, guard: Any, self: Any = 1, function: Any = 2, **named: Any) -> None:
        raise AssertionError("no contract names it")

    guarded = guard.tool(tool, adapter=shop)
    for denial in (guarded(1, 2, 3), guarded(args=1, call=2, guard=3, self=4, function=5, tool=6, adapter=7)):
        assert isinstance(denial, Denied)
        assert failed(denial.execution) == {"host.unknown_tool"}
    with pytest.raises(TypeError):
        guard.tool(lambda *args: None, adapter=shop, name="x")


def test_a_guarded_function_raises_what_the_tool_raises(ready: Guard, shop: Shop) -> None:
    @ready.tool(adapter=shop)
    def exchange_delivered_order_items(**arguments: Any) -> None:
        raise ConnectionError("lost")

    with pytest.raises(ConnectionError) as raised:
        exchange_delivered_order_items(**exchange("#1")["arguments"])
    assert "not known" in raised.value.__notes__[0]


def test_threads_that_race(ready: Guard, shop: Shop) -> None:
    results: list[str] = []

    def run() -> None:
        results.append(ready.execute(exchange("#1"), shop.exchange, adapter=shop).status)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count("executed") == 1 and shop.effects("#1") == 1


@pytest.mark.skipif(bool(os.environ.get("LEANGUARD_TEST_RELAY")), reason="starts a Lean of its own")
def test_the_example(tmp_path: Path) -> None:
    """The transcript, with the guard in the process and as an MCP proxy: the agent hears the same."""
    transcripts = []
    for options in ([], ["--mcp"]):
        journal = tmp_path / f"{len(options)}.db"
        command = [sys.executable, str(ROOT / "examples" / "agent_loop.py"), "--journal", str(journal), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "SURPRISE" not in done.stdout
        beats = [line.partition("|")[0].strip() for line in done.stdout.splitlines()]
        turns = [beat for beat in beats if beat.isupper()]
        assert turns == ["EXECUTED", "EXECUTED", "DENIED", "DENIED", "DENIED", "EXECUTED", "DENIED"]
        assert "1 exchange, paid by credit_card_5521." in done.stdout
        with open_store(journal) as store:
            assert store.verify_chain(None) is None
        # All but the results, which MCP formats in its own way, and the proposals' ids.
        told = [line for line in done.stdout.splitlines() if "(" in line and "proposal" not in line]
        transcripts.append([line for line in told if "retail." in line or "protocol." in line or "calls |" in line])
    assert transcripts[0] == transcripts[1]
    assert sum("retail.payment" in line for line in transcripts[0]) == 2
