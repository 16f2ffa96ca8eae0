"""Every decision of a replay as a theorem that the kernel checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leanguard_host.engine import Engine
from leanguard_host.models import Call, Decision, Event, Snapshot

_MOST_FAILURES = 20


class Proving:
    """Decides as an engine does, and has each decision proved.

    Attributes:
        proved: how many theorems the kernel checked.
        failures: what could not be proved: the call, and why.
        axioms: what the proofs rest on.
    """

    def __init__(self, engine: Engine) -> None:
        """Over an engine, which it does not end."""
        self.engine = engine
        self.proved = 0
        self.failures: list[dict[str, Any]] = []
        self.axioms: set[str] = set()

    @property
    def digests(self) -> Mapping[str, str]:
        """As of the engine."""
        return self.engine.digests

    def decide(self, policy: str, call: Call, snapshot: Snapshot, journal: list[Event], timeout: float) -> Decision:
        """As `Engine.decide`; the proof changes nothing of the decision."""
        decision = self.engine.decide(policy, call, snapshot, journal, timeout)
        proof = self.engine.prove(policy, call, snapshot, journal)
        if proof.proved and proof.verdict == decision.verdict:
            self.proved += 1
            self.axioms.update(proof.axioms)
        else:
            why = proof.message or f"what was proved is another verdict: {proof.verdict}"
            self.failures.append({"tool": call.tool, "arguments": call.arguments, "message": why})
        return decision


def proofs(deciders: list[Proving]) -> dict[str, Any]:
    """What they proved, as one JSON object: counts, axioms, and the first failures."""
    failures = [failure for decider in deciders for failure in decider.failures]
    return {
        "proved": sum(decider.proved for decider in deciders),
        "failed": len(failures),
        "axioms": sorted(set().union(*(decider.axioms for decider in deciders))),
        "failures": failures[:_MOST_FAILURES],
    }
