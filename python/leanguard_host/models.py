"""The wire format: calls, snapshots, events, decisions.

Input models are strict: a wrong type, an unknown field or a number that can't be carried exactly is an error, never a
conversion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from leanguard_host.feedback import Style, feedback, repair_feedback, shown
from leanguard_host.jsonfiles import LARGEST, LONGEST_NAME, JsonValueError, describe, exact, json_path

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
M = TypeVar("M", bound=BaseModel)
_TIME = 'a time: milliseconds since 1970 or, with its zone, like "2026-03-01T12:00:00Z"'


def _refuse(expected: str, found: str) -> PydanticCustomError:
    context = {"expected": expected, "found": found}
    return PydanticCustomError("leanguard", "expected {expected}, found {found}", context)


def milliseconds(value: object) -> int:
    """A time in milliseconds since 1970, given as such or as an RFC 3339 text with its zone. Finer parts are cut off.

    Raises:
        PydanticCustomError: it is neither.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LARGEST:
            raise _refuse(f"a time of at most {LARGEST} ms from 1970", describe(value))
        return value
    if not isinstance(value, str) or not (match := _RFC3339.fullmatch(value)):
        raise _refuse(_TIME, describe(value))
    day, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone.upper()}")
        return (moment - _EPOCH) // timedelta(milliseconds=1) + int((fraction or "0").ljust(3, "0")[:3])
    except (ValueError, OverflowError):
        raise _refuse(_TIME, describe(value)) from None


def _identifier(value: str) -> str:
    if not value:
        raise _refuse("an identifier", "an empty string")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise _refuse("Unicode text", "half of a surrogate pair") from None
    if size > LONGEST_NAME:
        raise _refuse(f"an identifier of at most {LONGEST_NAME} bytes", f"one of {size}")
    return value


def _exact_fields(value: object) -> object:
    if not isinstance(value, Mapping):
        raise _refuse("an object", describe(value))
    try:
        return exact(value)
    except JsonValueError as problem:
        context = {"expected": problem.expected, "found": problem.found, "place": problem.place}
        raise PydanticCustomError("leanguard", "expected {expected}, found {found}", context) from None


Identifier = Annotated[str, AfterValidator(_identifier)]
"""A name: what policies compare."""

Time = Annotated[int, BeforeValidator(milliseconds)]
"""Milliseconds since 1970-01-01 00:00 UTC."""

Fields = Annotated[dict[str, Any], BeforeValidator(_exact_fields)]
"""Any JSON object that crosses to Lean without a change."""


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    def wire(self) -> dict[str, Any]:
        """The JSON object that Lean reads."""
        return self.model_dump(exclude_none=True)


class Call(_Model):
    """A tool call as a model proposed it. Untrusted."""

    tool: Identifier
    arguments: Fields


class Resource(_Model):
    """One thing of the backend."""

    type: Identifier
    id: Identifier


class Snapshot(_Model):
    """What an adapter read from the backend for one call. Trusted."""

    revision: Identifier
    time: Time
    principal: Identifier | None = None
    conversation: Identifier | None = None
    state: Fields


class Event(_Model):
    """One thing that happened, as the host recorded it. Trusted."""

    kind: Identifier
    time: Time
    principal: Identifier | None = None
    conversation: Identifier | None = None
    resource: Resource | None = None
    revision: Identifier | None = None
    call: Call | None = None
    status: Identifier | None = None
    data: Fields | None = None

    @model_validator(mode="after")
    def _outcome_has_status(self) -> Self:
        # An outcome with a misspelt status would count as no success and let a single-use call run again.
        if self.kind == "outcome" and self.status not in ("succeeded", "failed", "unknown"):
            found = "none" if self.status is None else describe(self.status)
            raise _refuse('the status of an outcome: "succeeded", "failed" or "unknown"', found)
        return self


class FailedRule(_Model):
    """A rule that a denied call failed."""

    id: str
    kind: Literal["permit", "require", "forbid"]
    category: str
    hint: str


class RuleError(_Model):
    """A rule that could not be evaluated, and why; or, with a rule of `host.`, why there was no evaluation."""

    rule: str
    message: str


class Edit(_Model):
    """One argument that a repair changes.

    Attributes:
        argument: its name.
        before: its value in the denied call.
        after: its value in the repaired call.
        source: what the new value is, in words.
    """

    argument: str
    before: Any
    after: Any
    source: str | None = None

    def __str__(self) -> str:
        source = f" ({self.source})" if self.source else ""
        return f"{self.argument}: {shown(self.before)} → {shown(self.after)}{source}"


class Repair(_Model):
    """A nearby call that the policy admits, with what the kernel proved. It was not made, and nobody confirmed it.

    Attributes:
        call: the repaired call, which the agent may issue.
        edits: what differs from the denied call.
        needs_consent: whether the customer has to confirm the repaired call first. No confirmation is carried over.
        theorem: what was proved: that the edits keep the intent of the call, and that the call is admitted.
        axioms: what the proof rests on, of `propext`, `Quot.sound` and `Classical.choice`.
        axioms_exact: false where Lean's own library comes without its proofs, so that its axioms are not looked into.
    """

    call: Call
    edits: Annotated[tuple[Edit, ...], Field(min_length=1)]
    needs_consent: bool
    theorem: str
    axioms: tuple[str, ...]
    axioms_exact: bool

    def diff(self) -> str:
        """The edits for a person, one a line."""
        return "\n".join(map(str, self.edits))

    def feedback(self) -> str:
        """The edits in a sentence for the model. It tells values of the customer's record, such as payment methods."""
        return repair_feedback(
            [(edit.argument, shown(edit.before), shown(edit.after)) for edit in self.edits], self.needs_consent
        )


class Rejected(_Model):
    """A candidate for a repair that was none.

    Attributes:
        edits: what it would have changed.
        stopped_by: `intent` (it would change what the call is for), `policy` (it is denied too), or `proof` (the kernel
            did not check it).
        failed_rules: where the policy stopped it, by which rules.
        errors: the rules that could not be evaluated.
        message: why it could not be proved.
    """

    edits: tuple[Edit, ...]
    stopped_by: Literal["intent", "policy", "proof"]
    failed_rules: tuple[FailedRule, ...] = ()
    errors: tuple[RuleError, ...] = ()
    message: str = ""

    def reason(self) -> str:
        """What stopped it, in a line."""
        if self.stopped_by == "intent":
            return "it would change what the call is for"
        return self.message or ", ".join(
            [rule.id for rule in self.failed_rules] + [error.rule for error in self.errors]
        )


class RepairSearch(_Model):
    """How a repair was looked for.

    Attributes:
        note: why there is no repair; None if there is one.
        tried: how many candidates were tried, the repair among them.
        candidates: how many there are.
        rejected: those that were tried and are no repair, in order, with what stopped each.
        elapsed_ms: how long it took, in milliseconds.
    """

    note: str | None
    tried: int = 0
    candidates: int = 0
    rejected: tuple[Rejected, ...] = ()
    elapsed_ms: Annotated[float, Field(ge=0)] = 0.0


class Proof(_Model):
    """A decision and the theorem that it is the one.

    Attributes:
        verdict: the decision; None if Lean did not answer.
        failed_rules: the rules that failed.
        errors: the rules that could not be evaluated.
        proved: whether the kernel checked the theorem.
        theorem: the statement, of `call`, `snapshot` and `journal`; None if it was not proved.
        axioms: what the proof rests on.
        axioms_exact: as of `Repair`.
        message: why it was not proved.
        elapsed_ms: how long it took, in milliseconds.
    """

    verdict: Literal["admit", "deny"] | None
    failed_rules: tuple[FailedRule, ...] = ()
    errors: tuple[RuleError, ...] = ()
    proved: bool = False
    theorem: str | None = None
    axioms: tuple[str, ...] = ()
    axioms_exact: bool = False
    message: str = ""
    elapsed_ms: Annotated[float, Field(ge=0)] = 0.0


class Decision(_Model):
    """Admitted, or denied with every rule that failed and every error."""

    verdict: Literal["admit", "deny"]
    failed_rules: tuple[FailedRule, ...]
    errors: tuple[RuleError, ...]
    revision: str
    policy: str
    policy_digest: str
    toolchain: str
    elapsed_ms: Annotated[float, Field(ge=0)]
    repair: Repair | None = None
    repair_search: RepairSearch | None = None
    _again: bool = PrivateAttr(default=False)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.verdict == "admit") == bool(self.failed_rules or self.errors):
            raise ValueError("a call is admitted exactly when no rule failed and there was no error")
        if self.verdict == "admit" and self.repair is not None:
            raise ValueError("an admitted call needs no repair")
        return self

    @property
    def admitted(self) -> bool:
        """Whether the call may run."""
        return self.verdict == "admit"

    @property
    def again(self) -> bool:
        """Whether the guard denied the same call for the same reasons before."""
        return self._again

    def marked_again(self) -> Self:
        """The same decision, as one that the guard made before."""
        copy = self.model_copy()
        copy._again = True
        return copy

    def feedback(self, style: Style = "hints") -> str:
        """What to tell the model: stable wording, at most 600 characters, nothing that a tool returned.

        Where a repair was asked for and found, the style `hints` tells it, with values of the customer's record.

        Args:
            style: `bare` tells that the call was denied, `rules` also by which rules, `hints` also what to do.

        Raises:
            ValueError: there is no such style.
        """
        rules = [(rule.id, rule.category, rule.hint) for rule in self.failed_rules]
        errors = [(error.rule, error.message) for error in self.errors]
        repair = self.repair.feedback() if self.repair else ""
        return feedback(self.admitted, rules, errors, style, again=self.again, repair=repair)


class ModelError(ValueError):
    """A value that is no call, snapshot or event: the place in it, what was expected, what was found."""

    def __init__(self, place: tuple[str | int, ...], expected: str, found: str, more: int = 0) -> None:
        rest = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
        super().__init__(f"{json_path(place)}: expected {expected}, found {found}{rest}")
        self.place, self.expected, self.found = place, expected, found + rest


_EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def _problem(model: type[BaseModel], error: ErrorDetails, more: int) -> ModelError:
    place: tuple[str | int, ...] = tuple(error["loc"])
    kind, context = error["type"], error.get("ctx", {})
    if kind == "leanguard":
        place += tuple(context.get("place", ()))
        return ModelError(place, str(context["expected"]), str(context["found"]), more)
    if kind == "missing":
        return ModelError(place, "a value", "no such field", more)
    if kind == "extra_forbidden":
        return ModelError(place, "only " + ", ".join(_known(model, place)), "an unknown field", more)
    return ModelError(place, _EXPECTED.get(kind, error["msg"]), describe(error["input"]), more)


def _known(model: type[BaseModel], place: tuple[str | int, ...]) -> list[str]:
    """The fields of the model at a place."""
    inner: dict[str, type[BaseModel]] = {"resource": Resource, "call": Call}
    for step in place[:-1]:
        model = inner.get(str(step), model)
    return list(model.model_fields)


def read_model(model: type[M], value: object) -> M:
    """The value as a model.

    Raises:
        ModelError: it is not one.
    """
    if isinstance(value, model):
        return value
    try:
        return model.model_validate(dict(value) if isinstance(value, Mapping) else value)
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False)
        raise _problem(model, errors[0], len(errors) - 1) from None
