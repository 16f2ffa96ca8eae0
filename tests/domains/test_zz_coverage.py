"""Every rule denied something and every tool was let through, in the tests of the three domains; it runs after them."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import Chat

TOOLS = {"retail": 16, "airline": 14, "telecom": 13}
PERMITS_OF_EVERYTHING = {
    "retail": {"lookup_permit", "read_permit", "change_permit", "exchange_permit"},
    "airline": {"read_permit", "change_permit"},
    "telecom": {"read_permit", "change_permit"},
}
"""Permits that always hold: they deny nothing; a tool without any permit is denied by `host.no_permit`."""


@pytest.mark.parametrize("name", TOOLS)
def test_every_rule_and_tool_was_tried(engine: Any, name: str) -> None:
    if name not in Chat.tried:
        pytest.skip("the domain's tests were not run")
    policy = next(policy for policy in engine.policies if policy["name"] == name)
    tools = {contract["tool"] for contract in policy["contracts"]}
    rules = {rule["id"] for rule in policy["rules"]}
    assert len(tools) == TOOLS[name]
    untried = rules - Chat.tried[name] - {f"{name}.{rule}" for rule in PERMITS_OF_EVERYTHING[name]}
    assert not untried
    assert tools == Chat.passed[name]
