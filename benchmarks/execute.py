"""What `execute` costs beyond the tool: the steps, on a SQLite journal on disk, with the fsyncs that durability takes.

Usage: python benchmarks/execute.py [--json FILE] [--calls N] [--journal DIRECTORY]

Beside it, in the same run: a bare call of the same function, the parts (one decision, one durable append), one decision
of `cedarpy` where that is installed, and 50 concurrent asyncio calls. The figures are of one run on one machine, whose
facts are printed with them.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from machine import facts

from leanguard_host import Call, Event, Guard
from leanguard_host.engine import Engine
from leanguard_host.jsonfiles import FILE_LIMIT, parse, read
from leanguard_host.store import open_store

SNAPSHOT = Path(__file__).parent.parent / "examples" / "retail_exchange" / "snapshot.json"
CUSTOMER, CHAT = "nora_feld", "chat-0117"
CEDAR = 'permit(principal, action == Action::"exchange", resource) when { resource.owner == principal };'


def figures(seconds: list[float]) -> dict[str, float]:
    """Median and 99th percentile in milliseconds, and how many there were."""
    ordered = sorted(seconds)
    last = ordered[math.ceil(0.99 * len(ordered)) - 1]
    return {
        "median_ms": round(statistics.median(ordered) * 1000, 4),
        "p99_ms": round(last * 1000, 4),
        "count": len(ordered),
    }


def timed(times: int, work: Callable[[int], object]) -> dict[str, float]:
    """The figures of some work, done a number of times."""
    seconds = []
    for number in range(times):
        began = time.perf_counter()
        work(number)
        seconds.append(time.perf_counter() - began)
    return figures(seconds)


class Shop:
    """An adapter over the example's state, with an order for each number."""

    def __init__(self) -> None:
        self.state = parse(read(str(SNAPSHOT), FILE_LIMIT))["state"]

    def snapshot(self, call: Call) -> dict[str, Any]:
        """The state that the call is about."""
        orders = {call.arguments["order_id"]: self.state["orders"]["#L20417"]}
        state = {**self.state, "orders": orders}
        return {"revision": "r1", "principal": CUSTOMER, "conversation": CHAT, "state": copy.deepcopy(state)}


def tool(**arguments: Any) -> str:
    """A tool that does nothing."""
    return "done"


def exchange(order: str) -> dict[str, Any]:
    """A call that writes."""
    fields = {"item_ids": ["lamp-brass"], "new_item_ids": ["lamp-black"], "payment_method_id": "credit_card_5521"}
    return {"tool": "exchange_delivered_order_items", "arguments": {"order_id": order, **fields}}


def look(order: str) -> dict[str, Any]:
    """A call that reads."""
    return {"tool": "get_order_details", "arguments": {"order_id": order}}


def confirmed(guard: Guard, shop: Shop, order: str) -> None:
    """Read and confirm an order's exchange."""
    assert guard.execute(look(order), tool, adapter=shop).executed
    asked = guard.execute(exchange(order), tool, adapter=shop)
    assert asked.proposal_id is not None
    assert guard.confirm(asked.proposal_id, by=CUSTOMER).accepted


def run(engine: Engine, folder: Path, calls: int) -> dict[str, Any]:
    """All the figures."""
    shop = Shop()
    found: dict[str, Any] = {"machine": facts(), "toolchain": engine.toolchain}
    with Guard("retail", f"sqlite:///{folder.resolve()}/execute.db", engine=engine, timeout=30.0) as guard:
        guard.record({"kind": "authentication", "principal": CUSTOMER, "conversation": CHAT})
        for number in range(calls + 50):
            confirmed(guard, shop, f"#{number}")

        def write(number: int) -> None:
            assert guard.execute(exchange(f"#{number}"), tool, adapter=shop).executed

        def reading(number: int) -> None:
            assert guard.execute(look(f"#{number}"), tool, adapter=shop).executed

        found["bare_call"] = timed(calls, lambda number: tool(**exchange(f"#{number}")["arguments"]))
        found["execute_write"] = timed(calls, write)
        found["execute_read"] = timed(calls, reading)
        snapshot = {"time": 0, **shop.snapshot(Call.model_validate(exchange("#1")))}
        found["check"] = timed(calls, lambda number: guard.check(exchange("#1"), snapshot=snapshot))
        with open_store(folder / "append.db") as store:
            found["durable_append"] = timed(calls, lambda number: store.append([Event(kind="other", time=number)]))
        found["asyncio_50"] = asyncio.run(concurrent(guard, shop, calls))
        found["events"] = guard.session().position()
    found["cedarpy_decision"] = cedar(calls)
    return found


async def concurrent(guard: Guard, shop: Shop, first: int) -> dict[str, Any]:
    """Fifty writes on fifty orders at once: how long each waits, and how many a second come through."""
    here = guard.asyncs()

    async def one(number: int) -> float:
        began = time.perf_counter()
        assert (await here.execute(exchange(f"#{number}"), tool, adapter=shop)).executed
        return time.perf_counter() - began

    began = time.perf_counter()
    seconds = await asyncio.gather(*(one(first + number) for number in range(50)))
    whole = time.perf_counter() - began
    return {**figures(list(seconds)), "slowest_ms": round(max(seconds) * 1000, 1), "per_second": round(50 / whole, 1)}


def cedar(times: int) -> dict[str, float] | str:
    """One decision of a peer policy engine on a comparable request."""
    try:
        import cedarpy  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return "cedarpy is not installed"
    request = {"principal": 'User::"nora"', "action": 'Action::"exchange"', "resource": 'Order::"1"', "context": {}}
    owner = {"__entity": {"type": "User", "id": "nora"}}
    entities: list[dict[Any, Any]] = [
        {"uid": {"type": "User", "id": "nora"}, "attrs": {}, "parents": []},
        {"uid": {"type": "Order", "id": "1"}, "attrs": {"owner": owner}, "parents": []},
    ]
    assert cedarpy.is_authorized(request, CEDAR, entities).allowed
    return timed(times, lambda number: cedarpy.is_authorized(request, CEDAR, entities))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="What `execute` costs beyond the tool.")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--calls", type=int, default=200, help="how many calls of each kind")
    parser.add_argument("--journal", type=Path, help="the directory of the journal, on the disk that matters")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.journal) as folder, Engine.start() as engine:
        found = run(engine, Path(folder), given.calls)
    text = json.dumps(found, indent=2)
    print(text)
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
