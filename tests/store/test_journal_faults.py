"""Disks, files and servers that fail. Each time: a clear error, and nothing that was durable is lost."""

from __future__ import annotations

import multiprocessing
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journal_helpers import QUICK, Backend, PostgresBackend, SQLiteBackend, event, unprivileged

from leanguard_host.store import JournalCorruptError, JournalError, JournalStore, open_store
from leanguard_host.store.sqlite import SQLiteStore


def fill(store: JournalStore) -> int:
    """Append until it fails; the number of events that were recorded."""
    done = store.length()
    while done < 10_000:
        try:
            store.append([event(done + index, pad="x" * 3000) for index in range(3)], expected_length=done)
        except JournalError as error:
            assert store.where in str(error)
            assert error.remedy
            return done
        done += 3
    raise AssertionError("the disk never filled up")


def intact(url: str, length: int) -> None:
    with open_store(url) as store:
        assert [stored.event.time for stored in store.read()] == [event(n).time for n in range(length)]
        assert store.verify_chain() is None


def test_a_database_that_may_not_grow(sqlite: SQLiteBackend) -> None:
    with open_store(sqlite.url) as store:
        assert isinstance(store, SQLiteStore)
        store._sql.execute("PRAGMA max_page_count = 50")
        done = fill(store)
        with pytest.raises(JournalError, match="the disk is full"):
            store.append([event(done, pad="x" * 10_000)])
        assert store.length() == done
        store._sql.execute("PRAGMA max_page_count = 100000")
        assert store.append([event(done)], expected_length=done) == [done]
    intact(sqlite.url, done + 1)


def limited(url: str, result: Any) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open_store(url) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        result.put(fill(store))


def test_a_file_that_may_not_grow(sqlite: SQLiteBackend) -> None:
    """The system's write fails in the middle of a commit."""
    context = multiprocessing.get_context("spawn")
    result = context.Queue()
    child = context.Process(target=limited, args=(sqlite.url, result))
    child.start()
    done = result.get(timeout=60)
    child.join(60)
    assert done > 0
    intact(sqlite.url, done)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    backend = SQLiteBackend(small_disk)
    (small_disk / "ballast").write_bytes(bytes(50_000))
    with open_store(backend.url) as store:
        done = fill(store)
        assert done > 0
        assert store.length() == done
        (small_disk / "ballast").unlink()
        assert store.append([event(done)], expected_length=done) == [done]
    intact(backend.url, done + 1)


def test_a_disk_that_is_full_from_the_start(small_disk: Path) -> None:
    with (small_disk / "ballast").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    with pytest.raises(JournalError, match=r"journal\.db"):
        open_store(small_disk / "journal.db")


def test_a_read_only_file(sqlite: SQLiteBackend, tmp_path: Path) -> None:
    for directory in (tmp_path, *tmp_path.parents[:2]):  # pytest keeps them to itself
        directory.chmod(0o755)
    with open_store(sqlite.url) as store:
        store.append([event(0)])
    sqlite.path.chmod(0o444)
    with unprivileged():
        with pytest.raises(JournalError, match="permission denied") as caught:
            open_store(sqlite.url)
        assert "writable" in caught.value.remedy
        with open_store(sqlite.url, read_only=True) as store:  # nothing is needed beside it
            assert store.verify_chain() is None
            assert [stored.event for stored in store.read()] == [event(0)]
    assert list(tmp_path.iterdir()) == [sqlite.path]
    sqlite.path.chmod(0o000)
    with unprivileged(), pytest.raises(JournalError, match="permission denied"):
        open_store(sqlite.url, read_only=True)
    sqlite.path.chmod(0o644)
    intact(sqlite.url, 1)


def test_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no such file") as caught:
        open_store(tmp_path / "missing" / "journal.db")
    assert "directory" in caught.value.remedy


@pytest.mark.parametrize(
    "address",
    ["", "sqlite://journal.db", "sqlite:///", "mysql://host/x", "postgresql://", "a\0b", "postgresql://h/d?nonsense=1"],
)
def test_addresses_that_can_not_be_used(address: str) -> None:
    if address.startswith("postgres"):
        pytest.importorskip("psycopg")
    with pytest.raises(JournalError) as caught:
        open_store(address)
    assert caught.value.remedy


def test_a_timeout_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="timeout"):
        open_store(tmp_path / "journal.db", timeout=0)


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///a # ?%41.db").close()
    open_store("plain.db").close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a # ?%41.db", "plain.db"]
    assert (tmp_path / "plain.db").stat().st_mode & 0o777 == 0o600


def test_another_programs_database(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE events (x)")
    connection.commit()
    connection.close()
    before = file.read_bytes()
    with pytest.raises(JournalError, match="something else"):
        open_store(file)
    assert file.read_bytes() == before


def test_a_file_that_is_replaced_or_gone(sqlite: SQLiteBackend, tmp_path: Path) -> None:
    with open_store(sqlite.url) as store:
        store.append([event(0)])
        sqlite.path.rename(tmp_path / "moved.db")
        with pytest.raises(JournalError, match="is gone"):
            store.append([event(1)])
        open_store(sqlite.url).close()
        with pytest.raises(JournalError, match="was replaced"):
            store.append([event(1)])


def test_random_damage(sqlite: SQLiteBackend) -> None:
    """Whatever bytes are damaged: an error, a finding, or the very events that were recorded. Never others."""
    with open_store(sqlite.url) as store:
        store.append([event(number, pad="x" * 300) for number in range(200)])
        expected = [stored.json for stored in store.read()]
    good = sqlite.path.read_bytes()
    chance = random.Random(11)  # noqa: S311 - no secret
    noticed = 0
    for _ in range(60 if QUICK else 600):
        bad = bytearray(good)
        start = chance.randrange(len(bad))
        for at in range(start, min(len(bad), start + chance.choice([1, 8, 500, 8192]))):
            bad[at] = chance.randrange(256)
        sqlite.path.write_bytes(bad)
        read: list[str] = []
        try:
            with open_store(sqlite.url, create=False) as store:
                finding = store.verify_chain()
                for stored in store.read():
                    read.append(stored.json)
            assert finding is None
        except (JournalError, AssertionError):
            noticed += 1
            assert read == expected[: len(read)]
        else:
            assert read == expected
    assert noticed > 10


@pytest.mark.parametrize("keep", [10, 100, 4096, 5000, 0.3, 0.5, 0.9])
def test_a_truncated_file(sqlite: SQLiteBackend, keep: float) -> None:
    with open_store(sqlite.url) as store:
        store.append([event(number, pad="x" * 300) for number in range(200)])
    good = sqlite.path.read_bytes()
    sqlite.path.write_bytes(good[: int(keep if keep > 1 else keep * len(good))])
    with pytest.raises((JournalError, AssertionError)), open_store(sqlite.url, create=False) as store:
        assert store.verify_chain() is None
    with pytest.raises(JournalError), open_store(sqlite.url) as store:
        for _ in store.read():
            pass


def test_an_unreadable_page_is_located(sqlite: SQLiteBackend) -> None:
    with open_store(sqlite.url) as store:
        store.append([event(number, pad="x" * 300) for number in range(200)])
    with sqlite3.connect(sqlite.path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("DROP TRIGGER events_update")
        connection.execute("UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE position = 77")
    connection.close()
    with open_store(sqlite.url) as store:
        finding = store.verify_chain()
        assert finding is not None
        assert (finding.position, finding.difference) == (77, "unreadable")
        with pytest.raises(JournalCorruptError):
            list(store.read())


def test_without_psycopg(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from leanguard_host.store import open_store, JournalError\n"
        "try: open_store('postgresql://user:secret@host/db')\n"
        "except JournalError as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "leanguard[postgres]" in result.stdout
    assert "secret" not in result.stdout


def test_a_server_that_crashes(on_postgres: PostgresBackend) -> None:
    server = on_postgres.server
    with open_store(on_postgres.url) as store:
        store.append([event(0), event(1)])
        server.stop(signal.SIGQUIT)
        for action in (lambda: store.append([event(2)]), store.length):
            with pytest.raises(JournalError) as caught:
                action()
            assert caught.value.remedy
        server.start()
        assert store.append([event(2)], expected_length=2) == [2]
    intact(on_postgres.url, 3)


def test_a_connection_that_is_lost_in_a_transaction(on_postgres: PostgresBackend) -> None:
    with open_store(on_postgres.url) as store:
        store.append([event(0)])
        with pytest.raises(JournalError), store.transaction() as section:
            section.append([event(1)])
            on_postgres.raw(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'leanguard'"
            )
            section.append([event(2)])
        with pytest.raises(JournalError), store.transaction() as section:
            on_postgres.raw(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'leanguard'"
            )
            with pytest.raises(JournalError):
                list(section.read())
            section.append([event(1)])  # must not go through a new connection, outside of the transaction
        assert store.length() == 1
        assert store.append([event(1)], expected_length=1) == [1]
    intact(on_postgres.url, 2)


def test_a_server_that_does_not_answer() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(JournalError, match="can't be reached") as caught:
        open_store("postgresql://user:secret@127.0.0.1:1/db?password=secret")
    assert "secret" not in str(caught.value)


def test_a_user_who_may_not_write(on_postgres: PostgresBackend) -> None:
    with open_store(on_postgres.url) as store:
        store.append([event(0)])
    url = on_postgres.url.replace("options=", "options=-cdefault_transaction_read_only%3Don%20")
    with open_store(url) as store, pytest.raises(JournalError, match="can't be written") as caught:
        store.append([event(1)])
    assert caught.value.remedy
    intact(on_postgres.url, 1)


def test_commits_are_synchronous(backend: Backend) -> None:
    with open_store(backend.url) as store:
        if isinstance(store, SQLiteStore):
            assert store._sql.execute("PRAGMA synchronous").fetchone() == (2,)
            assert store._sql.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    if isinstance(backend, PostgresBackend):
        url = backend.url.replace("options=", "options=-csynchronous_commit%3Doff%20")
        with open_store(url) as store:
            assert store._connection.execute("SHOW synchronous_commit").fetchone() == ("on",)  # type: ignore[attr-defined]
