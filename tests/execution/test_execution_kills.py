"""SIGKILL at every step of `execute`, and processes that race. Lean, the journal on disk and the kills are real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from shop import Shop, confirm, exchange, failed, prepare

from leanguard_host import Guard
from leanguard_host.store import open_store

QUICK = bool(os.environ.get("LEANGUARD_QUICK"))
ROUNDS = 2 if QUICK else 20
RACES = int(os.environ.get("LEANGUARD_RACES", 5 if QUICK else 40))
ROUNDS_AT_ONCE = 20  # in one journal, which each racer has to read first
POINTS = [
    "proposed",
    "decided",
    "reserved",  # in the section, so not on record
    "begun",  # reserved, on record
    "dispatching",
    "dispatched",
    "before",  # in the tool, before and after its effect
    "after",
    "settling",
    "settled",
]

Order = Callable[..., list[int]]


@pytest.fixture(scope="module")
def zygote() -> Iterator[Order]:
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("zygote.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def order(**command: Any) -> list[int]:
            assert process.stdin and process.stdout
            process.stdin.write(json.dumps(command) + "\n")
            process.stdin.flush()
            codes: list[int] = json.loads(process.stdout.readline())
            return codes

        yield order
        process.kill()


def kinds(journal: str, order: str) -> list[str]:
    """What is on record of the exchanges of an order."""
    with open_store(journal) as store:
        events = [stored.event for stored in store.read()]
    return [
        event.kind
        for event in events
        if event.call and event.call.tool.startswith("exchange") and event.call.arguments["order_id"] == order
    ]


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_every_step(
    point: str, zygote: Order, address: str, lean_engine: Any, shop: Shop, journal: str
) -> None:
    for number in range(ROUNDS):
        order = f"#K{number}"
        told = zygote(address=address, journal=journal, ledger=str(shop.ledger), order=order, point=point)
        assert told == [-9]
        effects, recorded = shop.effects(order), kinds(journal, order)
        # None ran without its reservation and its dispatch on record.
        assert effects <= recorded.count("dispatch") <= recorded.count("reservation") <= 1
        with Guard("retail", journal, engine=lean_engine, timeout=20.0) as guard:
            unsettled = guard.unsettled()
            recorded = kinds(journal, order)
            if "reservation" in recorded and point in ("begun", "dispatching"):
                assert "unknown" not in [one.phase for one in unsettled]  # it is known that it was not sent
            elif "dispatch" in recorded and point != "settled":
                assert [(one.phase, one.call.arguments["order_id"]) for one in unsettled] == [("unknown", order)]
                again = guard.execute(exchange(order), shop.exchange, adapter=shop)
                assert again.status == "denied" and "protocol.outcome_unknown" in failed(again)
                [settled] = guard.reconcile(shop)
                assert settled.status == ("succeeded" if effects else "failed")
            assert guard.unsettled() == []
            again = guard.execute(exchange(order), shop.exchange, adapter=shop)
            if effects:
                assert again.status in ("denied", "needs_confirmation")
            elif again.status == "needs_confirmation":  # the reservation had used the consent up
                confirm(guard, shop, exchange(order))
                again = guard.execute(exchange(order), shop.exchange, adapter=shop)
                assert again.executed, again.decision
            else:
                assert again.executed, again.decision
        assert shop.effects(order) == 1


@pytest.mark.parametrize("count", [2, 8])
def test_one_of_several_processes_wins(
    count: int, zygote: Order, address: str, lean_engine: Any, shop: Shop, tmp_path: Path
) -> None:
    rounds = RACES if count == 2 or RACES > 40 else RACES // 4
    for first in range(0, rounds, ROUNDS_AT_ONCE):
        journal, out = f"sqlite:///{tmp_path / f'journal{first}.db'}", tmp_path / f"out{first}"
        orders = [f"#R{number}" for number in range(first, min(first + ROUNDS_AT_ONCE, rounds))]
        with Guard("retail", journal, engine=lean_engine, timeout=20.0) as guard:
            for order in orders:
                prepare(guard, shop, order)
                confirm(guard, shop, exchange(order))
        told = zygote(
            address=address, journal=journal, ledger=str(shop.ledger), orders=orders, count=count, out=str(out)
        )
        assert told == [0] * count
        results = [json.loads(path.read_text()) for path in tmp_path.glob(f"{out.name}.*")]
        for order in orders:
            statuses = sorted(result[order][0] for result in results)
            assert statuses == sorted(["executed", *["denied"] * (count - 1)]), [result[order] for result in results]
            assert shop.effects(order) == 1
            assert kinds(journal, order).count("reservation") == 1
