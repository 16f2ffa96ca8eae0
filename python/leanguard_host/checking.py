"""`leanguard check`: by the background process, or without it. Imports little unless it has to start something."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from leanguard_host.client import Connection, DaemonError, DaemonLostError, connect, connect_or_start
from leanguard_host.failing import ADMITTED, DENIED, failures
from leanguard_host.feedback import STYLES, Style, feedback, printable, repair_feedback, shown
from leanguard_host.jsonfiles import CALL_LIMIT, FILE_LIMIT, InputError, Source, parse, read
from leanguard_host.naming import policy_name
from leanguard_host.out import Progressing, as_json, note, say

if TYPE_CHECKING:
    from leanguard_host.engine import Reporter

UNAVAILABLE = "host.unavailable"
_FIELDS = {
    "verdict": str,
    "failed_rules": list,
    "errors": list,
    "revision": str,
    "policy": str,
    "policy_digest": str,
    "toolchain": str,
    "elapsed_ms": float | int,
    "repair": dict | None,
    "repair_search": dict | None,
}

_LONGEST_TIMEOUT = 600.0


def run(
    *,
    policy: str,
    snapshot: str,
    journal: str,
    call: str,
    json_: bool = False,
    repair: bool = False,
    no_daemon: bool = False,
    without_stricter: bool = False,
    style: str | None = None,
    timeout: float = 2.0,
) -> int:
    """The command `leanguard check`; returns its exit code.

    Raises:
        SystemExit: the input can't be used, or there is no usable Lean.
    """
    with failures(json_), Progressing() as reporter:
        if not 0 < timeout <= _LONGEST_TIMEOUT:
            raise InputError("--timeout", f"more than 0 and at most {_LONGEST_TIMEOUT:g} seconds", f"{timeout:g}")
        if style is not None and style not in STYLES:
            raise InputError("--feedback", f"one of {', '.join(STYLES)}", json.dumps(style))
        if style is not None and json_:
            raise InputError("--feedback", "no --json beside it: it prints what a model is told", "both")
        if [snapshot, journal, call].count("-") > 1:
            raise InputError("standard input", "one file to be `-`", "more than one")
        sources = read(call, CALL_LIMIT), read(snapshot, FILE_LIMIT), read(journal, FILE_LIMIT)
        policy = policy_name(policy, stricter=not without_stricter)
        decision = check(policy, *sources, timeout=timeout, reporter=reporter, daemon=not no_daemon, repair=repair)
    if json_:
        as_json(decision)
    elif style is not None:
        show_feedback(decision, style)
    else:
        show_decision(decision)
    return ADMITTED if decision["verdict"] == "admit" else DENIED


def show_decision(decision: dict[str, Any]) -> None:
    """Print a decision for people."""
    say(("admitted", "good") if decision["verdict"] == "admit" else ("denied", "bad"))
    for rule in decision["failed_rules"]:
        say("  ", (rule["id"], "title"), f" ({rule['category']})")
        say("    ", rule["hint"])
    for error in decision["errors"]:
        say("  ", (error["rule"], "title"), " (", ("error", "warn"), ")")
        say("    ", error["message"])
    _show_repair(decision["repair"], decision["repair_search"])


def _show_repair(repair: dict[str, Any] | None, search: dict[str, Any] | None) -> None:
    if search is None:
        return
    for rejected in search["rejected"]:
        by = [rule["id"] for rule in rejected["failed_rules"]] + [error["rule"] for error in rejected["errors"]]
        if rejected["stopped_by"] == "intent":
            by = ["it would change what the call is for"]
        say("  tried ", _edits(rejected["edits"]), (f": {rejected.get('message') or ', '.join(by)}", "dim"))
    if repair is None:
        say(("no repair", "warn"), f": {search['note']}")
        return
    say(("repair", "good"), ", which was not made:")
    for edit in repair["edits"]:
        say("  ", _edits([edit]), (f"  {edit['source']}" if edit["source"] else "", "dim"))
    if repair["needs_consent"]:
        say("  The customer has to confirm exactly this call first.")
    axioms = ", ".join(repair["axioms"]) or "no axiom"
    say("  ", (f"proved in {search['elapsed_ms']:.0f} ms, from {axioms}: {repair['theorem']}", "dim"))


def _edits(edits: list[dict[str, Any]]) -> str:
    return ", ".join(f"{edit['argument']}: {shown(edit['before'])} → {shown(edit['after'])}" for edit in edits)


def show_feedback(decision: dict[str, Any], style: Style) -> None:
    """Print what a model is told about a decision."""
    rules = [(rule["id"], rule["category"], rule["hint"]) for rule in decision["failed_rules"]]
    errors = [(error["rule"], error["message"]) for error in decision["errors"]]
    told = ""
    if found := decision["repair"]:
        edits = [(edit["argument"], shown(edit["before"]), shown(edit["after"])) for edit in found["edits"]]
        told = repair_feedback(edits, found["needs_consent"])
    for line in feedback(decision["verdict"] == "admit", rules, errors, style, repair=told).splitlines():
        say(line)


def reach(reporter: Reporter) -> Connection | None:
    """The background process, started if need be (and what it needs installed and built); None if it can't be had here.

    Raises:
        LeanUnavailable: there is no usable Lean.
    """
    try:
        if found := connect():
            return found
        from leanguard_host.engine import prepare

        prepare(reporter)  # here, where the user sees the progress
        return connect_or_start(reporter)
    except DaemonError as error:
        note(f"Going on without the background process: {error}.")
        return None


def check(
    policy: str,
    call: Source,
    snapshot: Source,
    journal: Source | None,
    *,
    timeout: float,
    reporter: Reporter,
    daemon: bool = True,
    repair: bool = False,
) -> dict[str, Any]:
    """Decide a call; returns the decision's fields. A decision that can't be had is a denial with the reason.

    With `repair`, a denial comes with a nearby call that is admitted, or with the reason why there is none.

    Raises:
        InputError: the input can't be used.
        LeanUnavailable: there is no usable Lean.
    """
    try:
        connection = connect() if daemon else None
    except DaemonError as error:
        note(f"Going on without the background process: {error}.")
        connection, daemon = None, False
    if connection is None:
        from leanguard_host.inputs import read_inputs

        read_inputs(call, snapshot, journal)  # before anything large is installed, built or started
        connection = reach(reporter) if daemon else None
    if connection is None:
        return _check_here(policy, call, snapshot, journal, timeout, reporter, repair)
    request = {
        "op": "check",
        "policy": policy,
        "call": call.as_json(),
        "snapshot": snapshot.as_json(),
        "journal": journal.as_json() if journal else None,
        "timeout": timeout,
        "repair": repair,
    }
    with connection:
        try:
            answer = connection.ask(request, timeout)
        except DaemonLostError as error:
            return _denial(policy, snapshot, connection, str(error))
    if isinstance(answer.get("problem"), dict):
        raise InputError.from_json(answer["problem"])
    decision = answer.get("decision")
    if isinstance(decision, dict) and is_decision(decision, policy):
        return decision
    return _denial(policy, snapshot, connection, str(answer.get("fault", "the background process gave no decision")))


def is_decision(decision: dict[str, Any], policy: str) -> bool:
    """Whether this is a decision by the policy, whose verdict fits its reasons."""
    if set(decision) != set(_FIELDS):
        return False
    if not all(isinstance(decision[name], kind) for name, kind in _FIELDS.items()):
        return False
    if decision["policy"] != policy or decision["verdict"] not in ("admit", "deny"):
        return False
    reasons: list[Any] = decision["failed_rules"] + decision["errors"]
    return bool(decision["verdict"] == "admit") != bool(reasons)


def _check_here(
    policy: str,
    call: Source,
    snapshot: Source,
    journal: Source | None,
    timeout: float,
    reporter: Reporter,
    repair: bool,
) -> dict[str, Any]:
    from leanguard_host.engine import Engine, UnknownPolicyError, policy_problem
    from leanguard_host.inputs import read_inputs

    with Engine.start(reporter) as engine:
        engine.restarts = False
        try:
            inputs = read_inputs(call, snapshot, journal)
            question = policy, inputs.call, inputs.snapshot, inputs.journal
            decision = engine.decide(*question, timeout)
            if repair:
                decision = engine.repair(decision, *question)
        except UnknownPolicyError as unknown:
            raise policy_problem(unknown) from None
    return decision.model_dump(mode="json")


def _denial(policy: str, snapshot: Source, connection: Connection, reason: str) -> dict[str, Any]:
    try:
        revision = parse(snapshot)["revision"]
    except (InputError, LookupError, TypeError):
        revision = ""
    digests, toolchain = connection.greeting.get("digests"), connection.greeting.get("toolchain")
    return {
        "verdict": "deny",
        "failed_rules": [],
        "errors": [{"rule": UNAVAILABLE, "message": f"The call could not be checked: {printable(reason)[:400]}"}],
        "revision": revision if isinstance(revision, str) else "",
        "policy": policy,
        "policy_digest": str(digests.get(policy, "")) if isinstance(digests, dict) else "",
        "toolchain": toolchain if isinstance(toolchain, str) else "",
        "elapsed_ms": 0.0,
        "repair": None,
        "repair_search": None,
    }


def ask_policies(*, reporter: Reporter, daemon: bool = True) -> list[dict[str, Any]]:
    """The policies that Lean knows.

    Raises:
        LeanUnavailable: there is no usable Lean.
    """
    connection = reach(reporter) if daemon else None
    if connection is not None:
        with connection:
            try:
                policies = connection.ask({"op": "policies"}).get("policies")
            except DaemonLostError as error:
                note(f"Going on without the background process: {error}.")
            else:
                if isinstance(policies, list):
                    return policies
    from leanguard_host.engine import Engine

    with Engine.start(reporter) as engine:
        return engine.policies
