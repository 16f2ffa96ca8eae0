"""`execute` on a journal in PostgreSQL, with a real Lean; tests/execution has the rest, on SQLite."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journal_helpers import PostgresBackend

sys.path.append(str(Path(__file__).parents[1] / "execution"))

from shop import Shop, confirm, exchange, failed, prepare

from leanguard_host import Guard


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "ledger")


@pytest.fixture
def guard(engine: Any, on_postgres: PostgresBackend, shop: Shop) -> Iterator[Guard]:
    with Guard("retail", on_postgres.url, engine=engine, timeout=20.0) as made:
        prepare(made, shop, "#1")
        confirm(made, shop, exchange("#1"))
        yield made


def test_a_consent_admits_once(guard: Guard, shop: Shop) -> None:
    assert guard.execute(exchange("#1"), shop.exchange, adapter=shop).executed
    again = guard.execute(exchange("#1"), shop.exchange, adapter=shop)
    assert "retail.exchange_once" in failed(again)
    assert shop.effects("#1") == 1


def test_an_unknown_outcome_outlives_the_guard(
    guard: Guard, engine: Any, on_postgres: PostgresBackend, shop: Shop
) -> None:
    def cut_off(**arguments: Any) -> None:
        shop.exchange(**arguments)
        raise ConnectionError

    assert guard.execute(exchange("#1"), cut_off, adapter=shop).status == "unknown"
    with Guard("retail", on_postgres.url, engine=engine, timeout=20.0) as restarted:
        assert [one.phase for one in restarted.unsettled()] == ["unknown"]
        again = restarted.execute(exchange("#1"), shop.exchange, adapter=shop)
        assert "protocol.outcome_unknown" in failed(again)
        assert [one.status for one in restarted.reconcile(shop)] == ["succeeded"]
    assert shop.effects("#1") == 1


def test_one_of_several_guards_wins(guard: Guard, engine: Any, on_postgres: PostgresBackend, shop: Shop) -> None:
    guards = [Guard("retail", on_postgres.url, engine=engine, timeout=20.0) for _ in range(4)]
    barrier, told = threading.Barrier(len(guards)), []

    def race(one: Guard) -> None:
        barrier.wait()
        told.append(one.execute(exchange("#1"), shop.exchange, adapter=shop).status)

    racers = [threading.Thread(target=race, args=(one,)) for one in guards]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    for one in guards:
        one.close()
    assert sorted(told) == ["denied", "denied", "denied", "executed"]
    assert shop.effects("#1") == 1
