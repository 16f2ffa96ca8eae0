"""What a model is told about a decision.

The wording is fixed: it is made of rule ids, categories and hints, which the policy's author wrote. Of error messages
only those about the call's own arguments are repeated; nothing that a tool or the backend returned gets into it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Literal, get_args

Style = Literal["bare", "rules", "hints"]
"""How much a model is told: that the call was denied; also by which rules; also what to do about each."""

STYLES: tuple[Style, ...] = get_args(Style)

LIMIT = 600
"""Most characters of a feedback."""

_LINE_LIMIT = 240
_VALUE_LIMIT = 80
_REPAIR_LIMIT = 400
_REPEATED = ("host.arguments", "host.call")
_UNAVAILABLE = ("host.unavailable", "host.answer", "host.request")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

ADMITTED = "The call is admitted."
DENIED = "The call was denied and not made."
UNAVAILABLE = (
    "The call could not be checked, so it was denied and not made. This is no judgement on the call; try again later."
)

AGAIN = "It was denied before for the same reasons, and unchanged it will be again."
_CHANGES = {
    "invalid invocation": "arguments that fit the tool's schema",
    "state incompatibility": "another state of the record, or another record",
    "temporal incompatibility": "the missing step made first, or the end of what is in the way",
    "authorization failure": "the customer's own record, or their confirmation of exactly this call",
    "policy prohibition": "other arguments, or another tool",
    "effect not modelled": "another tool",
}
"""What can turn a denial for a rule of the category into an admission."""
_COMPLETE = "data that the host has to complete"


def printable(text: str) -> str:
    """The text on one line, without control characters: they could redraw a terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def shown(value: object) -> str:
    """A value of a call as JSON, on one line and not too long."""
    return _cut(printable(json.dumps(value, ensure_ascii=False)), _VALUE_LIMIT)


def repair_feedback(edits: Sequence[tuple[str, str, str]], needs_consent: bool) -> str:
    """A repair in a sentence.

    Args:
        edits: the argument, and its value before and after, as `shown` shows them.
        needs_consent: whether the customer has to confirm the repaired call.
    """
    changes = ", and ".join(f"with {name} {after} in place of {before}" for name, before, after in edits)
    wait = ", once the customer has confirmed exactly that call" if needs_consent else ""
    return _cut(f"The same call {changes} is admitted{wait}.", _LINE_LIMIT)


def _again(categories: Sequence[str], incomplete: bool) -> str:
    """That the call was denied so before, and what would change it."""
    changes = [change for category, change in _CHANGES.items() if category in categories]
    changes += [_COMPLETE] * incomplete
    return f"{AGAIN} What would change that: {'; '.join(changes)}." if changes else AGAIN


def feedback(
    admitted: bool,
    failed_rules: Sequence[tuple[str, str, str]],
    errors: Sequence[tuple[str, str]],
    style: Style = "hints",
    *,
    again: bool = False,
    repair: str = "",
) -> str:
    """At most LIMIT characters.

    Args:
        admitted: the verdict.
        failed_rules: id, category and hint of each failed rule.
        errors: rule and message of each error.
        style: how much is told.
        again: the same call was denied before for the same reasons; what would change it is told too.
        repair: a nearby call that is admitted, in a sentence; told in the style `hints`.

    Raises:
        ValueError: there is no such style.
    """
    if style not in STYLES:
        raise ValueError(f"style must be one of {', '.join(STYLES)}, not {style!r}")
    if admitted:
        return ADMITTED
    if not failed_rules and errors and all(rule in _UNAVAILABLE for rule, _ in errors):
        return UNAVAILABLE
    repeated = [message for rule, message in errors if rule in _REPEATED]
    unevaluated = sorted({rule for rule, _ in errors if rule not in _REPEATED})
    text = DENIED
    if again:
        text += " " + _again([category for _, category, _ in failed_rules], bool(unevaluated))
    if repair and style == "hints":
        # A repair says better what would change the denial.
        text = f"{DENIED if len(text) + len(repair) > _REPAIR_LIMIT else text} {printable(repair)}"
    if style == "bare":
        return text
    if style == "rules":
        repeated = []
        lines = [f"- {rule} ({category})" for rule, category, _ in failed_rules]
    else:
        lines = [f"- {hint} ({category}; {rule})" for rule, category, hint in failed_rules]
    lines += [f"- {message}" for message in repeated]
    lines += [f"- The rule {rule} could not be evaluated on the data at hand." for rule in unevaluated]
    for index, line in enumerate(lines):
        rest = len(lines) - index - 1
        more = f"\n- and {rest} more" if rest else ""
        room = _LINE_LIMIT if index else min(_LINE_LIMIT, LIMIT - len(text) - len(more) - 1)
        line = "\n" + _cut(printable(line), room)
        if len(text) + len(line) + len(more) > LIMIT:
            return text + f"\n- and {rest + 1} more"
        text += line
    return text
