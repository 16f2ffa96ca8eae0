"""The examples of `leanguard explain`: Lean decides each as it is told."""

from __future__ import annotations

from typing import Any

import pytest
from choosing import tools_of

from leanguard_host.examples import Example, rule_examples
from leanguard_host.models import Call, Event, Snapshot, read_model

NAMES = ("retail", "airline", "telecom")
HOST = ("host.unknown_tool", "host.arguments")


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_decided_as_it_is_told(engine: Any, name: str) -> None:
    def decide(example: Example) -> Any:
        journal = [read_model(Event, event) for event in example.journal]
        call, snapshot = read_model(Call, example.call), read_model(Snapshot, example.snapshot)
        return engine.decide(name, call, snapshot, journal, 60.0)

    for rule, examples in rule_examples(name).items():
        if examples.admitted:
            assert decide(examples.admitted).admitted, rule
        if examples.denied:
            decision = decide(examples.denied)
            assert [failed.id for failed in decision.failed_rules] == [rule]
            assert {error.rule for error in decision.errors} <= {rule}


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_has_an_example_each_way(engine: Any, name: str) -> None:
    policy = next(policy for policy in engine.policies if policy["name"] == name)
    found = rule_examples(name)
    assert set(found) == {rule["id"] for rule in policy["rules"]} | set(HOST)
    for rule in policy["rules"]:
        examples = found[rule["id"]]
        assert examples.admitted and examples.admitted.call["tool"] in tools_of(policy, rule)
        if rule["kind"] == "permit" and rule["condition"] == "true":
            assert examples.denied is None
        else:
            assert examples.denied and examples.denied.call["tool"] in tools_of(policy, rule)
    assert not any(found[host].admitted for host in HOST)
    assert found["host.arguments"].denied or name == "airline"


def test_a_policy_without_examples_has_none() -> None:
    assert rule_examples("none") == {}
