"""Questions to Lean for repairs and for proofs, and what counts as an answer.

A repair is a proposal: whatever is wrong with an answer, there is none, and the call stays denied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from leanguard_host.feedback import printable
from leanguard_host.models import Call, Decision, Event, Proof, Repair, RepairSearch, Snapshot
from leanguard_host.wire import RefusedError, WrongAnswerError, admission, good_answer

OPERATIONS = ("repair", "prove")
"""The operations that are asked of the process that proves."""

CANDIDATES = 64
"""How many candidates a search tries at most."""

SEARCH_SECONDS = 1.0
"""How long a search goes on to another candidate, in seconds."""


@dataclass(frozen=True)
class SearchBudget:
    """What a search for a repair may take.

    Attributes:
        candidates: how many candidates are tried at most.
        seconds: after how many seconds no other candidate is tried.
    """

    candidates: int = CANDIDATES
    seconds: float = SEARCH_SECONDS


DEFAULT_BUDGET = SearchBudget()

AXIOMS = frozenset({"propext", "Quot.sound", "Classical.choice"})
"""The axioms that a proof may rest on."""


def repair_question(
    policy: str, call: Call, snapshot: Snapshot, journal: Sequence[Event], budget: SearchBudget
) -> dict[str, Any]:
    """The question for a repair of a denied call."""
    question = admission(policy, call, snapshot, journal)
    return question | {"op": "repair", "candidates": budget.candidates, "milliseconds": round(budget.seconds * 1000)}


def proof_question(policy: str, call: Call, snapshot: Snapshot, journal: Sequence[Event]) -> dict[str, Any]:
    """The question for a decision with its theorem."""
    return admission(policy, call, snapshot, journal) | {"op": "prove"}


def _body(question: Mapping[str, Any], answer: object) -> dict[str, Any]:
    body = good_answer(answer)
    for name, expected in (("policy", question["policy"]), ("revision", question["snapshot"]["revision"])):
        if body.get(name) != expected:
            raise WrongAnswerError(f"it is about another {name}")
    if type(body.get("elapsed_us")) is not int or body["elapsed_us"] < 0:
        raise WrongAnswerError("it has no `elapsed_us`")
    return body


def _check_axioms(axioms: Sequence[str]) -> None:
    if extra := sorted(set(axioms) - AXIOMS):
        raise WrongAnswerError(f"its proof rests on {', '.join(extra)}")


def _check_repair(question: Mapping[str, Any], body: Mapping[str, Any], decision: Decision, repair: Repair) -> None:
    if body.get("verdict") != "deny" or decision.verdict != "deny":
        raise WrongAnswerError("it repairs a call that is admitted")
    proposed, repaired = question["call"], repair.call.wire()
    edits = {edit.argument: edit for edit in repair.edits}
    if len(edits) != len(repair.edits) or repaired["tool"] != proposed["tool"]:
        raise WrongAnswerError("its edits are not those of the call")
    expected = dict(proposed["arguments"])
    for name, edit in edits.items():
        if name not in expected or expected[name] != edit.before or edit.before == edit.after:
            raise WrongAnswerError("its edits are not those of the call")
        expected[name] = edit.after
    if repaired["arguments"] != expected:
        raise WrongAnswerError("its edits are not those of the call")
    if not repair.theorem:
        raise WrongAnswerError("its repair has no theorem")
    _check_axioms(repair.axioms)


def read_repair(question: Mapping[str, Any], answer: object, decision: Decision) -> Decision:
    """The denial with what an answer has of repairs. One that can't be right gives none; nothing is raised."""
    try:
        body = _body(question, answer)
        found = body.get("repair")
        repair = None if found is None else Repair.model_validate(_tuples(found))
        if repair is not None:
            _check_repair(question, body, decision, repair)
        names = ("note", "tried", "candidates", "rejected")
        search = RepairSearch.model_validate(
            {name: _tuples(body[name]) for name in names} | {"elapsed_ms": body["elapsed_us"] / 1000}
        )
        if (search.note is None) != (repair is not None):
            raise WrongAnswerError("it has no repair, and no reason why")
    except RefusedError as refused:
        return without_repair(decision, f"Lean could not read the question: {refused}")
    except (WrongAnswerError, ValidationError, KeyError, TypeError, AttributeError) as wrong:
        return without_repair(decision, f"Lean's answer can't be right: {_reason(wrong)}")
    return decision.model_copy(update={"repair": repair, "repair_search": search})


def without_repair(decision: Decision, reason: str) -> Decision:
    """The denial, and why no repair was found."""
    return decision.model_copy(update={"repair": None, "repair_search": RepairSearch(note=printable(reason)[:400])})


def read_proof(question: Mapping[str, Any], answer: object) -> Proof:
    """The proof in an answer. One that can't be right proves nothing; nothing is raised."""
    try:
        body = _body(question, answer)
        names = {"verdict", "failed_rules", "errors", "proved", "theorem", "axioms", "axioms_exact", "message"}
        proof = Proof.model_validate(
            {name: _tuples(body[name]) for name in names & set(body)} | {"elapsed_ms": body["elapsed_us"] / 1000}
        )
        if proof.verdict is None or proof.proved != bool(proof.theorem):
            raise WrongAnswerError("it has no verdict, or no theorem")
        if (proof.verdict == "admit") == bool(proof.failed_rules or proof.errors):
            raise WrongAnswerError("its verdict does not fit its failed rules and errors")
        _check_axioms(proof.axioms)
    except RefusedError as refused:
        return unproved(f"Lean could not read the question: {refused}")
    except (WrongAnswerError, ValidationError, KeyError, TypeError, AttributeError) as wrong:
        return unproved(f"Lean's answer can't be right: {_reason(wrong)}")
    return proof


def unproved(reason: str) -> Proof:
    """No proof, and why."""
    return Proof(verdict=None, message=printable(reason)[:400])


def _reason(wrong: Exception) -> str:
    if isinstance(wrong, ValidationError):
        first = wrong.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(wrong) if isinstance(wrong, WrongAnswerError) else f"{type(wrong).__name__} {wrong}"


_LISTS = ("edits", "axioms", "failed_rules", "errors", "rejected")


def _tuples(value: Any, name: str = "") -> Any:
    """JSON as the strict models take it: their own lists are tuples, and those within a call are lists."""
    if isinstance(value, list) and name in ("", *_LISTS):
        return tuple(_tuples(item, "item") for item in value)
    if isinstance(value, dict) and name in ("", "item"):
        return {key: _tuples(item, key) if key in _LISTS else item for key, item in value.items()}
    return value
