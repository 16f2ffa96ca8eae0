"""A replay as one page: filters, a timeline for each episode, a chart of the taxonomy.

What the episodes say is untrusted. It reaches the page as JSON in which no tag can begin, and is shown as text alone;
the page's security policy lets nothing run or load but its own script and style.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from leanguard_host.adapters.tau2 import DOMAINS
from leanguard_host.adapters.tau2.episodes import Episode
from leanguard_host.replay.summary import CATEGORIES, CONSENT, Decided, Summary

_LONGEST_TEXT = 2000
_LONGEST_ARGUMENTS = 4000
_ONE_LINE = 100
_SLOT = re.compile(r"\{\{([a-z ]+)\}\}")


def page(summaries: Sequence[Summary], rules: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """The replays as one HTML page that needs no other file and no network.

    Args:
        summaries: one or more replays.
        rules: of each rule, by its id, the `category` and `sentence` that the page shows.
    """
    style, script = _asset("page.css"), _asset("page.js")
    names = list(dict.fromkeys(summary.policy for summary in summaries))
    title = f"Replay: {', '.join(names)}"
    slots = {
        "title": html.escape(title),
        "style": style,
        "script": script,
        "style hash": _hash(style),
        "script hash": _hash(script),
        "data": _json(_data(summaries, names, rules or {})),
    }
    return _SLOT.sub(lambda slot: slots[slot[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (files("leanguard_host.replay") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(value: Any) -> str:
    """JSON that can stand in a script element: no character of it begins a tag or a comment."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(summaries: Sequence[Summary], names: list[str], rules: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    used = {rule for summary in summaries for decided in summary.decisions for rule in decided.rules}
    found = {category for summary in summaries for decided in summary.decisions for category in decided.categories}
    shown = {rule: {part: str(rules[rule].get(part, "")) for part in ("category", "sentence")} for rule in rules}
    consent = {rule for name in names for rule in DOMAINS[name].confirmations}
    if CONSENT in found:
        for rule in consent & set(shown):
            shown[rule]["category"] = CONSENT
    return {
        "about": _about(summaries),
        "policies": names,
        "consent": CONSENT,
        "consentRules": sorted(consent),
        "categories": [*CATEGORIES, *sorted(found - set(CATEGORIES))],
        "rules": {rule: shown[rule] for rule in sorted(used & set(shown))},
        "episodes": [
            {"policy": summary.policy, "name": episode.name, "steps": list(_steps(episode, decisions))}
            for summary in summaries
            for episode, decisions in zip(summary.replayed, summary.by_episode, strict=True)
        ],
    }


def _about(summaries: Sequence[Summary]) -> str:
    parts = []
    if any(summary.unreadable for summary in summaries):
        count = sum(len(summary.unreadable) for summary in summaries)
        parts.append(f"{count} parts of the files could not be read as episodes.")
    if all(summary.assume_consent for summary in summaries):
        parts.append("It is taken that the customer confirmed every change.")
    else:
        parts.append("Whether the customer confirmed a change can't be seen in a transcript; it is told apart.")
    return " ".join(parts)


def _steps(episode: Episode, decisions: list[Decided]) -> Iterator[dict[str, Any]]:
    """The conversation in its order, each call with what was decided of it."""
    if episode.reference:  # its calls are not the recorded steps: what an honest agent does is among them
        for step in episode.steps:
            if step.kind == "customer" and step.text:
                yield {"kind": "customer", "text": _cut(step.text, _LONGEST_TEXT)}
        for decided in decisions:
            yield _call(decided, decided.arguments, "")
        return
    by_index = {decided.index: decided for decided in decisions}
    for index, step in enumerate(episode.steps):
        if (found := by_index.get(index)) is not None:
            yield _call(found, step.arguments, step.result)
        elif step.kind == "device":
            yield {
                "kind": "device",
                "text": f"{_arguments(step.tool)} {_cut(_arguments(step.arguments), _LONGEST_TEXT)}",
            }
        elif step.text:
            yield {"kind": step.kind, "text": _cut(step.text, _LONGEST_TEXT)}


def _call(decided: Decided, arguments: Any, result: str) -> dict[str, Any]:
    return {
        "kind": "call",
        "tool": decided.tool,
        "arguments": _cut(_arguments(arguments), _LONGEST_ARGUMENTS),
        "result": _cut(result, _LONGEST_TEXT),
        "denied": decided.denied,
        "rules": decided.rules,
        "categories": decided.categories,
        "errors": [_cut(error, _LONGEST_TEXT) for error in decided.errors],
        "executed": decided.executed,
        "changed": decided.changed,
        "forbidden": decided.forbidden_executed,
        "onlyConsent": decided.only_consent,
        "contradicts": decided.contradicts,
        "undecided": decided.undecided,
    }


def _arguments(value: Any) -> str:
    """The arguments of a call to be read: a field a line if they are long; what is no object, as it was recorded."""
    if isinstance(value, str):
        return value
    try:
        short = json.dumps(value, ensure_ascii=False)
        if len(short) <= _ONE_LINE or not isinstance(value, dict):
            return short
        fields = (
            f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(item, ensure_ascii=False)}"
            for name, item in value.items()
        )
        return "{\n" + ",\n".join(fields) + "\n}"
    except RecursionError:
        return "(nested too deep to be shown)"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
