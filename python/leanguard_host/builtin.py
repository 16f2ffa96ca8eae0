"""The rules that every policy has: they are about the call and the checkpoint itself, so no policy lists them."""

from __future__ import annotations

from typing import Any

HOST_RULES: tuple[dict[str, Any], ...] = (
    {
        "id": "host.unknown_tool",
        "kind": "require",
        "category": "invalid invocation",
        "hint": "This tool is not in the policy. Use one of the tools that it names.",
        "sentence": "A call is decided only if the policy has a contract of its tool.",
        "tools": "every",
    },
    {
        "id": "host.arguments",
        "kind": "require",
        "category": "invalid invocation",
        "hint": "The arguments do not fit the tool's schema. Correct them and call again.",
        "sentence": "The arguments are those of the tool's contract, each of its type.",
        "tools": "every",
    },
    {
        "id": "host.no_permit",
        "kind": "permit",
        "category": "policy prohibition",
        "hint": "No rule of the policy permits this tool.",
        "sentence": "What no rule permits is denied.",
        "tools": "every",
    },
)
"""The rules that Lean applies before and beside a policy's own (LeanGuard/Spec/Decision.lean)."""

HOST_ERRORS: tuple[dict[str, Any], ...] = tuple(
    {"id": rule, "kind": "require", "category": "checkpoint", "hint": hint, "sentence": sentence, "tools": "every"}
    for rule, hint, sentence in (
        ("host.unavailable", "Try again later.", "Lean did not answer; without its answer nothing is admitted."),
        ("host.answer", "Try again later.", "Lean's answer did not fit the question, so it was not believed."),
        ("host.request", "Correct the call and try again.", "Lean could not read the question."),
        ("host.input", "Correct the call and try again.", "The call, the snapshot or the journal can't be used."),
        ("host.call", "Correct the call and try again.", "The call can't be read, or there is no such tool here."),
        ("host.snapshot", "Try again later.", "The backend's state could not be read, or kept changing."),
    )
)
"""The ids under which `errors` tells that there was no evaluation at all."""
