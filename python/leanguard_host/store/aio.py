"""A journal for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar

from leanguard_host.models import Event
from leanguard_host.store.base import JournalStore, Transaction
from leanguard_host.store.chain import Head
from leanguard_host.store.errors import Finding
from leanguard_host.store.opening import open_store
from leanguard_host.store.stored import StoredEvent

T = TypeVar("T")
_BATCH = 256


class AsyncJournalStore:
    """A `JournalStore` whose calls run in a thread of its own, in the order in which they were made.

    Errors are the same. A task that is cancelled while it waits for a call leaves the call to run to its end: whether
    its events were recorded is for the journal to tell.
    """

    def __init__(self, store: JournalStore) -> None:
        self.store = store
        # One thread: the store is exclusive anyway, its queue is fair, and waiting callers hold no thread of the loop's
        # own pool.
        self._thread = ThreadPoolExecutor(1, "leanguard-journal")

    @classmethod
    async def open(cls, where: str | PathLike[str], **options: Any) -> Self:
        """Open a journal; arguments and errors as in `open_store`."""
        return cls(await asyncio.to_thread(open_store, where, **options))

    async def _call(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def append(self, events: Iterable[Event], *, expected_length: int | None = None) -> list[int]:
        """As `JournalStore.append`."""
        return await self._call(lambda: self.store.append(events, expected_length=expected_length))

    async def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run a function in a transaction and answer what it answers. An exception in it records nothing."""

        def run() -> T:
            with self.store.transaction() as transaction:
                return work(transaction)

        return await self._call(run)

    async def read(self, start: int = 0) -> AsyncIterator[StoredEvent]:
        """As `JournalStore.read`."""
        events: Iterator[StoredEvent] = await self._call(lambda: self.store.read(start))
        while batch := await self._call(lambda: list(islice(events, _BATCH))):
            for event in batch:
                yield event

    async def length(self) -> int:
        """As `JournalStore.length`."""
        return await self._call(self.store.length)

    async def head(self) -> Head:
        """As `JournalStore.head`."""
        return await self._call(self.store.head)

    async def last(self) -> StoredEvent | None:
        """As `JournalStore.last`."""
        return await self._call(self.store.last)

    async def verify_chain(self, anchor: Head | None = None) -> Finding | None:
        """As `JournalStore.verify_chain`."""
        return await self._call(lambda: self.store.verify_chain(anchor))

    async def close(self) -> None:
        """Let go of the database, after the calls that were made before."""
        await self._call(self.store.close)
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
