"""The reviewed denials of docs/replay-review.md are those that the replay gives."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from leanguard_host.replay import Decided, replay

REVIEW = Path(__file__).resolve().parents[2] / "docs" / "replay-review.md"
ROW = re.compile(r"\| (\d+#\d) \| (\d+) \| (\w+) \| ([\w, ]+) \| (right|wrong|debatable) \| [^|]+ \|")


@pytest.fixture(scope="module")
def denied(engine: Any, data: Path) -> list[Decided]:
    """The denials of the recorded episodes, but for those of a tool that does nothing."""
    file = data / "tau-bench" / "airline" / "gpt-4o-episodes.jsonl"
    decisions = replay(file, "airline", data, [engine], assume_consent=True).decisions
    return [decided for decided in decisions if decided.denied and decided.tool != "think"]


def rows(title: str) -> set[tuple[str, int, str, str]]:
    """The calls of a section, and the counts that it tells are those of its verdicts."""
    section = REVIEW.read_text(encoding="utf-8").split(f"## {title}")[1].split("\n## ")[0]
    found = [match.groups() for match in map(ROW.fullmatch, section.splitlines()) if match]
    for verdict in ("right", "debatable", "wrong"):
        assert f"{sum(row[4] == verdict for row in found)} {verdict}" in section
    assert len(found) == sum(line.startswith("| ") for line in section.splitlines()) - 1
    return {(episode, int(step), tool, rules) for episode, step, tool, rules, _ in found}


def told(decisions: list[Decided]) -> set[tuple[str, int, str, str]]:
    """The same of the replay's decisions."""
    return {
        (d.episode, d.index, d.tool, ", ".join(rule.removeprefix("airline.") for rule in d.rules)) for d in decisions
    }


def test_the_random_sample(denied: list[Decided]) -> None:
    assert rows("Thirty denials") == told(random.Random(6).sample(denied, 30))  # noqa: S311


def test_all_that_was_forbidden_and_carried_out(denied: list[Decided]) -> None:
    assert rows("Forbidden, and carried out") == told([decided for decided in denied if decided.forbidden_executed])
