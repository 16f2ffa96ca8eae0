"""Journals of other versions."""

# The tables have other names in each database; the names are constants of the helpers.
# ruff: noqa: S608

from __future__ import annotations

import pytest
from journal_helpers import Backend, event

from leanguard_host.store import SCHEMA_VERSION, JournalTamperedError, JournalVersionError, open_store
from leanguard_host.store.chain import chained, genesis
from leanguard_host.store.stored import body_of

ID = "an-old-journal"


def rows(length: int) -> list[tuple[int, bytes, str]]:
    bodies = [body_of(event(number)) for number in range(length)]
    return [(record.position, record.hash, record.body) for record in chained(genesis(ID), 0, bodies)]


@pytest.mark.parametrize("length", [0, 1, 300])
def test_version_1_is_migrated(backend: Backend, length: int) -> None:
    old = rows(length)
    backend.version_1(ID, old)
    with pytest.raises(JournalVersionError, match="upgrade") as caught:
        open_store(backend.url, read_only=True)
    assert caught.value.version == 1
    for _ in range(2):
        with open_store(backend.url, create=False) as store:
            assert store.store_id == ID
            assert [(s.position, bytes.fromhex(s.hash), s.json) for s in store.read()] == old
            assert store.verify_chain() is None
    with open_store(backend.url) as store:
        assert store.append([event(length)], expected_length=length) == [length]
    with pytest.raises(Exception, match="append-only"):
        backend.polite(f"DELETE FROM {backend.events}")


def test_what_does_not_verify_is_not_migrated(backend: Backend) -> None:
    old = rows(10)
    old[4] = (4, old[4][1], body_of(event(99)))
    backend.version_1(ID, old)
    for _ in range(2):
        with pytest.raises(JournalTamperedError, match="event 4 was changed"):
            open_store(backend.url)
    found = backend.raw(f"SELECT position, hash, body FROM {backend.events} ORDER BY position")
    assert [(position, bytes(here), body) for position, here, body in found] == old


def test_a_newer_version_is_refused_and_left_alone(backend: Backend) -> None:
    with open_store(backend.url) as store:
        store.append([event()])
    backend.set_version(SCHEMA_VERSION + 1)
    for options in ({}, {"read_only": True}, {"create": False}):
        with pytest.raises(JournalVersionError, match=r"version 3.* up to 2\. Upgrade LeanGuard") as caught:
            open_store(backend.url, **options)
        assert caught.value.version == 3
    assert backend.raw(f"SELECT count(*) FROM {backend.events}")[0][0] == 1
