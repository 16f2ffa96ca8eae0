"""What the tests share: one built package, one background process, one started Lean."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers import EXAMPLES, SETTINGS, command, environment, leanguard, load, options


@pytest.fixture(scope="session")
def lean() -> None:
    """A usable Lean and a built package."""
    done = subprocess.run(
        command("build"), env=environment(), capture_output=True, text=True, timeout=1500, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def daemon(lean: None) -> Iterator[Callable[[], dict[str, Any]]]:
    """The tests' background process; gives its status."""

    def status() -> dict[str, Any]:
        from leanguard_host.client import connect

        if not (connection := connect()):
            assert leanguard("check", *options()).code == 0  # an earlier test has ended it
            connection = connect()
        assert connection is not None
        with connection:
            while True:  # until its own first questions are over: they would meet what a test does to Lean
                found: dict[str, Any] = connection.ask({"op": "status"})["status"]
                if not found["warming_up"]:
                    return found
                time.sleep(0.1)

    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        assert leanguard("check", *options()).code == 0
        yield status
        leanguard("daemon", "stop")


@pytest.fixture(scope="session")
def engine(lean: None) -> Iterator[Any]:
    """Lean, started in this process."""
    from leanguard_host.engine import Engine

    with Engine.start() as started:
        yield started


@pytest.fixture
def snapshot() -> dict[str, Any]:
    """The example's snapshot."""
    return load("snapshot.json")


@pytest.fixture
def call() -> dict[str, Any]:
    """The example's call."""
    return load("call.json")


@pytest.fixture
def events() -> list[dict[str, Any]]:
    """The example's journal, with the confirmation."""
    return [
        json.loads(line) for line in (EXAMPLES / "journal_confirmed.jsonl").read_text(encoding="utf-8").splitlines()
    ]
