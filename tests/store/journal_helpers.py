"""What the tests of the journal share: events, the two databases, and what other processes run."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leanguard_host.models import Call, Event, Resource
from leanguard_host.store import JournalConflictError, JournalStore, open_store

QUICK = bool(os.environ.get("LEANGUARD_QUICK"))
ROUNDS = 50 if QUICK else 1000
KILLS = 20 if QUICK else 200


def event(number: int = 0, **fields: Any) -> Event:
    """An event that its number tells from others."""
    return Event(kind="observation", time=1_700_000_000_000 + number, data={"number": number, **fields})


RICH = Event(
    kind="outcome",
    time=-5,
    principal="yusuf_rossi_9620",
    conversation="c\u0000\u2028\x85\U0001f600",
    resource=Resource(type="order", id="#W2378156"),
    revision="r1",
    call=Call(tool="exchange", arguments={"items": ["1", None, True], "price": 0.1, "small": 0.000001, "big": 10**15}),
    status="succeeded",
    data={"\uffff": 1, "\U00010000": 2, "": {}, "none": None},
)


class SQLiteBackend:
    """A place for a journal in a SQLite file."""

    name = "sqlite"
    events, head, store = "events", "head", "store"

    def __init__(self, directory: Path) -> None:
        self.path = directory / "journal.db"
        self.url = f"sqlite:///{self.path}"
        self.other = str(directory / "other.db")

    def raw(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Run a statement as somebody would who tampers: with the triggers gone."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {trigger}")
            connection.execute("PRAGMA ignore_check_constraints = ON")
            return connection.execute(statement.replace("%s", "?"), values).fetchall()
        finally:
            connection.close()

    def polite(self, statement: str) -> None:
        """Run a statement as somebody would by mistake."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            connection.execute(statement)
        finally:
            connection.close()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the journal as another writer."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")
            connection.close()

    def version_1(self, store_id: str, rows: list[tuple[int, bytes, str]]) -> None:
        """Make a journal as version 1 did."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE store (single INTEGER PRIMARY KEY CHECK (single = 1), id TEXT NOT NULL)")
        connection.execute("CREATE TABLE events (position INTEGER PRIMARY KEY, hash BLOB NOT NULL, body TEXT NOT NULL)")
        connection.execute("INSERT INTO store VALUES (1, ?)", (store_id,))
        connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
        for action in ("UPDATE", "DELETE"):
            connection.execute(
                f"CREATE TRIGGER events_{action.lower()} BEFORE {action} ON events "
                "BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END"
            )
        connection.execute(f"PRAGMA application_id = {0x4C474A4C}")
        connection.execute("PRAGMA user_version = 1")
        connection.close()

    def set_version(self, version: int) -> None:
        """Say that the journal is of another version."""
        self.raw(f"PRAGMA user_version = {version}")


class PostgresBackend:
    """A place for a journal in a schema of its own."""

    name = "postgres"
    events, head, store = "leanguard_events", "leanguard_head", "leanguard_store"

    def __init__(self, server: PostgresServer, schema: str) -> None:
        self.server = server
        with self._connection(server.url()) as connection:
            for name in (schema, f"{schema}_other"):
                connection.execute(f"CREATE SCHEMA {name}")
        self.url, self.other = server.url(schema), server.url(f"{schema}_other")

    @staticmethod
    def _connection(url: str) -> Any:
        import psycopg

        return psycopg.connect(url, autocommit=True)

    def raw(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._connection(self.url) as connection:
            connection.execute("SET session_replication_role = replica")
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def polite(self, statement: str) -> None:
        with self._connection(self.url) as connection:
            connection.execute(statement)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with self._connection(self.url) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM leanguard_head FOR UPDATE")
            yield
            connection.execute("ROLLBACK")

    def version_1(self, store_id: str, rows: list[tuple[int, bytes, str]]) -> None:
        with self._connection(self.url) as connection:
            connection.execute(
                "CREATE TABLE leanguard_store "
                "(single integer PRIMARY KEY CHECK (single = 1), id text NOT NULL, version integer NOT NULL)"
            )
            connection.execute(
                "CREATE TABLE leanguard_events (position bigint PRIMARY KEY, hash bytea NOT NULL, body text NOT NULL)"
            )
            connection.execute("INSERT INTO leanguard_store VALUES (1, %s, 1)", (store_id,))
            connection.cursor().executemany("INSERT INTO leanguard_events VALUES (%s, %s, %s)", rows)

    def set_version(self, version: int) -> None:
        self.raw("UPDATE leanguard_store SET version = %s", (version,))


Backend = SQLiteBackend | PostgresBackend


class PostgresServer:
    """A server from the system's package, on a socket in a directory of its own."""

    def __init__(self) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        initdb = shutil.which("initdb") or (str(found[-1]) if found else None)
        if initdb is None:
            raise FileNotFoundError("no PostgreSQL server is installed")
        self._programs = Path(initdb).resolve().parent
        self._account = _unprivileged() if os.geteuid() == 0 else None
        self._directory = Path(tempfile.mkdtemp(prefix="lg-pg-"))
        if self._account:
            os.chown(self._directory, self._account.pw_uid, self._account.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "initdb", "--auth=trust", "--username=leanguard", "--encoding=UTF8", "--locale=C", "-D", "data"
        ).wait()
        self.start()

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        account: dict[str, Any] = {}
        if self._account:  # the server refuses to run as root
            account = {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        return subprocess.Popen(
            [str(self._programs / program), *arguments],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **account,
        )

    def url(self, schema: str = "public") -> str:
        return f"postgresql://leanguard@/postgres?host={self._directory}&options=-csearch_path%3D{schema}"

    def start(self) -> None:
        import psycopg

        place = str(self._directory)
        self._process = self._run("postgres", "-D", "data", "-k", place, "-c", "listen_addresses=")
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url()).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop: SIGINT at once but in order, SIGQUIT as in a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    raise FileNotFoundError("no account to run a server with")


# ---- what other processes run ----


def race(url: str, name: int, rounds: int, barrier: Any, results: Any) -> None:
    """In each round, append an event on the length that everybody saw; answer the rounds that were won."""
    won = []
    with open_store(url, timeout=60) as store:
        for number in range(rounds):
            barrier.wait(120)
            try:
                store.append([event(number, by=name)], expected_length=number)
                won.append(number)
            except JournalConflictError:
                pass
    results.put((name, won))


def take_turns(url: str, name: int, count: int) -> None:
    """Append without expectations, each event in a transaction that reads first."""
    with open_store(url, timeout=60) as store:
        for _ in range(count):
            with store.transaction() as section:
                last = section.last()
                section.append([event(0 if last is None else last.event.data["number"] + 1, by=name)])


def open_at_once(url: str, barrier: Any) -> None:
    barrier.wait(60)
    with open_store(url, timeout=60) as store:
        store.append([event()])


def append_batches(url: str, acknowledgements: Any) -> None:
    """Append batches of three for ever, and tell of each when it is durable."""
    with open_store(url, timeout=60) as store:
        batch = store.length() // 3
        acknowledgements.send(batch)
        while True:
            store.append([event(3 * batch + index, batch=batch, pad="x" * 1000) for index in range(3)])
            batch += 1
            acknowledgements.send(batch)


def die_at(url: str, step: str) -> None:
    """Append three events, and be killed at a step."""

    def killed(*arguments: Any) -> None:
        if step.startswith("after"):
            original(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    store: JournalStore = open_store(url, timeout=60)
    method = "_" + step.split()[1]
    original = getattr(store, method)
    setattr(store, method, killed)
    store.append([event(index) for index in range(3)])


@contextmanager
def unprivileged() -> Iterator[None]:
    """Lose root's permission to write everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
