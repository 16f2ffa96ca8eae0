"""What every store does."""

# The tables have other names in each database; the names are constants of the helpers.
# ruff: noqa: S608

from __future__ import annotations

import os
import threading
import time
import tracemalloc

import pytest
from journal_helpers import QUICK, RICH, Backend, event

from leanguard_host.store import (
    Head,
    JournalBusyError,
    JournalConflictError,
    JournalError,
    open_store,
)


def test_events_come_back_as_they_were(backend: Backend) -> None:
    with open_store(backend.url) as store:
        assert store.append([RICH, event(1)]) == [0, 1]
        assert [stored.event for stored in store.read()] == [RICH, event(1)]
    with open_store(backend.url, create=False) as store:
        first, second = store.read()
        assert (first.event, first.position, second.position) == (RICH, 0, 1)
        assert store.last() == second
        assert store.head() == Head(2, bytes.fromhex(second.hash))
        assert store.append([event(2)]) == [2]
        assert store.verify_chain() is None


def test_an_empty_journal(backend: Backend) -> None:
    with open_store(backend.url) as store:
        assert (store.length(), store.last(), list(store.read()), list(store.read(5))) == (0, None, [], [])
        assert store.append([]) == []
        assert store.length() == 0
        assert store.verify_chain() is None


def test_reading_from_a_position(backend: Backend) -> None:
    with open_store(backend.url) as store:
        store.append([event(number) for number in range(3000)])
        for start in (0, 1, 15, 16, 17, 2999, 3000, 5000):
            assert [stored.position for stored in store.read(start)] == list(range(start, 3000))
        with pytest.raises(ValueError, match="negative"):
            store.read(-1)


def test_reading_ends_where_the_journal_ended(backend: Backend) -> None:
    with open_store(backend.url) as store:
        store.append([event(number) for number in range(20)])
        seen = []
        for stored in store.read():
            store.append([event()])
            seen.append(stored.position)
        assert seen == list(range(20))


def test_an_expectation_that_fails_records_nothing(backend: Backend) -> None:
    with open_store(backend.url) as store, open_store(backend.url) as other:
        assert store.append([event(0)], expected_length=0) == [0]
        other.append([event(1)])
        with pytest.raises(JournalConflictError, match="has 2 events, not 1") as caught:
            store.append([event(2)], expected_length=1)
        assert (caught.value.expected, caught.value.actual) == (1, 2)
        assert store.length() == 2
        assert store.append([event(2)], expected_length=2) == [2]


def test_a_transaction_is_all_or_nothing(backend: Backend) -> None:
    with open_store(backend.url) as store, open_store(backend.url) as other:
        with store.transaction() as section:
            assert section.append([event(0), event(1)]) == [0, 1]
            assert section.append([event(2)]) == [2]
            assert section.length == 3
            assert [stored.event for stored in section.read(1)] == [event(1), event(2)]
            last = section.last()
            assert last is not None
            assert last.event == event(2)
            assert other.length() == 0
        assert other.length() == 3
        with pytest.raises(KeyError), store.transaction() as section:
            section.append([event(3)])
            raise KeyError
        assert other.length() == store.length() == 3
        with pytest.raises(JournalError, match="has ended"):
            section.append([event(3)])
        assert store.append([event(3)]) == [3]
        assert store.verify_chain() is None


def test_a_failed_append_can_not_be_swallowed(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(backend.url) as store:
        store.append([event(0)])
        original = store._write

        def half_done(records: list[object], head: Head) -> None:
            original(records[:1], head)  # type: ignore[arg-type]
            raise JournalError(store.where, "fails")

        with pytest.raises(JournalError, match="has ended or failed"), store.transaction() as section:
            monkeypatch.setattr(store, "_write", half_done)
            with pytest.raises(JournalError, match="fails"):
                section.append([event(1), event(2)])
            monkeypatch.undo()
        assert store.length() == 1
        assert store.verify_chain() is None


def test_transactions_do_not_nest(backend: Backend) -> None:
    with open_store(backend.url) as store:
        with store.transaction() as section:
            with pytest.raises(RuntimeError, match="already"):
                store.append([event()])
            section.append([event()])
        assert store.length() == 1


def test_threads_share_a_store(backend: Backend) -> None:
    with open_store(backend.url, timeout=60) as store:

        def work(name: int) -> None:
            for _ in range(20):
                with store.transaction() as section:
                    section.append([event(section.length, by=name)])
                list(store.read(max(0, store.length() - 5)))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numbers = [stored.event.data["number"] for stored in store.read() if stored.event.data]
        assert numbers == list(range(100))
        assert store.verify_chain() is None


def test_a_thread_that_holds_the_store_too_long(backend: Backend) -> None:
    with open_store(backend.url, timeout=0.2) as store:
        entered, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with store.transaction():
                entered.set()
                leave.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        entered.wait(30)
        with pytest.raises(JournalBusyError, match="another thread"):
            store.append([event()])
        leave.set()
        thread.join()
        assert store.append([event()]) == [0]


def test_another_process_that_holds_the_journal_too_long(backend: Backend) -> None:
    with open_store(backend.url, timeout=0.3) as store:
        store.append([event()])
        with backend.locked():
            start = time.monotonic()
            with pytest.raises(JournalBusyError, match="locked by another process") as caught:
                store.append([event()])
            assert time.monotonic() - start < 10
            assert "timeout" in caught.value.remedy
            assert store.length() == 1  # reading goes on
        assert store.append([event()]) == [1]


def test_a_closed_store(backend: Backend) -> None:
    store = open_store(backend.url)
    store.close()
    store.close()
    for action in (
        store.length,
        store.last,
        store.head,
        store.read,
        lambda: store.append([event()]),
        store.verify_chain,
    ):
        with pytest.raises(JournalError, match="is closed"):
            action()


def test_a_store_is_not_for_forked_children(backend: Backend) -> None:
    with open_store(backend.url) as store:
        store.append([event()])
        child = os.fork()
        if not child:
            try:
                store.append([event()])
            except JournalError as error:
                store.close()
                os._exit(17 if "forked" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
        assert store.append([event()]) == [1]


def test_rows_are_immutable(backend: Backend) -> None:
    with open_store(backend.url) as store:
        store.append([event(0), event(1)])
        statements = [
            f"UPDATE {backend.events} SET body = ''",
            f"DELETE FROM {backend.events}",
            f"DELETE FROM {backend.head}",
            f"UPDATE {backend.head} SET length = 1",
            f"DELETE FROM {backend.store}",
            f"UPDATE {backend.store} SET id = 'other'",
        ]
        if backend.name == "sqlite":
            statements += [
                "INSERT OR REPLACE INTO events SELECT position, previous, hash, '' FROM events WHERE position = 0",
                "INSERT INTO events SELECT 7, previous, hash, '' FROM events WHERE position = 0",
            ]
        else:
            statements += ["TRUNCATE leanguard_events"]
        for statement in statements:
            with pytest.raises(Exception, match="append-only"):
                backend.polite(statement)
        assert [stored.event for stored in store.read()] == [event(0), event(1)]


def test_reading_only(backend: Backend) -> None:
    with pytest.raises(JournalError):
        open_store(backend.url, read_only=True)
    with pytest.raises(JournalError):
        open_store(backend.url, create=False)
    with open_store(backend.url) as store:
        store.append([event()])
    with open_store(backend.url, read_only=True) as store:
        assert store.length() == 1
        assert store.verify_chain() is None
        with pytest.raises(JournalError, match="can't be written") as caught:
            store.append([event()])
        assert caught.value.remedy


def test_times_are_stored_as_given(backend: Backend) -> None:
    with open_store(backend.url) as store:
        store.append([event(5), event(-5), event(5)])
        assert [stored.event.time for stored in store.read()] == [event(n).time for n in (5, -5, 5)]


def test_an_event_that_this_version_does_not_know(backend: Backend) -> None:
    with open_store(backend.url) as store:
        store.append([event()])
        from leanguard_host.store.chain import Head, chained

        (record,) = chained(store.head().hash, 1, ['{"kind":"future","time":1,"weather":"fine"}'])
        with store.transaction():
            store._write([record], Head(1, store.head().hash))
        assert store.verify_chain() is None
        *_, stored = store.read()
        assert stored.json == record.body
        with pytest.raises(JournalError, match=r"event 1 .*weather"):
            _ = stored.event


def test_reading_needs_little_memory(backend: Backend) -> None:
    count = 5_000 if QUICK else 50_000
    with open_store(backend.url) as store:
        for start in range(0, count, 1000):
            store.append([event(number, pad="x" * 500) for number in range(start, start + 1000)])
        tracemalloc.start()
        assert sum(1 for _ in store.read()) == count
        assert store.verify_chain() is None
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8 << 20


@pytest.mark.parametrize("size", [900_000])
def test_large_events(backend: Backend, size: int) -> None:
    with open_store(backend.url) as store:
        store.append([event(number, pad="x" * size) for number in range(20)])
        assert [stored.event.data["number"] for stored in store.read() if stored.event.data] == list(range(20))
