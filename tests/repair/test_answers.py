"""What counts as an answer about repairs and proofs: a wrong one gives none, and the call stays denied."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from leanguard_host.engine import Engine
from leanguard_host.lean.errors import LeanTimeout
from leanguard_host.models import Call, Decision, Event, Snapshot
from leanguard_host.proving import SearchBudget

Json = dict[str, Any]
CALL = Call(tool="exchange", arguments={"order_id": "#W1", "payment_method_id": "gift_666"})
SNAPSHOT = Snapshot(revision="r1", time=0, state={})
RULE = {"id": "retail.payment", "kind": "require", "category": "policy prohibition", "hint": "Use another."}
EDIT = {"argument": "payment_method_id", "before": "gift_666", "after": "card", "source": "a card"}
REPAIR = {
    "call": {"tool": "exchange", "arguments": {"order_id": "#W1", "payment_method_id": "card"}},
    "edits": [EDIT],
    "needs_consent": True,
    "theorem": "EditOK ... = .admit",
    "axioms": ["propext"],
    "axioms_exact": False,
}
GOOD: Json = {
    "ok": True,
    "policy": "retail",
    "revision": "r1",
    "verdict": "deny",
    "failed_rules": [RULE],
    "errors": [],
    "elapsed_us": 30000,
    "repair": REPAIR,
    "note": None,
    "rejected": [{"edits": [{**EDIT, "after": "empty"}], "stopped_by": "policy", "failed_rules": [RULE], "errors": []}],
    "tried": 2,
    "candidates": 3,
}
PROVED: Json = {
    **{name: GOOD[name] for name in ("ok", "policy", "revision", "verdict", "failed_rules", "errors", "elapsed_us")},
    "proved": True,
    "theorem": "decide call snapshot journal ≠ .admit",
    "axioms": ["propext", "Quot.sound"],
    "axioms_exact": True,
}


class Answering:
    """A process that knows one policy and answers every other question the same, or fails."""

    pid = 1

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Json] = []

    def start(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""

    def guard(self, request: Mapping[str, Any], timeout: float) -> Any:
        if request["op"] == "policies":
            return {"ok": True, "policies": [{"name": "retail", "contracts": [], "rules": []}]}
        self.asked.append(dict(request))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def denial(engine: Engine) -> Decision:
    return Decision(
        verdict="deny",
        failed_rules=(),
        errors=({"rule": "retail.payment", "message": "unreadable"},),  # type: ignore[arg-type]
        revision="r1",
        policy="retail",
        policy_digest="",
        toolchain="",
        elapsed_ms=1.0,
    ).model_copy(update={"failed_rules": (), "policy_digest": engine.digests["retail"]})


def repaired(answer: Any) -> Decision:
    process = Answering(answer)
    engine = Engine(process, toolchain="", keys={})
    return engine.repair(denial(engine), "retail", CALL, SNAPSHOT, [Event(kind="note", time=0)])


def changed(path: str, value: Any) -> Json:
    """The good answer with one value replaced."""
    answer = copy.deepcopy(GOOD)
    at: Any = answer
    *way, last = path.split(".")
    for step in way:
        at = at[int(step)] if step.isdigit() else at[step]
    at[last] = value
    return answer


def test_a_good_answer() -> None:
    decision = repaired(GOOD)
    assert not decision.admitted
    repair = decision.repair
    assert repair is not None
    assert repair.call.arguments["payment_method_id"] == "card"
    assert repair.diff() == 'payment_method_id: "gift_666" → "card" (a card)'
    assert repair.axioms == ("propext",) and repair.needs_consent
    search = decision.repair_search
    assert search is not None and search.note is None and (search.tried, search.candidates) == (2, 3)
    assert [rejected.reason() for rejected in search.rejected] == ["retail.payment"]
    text = decision.feedback()
    assert 'with payment_method_id "card" in place of "gift_666"' in text
    assert "once the customer has confirmed exactly that call" in text
    assert "gift_666" not in decision.feedback("rules") and len(text) <= 600


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("policy", "airline"),
        ("revision", "r2"),
        ("verdict", "admit"),
        ("elapsed_us", None),
        ("note", "both"),
        ("tried", "many"),
        ("rejected", None),
        ("repair.axioms", ["propext", "sorryAx"]),
        ("repair.theorem", ""),
        ("repair.edits", []),
        ("repair.edits", [EDIT, EDIT]),
        ("repair.edits.0.before", "other"),
        ("repair.edits.0.after", "other"),
        ("repair.edits.0.argument", "order_id"),
        ("repair.call.tool", "cancel"),
        ("repair.call.arguments.order_id", "#W2"),
        ("repair.call.arguments.more", 1),
        ("repair.call", {"tool": "exchange"}),
        ("repair.needs_consent", "no"),
        ("repair.executed", True),
    ],
)
def test_an_answer_that_is_not_right_is_no_repair(path: str, value: Any) -> None:
    decision = repaired(changed(path, value))
    assert not decision.admitted and decision.repair is None
    assert decision.repair_search is not None and decision.repair_search.note
    assert "can't be right" in decision.repair_search.note


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        ({**GOOD, "repair": None, "note": "No candidate passes."}, "No candidate passes."),
        ({"ok": False, "error": {"path": "guard.journal", "message": "missing"}}, "could not read the question"),
        ("nonsense", "can't be right"),
        (LeanTimeout("no answer within 3 s"), "No repair could be looked for: no answer within 3 s"),
        (ValueError("odd"), "odd"),
    ],
)
def test_no_repair_says_why(answer: Any, note: str) -> None:
    decision = repaired(answer)
    assert not decision.admitted and decision.repair is None
    assert decision.repair_search is not None and note in str(decision.repair_search.note)
    assert "in place of" not in decision.feedback()


def test_the_budget_is_asked_for_and_an_admitted_call_asks_nothing() -> None:
    process = Answering(GOOD)
    engine = Engine(process, toolchain="", keys={})
    denied = denial(engine)
    engine.repair(denied, "retail", CALL, SNAPSHOT, [], SearchBudget(candidates=3, seconds=0.25))
    assert (process.asked[0]["candidates"], process.asked[0]["milliseconds"]) == (3, 250)
    admitted = denied.model_copy(update={"verdict": "admit", "errors": ()})
    assert engine.repair(admitted, "retail", CALL, SNAPSHOT, []) is admitted
    undecided = denied.model_copy(update={"errors": (type(denied.errors[0])(rule="host.unavailable", message="x"),)})
    assert engine.repair(undecided, "retail", CALL, SNAPSHOT, []).repair_search is not None
    assert len(process.asked) == 1


def test_a_process_of_its_own_proves() -> None:
    decides, proves = Answering(ValueError("never asked")), Answering(GOOD)
    engine = Engine(decides, toolchain="", keys={}, prover=proves)
    assert engine.repair(denial(engine), "retail", CALL, SNAPSHOT, []).repair is not None
    assert not decides.asked


def test_a_proof() -> None:
    engine = Engine(Answering(PROVED), toolchain="", keys={})
    proof = engine.prove("retail", CALL, SNAPSHOT, [])
    assert proof.proved and proof.verdict == "deny" and proof.theorem and proof.failed_rules[0].id == "retail.payment"


@pytest.mark.parametrize(
    "wrong",
    [
        {"axioms": ["Lean.ofReduceBool"]},
        {"theorem": None},
        {"verdict": None},
        {"verdict": "admit"},
        {"revision": "r2"},
        {"proved": "yes"},
        {"proved": False},
    ],
)
def test_a_proof_that_is_not_right_proves_nothing(wrong: Json) -> None:
    engine = Engine(Answering({**PROVED, **wrong}), toolchain="", keys={})
    proof = engine.prove("retail", CALL, SNAPSHOT, [])
    assert not proof.proved and proof.theorem is None and "can't be right" in proof.message


def test_what_the_kernel_refuses_is_told() -> None:
    refused = {**PROVED, "proved": False, "message": "the kernel ran out of its budget"}
    del refused["theorem"], refused["axioms"], refused["axioms_exact"]
    proof = Engine(Answering(refused), toolchain="", keys={}).prove("retail", CALL, SNAPSHOT, [])
    assert (proof.proved, proof.verdict, proof.message) == (False, "deny", "the kernel ran out of its budget")
