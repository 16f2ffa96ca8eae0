"""Warming up asks made-up questions that are never admitted, and disturbs nothing."""

from __future__ import annotations

from typing import Any

import pytest

from leanguard_host.engine import Engine
from leanguard_host.lean.errors import LeanCrashed
from leanguard_host.warmup import questions, warm_up


def test_every_question_is_read_and_denied() -> None:
    with Engine.start() as engine:
        made = questions(engine.policies)
        assert {question["call"]["tool"] for question in made} >= {
            "get_order_details",
            "exchange_delivered_order_items",
        }
        for question in made:
            answer = engine.process.guard(question, timeout=30)
            assert answer["ok"] is True, answer
            if question["policy"] == "retail" and question["call"]["tool"] == "exchange_delivered_order_items":
                assert answer["verdict"] == "deny"
                assert answer["errors"]
        assert warm_up(engine, rounds=5, seconds=60) == 5


@pytest.mark.parametrize("policies", [[], [{"name": "x"}], [{"name": "x", "contracts": [{}]}]])
def test_what_fails_is_left_for_a_real_question(policies: list[dict[str, Any]]) -> None:
    class Process:
        def guard(self, request: Any, timeout: float) -> Any:
            raise LeanCrashed("gone")

    class Fake:
        process = Process()

    Fake.policies = policies  # type: ignore[attr-defined]
    assert warm_up(Fake()) == 0  # type: ignore[arg-type]
