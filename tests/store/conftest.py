"""The databases of the journal's tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_helpers import Backend, PostgresBackend, PostgresServer, SQLiteBackend

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg")
    try:
        server = PostgresServer()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    if request.param == "sqlite":
        return SQLiteBackend(tmp_path)
    return PostgresBackend(request.getfixturevalue("postgres"), f"test_{next(_numbers)}")


@pytest.fixture
def sqlite(tmp_path: Path) -> SQLiteBackend:
    return SQLiteBackend(tmp_path)


@pytest.fixture
def on_postgres(postgres: PostgresServer) -> PostgresBackend:
    return PostgresBackend(postgres, f"test_{next(_numbers)}")
