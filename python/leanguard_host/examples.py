"""Examples of each rule: a call that was admitted and one that was denied, each with its snapshot and journal.

They are in `policies/examples/NAME.json`. Tests let Lean decide every one of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leanguard_host.lean.paths import package_root

Json = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """A call that was decided.

    Attributes:
        call: the call.
        snapshot: the state in which it was proposed.
        journal: what had happened, oldest first.
    """

    call: Json
    snapshot: Json
    journal: list[Json]

    def as_json(self) -> Json:
        """The fields as JSON."""
        return {"call": self.call, "snapshot": self.snapshot, "journal": self.journal}

    def happened(self) -> list[str]:
        """The journal in words, repeated things once."""
        told: dict[str, None] = {}
        for event in self.journal:
            thing = event.get("resource") or {}
            about = f" of {thing['type']} {thing['id']}" if thing else ""
            tool = (event.get("call") or {}).get("tool")
            by = f" ({tool}{', ' + event['status'] if 'status' in event else ''})" if tool else ""
            told[f"{event['kind']}{about}{by}"] = None
        return list(told)


@dataclass(frozen=True)
class Examples:
    """Of one rule; None where there can be none."""

    admitted: Example | None
    denied: Example | None


def shown(call: Json) -> str:
    """A call on one line."""
    arguments = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call["arguments"].items()
    )
    return f"{call['tool']}({arguments})"


def file_of(policy: str, root: Path | None = None) -> Path:
    """Where a policy's examples are."""
    return (root or package_root()) / "policies" / "examples" / f"{policy}.json"


def rule_examples(policy: str, root: Path | None = None) -> dict[str, Examples]:
    """The examples of a policy's rules, by rule; none if the policy has none.

    Args:
        policy: its name.
        root: the package; the one that belongs to this code if None.
    """
    file = file_of(policy, root)
    if not file.is_file():
        return {}
    told = json.loads(file.read_text(encoding="utf-8"))
    snapshots, events = told["snapshots"], told["events"]

    def example(entry: Json | None) -> Example | None:
        if entry is None:
            return None
        return Example(entry["call"], snapshots[entry["snapshot"]], [events[index] for index in entry["journal"]])

    return {
        rule: Examples(example(entry.get("admitted")), example(entry.get("denied")))
        for rule, entry in told["rules"].items()
    }
