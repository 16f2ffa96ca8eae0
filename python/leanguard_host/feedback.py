"""What a model is told about a decision.

The wording is fixed: it is made of rule ids, categories and hints, which the policy's author wrote. Of error messages
only those about the call's own arguments are repeated; nothing that a tool or the backend returned gets into it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LIMIT = 600
"""Most characters of a feedback."""

_LINE_LIMIT = 240
_REPEATED = "host.arguments"
_UNAVAILABLE = ("host.unavailable", "host.answer", "host.request")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

ADMITTED = "The call is admitted."
DENIED = "The call was denied and not made."
UNAVAILABLE = (
    "The call could not be checked, so it was denied and not made. This is no judgement on the call; try again later."
)


def printable(text: str) -> str:
    """The text on one line, without control characters: they could redraw a terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def feedback(admitted: bool, failed_rules: Sequence[tuple[str, str, str]], errors: Sequence[tuple[str, str]]) -> str:
    """At most LIMIT characters.

    Args:
        admitted: the verdict.
        failed_rules: id, category and hint of each failed rule.
        errors: rule and message of each error.
    """
    if admitted:
        return ADMITTED
    if not failed_rules and errors and all(rule in _UNAVAILABLE for rule, _ in errors):
        return UNAVAILABLE
    repeated = [message for rule, message in errors if rule == _REPEATED]
    unevaluated = sorted({rule for rule, _ in errors if rule != _REPEATED})
    lines = [f"- {hint} ({category}; {rule})" for rule, category, hint in failed_rules]
    lines += [f"- {message}" for message in repeated]
    lines += [f"- The rule {rule} could not be evaluated on the data at hand." for rule in unevaluated]
    text = DENIED
    for index, line in enumerate(lines):
        line = "\n" + _cut(printable(line), _LINE_LIMIT)
        rest = len(lines) - index - 1
        more = f"\n- and {rest} more" if rest else ""
        if len(text) + len(line) + len(more) > LIMIT:
            return text + f"\n- and {rest + 1} more"
        text += line
    return text
