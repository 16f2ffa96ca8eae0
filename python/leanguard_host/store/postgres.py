"""The journal in a PostgreSQL database: three tables in the current schema. Needs the extra `postgres`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import errors, sql

from leanguard_host.store.base import SCHEMA_VERSION, JournalStore
from leanguard_host.store.chain import Chain, Head, Record, genesis
from leanguard_host.store.errors import (
    JournalBusyError,
    JournalCorruptError,
    JournalError,
    JournalTamperedError,
    JournalVersionError,
)

_SETUP_LOCK = 0x4C474A4C
"""The advisory lock under which the tables are created and migrated; there is no row yet that could be locked."""

_STORE = """CREATE TABLE leanguard_store (
    single integer PRIMARY KEY CHECK (single = 1), id text NOT NULL, version integer NOT NULL)"""

_HEAD = """CREATE TABLE leanguard_head (
    single integer PRIMARY KEY CHECK (single = 1), length bigint NOT NULL CHECK (length >= 0),
    hash bytea NOT NULL CHECK (octet_length(hash) = 32))"""

_EVENTS = """CREATE TABLE leanguard_events (
    position bigint PRIMARY KEY, previous bytea NOT NULL CHECK (octet_length(previous) = 32),
    hash bytea NOT NULL CHECK (octet_length(hash) = 32), body text NOT NULL)"""

_REFUSE = """CREATE OR REPLACE FUNCTION leanguard_refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the journal is append-only'; END $$"""

# These stop mistakes, by us or by someone with a SQL prompt; the chain shows what is done on purpose.
_TRIGGERS = [
    """CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON leanguard_events
        EXECUTE FUNCTION leanguard_refuse()""",
    "CREATE TRIGGER refuse_drop BEFORE DELETE OR TRUNCATE ON leanguard_head EXECUTE FUNCTION leanguard_refuse()",
    """CREATE TRIGGER refuse_back BEFORE UPDATE ON leanguard_head FOR EACH ROW
        WHEN (NEW.length <= OLD.length OR NEW.single <> 1) EXECUTE FUNCTION leanguard_refuse()""",
    "CREATE TRIGGER refuse_drop BEFORE DELETE OR TRUNCATE ON leanguard_store EXECUTE FUNCTION leanguard_refuse()",
    """CREATE TRIGGER refuse_other BEFORE UPDATE ON leanguard_store FOR EACH ROW
        WHEN (NEW.id <> OLD.id) EXECUTE FUNCTION leanguard_refuse()""",
]

_ROW = "SELECT position, previous, hash, body FROM leanguard_events"


class PostgresStore(JournalStore):
    """A journal in a PostgreSQL database. From `open_store`. A lost connection is made anew by the next call."""

    def __init__(
        self,
        url: str,
        *,
        create: bool = True,
        read_only: bool = False,
        timeout: float = 5.0,
        store_id: str | None = None,
    ) -> None:
        """Open or create.

        Args:
            url: `postgresql://user@host/database`, with libpq's parameters; passwords are best left to `~/.pgpass`.
            create: whether missing tables are created.
            read_only: whether nothing may be written, not even a migration.
            timeout: seconds to wait for others who use the journal, and for a connection.
            store_id: the id of a journal that is created; random if None.

        Raises:
            JournalVersionError: it is of a newer version; or of an older one, and `read_only`.
            JournalBusyError: others held it for longer than the timeout.
            JournalError: the server can't be reached, or refuses.
        """
        super().__init__(without_password(url), timeout)
        self._url, self._read_only, self._id = url, read_only, ""
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._began = False
        try:
            with self._translated():
                self._open(create and not read_only, store_id)
        except BaseException:
            self._disconnect()
            raise

    @property
    def store_id(self) -> str:
        return self._id

    # --- opening ---

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            if (
                self._began
            ):  # On a new connection the rest of the transaction would run without its beginning and its lock.
                raise JournalError(self.where, "lost its connection in a transaction", "Try again.")
            connection = psycopg.connect(
                self._url, autocommit=True, connect_timeout=max(2, round(self.timeout)), application_name="leanguard"
            )
            milliseconds = max(1, round(self.timeout * 1000))
            connection.execute(sql.SQL("SET lock_timeout = {}").format(sql.Literal(milliseconds)))
            # A commit that returns before its log is on the disk could forget a reservation whose call then ran.
            if self._value(connection, "SHOW synchronous_commit") == "off":
                connection.execute("SET synchronous_commit = on")
            if self._value(connection, "SHOW server_encoding") != "UTF8":
                connection.close()
                raise JournalError(
                    self.where, "is in a database that can't hold all texts", "Use one with the encoding UTF8."
                )
            if self._read_only:
                connection.execute("SET default_transaction_read_only = on")
            self._connection = connection
        return self._connection

    @staticmethod
    def _value(connection: psycopg.Connection[tuple[Any, ...]], query: str) -> Any:
        row = connection.execute(query).fetchone()
        return row[0] if row else None

    def _run(self, query: str, values: Sequence[Any] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        # Every query is a constant of this module.
        return self._connected().execute(query, values or None, prepare=True if values else None)

    def _open(self, create: bool, store_id: str | None) -> None:
        version = self._version()
        if self._read_only and 0 < version < SCHEMA_VERSION:
            raise JournalVersionError(
                self.where,
                version,
                f"is of version {version}, which can't be read without a migration to {SCHEMA_VERSION}",
                "Run `leanguard journal upgrade` on it.",
            )
        if version < SCHEMA_VERSION and not self._read_only:
            self._start("BEGIN")
            try:
                self._run(f"SELECT pg_advisory_xact_lock({_SETUP_LOCK})")
                version = self._version()  # Another process may have come first.
                if version == 0 and create:
                    self._create(store_id or str(uuid.uuid4()))
                elif version == 1:
                    self._migrate_1_to_2()
                self._end()
                version = version or SCHEMA_VERSION * create
            except BaseException:
                self._rollback()
                raise
        if not version:
            raise JournalError(
                self.where, "has no journal in it", "Check the address, and the schema in its search path."
            )
        row = self._run("SELECT id FROM leanguard_store").fetchone()
        if row is None:
            raise JournalCorruptError(self.where, "has no id", "Restore an export.")
        self._id = str(row[0])

    def _version(self) -> int:
        # In the schema where tables would be created: another journal, further down the search path, is not this one.
        # A query sees what others created while this one waited for the lock; to_regclass may answer from a cache.
        found = self._run(
            "SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
            "WHERE relname = 'leanguard_store' AND nspname = current_schema()"
        )
        if found.fetchone() is None:
            return 0
        row = self._run("SELECT version FROM leanguard_store").fetchone()
        version = int(row[0]) if row else SCHEMA_VERSION
        if version > SCHEMA_VERSION:
            raise JournalVersionError(
                self.where,
                version,
                f"is of version {version}, and this LeanGuard knows versions up to {SCHEMA_VERSION}",
                "Upgrade LeanGuard. The journal was left as it is.",
            )
        return version

    def _create(self, store_id: str) -> None:
        for statement in (_STORE, _HEAD, _EVENTS, _REFUSE, *_TRIGGERS):
            self._run(statement)
        self._run("INSERT INTO leanguard_store VALUES (1, %s, %s)", (store_id, SCHEMA_VERSION))
        self._run("INSERT INTO leanguard_head VALUES (1, 0, %s)", (genesis(store_id),))

    def _migrate_1_to_2(self) -> None:
        """Version 2 repeats the previous hash in each row and keeps the head. What does not verify is not migrated."""
        self._run("ALTER TABLE leanguard_events RENAME TO leanguard_events_1")
        self._run("ALTER INDEX leanguard_events_pkey RENAME TO leanguard_events_1_pkey")
        self._run(_HEAD)
        self._run(_EVENTS)
        row = self._run("SELECT id FROM leanguard_store").fetchone()
        chain = Chain(0, genesis(str(row[0]) if row else ""))
        with self._connected().cursor(name="leanguard_migration") as rows:  # a server's cursor: the journal may be long
            rows.execute("SELECT position, hash, body FROM leanguard_events_1 ORDER BY position")
            for position, here, body in rows:
                record = Record(position, chain.previous, bytes(here), body)
                if not chain.follow(record):
                    raise JournalTamperedError(self.where, chain.explain(record, ()))
                self._run("INSERT INTO leanguard_events VALUES (%s, %s, %s, %s)", record)
        self._run("DROP TABLE leanguard_events_1")
        self._run("INSERT INTO leanguard_head VALUES (1, %s, %s)", (chain.position, chain.previous))
        for statement in (_REFUSE, *_TRIGGERS):
            self._run(statement)
        self._run("UPDATE leanguard_store SET version = %s", (SCHEMA_VERSION,))

    # --- the primitives ---

    def _begin(self) -> None:
        with self._translated():
            self._start("BEGIN ISOLATION LEVEL READ COMMITTED")
            # The one row of the head is the lock between writers. At this isolation level, who had to wait for it sees
            # what the others wrote.
            if self._run("SELECT 1 FROM leanguard_head FOR UPDATE").fetchone() is None:
                raise JournalCorruptError(self.where, "has lost its head", "Restore an export.")

    def _commit(self) -> None:
        with self._translated():
            self._end()

    def _start(self, command: str) -> None:
        self._run(command)
        self._began = True

    def _end(self) -> None:
        # The server answers ROLLBACK when the transaction had failed before.
        if self._run("COMMIT").statusmessage != "COMMIT":
            raise JournalError(self.where, "did not record the events: the transaction had failed", "Try again.")
        self._began = False

    def _rollback(self) -> None:
        self._began = False
        connection = self._connection
        if connection is not None and not connection.closed:
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                self._disconnect()

    def _recorded_head(self) -> Head:
        with self._translated():
            row = self._run("SELECT length, hash FROM leanguard_head").fetchone()
        if row is None:
            raise JournalCorruptError(self.where, "has lost its head", "Restore an export.")
        return Head(row[0], bytes(row[1]))

    def _rows(self, first: int, limit: int) -> list[Record]:
        with self._translated():
            rows = self._run(f"{_ROW} WHERE position >= %s ORDER BY position LIMIT %s", (first, limit)).fetchall()
        return [Record(position, bytes(previous), bytes(here), body) for position, previous, here, body in rows]

    def _last_row(self) -> Record | None:
        with self._translated():
            row = self._run(f"{_ROW} ORDER BY position DESC LIMIT 1").fetchone()
        return Record(row[0], bytes(row[1]), bytes(row[2]), row[3]) if row else None

    def _write(self, records: list[Record], head: Head) -> None:
        with self._translated():
            for record in records:
                self._run("INSERT INTO leanguard_events VALUES (%s, %s, %s, %s)", record)
            last = records[-1]
            moved = self._run(
                "UPDATE leanguard_head SET length = %s, hash = %s WHERE length = %s",
                (last.position + 1, last.hash, head.length),
            )
            if moved.rowcount != 1:
                raise JournalCorruptError(self.where, "has lost its head", "Restore an export.")

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._translate(error) from error

    def _translate(self, error: psycopg.Error) -> JournalError:
        lines = str(error).strip().splitlines()
        told = f"({lines[0] if lines else type(error).__name__})"
        match error:
            case errors.LockNotAvailable():
                return JournalBusyError(
                    self.where,
                    f"was locked by another process for more than {self.timeout:g} s {told}",
                    "Try again; end the process that holds it, or raise the timeout.",
                )
            case errors.DiskFull():
                return JournalError(
                    self.where, f"can't grow: the server's disk is full {told}", "Free some space and try again."
                )
            case errors.ReadOnlySqlTransaction() | errors.InsufficientPrivilege():
                return JournalError(
                    self.where,
                    f"can't be written {told}",
                    "Grant the user the right to create, read and write its tables.",
                )
            case errors.DataCorrupted() | errors.IndexCorrupted():
                return JournalCorruptError(self.where, f"is damaged {told}", "Restore a backup or an export.")
            case errors.UndefinedTable() | errors.UndefinedColumn():
                return JournalCorruptError(self.where, f"lacks a part {told}", "Restore an export.")
            case psycopg.OperationalError():
                return JournalError(
                    self.where, f"can't be reached {told}", "Check the address, and that the server runs."
                )
            case psycopg.ProgrammingError() if self._connection is None:
                return JournalError(
                    self.where, f"is no usable address {told}", "Write postgresql://user@host/database."
                )
        return JournalError(self.where, f"could not be used {told}", "See the server's log.")


def without_password(url: str) -> str:
    """The address as it may be shown."""
    try:
        parts = urlsplit(url)
        query = "&".join(
            item for item in parts.query.split("&") if not item.lower().startswith(("password=", "sslpassword="))
        )
        user, at, place = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=user.split(":")[0] + at + place, query=query))
    except ValueError:
        return "postgresql://..."
