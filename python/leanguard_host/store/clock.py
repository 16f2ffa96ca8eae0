"""The time of a new event. Stores keep the times that they are given; who appends takes them from here."""

from __future__ import annotations

import time
from typing import Protocol

from leanguard_host.store.stored import StoredEvent


class _Readable(Protocol):
    def last(self) -> StoredEvent | None: ...


def now_ms() -> int:
    """The system's time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def monotone_time(last: int | None, now: int | None = None) -> int:
    """The time for an event after one of time `last`: now, or `last` while the clock stands behind it.

    A clock that jumps back would otherwise put a new event before older ones, and windows of policies would look past
    them.
    """
    now = now_ms() if now is None else now
    return now if last is None else max(last, now)


def next_time(journal: _Readable, now: int | None = None) -> int:
    """`monotone_time` after the last event of a store or of a transaction.

    Raises:
        JournalError: the journal can't be read.
    """
    last = journal.last()
    return monotone_time(None if last is None else last.event.time, now)
