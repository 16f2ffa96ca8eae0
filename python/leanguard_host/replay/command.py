"""The command `leanguard replay`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from leanguard_host.adapters.tau2 import DOMAINS, open_backend
from leanguard_host.adapters.tau2.backend import DataError
from leanguard_host.adapters.tau2.episodes import episode_files
from leanguard_host.builtin import HOST_ERRORS, HOST_RULES
from leanguard_host.failing import DENIED, NO_LEAN, failures
from leanguard_host.feedback import printable
from leanguard_host.jsonfiles import InputError
from leanguard_host.out import Progressing, as_json, note, say
from leanguard_host.replay.deciding import Decider, replay
from leanguard_host.replay.page import page
from leanguard_host.replay.proving import Proving, proofs
from leanguard_host.replay.summary import Summary, table

_MOST_WORKERS = 16
_LABELS = {
    "admitted": "admitted",
    "denied": "denied",
    "consent_not_shown": "of them for nothing but the customer's consent, which a transcript can't show",
    "stricter_only": "of them by nothing but rules stricter than the benchmark",
    "forbidden_executed": "denied for another reason than consent, though the recording carried them out",
    "contradictions": "recorded results that contradict the database",
    "undecided": "not decided, because Lean did not answer",
}


def run(
    *,
    episodes: str,
    policy: str,
    data: str,
    json_: bool = False,
    html: str | None = None,
    resume: str | None = None,
    assume_consent: bool = False,
    workers: int = 1,
    without_stricter: bool = False,
    prove: bool = False,
) -> int:
    """Replay and tell; returns the exit code.

    Raises:
        SystemExit: the input can't be used, or there is no usable Lean.
    """
    from leanguard_host.engine import Engine, WithoutStricter

    with failures(json_), Progressing() as reporter, ExitStack() as engines:
        path = Path(episodes)
        if not path.exists():
            raise InputError(episodes, "a file or folder of episodes", "nothing there")
        if policy not in DOMAINS:
            raise InputError("--policy", f"one of {', '.join(DOMAINS)}", json.dumps(policy))
        if not 1 <= workers <= _MOST_WORKERS:
            raise InputError("--workers", f"1 to {_MOST_WORKERS}", str(workers))
        try:
            open_backend(policy, Path(data))  # before Lean is installed, built or started
        except DataError as error:
            raise InputError("--data", f"a folder with the {policy} database", str(error)) from error
        if prove and (html or resume or without_stricter):
            raise InputError("--prove", "neither --html nor --resume nor --without-stricter beside it", "one of them")
        _check_output("--html", html, path)
        _check_output("--resume", resume, path)
        keep = Path(resume) if resume else Path(f"{html}.part") if html else None
        rules: dict[str, Any] = {}
        with _told_how_to_go_on(keep):
            started = [engines.enter_context(Engine.start(reporter)) for _ in range(workers)]
            deciders: list[Decider] = [WithoutStricter(engine) if without_stricter else engine for engine in started]
            proving = [Proving(engine) for engine in started] if prove else []
            known = next((known for known in started[0].policies if known["name"] == policy), {})
            rules = {rule["id"]: rule for rule in (*HOST_RULES, *HOST_ERRORS, *known.get("rules", []))}
            try:
                summary = replay(
                    path,
                    policy,
                    Path(data),
                    list(proving) if prove else deciders,
                    assume_consent=assume_consent,
                    progress=lambda done, total: reporter.progress("replaying", done, total),
                    keep=keep,
                    strict=resume is not None,
                )
            except OSError as error:
                raise InputError(str(error.filename or episodes), "a file that can be used", str(error)) from error
        if not summary.episodes:
            reason = summary.unreadable[0].reason if summary.unreadable else "none"
            raise InputError(episodes, "at least one episode", reason)
        if html:
            _write(Path(html), page([summary], rules))
    for item in summary.unreadable:
        note(f"{item.place}: {item.reason}")
    if summary.resumed:
        note(f"{summary.resumed} of {summary.episodes} episodes had been decided by an earlier run.")
    proved = proofs(proving)
    if json_:
        as_json(summary.as_json() | ({"proofs": proved} if prove else {}))
    else:
        _show(summary)
        if prove:
            _show_proofs(proved)
        if html:
            say("The page is in ", (html, "title"), ".")
    if summary.undecided:
        note(f"Lean did not answer for {summary.undecided} calls; the same command tries them again.")
        return NO_LEAN
    if proved["failed"]:
        return DENIED
    if html and not resume and keep:
        keep.unlink(missing_ok=True)
    return 0


def _check_output(option: str, file: str | None, episodes: Path) -> None:
    """See that a file can be written and is none of the episodes, before anything else is done.

    Raises:
        InputError: it is one, or it can't be written.
    """
    if file is None:
        return
    path = Path(file)
    if path.is_dir():
        raise InputError(option, "a file", f"the directory {file}")
    if not path.parent.is_dir():
        raise InputError(option, "a file in a directory that exists", f"no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(option, "a file that may be written", f"{file} (permission denied)")
    among = (
        path.suffix in (".json", ".jsonl") and episodes.is_dir() and path.resolve().is_relative_to(episodes.resolve())
    )
    if among or any(path.exists() and path.samefile(each) for each in episode_files(episodes)):
        raise InputError(option, "a file that is none of the episodes", file)


@contextlib.contextmanager
def _told_how_to_go_on(keep: Path | None) -> Iterator[None]:
    """Tell what an interrupted replay leaves behind."""
    try:
        yield
    except SystemExit:
        if keep is None:
            note("Interrupted. With --resume FILE, a replay can go on where it was interrupted.")
        else:
            note(f"Interrupted. The same command goes on from here; {keep} has what was decided.")
        raise


def _write(path: Path, text: str) -> None:
    """Write the file whole or not at all.

    Raises:
        InputError: it can't be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise InputError("--html", "a file that can be written", str(error)) from error


def _show_proofs(proved: dict[str, Any]) -> None:
    axioms = ", ".join(proved["axioms"]) or "no axiom"
    say(f"  {proved['proved']:6}  decisions proved and checked by the kernel, from {axioms}")
    say(f"  {proved['failed']:6}  decisions whose proof did not check")
    for failure in proved["failures"]:
        say("          ", (failure["tool"], "title"), f": {printable(failure['message'])}")


def _show(summary: Summary) -> None:
    totals = summary.totals()
    say((f"{totals['episodes']} episodes, {totals['calls']} calls by the policy {totals['policy']}", "title"))
    for name, label in _LABELS.items():
        if totals[name] or name != "undecided":
            say(f"  {totals[name]:6}  {label}")
    for title, rows in table(totals):
        if rows:
            width = max(len(title), *(len(name) + 2 for name, _, _ in rows))
            say((f"{title:<{width}}  {'denied':>7}  {'carried out':>11}", "title"))
            for name, denied, executed in rows:
                say(f"  {name:<{width - 2}}  {denied:7}  {executed or '':>11}")
    if any(rows for _, rows in table(totals)):
        say(
            (
                "A call may fail several rules. Carried out: it changed the database, and lacked more than consent.",
                "dim",
            )
        )
