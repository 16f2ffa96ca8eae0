"""Questions to Lean, and what counts as an answer.

Only an answer that is right in every detail can admit a call. Anything else is a denial that says what was wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leanguard_host.feedback import printable
from leanguard_host.models import Call, Decision, Event, FailedRule, RuleError, Snapshot

UNAVAILABLE = "host.unavailable"
"""The rule under which an error says that Lean did not answer."""

WRONG_ANSWER = "host.answer"
"""The rule under which an error says that Lean's answer can't be right."""

REFUSED = "host.request"
"""The rule under which an error says that Lean could not read the question."""

BAD_INPUT = "host.input"
"""The rule under which an error says that the call, snapshot or journal can't be used."""


class WrongAnswerError(Exception):
    """An answer that is not one, or not to the question that was asked."""


class RefusedError(Exception):
    """Lean says that it could not read the question."""


def admission(policy: str, call: Call, snapshot: Snapshot, journal: Sequence[Event]) -> dict[str, Any]:
    """The question for a decision. (The process gives each question an id, which the answer must repeat.)"""
    return {
        "op": "admit",
        "policy": policy,
        "call": call.wire(),
        "snapshot": snapshot.wire(),
        "journal": [event.wire() for event in journal],
    }


def _strings(value: object, names: set[str], what: str) -> dict[str, str]:
    if not isinstance(value, dict) or set(value) != names or any(type(text) is not str for text in value.values()):
        raise WrongAnswerError(f"{what} should be objects with the fields {', '.join(sorted(names))}")
    return value


def _items(body: Mapping[str, Any], name: str, fields: set[str]) -> list[dict[str, str]]:
    items = body.get(name)
    if not isinstance(items, list):
        raise WrongAnswerError(f"it has no list `{name}`")
    return [_strings(item, fields, f"the items of `{name}`") for item in items]


def good_answer(answer: object) -> dict[str, Any]:
    """The answer, if it is marked as good.

    Raises:
        RefusedError: Lean could not read the question.
        WrongAnswerError: it is no answer.
    """
    if not isinstance(answer, dict):
        raise WrongAnswerError("it is no JSON object")
    if answer.get("ok") is False:
        problem = answer.get("error")
        if isinstance(problem, dict):
            raise RefusedError(printable(f"{problem.get('path')}: {problem.get('message')}"))
        raise WrongAnswerError("it refuses the question without a reason")
    if answer.get("ok") is not True:
        raise WrongAnswerError("it is not marked as good or bad")
    return answer


def _decision(question: Mapping[str, Any], answer: object, policy_digest: str, toolchain: str) -> Decision:
    body = good_answer(answer)
    for name, expected in (("policy", question["policy"]), ("revision", question["snapshot"]["revision"])):
        if body.get(name) != expected:
            raise WrongAnswerError(f"it is about another {name}")
    verdict = body.get("verdict")
    if verdict not in ("admit", "deny"):
        raise WrongAnswerError("it has no verdict")
    failed = _items(body, "failed_rules", {"id", "kind", "category", "hint"})
    errors = _items(body, "errors", {"rule", "message"})
    if (verdict == "admit") == bool(failed or errors):
        raise WrongAnswerError("its verdict does not fit its failed rules and errors")
    if any(rule["kind"] not in ("permit", "require", "forbid") for rule in failed):
        raise WrongAnswerError("a rule in it is of no known kind")
    elapsed = body.get("elapsed_us")
    if type(elapsed) is not int or elapsed < 0:
        raise WrongAnswerError("it has no `elapsed_us`")
    return Decision(
        verdict=verdict,
        failed_rules=tuple(FailedRule.model_validate(rule) for rule in failed),
        errors=tuple(RuleError.model_validate(error) for error in errors),
        revision=body["revision"],
        policy=body["policy"],
        policy_digest=policy_digest,
        toolchain=toolchain,
        elapsed_ms=elapsed / 1000,
    )


def denial(
    rule: str, message: str, *, policy: str, revision: str, policy_digest: str, toolchain: str, elapsed_ms: float = 0
) -> Decision:
    """A denial for a reason of the host's."""
    return Decision(
        verdict="deny",
        failed_rules=(),
        errors=(RuleError(rule=rule, message=message),),
        revision=revision,
        policy=policy,
        policy_digest=policy_digest,
        toolchain=toolchain,
        elapsed_ms=elapsed_ms,
    )


def read_decision(question: Mapping[str, Any], answer: object, *, policy_digest: str, toolchain: str) -> Decision:
    """The decision in an answer. An answer that can't be right is a denial with the reason; nothing is raised."""
    try:
        return _decision(question, answer, policy_digest, toolchain)
    except RefusedError as refused:
        rule, message = REFUSED, f"Lean could not read the question: {refused}"
    except WrongAnswerError as wrong:
        rule, message = WRONG_ANSWER, f"Lean's answer can't be right: {wrong}"
    return denial(
        rule,
        message,
        policy=question["policy"],
        revision=question["snapshot"]["revision"],
        policy_digest=policy_digest,
        toolchain=toolchain,
    )
