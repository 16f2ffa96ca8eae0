"""A guard on a journal of a million events: how long it takes to start, and whether a decision takes longer for it.

Usage: python benchmarks/long_journal.py [--json FILE] [--events N] [--decisions N] [--folder DIR]

Two SQLite journals are written, one of a thousand events and one of a million (facts of many customers, conversations
and orders), and a guard is started on each, in a Lean of its own: it reads the journal and follows it to its end. Then
the example's call is decided over both journals, in turns.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from journal_length import EXAMPLE, SEED, others
from machine import facts

from leanguard_host import Event, Guard
from leanguard_host.engine import Engine
from leanguard_host.inputs import read_inputs
from leanguard_host.jsonfiles import read
from leanguard_host.store import open_store

SHORT = 1_000
BATCH = 10_000
STEPS = frozenset({"consent", "reservation", "outcome"})  # of the protocol, which these journals have no part of


def events(count: int, before: int, choose: random.Random) -> Iterator[list[Event]]:
    """Facts, oldest first, in batches."""
    told = 0
    while told < count:
        size = min(BATCH, count - told)
        made = [event for event in others(4 * BATCH, before, choose) if event["kind"] not in STEPS][:size]
        first = before - 1000 * (count - told)
        yield [Event.model_validate({**event, "time": first + 1000 * i}) for i, event in enumerate(made)]
        told += len(made)


def measure(folder: Path, longest: int, decisions: int) -> dict[str, Any]:
    """The figures of one run."""
    call, snapshot = (read(str(EXAMPLE / name), 2**20) for name in ("call.json", "snapshot.json"))
    inputs = read_inputs(call, snapshot, None)
    before = inputs.snapshot.time - 60_000
    figures: dict[str, Any] = {}
    guards: dict[int, Guard] = {}
    with ExitStack() as stack:
        for length in (SHORT, longest):
            address = f"sqlite:///{folder.resolve()}/{length}.db"
            began = time.perf_counter()
            with open_store(address) as store:
                for batch in events(length, before, random.Random(SEED)):  # noqa: S311 - nothing secret
                    store.append(batch)
            written = time.perf_counter() - began
            engine = stack.enter_context(Engine.start())
            began = time.perf_counter()
            guards[length] = stack.enter_context(Guard("retail", address, engine=engine, timeout=30.0))
            figures[str(length)] = {
                "written_seconds": round(written, 1),
                "guard_ready_seconds": round(time.perf_counter() - began, 1),
                "memory_mib": round(engine.process.memory / 2**20),  # type: ignore[attr-defined]
            }
            print(f"{length:,} events: {figures[str(length)]}", file=sys.stderr, flush=True)
        seconds: dict[int, list[float]] = {length: [] for length in guards}
        for turn in range(decisions + 50):
            for length, guard in guards.items():
                began = time.perf_counter()
                decision = guard.check(inputs.call, snapshot=inputs.snapshot)
                assert not decision.admitted and not decision.errors, decision
                if turn >= 50:
                    seconds[length].append((time.perf_counter() - began) * 1000)
    for length, taken in seconds.items():
        figures[str(length)]["decision_median_ms"] = round(statistics.median(taken), 3)
        figures[str(length)]["decision_p99_ms"] = round(statistics.quantiles(taken, n=100)[98], 3)
    figures["ratio"] = round(statistics.median(seconds[longest]) / statistics.median(seconds[SHORT]), 3)
    return figures


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--events", type=int, default=1_000_000, metavar="N", help="events of the long journal")
    parser.add_argument("--decisions", type=int, default=500, metavar="N", help="decisions over each journal")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where the journals are written")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        found = {"machine": facts(), **measure(Path(folder), given.events, given.decisions)}
    text = json.dumps(found, indent=1)
    print(text)
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
