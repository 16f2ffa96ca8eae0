"""Chooses the examples of each rule from the calls that the tests decided, and writes them down."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from worlds import Row, Situation


def _size(situation: Situation) -> int:
    return len(json.dumps(situation.wire()))


def _smallest(situations: Iterable[Situation], tool: str | None = None) -> Situation | None:
    found = list(situations)
    near = [s for s in found if s.call.tool == tool]
    return min(near or found, key=lambda s: (_size(s), json.dumps(s.wire(), sort_keys=True)), default=None)


def tools_of(policy: Row, rule: Row) -> set[str]:
    """The tools that a rule is about."""
    writing = {contract["tool"] for contract in policy["contracts"] if contract["access"] == "write"}
    return writing if rule["tools"] == "writing" else set(rule["tools"])


def chosen(policy: Row, situations: list[Situation]) -> dict[str, tuple[Situation | None, Situation | None]]:
    """For each rule the smallest call that it denies alone, and the smallest admitted one of the same tool."""
    found = {}
    for rule in policy["rules"]:
        denied = _smallest(s for s in situations if s.failed == {rule["id"]})
        tools = tools_of(policy, rule)
        fitting = [s for s in situations if s.decision.admitted and s.call.tool in tools]
        found[rule["id"]] = _smallest(fitting, denied.call.tool if denied else None), denied
    for host in ("host.unknown_tool", "host.arguments"):
        found[host] = None, _smallest(s for s in situations if s.failed == {host})
    return found


def least(engine: Any, situation: Situation) -> Situation:
    """The same without the events that make no difference."""
    index = 0
    while index < len(situation.journal):
        fewer = situation.journal[:index] + situation.journal[index + 1 :]
        decision = engine.decide(situation.policy, situation.call, situation.snapshot, fewer, 60.0)
        less = replace(situation, journal=fewer, decision=decision)
        if less.failed == situation.failed:
            situation = less
        else:
            index += 1
    return situation


def write(engine: Any, file: Path, policy: Row, situations: list[Situation]) -> None:
    """Write the examples of a policy; what they share is written once."""
    snapshots: list[Row] = []
    events: list[Row] = []

    def place(items: list[Row], item: Row) -> int:
        if item not in items:
            items.append(item)
        return items.index(item)

    def entry(situation: Situation | None) -> Any:
        if situation is None:
            return None
        wire = least(engine, situation).wire()
        journal = [place(events, event) for event in wire["journal"]]
        return {"call": wire["call"], "snapshot": place(snapshots, wire["snapshot"]), "journal": journal}

    rules = {
        rule: {"admitted": entry(admitted), "denied": entry(denied)}
        for rule, (admitted, denied) in chosen(policy, situations).items()
    }

    def lines(items: list[Row]) -> str:
        return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in items) + "\n]"

    told = ",\n".join(f"{json.dumps(rule)}: {json.dumps(value, ensure_ascii=False)}" for rule, value in rules.items())
    text = f'{{"snapshots": {lines(snapshots)},\n"events": {lines(events)},\n"rules": {{\n{told}\n}}}}\n'
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
