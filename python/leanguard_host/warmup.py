"""Made-up decisions that warm a new Lean process up, so that the first real ones need not wait for its compiler."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leanguard_host.lean.errors import LeanUnavailable

if TYPE_CHECKING:
    from leanguard_host.engine import Engine

ROUNDS = 300
SECONDS = 3.0


def _example(kind: Any) -> Any:
    if isinstance(kind, Mapping):
        return [_example(kind.get("list"))]
    return {"string": "example", "integer": 1, "number": 1.5, "boolean": True}.get(kind, {})


def questions(policies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each tool a call whose arguments fit its contract, in an empty state: each is denied with errors."""
    return [
        {
            "op": "admit",
            "policy": policy["name"],
            "call": {
                "tool": contract["tool"],
                "arguments": {each["name"]: _example(each["type"]) for each in contract["parameters"]},
            },
            "snapshot": {"revision": "r", "time": 0, "principal": "p", "conversation": "c", "state": {"t": {"k": "v"}}},
            "journal": [{"kind": "authentication", "time": 0, "principal": "p", "conversation": "c"}] * 3,
        }
        for policy in policies
        for contract in policy["contracts"]
    ]


def warm_up(engine: Engine, *, rounds: int = ROUNDS, seconds: float = SECONDS) -> int:
    """Ask made-up questions, one at a time so that real ones get in between; returns how many were asked.

    It changes nothing, and what fails is left for a real question to find.
    """
    asked = 0
    deadline = time.monotonic() + seconds
    try:
        made = questions(engine.policies)
        while made and asked < rounds and time.monotonic() < deadline:
            engine.process.guard(made[asked % len(made)], timeout=seconds)
            asked += 1
    except (LeanUnavailable, KeyError, TypeError):
        pass
    return asked
