"""An event with its place in the journal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from leanguard_host.models import Event, ModelError, read_model
from leanguard_host.store.canonical import canonical
from leanguard_host.store.chain import Record
from leanguard_host.store.errors import JournalError


def body_of(event: Event) -> str:
    """The canonical JSON of an event."""
    return canonical(event.wire())


def event_of(body: str, where: str, position: int) -> Event:
    """The event that a body is.

    Raises:
        JournalError: it is none that this version knows.
    """
    try:
        return read_model(Event, json.loads(body))
    except (ModelError, ValueError, RecursionError) as problem:
        raise JournalError(
            where, f"has an event {position} that is none: {problem}", "It may be from a newer LeanGuard: upgrade."
        ) from None


@dataclass(frozen=True)
class StoredEvent:
    """An event of a journal.

    Attributes:
        position: counted from 0.
        json: the event as canonical JSON.
        hash: the hash of the event and of all before it, in hexadecimal digits.
        where: the journal.
    """

    position: int
    json: str
    hash: str
    where: str

    @classmethod
    def of(cls, record: Record, where: str) -> StoredEvent:
        """The event of a record."""
        return cls(record.position, record.body, record.hash.hex(), where)

    # Read on demand: most who go through a long journal pass the JSON on and never look inside.
    @cached_property
    def event(self) -> Event:
        """The event itself.

        Raises:
            JournalError: this version does not know such an event.
        """
        return event_of(self.json, self.where, self.position)
