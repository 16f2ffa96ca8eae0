"""Several processes at once, and processes that are killed."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from collections import Counter
from typing import Any

import pytest
from journal_helpers import KILLS, ROUNDS, Backend, append_batches, die_at, event, open_at_once, race, take_turns

from leanguard_host.store import open_store

# A server without threads or open journals, from which children are forked quickly.
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["leanguard_host.store", "leanguard_host.store.sqlite"])


def run(target: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
    children = [context.Process(target=target, args=each, daemon=True) for each in arguments]
    for child in children:
        child.start()
    return children


def joined(children: list[Any]) -> None:
    for child in children:
        child.join(300)
        assert child.exitcode == 0


@pytest.mark.parametrize("count", [2, 8])
def test_exactly_one_wins_each_round(backend: Backend, count: int) -> None:
    barrier, results = context.Barrier(count), context.Queue()
    children = run(race, [(backend.url, name, ROUNDS, barrier, results) for name in range(count)])
    won = dict(results.get(timeout=500) for _ in range(count))
    joined(children)
    assert Counter(number for rounds in won.values() for number in rounds) == Counter(range(ROUNDS))
    with open_store(backend.url) as store:
        assert store.length() == ROUNDS
        for stored in store.read():
            assert stored.event.data is not None
            assert stored.position in won[stored.event.data["by"]]
        assert store.verify_chain() is None


def test_transactions_of_processes_do_not_overlap(backend: Backend) -> None:
    joined(run(take_turns, [(backend.url, name, ROUNDS // 10) for name in range(4)]))
    with open_store(backend.url) as store:
        numbers = [stored.event.data["number"] for stored in store.read() if stored.event.data]
        assert numbers == list(range(4 * (ROUNDS // 10)))


def test_processes_that_create_a_journal_at_once(backend: Backend) -> None:
    barrier = context.Barrier(6)
    joined(run(open_at_once, [(backend.url, barrier)] * 6))
    with open_store(backend.url) as store:
        assert store.length() == 6
        assert store.verify_chain() is None


def test_killed_at_any_time(backend: Backend) -> None:
    """Nothing half-written, nothing lost that was told to be durable."""
    chance = random.Random(7)  # noqa: S311 - no secret
    open_store(backend.url).close()
    for _ in range(KILLS // 2 if backend.name == "postgres" else KILLS):
        ours, theirs = context.Pipe()
        (child,) = run(append_batches, [(backend.url, theirs)])
        theirs.close()
        durable = ours.recv()
        time.sleep(chance.random() * 0.03)
        child.kill()
        child.join()
        try:
            while True:
                durable = ours.recv()
        except EOFError:
            pass
        with open_store(backend.url, timeout=30) as store:
            # What a server was told in time it may still record: that is as if the kill had come a moment later.
            assert store.length() % 3 == 0
            assert store.length() // 3 in (durable, durable + 1)
            assert store.verify_chain() is None
    with open_store(backend.url) as store:
        assert [stored.event.time for stored in store.read()] == [event(n).time for n in range(store.length())]


@pytest.mark.parametrize(
    ("step", "length"),
    [
        ("before begin", 0),
        ("after begin", 0),
        ("before write", 0),
        ("after write", 0),
        ("before commit", 0),
        ("after commit", 3),
    ],
)
def test_killed_at_a_step(backend: Backend, step: str, length: int) -> None:
    (child,) = run(die_at, [(backend.url, step)])
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    with open_store(backend.url, timeout=30) as store:
        assert store.length() == length
        assert store.verify_chain() is None
        assert store.append([event()], expected_length=length) == [length]
