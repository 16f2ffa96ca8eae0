"""`leanguard explain RULE`: all that there is to say of one rule."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from leanguard_host.builtin import HOST_ERRORS, HOST_RULES
from leanguard_host.examples import Example, rule_examples, shown
from leanguard_host.jsonfiles import InputError
from leanguard_host.out import say
from leanguard_host.sources import rule_sources

_EVERY = {"every": "every tool", "writing": "every tool that writes"}
_ALWAYS = "true"


def explained(rule: str, policies: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What is known of a rule: Lean's own account, its source, its examples.

    Args:
        rule: its id.
        policies: as Lean tells them.

    Raises:
        InputError: there is no such rule.
    """
    known: dict[str, dict[str, Any]] = {}
    for each in (*HOST_RULES, *HOST_ERRORS):
        known[each["id"]] = {**each, "policies": [], "stricter": False, "condition": None}
    told = list(policies)
    for policy in told:
        for each in policy["rules"]:
            known.setdefault(each["id"], {**each, "policies": []})["policies"].append(policy["name"])
    if rule not in known:
        close = difflib.get_close_matches(rule.lower(), known, n=1, cutoff=0.5)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise InputError("RULE", "the id of a rule; `leanguard policies` lists them", repr(rule) + hint)
    found = known[rule]
    source = rule_sources().get(rule)
    names = found["policies"] or [policy["name"] for policy in told]
    examples = next((some for name in names if (some := rule_examples(name).get(rule))), None)
    return {
        **found,
        "source": source.as_json() if source else None,
        "examples": {
            "admitted": examples.admitted.as_json() if examples and examples.admitted else None,
            "denied": examples.denied.as_json() if examples and examples.denied else None,
        },
    }


def show(found: dict[str, Any]) -> None:
    """Print it for people."""
    tools = found["tools"]
    about = _EVERY.get(tools, tools) if isinstance(tools, str) else ", ".join(tools)
    stricter = "yes: can be left out with --without-stricter" if found["stricter"] else "no"
    say((found["id"], "title"))
    rows = [("kind", found["kind"]), ("category", found["category"]), ("says", found["sentence"])]
    source = found["source"] or {}
    if source.get("comment"):
        rows.append(("English", source["comment"]))
    rows += [("tools", about), ("policies", ", ".join(found["policies"]) or "all"), ("stricter", stricter)]
    rows.append(("hint", found["hint"]))
    if found["condition"]:
        rows.append(("condition", found["condition"]))
    if source:
        rows.append(("Lean", f"{source['file']}, line {source['line']}"))
    for name, text in rows:
        say("  ", (f"{name:<9}", "dim"), " ", text)
    for code in (source.get("condition"), *source.get("where", ())):
        for line in (code or "").splitlines():
            say(" " * 14, line)
    for verdict in ("admitted", "denied"):
        _show_example(verdict, found)


def _show_example(verdict: str, found: dict[str, Any]) -> None:
    example = found["examples"][verdict]
    if example is None:
        if verdict == "denied" and found["condition"] == _ALWAYS:
            say("  ", ("denied   ", "dim"), " nothing: this permit always holds")
        return
    by = " (by this rule alone)" if verdict == "denied" else ""
    say("  ", (f"{verdict:<9}", "dim"), " ", shown(example["call"]), (by, "dim"))
    happened = "; ".join(Example(**example).happened()) or "nothing"
    say(" " * 14, (f"after: {happened}", "dim"))
