"""Every rule decides something: one that is left out, or says the opposite, is caught by the tests of the domains.

The calls that those tests decided are decided again by policies with one fault each. It runs after them.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from choosing import tools_of, write
from worlds import Chat, Situation

from leanguard_host.examples import file_of

SOURCE = Path(__file__).with_name("Mutants.lean")
CHUNK = 25
ALWAYS_TRUE = "true"


@pytest.fixture(scope="module")
def rows(engine: Any) -> Any:
    """What each situation's policy and its mutants decide."""
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    answer = engine.process.command("\n".join(line for line in lines if not line.startswith("import ")), timeout=180)
    assert "messages" not in answer, answer["messages"]
    environment = int(answer["env"])

    def ask(policy: str, situations: list[Situation]) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(situations), CHUNK):
            chunk = [situation.wire() for situation in situations[start : start + CHUNK]]
            text = json.dumps({"policy": policy, "situations": chunk}, separators=(",", ":"))
            done = engine.process.command(f"#eval mutants {json.dumps(text)}", env=environment, timeout=120)
            (message,) = done["messages"]
            assert message["severity"] == "info", message
            found += json.loads(message["data"])
        assert len(found) == len(situations)
        return found

    return ask


def recorded(name: str) -> list[Situation]:
    """The calls of a policy that were decided, each once."""
    found = {json.dumps(s.wire(), sort_keys=True): s for s in Chat.recorded if s.policy == name}
    if not found:
        pytest.skip("the domain's tests were not run")
    return list(found.values())


@pytest.mark.parametrize("name", ["retail", "airline", "telecom"])
def test_every_fault_in_a_rule_is_caught(engine: Any, rows: Any, name: str) -> None:
    situations = recorded(name)
    policy = next(policy for policy in engine.policies if policy["name"] == name)
    turned: dict[tuple[str, str], int] = defaultdict(int)
    for situation, row in zip(situations, rows(name, situations), strict=True):
        whole = set(row["whole"])
        assert whole - {f"!{rule}" for rule in whole} == situation.failed  # the evaluator decides as the monitor did
        for rule, fault, reasons in row["mutants"]:
            turned[rule, fault] += bool(reasons) != bool(whole)
    faults = {(rule["id"], fault) for rule in policy["rules"] for fault in ("dropped", "negated")}
    # Caught is a fault only if it turns an admission into a denial or a denial into an admission.
    assert {fault for fault in faults if not turned[fault]} == set()


@pytest.mark.parametrize("name", ["retail", "airline", "telecom"])
def test_every_rule_lets_a_call_through_and_denies_one(engine: Any, name: str) -> None:
    situations = recorded(name)
    policy = next(policy for policy in engine.policies if policy["name"] == name)
    admitted = {s.call.tool for s in situations if s.decision.admitted}
    denied = {rule.id for s in situations for rule in s.decision.failed_rules}
    for rule in policy["rules"]:
        assert tools_of(policy, rule) & admitted, rule["id"]
        always = rule["kind"] == "permit" and rule["condition"] == ALWAYS_TRUE
        assert always or rule["id"] in denied, rule["id"]


@pytest.mark.skipif("LEANGUARD_WRITE_EXAMPLES" not in os.environ, reason="writes the examples of `leanguard explain`")
@pytest.mark.parametrize("name", ["retail", "airline", "telecom"])
def test_write_the_examples(engine: Any, name: str) -> None:
    policy = next(policy for policy in engine.policies if policy["name"] == name)
    write(engine, file_of(name), policy, recorded(name))
