"""The process that all differential tests share, the seeds, and the report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from oracle import Oracle
from runs import FRESH, SEEDS, compared


@pytest.fixture(scope="package")
def oracle() -> Iterator[Oracle]:
    with Oracle() as started:
        yield started


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", SEEDS, ids=[*map(str, SEEDS[:-1]), "fresh"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = ", ".join(f"{count:,} {what}" for what, count in compared.items())
    if counts:
        terminalreporter.line(
            f"differential: {counts} compared; the fresh seed was LEANGUARD_DIFFERENTIAL_SEED={FRESH}"
        )
