"""One real Lean for the tests of execution, and journals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from relay import connect, relay
from shop import Shop

from leanguard_host import Guard


@pytest.fixture(scope="session")
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the real Lean can be asked; one that somebody started with `relay.py`, or the test run's own."""
    if given := os.environ.get("LEANGUARD_TEST_RELAY"):
        yield given
        return
    engine: Any = request.getfixturevalue("engine")
    with relay(engine, tmp_path_factory.mktemp("relay") / "s") as started:
        yield started


@pytest.fixture(scope="session")
def lean_engine(address: str) -> Any:
    """Lean."""
    return connect(address)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "ledger")


@pytest.fixture
def journal(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'journal.db'}"


@pytest.fixture
def guard(lean_engine: Any, journal: str) -> Iterator[Guard]:
    with Guard("retail", journal, engine=lean_engine, timeout=20.0) as made:
        yield made
