"""A journal as a text file: a header on the first line, then one event on each.

```
{"format":"leanguard journal","head":"<hash>","length":2,"store":"<id>","version":2}
{"event":{...},"hash":"<hash>","position":0,"previous":"<hash>"}
```

Any JSON with the same values is read, whatever its spaces, escapes and order of names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from leanguard_host.jsonfiles import InputError, Source, parse
from leanguard_host.store.base import SCHEMA_VERSION, JournalStore
from leanguard_host.store.canonical import canonical
from leanguard_host.store.chain import Chain, Head, Record, check, genesis, link
from leanguard_host.store.errors import Finding, JournalError, JournalTamperedError, JournalVersionError
from leanguard_host.store.opening import open_store
from leanguard_host.store.stored import body_of, event_of

FORMAT = "leanguard journal"
_LONGEST_LINE = 64 << 20
_HASH = re.compile("[0-9a-f]{64}")
_ENDS = re.compile("[\x85\u2028\u2029]")
_LINE = re.compile(
    r'\{"event":(\{.*\}),"hash":"([0-9a-f]{64})","position":(0|[1-9]\d{0,17}),"previous":"([0-9a-f]{64})"\}'
)


@dataclass(frozen=True)
class Header:
    """The first line of an export."""

    store_id: str
    head: Head

    def line(self) -> str:
        """The line."""
        return canonical(
            {
                "format": FORMAT,
                "head": self.head.hash.hex(),
                "length": self.head.length,
                "store": self.store_id,
                "version": SCHEMA_VERSION,
            }
        )


def export_journal(store: JournalStore, output: TextIO) -> int:
    """Write the journal as it is now, checking it on the way, and answer the number of events.

    Raises:
        JournalTamperedError: it is not what was recorded. What was written by then is of no use.
        JournalError: it can't be read.
        OSError: the output can't be written.
    """
    head = store.head()
    output.write(Header(store.store_id, head).line() + "\n")
    for record in store._records(head):
        output.write(
            f'{{"event":{one_line(record.body)},"hash":"{record.hash.hex()}",'
            f'"position":{record.position},"previous":"{record.previous.hex()}"}}\n'
        )
    return head.length


def one_line(body: str) -> str:
    """The same JSON without the characters at which some readers end a line, though JSON does not."""
    return _ENDS.sub(lambda match: f"\\u{ord(match.group()):04x}", body)


class ExportFile:
    """An export, read line by line.

    Attributes:
        where: its name, for messages.
        header: its first line.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Read the header.

        Raises:
            JournalVersionError: it is of a newer version.
            JournalError: it can't be read, or is no export.
        """
        self.where = fspath(path)
        self._path = Path(path)
        with self._opened() as file:
            self.header = self._header(file)

    def check(self, anchor: Head | None = None) -> Finding | None:
        """The first event that is not as it was recorded; None if all are.

        Raises:
            JournalError: a line is no event of an export, or the file can't be read.
        """
        return check(self.records(), self.header.store_id, self.header.head, anchor)

    def records(self) -> Iterator[Record]:
        """The records as they stand in the file.

        Raises:
            JournalError: a line is no event of an export, or the file can't be read.
        """
        with self._opened() as file:
            self._line(file)
            number = 1
            while line := self._line(file):
                number += 1
                if line.strip():
                    yield self._record(line, number)

    def _opened(self) -> BinaryIO:
        try:
            return self._path.open("rb")
        except (OSError, ValueError) as error:
            raise self._problem(f"can't be opened ({str(error).lower()})") from None

    def _line(self, file: BinaryIO) -> str:
        try:
            line = file.readline(_LONGEST_LINE)
        except OSError as error:
            raise self._problem(f"can't be read ({str(error).lower()})") from None
        if len(line) == _LONGEST_LINE:
            raise self._problem("has a line that is too long for an event")
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise self._problem(f"has a line that is not UTF-8 ({error})") from None

    def _header(self, file: BinaryIO) -> Header:
        fields = self._parsed(self._line(file), 1)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise self._problem("is no export of a journal: its first line is no header of one")
        version = fields.get("version")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise JournalVersionError(
                self.where,
                version,
                f"is of version {version}, and this LeanGuard knows versions up to {SCHEMA_VERSION}",
                "Upgrade LeanGuard.",
            )
        match fields:
            case {"store": str(store), "head": str(head), "length": int(length)} if (
                _HASH.fullmatch(head) and length >= 0
            ):
                if version == SCHEMA_VERSION and not isinstance(length, bool):
                    return Header(store, Head(length, bytes.fromhex(head)))
        raise self._problem("is no export of a journal: its header lacks something")

    def _record(self, line: str, number: int) -> Record:
        # The short way is for what we wrote ourselves: the hash vouches for the text of the event.
        if match := _LINE.fullmatch(line.rstrip("\r\n")):
            body, here, position, previous = match.groups()
            record = Record(int(position), bytes.fromhex(previous), bytes.fromhex(here), body)
            if link(record.previous, record.position, body) == record.hash:
                return record
        match self._parsed(line, number):
            case {"event": dict(event), "hash": str(here), "position": int(place), "previous": str(before), **rest} if (
                not rest and not isinstance(place, bool) and _HASH.fullmatch(here) and _HASH.fullmatch(before)
            ):
                return Record(place, bytes.fromhex(before), bytes.fromhex(here), canonical(event))
        raise self._problem(f"has a line {number} that is no event of an export")

    def _parsed(self, line: str, number: int) -> Any:
        try:
            return parse(Source(self.where, line), line=number)
        except InputError as problem:
            raise self._problem(
                f"can't be used at line {number} (expected {problem.expected}, found {problem.found})"
            ) from None

    def _problem(self, problem: str) -> JournalError:
        return JournalError(self.where, problem, "Use a file that `leanguard journal export` wrote.")


def import_journal(path: str | PathLike[str], where: str | PathLike[str]) -> int:
    """Make a new journal of an export, with the same id and hashes, and answer the number of events.

    Args:
        path: the export.
        where: the journal, as in `open_store`: a new one, or an empty one that an import before this made.

    Raises:
        JournalTamperedError: the export is not what was recorded. Nothing is imported.
        JournalError: the export can't be used, has what is no event, or there is a journal at `where` already. Nothing
            is imported.
    """
    source = ExportFile(path)
    # The file is read twice, so that what does not verify leaves no trace; the second time it is checked again.
    for record in _verified(source):
        event = event_of(record.body, source.where, record.position)
        if body_of(event) != record.body:
            raise JournalError(source.where, f"has an event {record.position} that is not written as this version does")
    with open_store(where, store_id=source.header.store_id) as store:
        if store.store_id != source.header.store_id or store.length():
            raise JournalError(store.where, "exists already", "Import into a new one.")
        return store._restore(_verified(source))


def _verified(source: ExportFile) -> Iterator[Record]:
    chain = Chain(0, genesis(source.header.store_id))
    stream = source.records()
    for record in stream:
        if not chain.follow(record):
            raise JournalTamperedError(source.where, chain.explain(record, stream))
        yield record
    if finding := chain.end(source.header.head):
        raise JournalTamperedError(source.where, finding)
