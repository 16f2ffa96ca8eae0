"""The store in asyncio."""

from __future__ import annotations

import asyncio

import pytest
from journal_helpers import Backend, event

from leanguard_host.store import AsyncJournalStore, JournalConflictError, JournalError, Transaction


def test_asyncio(backend: Backend) -> None:
    async def main() -> None:
        async with await AsyncJournalStore.open(backend.url) as store:
            assert await store.append([event(0)], expected_length=0) == [0]
            with pytest.raises(JournalConflictError):
                await store.append([event(0)], expected_length=0)

            def count(section: Transaction) -> int:
                section.append([event(section.length)])
                return section.length

            assert sorted(await asyncio.gather(*[store.transact(count) for _ in range(50)])) == list(range(2, 52))

            def fail(section: Transaction) -> None:
                section.append([event()])
                raise KeyError

            with pytest.raises(KeyError):
                await store.transact(fail)
            numbers = [stored.event.data["number"] async for stored in store.read() if stored.event.data]
            assert numbers == list(range(51))
            last = await store.last()
            assert last is not None
            assert last.position == 50
            assert (await store.head()).length == await store.length() == 51
            assert await store.verify_chain() is None
        with pytest.raises((JournalError, RuntimeError)):
            await store.length()

    asyncio.run(main())


def test_a_cancelled_append_leaves_a_whole_journal(backend: Backend) -> None:
    async def main() -> None:
        async with await AsyncJournalStore.open(backend.url) as store:
            for _ in range(20):
                task = asyncio.create_task(store.append([event(0), event(1)]))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert await store.length() % 2 == 0
            assert await store.verify_chain() is None

    asyncio.run(main())
