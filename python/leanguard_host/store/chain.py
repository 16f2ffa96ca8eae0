"""The hash chain: what makes a change to a recorded event show.

Event n has the hash SHA-256(hash of event n-1, canonical JSON of {event, position}); before the first stands a hash of
the journal's own random id, so that events of another journal do not fit. Each record also repeats the hash before it.
That adds no security, but tells the event that was changed from the one that merely follows it.

The chain shows changes by whoever can't rewrite all of it. Someone who can write the file may compute a whole new
chain; against that, keep a `Head` (a length and a hash, as `journal verify` prints it) elsewhere and verify against it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from leanguard_host.store.errors import Finding

_SHIFTS = 1024
_HEAD = re.compile(r"(\d{1,18}):([0-9a-f]{64})")


class Record(NamedTuple):
    """An event as it is stored. `body` is its canonical JSON."""

    position: int
    previous: bytes
    hash: bytes
    body: str


@dataclass(frozen=True)
class Head:
    """How many events there are, and the hash of the last."""

    length: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.length}:{self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """The head that `str` wrote.

        Raises:
            ValueError: it is none.
        """
        if not (match := _HEAD.fullmatch(text)):
            raise ValueError("expected a length and a hash, as in 12:0f3a...")
        return cls(int(match[1]), bytes.fromhex(match[2]))


def genesis(store_id: str) -> bytes:
    """The hash before the first event."""
    return hashlib.sha256(b"leanguard journal\n" + store_id.encode()).digest()


def link(previous: bytes, position: int, body: str) -> bytes:
    """The hash of an event."""
    return hashlib.sha256(b'%b{"event":%b,"position":%d}' % (previous, body.encode(), position)).digest()


def chained(previous: bytes, start: int, bodies: Iterable[str]) -> Iterator[Record]:
    """The records of new events."""
    for position, body in enumerate(bodies, start):
        here = link(previous, position, body)
        yield Record(position, previous, here, body)
        previous = here


class Chain:
    """Follows records from a known hash, and finds the first that does not follow."""

    def __init__(self, position: int, previous: bytes) -> None:
        self.position, self.previous = position, previous

    def follow(self, record: Record) -> bool:
        """Whether the record is the next one; then it is now the last."""
        if record.position != self.position or record.previous != self.previous or _misfit(record):
            return False
        self.position, self.previous = record.position + 1, record.hash
        return True

    def explain(self, record: Record, later: Iterable[Record]) -> Finding:
        """What happened, for a record that does not follow.

        Args:
            record: the first that does not follow.
            later: the records after it; read only as far as is needed.
        """
        position = self.position
        if record.position < position:
            return Finding(
                record.position, "inserted", f"there is a second event at this position, after event {position - 1}"
            )
        if record.position > position:
            if any(other.position == position or other.previous == self.previous for other in later):
                return Finding(
                    position, "reordered", f"event {record.position} stands in its place, and it comes later"
                )
            return Finding(position, "dropped", f"event {record.position} follows event {position - 1}")
        intact, linked = not _misfit(record), record.previous == self.previous
        if linked:
            return Finding(position, "changed", "its content does not have the recorded hash")
        if intact and position == 0:
            return Finding(0, "foreign", "it does not start from this journal's id")
        if intact:
            return Finding(position - 1, "changed", f"event {position} was recorded after another event than this")
        return self._misplaced(record, later)

    def _misplaced(self, record: Record, later: Iterable[Record]) -> Finding:
        """For a record that neither follows nor is intact at its place: was it recorded at another one?"""
        position = self.position
        for shift in range(1, _SHIFTS):
            if not _misfit(record._replace(position=position + shift)):
                if any(not _misfit(other._replace(position=position)) for other in _linked(later, self.previous)):
                    return Finding(
                        position, "reordered", f"what was recorded as event {position + shift} stands in its place"
                    )
                return Finding(
                    position, "dropped", f"what was recorded as event {position + shift} stands in its place"
                )
            if shift <= position and not _misfit(record._replace(position=position - shift)):
                before = position - shift
                return Finding(before, "inserted", f"what was recorded as event {before} is now event {position}")
        return Finding(
            position, "changed", "neither its content nor its link to the event before it has the recorded hash"
        )

    def end(self, head: Head) -> Finding | None:
        """What is wrong once all records followed, if the store says that the journal ends at `head`."""
        if head.length > self.position:
            return Finding(
                self.position, "dropped", f"the journal has {self.position} events, but {head.length} were recorded"
            )
        if head.length < self.position:
            return Finding(
                head.length, "inserted", f"the journal has {self.position} events, but only {head.length} were recorded"
            )
        if head.hash != self.previous:
            if not head.length:
                return Finding(
                    0, "dropped", "the journal is empty, but its last recorded hash is not that of an empty one"
                )
            return Finding(head.length - 1, "changed", "it does not have the hash that was recorded for the last event")
        return None


def _misfit(record: Record) -> bool:
    return link(record.previous, record.position, record.body) != record.hash


def _linked(records: Iterable[Record], previous: bytes) -> Iterator[Record]:
    return (record for record in records if record.previous == previous)


def check(records: Iterable[Record], store_id: str, head: Head, anchor: Head | None = None) -> Finding | None:
    """The first event that is not as it was recorded; None if all are.

    Args:
        records: all of them, in the order in which they stand.
        store_id: the journal's id.
        head: where the store says that the journal ends.
        anchor: where the journal ended at some time, as noted elsewhere.
    """
    chain = Chain(0, genesis(store_id))
    stream = iter(records)
    anchored = anchor is None or (anchor.length == 0 and anchor.hash == chain.previous)
    for record in stream:
        if not chain.follow(record):
            return chain.explain(record, stream)
        if anchor is not None and chain.position == anchor.length:
            if chain.previous != anchor.hash:
                return Finding(record.position, "changed", "it does not have the hash that was noted for it")
            anchored = True
    if finding := chain.end(head):
        return finding
    if anchored or anchor is None:
        return None
    if anchor.length == 0:
        return Finding(0, "foreign", "the journal does not have the id that was noted")
    return Finding(
        chain.position, "dropped", f"the journal has {chain.position} events, but {anchor.length} were noted"
    )
