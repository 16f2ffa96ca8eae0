"""The same for asyncio. On real Lean."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from shop import CUSTOMER, Shop, confirm, exchange, failed, prepare

from leanguard_host import AsyncGuard, Call, Denied, Guard, execution
from leanguard_host.store import open_store


@pytest.fixture
def ready(guard: Guard, shop: Shop) -> Guard:
    prepare(guard, shop, "#1")
    confirm(guard, shop, exchange("#1"))
    return guard


class AsyncShop(Shop):
    """A shop whose adapter is asynchronous."""

    async def snapshot(self, call: Call) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().snapshot(call)

    async def reconcile(self, reservation: Any) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().reconcile(reservation)

    async def aexchange(self, **arguments: Any) -> str:
        await asyncio.sleep(0)
        return self.exchange(**arguments)


def test_from_the_proposal_to_the_outcome(guard: Guard, shop: Shop) -> None:
    prepare(guard, shop, "#1")
    there = AsyncShop(shop.ledger)

    async def run() -> None:
        here = guard.asyncs()
        asked = await here.execute(exchange("#1"), there.aexchange, adapter=there)
        assert asked.status == "needs_confirmation" and asked.proposal_id
        assert (await here.confirm(asked.proposal_id, by=CUSTOMER)).accepted
        snapshot = {"time": 0, **await there.snapshot(Call.model_validate(exchange("#1")))}
        assert (await here.check(exchange("#1"), snapshot=snapshot)).admitted
        done = await here.execute(exchange("#1"), there.aexchange, adapter=there)
        assert done.executed and done.value == "exchanged"
        assert await here.unsettled() == []
        again = await here.execute(exchange("#1"), there.exchange, adapter=there)
        assert "retail.exchange_once" in failed(again)

    asyncio.run(run())


def test_a_cancelled_tool_is_unknown_until_reconciled(ready: Guard, shop: Shop) -> None:
    there = AsyncShop(shop.ledger)

    async def run() -> None:
        here, running = ready.asyncs(), asyncio.Event()

        async def hangs(**arguments: Any) -> None:
            running.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(here.execute(exchange("#1"), hangs, adapter=there))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [one.phase for one in await here.unsettled()] == ["unknown"]
        again = await here.execute(exchange("#1"), there.aexchange, adapter=there)
        assert "protocol.outcome_unknown" in failed(again)
        assert [one.status for one in await here.reconcile(there)] == ["failed"]

    asyncio.run(run())


@pytest.mark.parametrize("point", ["proposed", "reserved", "begun", "dispatching", "dispatched"])
def test_cancelled_before_the_tool(
    point: str, ready: Guard, shop: Shop, monkeypatch: pytest.MonkeyPatch, journal: str
) -> None:
    there, ran = AsyncShop(shop.ledger), []

    async def run() -> None:
        here, loop = ready.asyncs(), asyncio.get_running_loop()
        reached = threading.Event()

        def pause(name: str) -> None:
            if name == point and not reached.is_set():
                reached.set()
                loop.call_soon_threadsafe(task.cancel)
                time.sleep(0.1)

        async def tool(**arguments: Any) -> None:
            ran.append(1)

        monkeypatch.setattr(execution, "reached", pause)
        task = asyncio.create_task(here.execute(exchange("#1"), tool, adapter=there))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await here.unsettled() == []

    asyncio.run(run())
    assert not ran
    with open_store(journal) as store:
        last = store.last()
    # What was reserved has ended, and it is known that nothing was sent.
    assert last and (last.event.kind == "expiry" or last.event.status == "failed" or point == "proposed")


def test_timeouts(ready: Guard, shop: Shop) -> None:
    there, go = AsyncShop(shop.ledger), threading.Event()
    there.hooks["before"] = lambda: go.wait(30) and None

    async def run() -> None:
        here = ready.asyncs()
        done = await here.execute(exchange("#1"), there.exchange, adapter=there, timeout=0.05)
        assert done.status == "unknown"
        assert await here.reconcile(there) == []  # it still runs in its thread
        go.set()
        for _ in range(500):
            if not await here.unsettled():
                break
            await asyncio.sleep(0.02)
        assert await here.unsettled() == []

    asyncio.run(run())
    assert shop.effects("#1") == 1


def test_guarded_coroutine_functions(ready: Guard, shop: Shop) -> None:
    @ready.tool(adapter=shop)
    async def exchange_delivered_order_items(**arguments: Any) -> str:
        return shop.exchange(**arguments)

    async def run() -> None:
        assert isinstance(await exchange_delivered_order_items(**exchange("#1", "gift_card_6666")["arguments"]), Denied)
        assert await exchange_delivered_order_items(**exchange("#1")["arguments"]) == "exchanged"

    asyncio.run(run())


def test_fifty_at_once(lean_engine: Any, journal: str, shop: Shop) -> None:
    there = AsyncShop(shop.ledger)

    async def run() -> None:
        async with await AsyncGuard.open("retail", journal, engine=lean_engine, timeout=20.0) as here:
            for number in range(50):
                await asyncio.to_thread(prepare, here.guard, shop, f"#{number}")
                await asyncio.to_thread(confirm, here.guard, shop, exchange(f"#{number}"))
            results = await asyncio.gather(
                *(here.execute(exchange(f"#{number}"), there.aexchange, adapter=there) for number in range(50))
            )
            assert all(done.executed for done in results)

    asyncio.run(run())
    assert all(shop.effects(f"#{number}") == 1 for number in range(50))
