"""What every journal store does, whatever database holds it."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import TracebackType
from typing import Self

from leanguard_host.models import Event
from leanguard_host.store.chain import Chain, Head, Record, chained, check, genesis
from leanguard_host.store.errors import (
    Finding,
    JournalBusyError,
    JournalConflictError,
    JournalCorruptError,
    JournalError,
    JournalTamperedError,
)
from leanguard_host.store.stored import StoredEvent, body_of

SCHEMA_VERSION = 2
"""Of the tables. Version 1 had no head and did not repeat the previous hash."""

_LEAST_ROWS, _MOST_ROWS = 16, 1024
_BATCH_SIZE = 1 << 20


class Transaction:
    """A section in which no other thread or process can append. From `JournalStore.transaction`."""

    def __init__(self, store: JournalStore, head: Head) -> None:
        self._store, self._head, self._open = store, head, True

    @property
    def length(self) -> int:
        """How many events there are, with those of this transaction."""
        return self._head.length

    @property
    def head(self) -> Head:
        """The length and the hash of the last event, with those of this transaction."""
        return self._head

    def read(self, start: int = 0) -> Iterator[StoredEvent]:
        """The events from a position on, with those of this transaction.

        Raises:
            JournalTamperedError: an event is not what was recorded.
            JournalError: the journal can't be read.
        """
        self._check_open()
        return self._store.read(start)

    def last(self) -> StoredEvent | None:
        """The newest event, or None.

        Raises:
            JournalError: as `read`.
        """
        self._check_open()
        return self._store.last()

    def append(self, events: Iterable[Event]) -> list[int]:
        """Append events, to be durable when the transaction ends without an exception, and answer their positions.

        Raises:
            JournalError: they can't be written; the whole transaction will record nothing.
        """
        self._check_open()
        bodies = [body_of(event) for event in events]
        records = list(chained(self._head.hash, self._head.length, bodies))
        if records:
            self._open = False  # A statement that failed may have been half done: such a transaction must not commit.
            self._store._write(records, self._head)
            self._head = Head(records[-1].position + 1, records[-1].hash)
            self._open = True
        return [record.position for record in records]

    def _check_open(self) -> None:
        if not self._open:
            raise JournalError(self._store.where, "can't go on with a transaction that has ended or failed")


class JournalStore(ABC):
    """An append-only, hash-chained list of events, safe to share between threads and between processes.

    Get one from `open_store`. Use as a context manager, or call `close`. A store belongs to the process that opened it:
    after a fork, the child opens its own.
    """

    def __init__(self, where: str, timeout: float) -> None:
        self.where = where
        """The file or address, without passwords."""
        self.timeout = timeout
        """Seconds to wait for others who use the journal."""
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._closed = False
        self._in_transaction = False

    # --- what the databases do; always with the lock held, raising JournalError ---

    @property
    @abstractmethod
    def store_id(self) -> str:
        """The journal's random id, from which its hashes start."""

    @abstractmethod
    def _begin(self) -> None:
        """Start a transaction that excludes all other writers."""

    @abstractmethod
    def _commit(self) -> None:
        """End it; durable on return."""

    @abstractmethod
    def _rollback(self) -> None:
        """End it without effect. Raises nothing."""

    @abstractmethod
    def _recorded_head(self) -> Head:
        """The head that the store keeps beside the events."""

    @abstractmethod
    def _rows(self, first: int, limit: int) -> list[Record]:
        """Records in order of their positions, from a position on."""

    @abstractmethod
    def _last_row(self) -> Record | None:
        """The record with the greatest position."""

    @abstractmethod
    def _write(self, records: list[Record], head: Head) -> None:
        """Insert records and move the head from `head` to the last of them."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Let go of the database. Raises nothing."""

    # --- reading ---

    def head(self) -> Head:
        """The number of events and the hash of the last.

        Raises:
            JournalTamperedError: events were dropped from or added to the end.
            JournalError: the journal can't be read.
        """
        with self._held():
            return self._head()

    def recorded_head(self) -> Head:
        """The head that the store keeps beside the events, unchecked.

        Raises:
            JournalError: the journal can't be read.
        """
        with self._held():
            return self._recorded_head()

    def _head(self) -> Head:
        head = self._recorded_head()
        last = None if self._in_transaction else next(iter(self._rows(head.length - 1, 1)), None)
        # Outside of a transaction, others may have appended since the head was read: rows beyond it mean nothing.
        if last is None and (head.length or self._in_transaction):
            last = self._last_row()
        end = Chain(0, genesis(self.store_id)) if last is None else Chain(last.position + 1, last.hash)
        if head.length or self._in_transaction:
            if finding := end.end(head):
                raise JournalTamperedError(self.where, finding)
        elif head.hash != genesis(self.store_id):
            raise JournalTamperedError(
                self.where, Finding(0, "dropped", "the journal is empty, but its recorded hash is of another")
            )
        return head

    def length(self) -> int:
        """How many events there are.

        Raises:
            JournalTamperedError, JournalError: as `head`.
        """
        return self.head().length

    def last(self) -> StoredEvent | None:
        """The newest event, or None.

        Raises:
            JournalTamperedError, JournalError: as `head`.
        """
        with self._held():
            length = self._head().length
            return StoredEvent.of(self._rows(length - 1, 1)[0], self.where) if length else None

    def read(self, start: int = 0) -> Iterator[StoredEvent]:
        """The events from a position on, oldest first, up to those that were there when this was called.

        Each is checked against the hash of the one before it. However many they are, few are in memory at once.

        Raises:
            ValueError: the position is negative.
            JournalTamperedError: an event is not what was recorded.
            JournalError: the journal can't be read.
        """
        if start < 0:
            raise ValueError("start must not be negative")
        with self._held():
            end = self._head()
            chain = Chain(0, genesis(self.store_id))
            if 0 < start < end.length:
                before = self._rows(start - 1, 1)
                if not before or before[0].position != start - 1:
                    raise JournalTamperedError(self.where, Finding(start - 1, "dropped", "there is no such event"))
                chain = Chain(start, before[0].hash)
        if start >= end.length:
            return iter(())
        return (StoredEvent.of(record, self.where) for record in self._follow(chain, end))

    def _records(self, head: Head) -> Iterator[Record]:
        """All records up to a head, each checked."""
        return self._follow(Chain(0, genesis(self.store_id)), head)

    def _follow(self, chain: Chain, end: Head) -> Iterator[Record]:
        stream = self._stream(chain.position, end.length)
        for record in stream:
            if not chain.follow(record):
                raise JournalTamperedError(self.where, chain.explain(record, stream))
            yield record
        if finding := chain.end(end):
            raise JournalTamperedError(self.where, finding)

    def _stream(self, first: int, end: int | None) -> Iterator[Record]:
        """Records in batches, so that nobody holds the lock or a database cursor while the caller works on one."""
        limit = _LEAST_ROWS
        while True:
            with self._held():
                rows = self._rows(first, limit)
            for row in rows:
                if end is not None and row.position >= end:
                    return
                yield row
            if len(rows) < limit:
                return
            first = rows[-1].position + 1
            small = sum(len(row.body) for row in rows) < _BATCH_SIZE
            limit = min(2 * limit, _MOST_ROWS) if small else max(limit // 2, 1)

    def verify_chain(self, anchor: Head | None = None) -> Finding | None:
        """The first event that was changed, dropped, moved, inserted or made unreadable; None if there is none.

        Events that others append meanwhile are left out.

        Args:
            anchor: where the journal ended at some time, as noted elsewhere. Without it, somebody who can write the
                database and compute a whole new chain goes unnoticed.

        Raises:
            JournalError: the journal can't be read at all.
        """
        with self._held():
            try:
                newest = self._last_row()
            except JournalCorruptError:
                newest = None  # The events before it may tell more.
            try:
                head = self._recorded_head()
            except JournalCorruptError as error:
                position = newest.position + 1 if newest else 0
                return Finding(position, "dropped", f"where the journal ends is not known: it {error.problem}")
            # The row was read before the head, so honest writers can't have put it beyond.
            beyond = newest is not None and newest.position >= head.length
        seen = -1
        try:
            stream = self._stream(-(2**63), None if beyond else head.length)

            def counted() -> Iterator[Record]:
                nonlocal seen
                for record in stream:
                    seen = record.position
                    yield record

            return check(counted(), self.store_id, head, anchor)
        except JournalCorruptError:
            return self._unreadable(seen + 1)

    def _unreadable(self, position: int) -> Finding:
        """The exact place, as a whole batch failed."""
        while True:
            try:
                with self._held():
                    if not self._rows(position, 1):
                        break
            except JournalCorruptError as error:
                return Finding(position, "unreadable", error.problem)
            position += 1
        return Finding(position, "unreadable", "the database is damaged")

    # --- writing ---

    def append(self, events: Iterable[Event], *, expected_length: int | None = None) -> list[int]:
        """Append all of the events or none, durably, and answer their positions.

        Args:
            events: oldest first.
            expected_length: the length of the journal that the events were decided on.

        Raises:
            JournalConflictError: the journal has another length by now.
            JournalBusyError: others held it for longer than the timeout.
            JournalTamperedError: events were dropped from or added to the end.
            JournalError: it can't be written. Where the connection to a server broke in the middle, the events may have
                been recorded all the same; read before trying again.
        """
        with self.transaction() as transaction:
            if expected_length is not None and transaction.length != expected_length:
                raise JournalConflictError(self.where, expected_length, transaction.length)
            return transaction.append(events)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A section that excludes every other writer: read, decide, append.

        Durable when it ends. An exception in it records nothing.

        Raises:
            JournalBusyError, JournalTamperedError, JournalError: as `append`.
            RuntimeError: this thread is in a transaction of this store already.
        """
        with self._held():
            if self._in_transaction:
                raise RuntimeError("the thread is in a transaction of this store already")
            self._in_transaction = True
            try:
                self._begin()
                transaction = Transaction(self, self._head())
                try:
                    yield transaction
                    transaction._check_open()
                finally:
                    transaction._open = False
                self._commit()
            except BaseException:
                self._rollback()
                raise
            finally:
                self._in_transaction = False

    def _restore(self, records: Iterator[Record]) -> int:
        """Insert records that were checked, into an empty journal of the same id, all or none."""
        with self.transaction() as transaction:
            if transaction.length:
                raise JournalError(self.where, "exists already", "Import into a new one.")
            head = transaction.head
            while batch := list(islice(records, _MOST_ROWS)):
                self._write(batch, head)
                head = Head(batch[-1].position + 1, batch[-1].hash)
        return head.length

    # --- life ---

    def close(self) -> None:
        """Let go of the database. Later calls raise JournalError."""
        with self._lock:
            if not self._closed:
                self._closed = True
                # The parent's connection is not the child's to end: that could remove the parent's lock or log.
                if self._pid == os.getpid():
                    self._disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The lock between threads, with everything that makes the store unusable checked."""
        if self._pid != os.getpid():
            raise JournalError(
                self.where, "was opened by the process that this one was forked from", "Open it again here."
            )
        if not self._lock.acquire(timeout=self.timeout):
            raise JournalBusyError(
                self.where,
                f"was held by another thread for more than {self.timeout:g} s",
                "Try again, or raise the timeout.",
            )
        try:
            if self._closed:
                raise JournalError(self.where, "is closed")
            yield
        finally:
            self._lock.release()
