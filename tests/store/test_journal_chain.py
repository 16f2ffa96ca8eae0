"""Whatever is done to a recorded event, verification names it."""

# The tables have other names in each database; the names are constants of the helpers.
# ruff: noqa: S608, RUF005

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_helpers import Backend, event

from leanguard_host.store import Head, JournalTamperedError, open_store
from leanguard_host.store.chain import Record, chained, check, genesis, link
from leanguard_host.store.stored import body_of

ID = "a-journal"
Change = Callable[[list[Record]], list[Record]]


def journal(length: int, store_id: str = ID) -> tuple[list[Record], Head]:
    records = list(chained(genesis(store_id), 0, [body_of(event(number)) for number in range(length)]))
    return records, Head(length, records[-1].hash if records else genesis(store_id))


def rechained(records: list[Record], start: int = 0) -> list[Record]:
    previous = records[start - 1].hash if start else genesis(ID)
    return records[:start] + list(chained(previous, start, [record.body for record in records[start:]]))


def renumbered(records: list[Record]) -> list[Record]:
    return [record._replace(position=position) for position, record in enumerate(records)]


OTHER = body_of(event(99))


def rewritten(records: list[Record], at: int) -> list[Record]:
    """One event rewritten with a hash that fits it, and nothing else."""
    old = records[at]
    new = old._replace(body=OTHER, hash=link(old.previous, at, OTHER))
    return records[:at] + [new] + records[at + 1 :]


CHANGES: dict[str, tuple[Change, int, str]] = {
    "content": (lambda r: r[:4] + [r[4]._replace(body=OTHER)] + r[5:], 4, "changed"),
    "content of the first": (lambda r: [r[0]._replace(body=OTHER)] + r[1:], 0, "changed"),
    "content of the last": (lambda r: r[:9] + [r[9]._replace(body=OTHER)], 9, "changed"),
    "content and hash": (lambda r: rewritten(r, 4), 4, "changed"),
    "content and hash of the last": (lambda r: rewritten(r, 9), 9, "changed"),
    "hash": (lambda r: r[:4] + [r[4]._replace(hash=bytes(32))] + r[5:], 4, "changed"),
    "previous hash": (lambda r: r[:4] + [r[4]._replace(previous=bytes(32))] + r[5:], 4, "changed"),
    "one dropped": (lambda r: r[:4] + r[5:], 4, "dropped"),
    "three dropped": (lambda r: r[:4] + r[7:], 4, "dropped"),
    "the first dropped": (lambda r: r[1:], 0, "dropped"),
    "the last dropped": (lambda r: r[:9], 9, "dropped"),
    "all dropped": (lambda r: [], 0, "dropped"),
    "one dropped, the rest renumbered": (lambda r: renumbered(r[:4] + r[5:]), 4, "dropped"),
    "three dropped, the rest renumbered": (lambda r: renumbered(r[:4] + r[7:]), 4, "dropped"),
    "the first dropped, the rest renumbered": (lambda r: renumbered(r[1:]), 0, "dropped"),
    "two swapped in the file": (lambda r: r[:4] + [r[5], r[4]] + r[6:], 4, "reordered"),
    "two far ones swapped": (lambda r: r[:2] + [r[7]] + r[3:7] + [r[2]] + r[8:], 2, "reordered"),
    "two swapped and renumbered": (lambda r: renumbered(r[:4] + [r[5], r[4]] + r[6:]), 4, "reordered"),
    "two contents swapped": (
        lambda r: r[:4] + [r[4]._replace(body=r[5].body), r[5]._replace(body=r[4].body)] + r[6:],
        4,
        "changed",
    ),
    "one inserted twice": (lambda r: r[:5] + [r[4]] + r[5:], 4, "inserted"),
    "one inserted, the rest renumbered": (
        lambda r: (
            r[:4]
            + [Record(4, r[3].hash, link(r[3].hash, 4, OTHER), OTHER)]
            + renumbered(r)[4:4]
            + [record._replace(position=record.position + 1) for record in r[4:]]
        ),
        4,
        "inserted",
    ),
    "one added at the end": (
        lambda r: [*r, Record(10, r[9].hash, link(r[9].hash, 10, OTHER), OTHER)],
        10,
        "inserted",
    ),
    "the end rewritten with all hashes": (
        lambda r: rechained(r[:6] + [r[6]._replace(body=OTHER)] + r[7:], 6),
        9,
        "changed",
    ),
    "another journal's": (lambda r: journal(10, "another")[0], 0, "foreign"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_named(change: str) -> None:
    alter, position, difference = CHANGES[change]
    records, head = journal(10)
    assert check(records, ID, head) is None
    finding = check(alter(records), ID, head)
    assert finding is not None
    assert (finding.position, finding.difference) == (position, difference), finding
    assert f"event {position} was " in str(finding)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_in_a_database_is_named(change: str, backend: Backend) -> None:
    alter, position, difference = CHANGES[change]
    with open_store(backend.url, store_id=ID) as store:
        store.append([event(number) for number in range(10)])
    altered = alter(journal(10)[0])
    if len({record.position for record in altered}) < len(altered):
        pytest.skip("a database has each position once")
    if "in the file" in change or "far ones" in change:
        pytest.skip("a database has no order but that of the positions")
    backend.raw(f"DELETE FROM {backend.events}")
    for record in altered:
        backend.raw(f"INSERT INTO {backend.events} VALUES (%s, %s, %s, %s)", tuple(record))
    with open_store(backend.url, read_only=True) as store:
        finding = store.verify_chain()
    assert finding is not None
    assert (finding.position, finding.difference) == (position, difference), finding
    with open_store(backend.url) as store, pytest.raises(JournalTamperedError) as caught:  # nor can it be used
        for _ in store.read():
            pass
        store.append([event()])
    assert caught.value.remedy


def test_a_journal_that_lost_its_end_is_not_continued(backend: Backend) -> None:
    with open_store(backend.url) as store:
        store.append([event(0), event(1)])
        backend.raw(f"DELETE FROM {backend.events} WHERE position = 1")
        for action in (lambda: store.append([event(2)]), store.length, store.last, store.read):
            with pytest.raises(JournalTamperedError, match="event 1 was dropped"):
                action()
        with pytest.raises(JournalTamperedError, match="event 1 was dropped"), store.transaction():
            raise AssertionError("the section must not begin")


def test_a_journal_with_an_addition_is_not_continued(backend: Backend) -> None:
    with open_store(backend.url) as store:
        store.append([event(0)])
        head = store.head()
        backend.raw(
            f"INSERT INTO {backend.events} VALUES (1, %s, %s, %s)", (head.hash, link(head.hash, 1, OTHER), OTHER)
        )
        with pytest.raises(JournalTamperedError, match="event 1 was inserted"):
            store.append([event(2)])
        finding = store.verify_chain()
        assert finding is not None
        assert (finding.position, finding.difference) == (1, "inserted")


def test_the_head_gone(backend: Backend) -> None:
    with open_store(backend.url) as store:
        store.append([event(0)])
        backend.raw(f"DELETE FROM {backend.head}")
        finding = store.verify_chain()
        assert finding is not None
        assert finding.difference == "dropped"
        with pytest.raises(Exception, match="lost its head"):
            store.append([event(1)])


def test_a_whole_new_chain_is_found_with_a_noted_head(backend: Backend) -> None:
    with open_store(backend.url) as store:
        noted = [store.head()]
        for number in range(10):
            store.append([event(number)])
            noted.append(store.head())
        for head in noted:
            assert store.verify_chain(Head.parse(str(head))) is None
        bodies = [stored.json for stored in store.read()]
        bodies[3] = OTHER
        forged = list(chained(genesis(store.store_id), 0, bodies))
        backend.raw(f"DELETE FROM {backend.events}")
        for record in forged:
            backend.raw(f"INSERT INTO {backend.events} VALUES (%s, %s, %s, %s)", tuple(record))
        backend.raw(f"UPDATE {backend.head} SET hash = %s", (forged[-1].hash,))
        assert store.verify_chain() is None
        assert store.verify_chain(noted[3]) is None
        finding = store.verify_chain(noted[4])
        assert finding is not None
        assert (finding.position, finding.difference) == (3, "changed")
        finding = store.verify_chain(Head(11, bytes(32)))
        assert finding is not None
        assert (finding.position, finding.difference) == (10, "dropped")
        finding = store.verify_chain(Head(0, bytes(32)))
        assert finding is not None
        assert finding.difference == "foreign"


@given(st.data())
def test_nothing_but_the_recorded_records_verifies(data: st.DataObject) -> None:
    records, head = journal(8)
    altered = data.draw(st.lists(st.sampled_from(records), max_size=9) | st.permutations(records))
    if data.draw(st.booleans()):
        altered = renumbered(altered)
    finding = check(altered, ID, head)
    assert (finding is None) == (altered == records)
    if finding is not None:
        intact = next(
            (at for at, pair in enumerate(zip(altered, records, strict=False)) if pair[0] != pair[1]),
            min(len(altered), 8),
        )
        assert finding.position <= intact


@pytest.mark.parametrize("text", ["", "1", "1:", "x:" + "0" * 64, "1:" + "0" * 63, "-1:" + "0" * 64])
def test_what_is_no_head(text: str) -> None:
    with pytest.raises(ValueError, match="a length and a hash"):
        Head.parse(text)
