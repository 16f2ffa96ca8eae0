"""Recorded episodes, invented."""

from __future__ import annotations

import json
from typing import Any


def call(tool: str, result: str | None = "{}", **arguments: Any) -> list[dict[str, Any]]:
    """A call in tau-bench's form and its result."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]}
    ]
    return messages + ([{"role": "tool", "tool_call_id": "1", "content": result}] if result is not None else [])


def episode(*parts: list[dict[str, Any]]) -> str:
    """An episode in which Ada says who she is."""
    said = [{"role": "user", "content": "I am ada_1"}]
    return json.dumps({"task_id": 1, "trial": 0, "traj": said + [message for part in parts for message in part]})
