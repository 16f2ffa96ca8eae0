"""The journal in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leanguard_host.store.base import SCHEMA_VERSION, JournalStore
from leanguard_host.store.chain import Chain, Head, Record, genesis
from leanguard_host.store.errors import (
    JournalBusyError,
    JournalCorruptError,
    JournalError,
    JournalTamperedError,
    JournalVersionError,
)

_APPLICATION = 0x4C474A4C
"""Marks the file as ours: "LGJL"."""

_MAGIC = b"SQLite format 3\0"

_EVENTS = """CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    previous BLOB NOT NULL CHECK (typeof(previous) = 'blob' AND length(previous) = 32),
    hash BLOB NOT NULL CHECK (typeof(hash) = 'blob' AND length(hash) = 32),
    body TEXT NOT NULL CHECK (typeof(body) = 'text'))"""

_HEAD = """CREATE TABLE head (
    single INTEGER PRIMARY KEY CHECK (single = 1),
    length INTEGER NOT NULL CHECK (typeof(length) = 'integer' AND length >= 0),
    hash BLOB NOT NULL CHECK (typeof(hash) = 'blob' AND length(hash) = 32))"""

_STORE = "CREATE TABLE store (single INTEGER PRIMARY KEY CHECK (single = 1), id TEXT NOT NULL)"


def _refusal(name: str, event: str, condition: str = "") -> str:
    when = f" WHEN {condition}" if condition else ""
    return f"CREATE TRIGGER {name} BEFORE {event}{when} BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END"


# These stop mistakes, by us or by someone with a SQL prompt; the chain shows what is done on purpose.
_TRIGGERS = [
    _refusal("events_update", "UPDATE ON events"),
    _refusal("events_delete", "DELETE ON events"),
    # An insertion elsewhere than at the end, which INSERT OR REPLACE would turn into an update that no trigger sees.
    _refusal("events_insert", "INSERT ON events", "NEW.position IS NOT (SELECT length FROM head)"),
    _refusal("head_insert", "INSERT ON head", "EXISTS (SELECT 1 FROM head)"),
    _refusal("head_update", "UPDATE ON head", "NEW.length <> OLD.length + 1 OR NEW.single <> 1"),
    _refusal("head_delete", "DELETE ON head"),
    _refusal("store_insert", "INSERT ON store", "EXISTS (SELECT 1 FROM store)"),
    _refusal("store_update", "UPDATE ON store"),
    _refusal("store_delete", "DELETE ON store"),
]

_ROW = "SELECT position, previous, hash, body FROM events"


class SQLiteStore(JournalStore):
    """A journal in one SQLite file (write-ahead log, synchronous). From `open_store`."""

    def __init__(
        self,
        path: Path | None,
        *,
        create: bool = True,
        read_only: bool = False,
        timeout: float = 5.0,
        store_id: str | None = None,
    ) -> None:
        """Open or create.

        Args:
            path: the file; None keeps the journal in memory, for tests and demonstrations.
            create: whether a missing file is created.
            read_only: whether nothing may be written, not even a migration.
            timeout: seconds to wait for others who use the journal.
            store_id: the id of a journal that is created; random if None.

        Raises:
            JournalVersionError: it is of a newer version; or of an older one, and `read_only`.
            JournalCorruptError: it is damaged, or no database.
            JournalBusyError: others held it for longer than the timeout.
            JournalError: it can't be opened.
        """
        super().__init__("in memory" if path is None else os.fspath(path), timeout)
        self._path = path
        self._id = ""
        self._file = self._prepare_file(path, create and not read_only) if path else None
        self._sql = self._connect(read_only)
        try:
            with self._translated():
                self._open(read_only, create and not read_only, store_id)
        except BaseException:
            self._disconnect()
            raise

    @property
    def store_id(self) -> str:
        return self._id

    # --- opening ---

    def _prepare_file(self, path: Path, create: bool) -> tuple[int, int]:
        """The file's identity. Refuses what SQLite would take for an empty database or complain about in riddles."""
        try:
            # Others have no business in a journal, so the file is private unless its owner says otherwise.
            os.close(
                os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) if create else os.open(path, os.O_RDONLY)
            )
            with path.open("rb") as file:
                found, start = os.fstat(file.fileno()), file.read(len(_MAGIC))
        except (OSError, ValueError) as error:  # ValueError: a name with a null character
            raise JournalError(self.where, f"can't be opened ({_reason(error)})", _file_remedy(error)) from None
        if start and start != _MAGIC:
            raise JournalCorruptError(
                self.where, "is no SQLite database", "Check the name; if it is the right one, restore an export."
            )
        if not start and not create:
            raise JournalError(self.where, "is empty", "Check the name.")
        return found.st_dev, found.st_ino

    def _connect(self, read_only: bool) -> sqlite3.Connection:
        if self._path is None:
            return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        path = self._path.absolute()
        # A read-only connection would leave its log and index behind, which takes write access to remove; so a reader
        # connects as a writer that only queries, where the file lets it.
        mode = "rw" if not read_only or (_writable(path) and _writable(path.parent)) else "ro"
        address = f"{path.as_uri()}?mode={mode}"
        if mode == "ro" and not _writable(path.parent) and not Path(f"{path}-wal").exists():
            # SQLite reads a file in WAL mode only with an index beside it, which it can't create here, unless told
            # that nobody writes.
            address += "&immutable=1"
        with self._translated():
            return sqlite3.connect(
                address,
                uri=True,
                timeout=self.timeout,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=32,
            )

    def _open(self, read_only: bool, create: bool, store_id: str | None) -> None:
        version = self._version()
        if version == 0 and not create:
            raise JournalError(self.where, "is an empty database", "Check the name.")
        if read_only:
            self._sql.execute("PRAGMA query_only = ON")
            if version < SCHEMA_VERSION:
                raise JournalVersionError(
                    self.where,
                    version,
                    f"is of version {version}, which can't be read without a migration to {SCHEMA_VERSION}",
                    "Run `leanguard journal upgrade` on it.",
                )
        else:
            # WAL survives a crash of the machine only with a sync for each commit; fullfsync is what macOS calls one.
            self._sql.execute("PRAGMA synchronous = FULL")
            self._sql.execute("PRAGMA fullfsync = ON")
            if self._path is not None and version < SCHEMA_VERSION:
                self._patiently(lambda: self._sql.execute("PRAGMA journal_mode = WAL").fetchone())
            self._begin_now()
            try:
                version = self._version()  # Another process may have come first.
                if version == 0:
                    self._create(store_id or str(uuid.uuid4()))
                elif version == 1:
                    self._migrate_1_to_2()
                self._sql.execute("COMMIT")
            except BaseException:
                self._rollback()
                raise
        row = self._sql.execute("SELECT id FROM store").fetchone()
        if row is None or not isinstance(row[0], str):
            raise JournalCorruptError(self.where, "has no id", "Restore an export.")
        self._id = row[0]

    def _version(self) -> int:
        application, version = (
            self._sql.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if application != _APPLICATION:
            if application or version or self._sql.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise JournalError(self.where, "is a database of something else", "Check the name.")
            return 0
        if version > SCHEMA_VERSION:
            raise JournalVersionError(
                self.where,
                version,
                f"is of version {version}, and this LeanGuard knows versions up to {SCHEMA_VERSION}",
                "Upgrade LeanGuard. The journal was left as it is.",
            )
        return int(version)

    def _patiently(self, action: Callable[[], Any]) -> Any:
        """SQLite does not wait for others when it changes the journal mode, so we do."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if _primary(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _create(self, store_id: str) -> None:
        for statement in (_STORE, _HEAD, _EVENTS):
            self._sql.execute(statement)
        self._sql.execute("INSERT INTO store VALUES (1, ?)", (store_id,))
        self._sql.execute("INSERT INTO head VALUES (1, 0, ?)", (genesis(store_id),))
        for statement in _TRIGGERS:
            self._sql.execute(statement)
        self._sql.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._sql.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _migrate_1_to_2(self) -> None:
        """Version 2 repeats the previous hash in each row and keeps the head. What does not verify is not migrated."""
        for name in ("events_update", "events_delete"):
            self._sql.execute(f"DROP TRIGGER IF EXISTS {name}")
        self._sql.execute("ALTER TABLE events RENAME TO events_1")
        self._sql.execute(_HEAD)
        self._sql.execute(_EVENTS)
        chain = Chain(0, genesis(self._sql.execute("SELECT id FROM store").fetchone()[0]))
        rows = self._sql.execute("SELECT position, hash, body FROM events_1 ORDER BY position")
        for position, here, body in rows:
            record = Record(position, chain.previous, here, body)
            if not chain.follow(record):
                raise JournalTamperedError(self.where, chain.explain(record, ()))
            self._sql.execute("INSERT INTO events VALUES (?, ?, ?, ?)", record)
        self._sql.execute("DROP TABLE events_1")
        self._sql.execute("INSERT INTO head VALUES (1, ?, ?)", (chain.position, chain.previous))
        for statement in _TRIGGERS:
            self._sql.execute(statement)
        self._sql.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    # --- the primitives ---

    def _begin(self) -> None:
        with self._translated():
            if self._path is not None:
                self._check_same_file(self._path)
            self._begin_now()

    def _begin_now(self) -> None:
        self._sql.execute("BEGIN IMMEDIATE")

    def _check_same_file(self, path: Path) -> None:
        # Whoever replaces the file while we have it open gets a second journal: the same call could be reserved in
        # both.
        try:
            found = path.stat()
        except OSError as error:
            raise JournalError(
                self.where, f"is gone ({_reason(error)})", "Put it back, or restart what uses it."
            ) from None
        if (found.st_dev, found.st_ino) != self._file:
            raise JournalError(self.where, "was replaced since it was opened", "Restart what uses it.")

    def _commit(self) -> None:
        with self._translated():
            self._sql.execute("COMMIT")

    def _rollback(self) -> None:
        with suppress(sqlite3.Error):
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")

    def _recorded_head(self) -> Head:
        with self._translated():
            row = self._sql.execute("SELECT length, hash FROM head").fetchone()
        if row is None or not isinstance(row[0], int) or not isinstance(row[1], bytes):
            raise JournalCorruptError(self.where, "has lost its head", "Restore an export.")
        return Head(*row)

    def _rows(self, first: int, limit: int) -> list[Record]:
        with self._translated():
            rows = self._sql.execute(f"{_ROW} WHERE position >= ? ORDER BY position LIMIT ?", (first, limit)).fetchall()
        return [self._record(row) for row in rows]

    def _last_row(self) -> Record | None:
        with self._translated():
            row = self._sql.execute(f"{_ROW} ORDER BY position DESC LIMIT 1").fetchone()
        return row and self._record(row)

    def _record(self, row: tuple[Any, ...]) -> Record:
        # SQLite's types are suggestions: who writes past our constraints, or a flipped bit, can make any value of any
        # type.
        position, previous, here, body = row
        if not (isinstance(previous, bytes) and isinstance(here, bytes) and isinstance(body, str)):
            raise JournalCorruptError(self.where, f"has an event {position} of the wrong types", "Restore an export.")
        return Record(position, previous, here, body)

    def _write(self, records: list[Record], head: Head) -> None:
        with self._translated():
            for record in records:
                self._sql.execute("INSERT INTO events VALUES (?, ?, ?, ?)", record)
                moved = self._sql.execute(
                    "UPDATE head SET length = ?, hash = ? WHERE length = ?",
                    (record.position + 1, record.hash, record.position),
                )
                if moved.rowcount != 1:
                    raise JournalCorruptError(self.where, "has lost its head", "Restore an export.")

    def _disconnect(self) -> None:
        with suppress(sqlite3.Error):
            self._sql.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._translate(error) from error
        except UnicodeDecodeError as error:
            raise JournalCorruptError(self.where, "has text that is not UTF-8", "Restore an export.") from error

    def _translate(self, error: sqlite3.Error) -> JournalError:
        name = getattr(error, "sqlite_errorname", "")
        told = f"({error}{f', {name}' if name else ''})"
        match _primary(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return JournalBusyError(
                    self.where,
                    f"was locked by another process for more than {self.timeout:g} s {told}",
                    "Try again; end the process that holds it, or raise the timeout.",
                )
            case sqlite3.SQLITE_FULL:
                return JournalError(
                    self.where, f"can't grow: the disk is full {told}", "Free some space and try again."
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                return JournalError(
                    self.where, f"can't be written {told}", "Make the file and its directory writable for this user."
                )
            case sqlite3.SQLITE_IOERR:
                return JournalError(
                    self.where,
                    f"could not be read or written by the system {told}",
                    "Check the disk, its free space and its limits, then `leanguard journal verify`.",
                )
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return JournalCorruptError(
                    self.where,
                    f"is damaged {told}",
                    "Keep the file, see `leanguard journal verify`, and restore an export.",
                )
            case sqlite3.SQLITE_CANTOPEN:
                return JournalError(
                    self.where,
                    f"can't be opened {told}",
                    "Make the directory writable for this user: SQLite keeps its log beside the file.",
                )
        if isinstance(error, sqlite3.OperationalError) and "no such" in str(error):
            return JournalCorruptError(self.where, f"lacks a part {told}", "Restore an export.")
        if isinstance(error, sqlite3.OperationalError) and "decode" in str(error):
            return JournalCorruptError(self.where, f"has text that is not UTF-8 {told}", "Restore an export.")
        return JournalError(self.where, f"could not be used {told}", "See `leanguard journal verify`.")


def _primary(error: sqlite3.Error) -> int:
    """The primary result code, of which the extended ones are finer kinds."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def _file_remedy(error: Exception) -> str:
    match error:
        case FileNotFoundError():
            return "Check the name, and that its directory exists."
        case PermissionError():
            return "Make it readable and writable for this user."
        case IsADirectoryError():
            return "Name a file in it."
    return "Make the file and its directory writable for this user."
