"""The Python API, on real Lean."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from helpers import EXAMPLES

import leanguard_host
from leanguard_host import Call, Event, Guard, GuardUnavailable, Snapshot
from leanguard_host.engine import Engine


@pytest.fixture
def guard(engine: Engine) -> Iterator[Guard]:
    with Guard(policy="retail", engine=engine, timeout=10.0) as made:
        yield made


def failed(decision: leanguard_host.Decision) -> list[str]:
    return [rule.id for rule in decision.failed_rules]


def test_check(guard: Guard, call: Any, snapshot: Any, events: Any) -> None:
    decision = guard.check(call, snapshot=snapshot, journal=events)
    assert decision.admitted
    assert decision.policy == "retail" and decision.revision == snapshot["revision"]
    assert decision.policy_digest.startswith("sha256:")
    assert "Lean 4." in decision.toolchain
    denial = guard.check(call, snapshot=snapshot)
    assert failed(denial) == ["retail.identity", "retail.status_observed", "retail.confirmation"]
    assert "Authenticate the customer first" in denial.feedback()


def test_the_same_denial_again_says_what_would_change_it(guard: Guard, call: Any, snapshot: Any, events: Any) -> None:
    first = guard.check(call, snapshot=snapshot, journal=events[:-1])
    assert failed(first) == ["retail.confirmation"]
    assert not first.again
    other = {**call, "arguments": {**call["arguments"], "payment_method_id": "none"}}
    assert not guard.check(other, snapshot=snapshot, journal=events[:-1]).again  # another call
    assert not guard.check(call, snapshot={**snapshot, "conversation": "c"}, journal=events[:-1]).again
    second = guard.check(call, snapshot={**snapshot, "revision": "r9"}, journal=events[:-1])
    assert second.again
    assert "their confirmation of exactly this call." in second.feedback()
    assert second.feedback().startswith(first.feedback().splitlines()[0])
    assert second.feedback().splitlines()[1:] == first.feedback().splitlines()[1:]
    assert not guard.check(call, snapshot=snapshot).again  # for other reasons
    assert not guard.check(call, snapshot=snapshot, journal=events[:-1]).again
    assert guard.check(call, snapshot=snapshot, journal=events).admitted
    assert not guard.check(call, snapshot=snapshot, journal=events[:-1]).again  # it was admitted meanwhile


def test_models_and_mappings(guard: Guard, call: Any, snapshot: Any, events: Any) -> None:
    as_models = [Event.model_validate(event) for event in events]
    proposed, state = Call.model_validate(call), Snapshot.model_validate(snapshot)
    assert guard.check(proposed, snapshot=state, journal=as_models).admitted


def test_a_journal_file_is_read_again(engine: Engine, call: Any, snapshot: Any, tmp_path: Any) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_text((EXAMPLES / "journal.jsonl").read_text())
    guard = Guard("retail", journal, engine=engine, timeout=10.0)
    assert failed(guard.check(call, snapshot=snapshot)) == ["retail.confirmation"]
    journal.write_text((EXAMPLES / "journal_confirmed.jsonl").read_text())
    assert guard.check(call, snapshot=snapshot).admitted
    journal.write_text("{}\n")
    denial = guard.check(call, snapshot=snapshot)
    assert denial.errors[0].rule == "host.input"
    assert "line 1" in denial.errors[0].message
    journal.unlink()
    assert not guard.check(call, snapshot=snapshot).admitted


def test_input_that_can_not_be_used_is_a_denial(guard: Guard, call: Any, snapshot: Any, events: Any) -> None:
    del snapshot["principal"]
    for bad_call, bad_snapshot, bad_events in (
        ({"tool": "t"}, snapshot, events),
        ({"tool": "t", "arguments": {"x": float("nan")}}, snapshot, events),
        (call, {**snapshot, "time": "yesterday"}, events),
        (call, {**snapshot, "revision": 7}, events),
        (call, [], events),
        (call, None, events),
        (call, snapshot, [{"kind": "k"}]),
        (call, snapshot, [None]),
        (None, snapshot, events),
        (call, snapshot, 7),
    ):
        denial = guard.check(bad_call, snapshot=bad_snapshot, journal=bad_events)  # type: ignore[arg-type]
        assert not denial.admitted
        assert denial.errors[0].rule == "host.input"


def test_missing_data_is_a_denial_with_errors(guard: Guard, call: Any, snapshot: Any, events: Any) -> None:
    del snapshot["state"]["orders"]
    denial = guard.check(call, snapshot=snapshot, journal=events)
    assert not denial.admitted
    assert "orders: missing" in {error.message for error in denial.errors}


def test_asyncio(guard: Guard, call: Any, snapshot: Any, events: Any) -> None:
    async def many() -> list[leanguard_host.Decision]:
        return await asyncio.gather(*(guard.acheck(call, snapshot=snapshot, journal=events[:n]) for n in (3, 2, 3)))

    assert [decision.admitted for decision in asyncio.run(many())] == [True, False, True]


def test_threads(guard: Guard, call: Any, snapshot: Any, events: Any) -> None:
    verdicts: list[bool] = []

    def work(journal: Any) -> None:
        verdicts.extend(
            guard.check(call, snapshot=snapshot, journal=journal).admitted == (len(journal) == 3) for _ in range(5)
        )

    threads = [threading.Thread(target=work, args=(events[: 2 + n % 2],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == [True] * 20


def workers(engine: Engine) -> list[psutil.Process]:
    """The processes that make up the running Lean."""
    assert engine.process.pid is not None
    process = psutil.Process(engine.process.pid)
    return [process, *process.children(recursive=True)]


def test_killed_during_a_request(guard: Guard, engine: Engine, call: Any, snapshot: Any, events: Any) -> None:
    assert guard.check(call, snapshot=snapshot, journal=events).admitted
    victims = workers(engine)
    for process in victims:
        process.suspend()  # so that it has the request, and has not answered

    def kill() -> None:
        time.sleep(0.3)
        for process in victims:
            os.kill(process.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    denial = guard.check(call, snapshot=snapshot, journal=events)
    killer.join()
    assert not denial.admitted
    assert denial.errors[0].rule == "host.unavailable"
    assert "try again later" in denial.feedback()
    assert guard.check(call, snapshot=snapshot, journal=events).admitted


def test_hung(engine: Engine, call: Any, snapshot: Any, events: Any) -> None:
    guard = Guard("retail", engine=engine, timeout=0.5)
    workers(engine)[-1].suspend()
    denial = guard.check(call, snapshot=snapshot, journal=events)
    assert not denial.admitted
    assert re.search(r"did not answer within 0\.5\d* s", denial.errors[0].message)
    assert Guard("retail", engine=engine, timeout=10.0).check(call, snapshot=snapshot, journal=events).admitted


def test_unknown_policy(engine: Engine) -> None:
    with pytest.raises(GuardUnavailable, match=r"there are: .*retail.*Did you mean retail\?"):
        Guard("retial", engine=engine)


def test_journals_of_no_known_kind(engine: Engine) -> None:
    with pytest.raises(GuardUnavailable, match="no known kind"):
        Guard("retail", "mongodb://journal", engine=engine)


def test_no_usable_lean(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("LEANGUARD_TOOLCHAIN", str(tmp_path / "none"))
    with pytest.raises(GuardUnavailable) as caught:
        Guard("retail")
    assert caught.value.remedy


def test_closed(engine: Engine, call: Any, snapshot: Any, events: Any) -> None:
    guard = Guard("retail", engine=engine)
    guard.close()
    denial = guard.check(call, snapshot=snapshot, journal=events)
    assert denial.errors[0].message.endswith("the guard is closed.")


def test_own_lean(lean: None, call: Any, snapshot: Any, events: Any) -> None:
    with Guard(policy="retail", journal=events, timeout=10.0) as guard:
        assert guard.check(call, snapshot=snapshot).admitted
    assert not guard.check(call, snapshot=snapshot).admitted


def test_public_names() -> None:
    assert set(leanguard_host.__all__) <= set(dir(leanguard_host))
    for name in leanguard_host.__all__:
        assert getattr(leanguard_host, name)
    with pytest.raises(AttributeError):
        leanguard_host.nothing  # noqa: B018
