"""Replaying recorded episodes on the benchmark's own database: each call is decided, and then carried out as recorded.

The recording's agent was not guarded: a denied call that was carried out then is carried out here too, so that what
follows is decided in the state that it was made in. Of a recorded result only whether the call failed is believed.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from leanguard_host.adapters.tau2 import DOMAINS, Backend, Session, ToolError, open_backend
from leanguard_host.adapters.tau2.backend import DataError
from leanguard_host.adapters.tau2.episodes import Episode, Step, Unreadable, read_episodes
from leanguard_host.adapters.tau2.reference import honest
from leanguard_host.failing import failures
from leanguard_host.jsonfiles import InputError
from leanguard_host.models import Call, Decision, Event, Snapshot, read_model
from leanguard_host.out import Progressing, as_json, note, say
from leanguard_host.wire import BAD_INPUT

ERROR_CATEGORY = "not evaluated"
"""The category of what was denied because a rule could not be evaluated, or the call not be read."""

TIMEOUT = 20.0
_MOST_WORKERS = 16
_LABELS = {
    "admitted": "admitted",
    "denied": "denied",
    "consent_not_shown": "of them for nothing but the customer's consent, which a transcript can't show",
    "stricter_only": "of them by nothing but rules stricter than the benchmark",
    "forbidden_executed": "denied for another reason than consent, though the recording carried them out",
    "contradictions": "recorded results that contradict the database",
    "by_rule": "Denied by rule (a call may fail several)",
    "by_category": "Denied by category",
    "forbidden_executed_by_rule": "Forbidden and carried out, by rule",
}


class Decider(Protocol):
    """What decides: an `Engine`."""

    def decide(self, policy: str, call: Call, snapshot: Snapshot, journal: list[Event], timeout: float) -> Decision:
        """Decide a call."""


@dataclass(frozen=True)
class Decided:
    """A call of an episode and what was decided."""

    episode: str
    index: int
    tool: str
    verdict: str
    rules: list[str]
    categories: list[str]
    arguments: Any = None
    errors: list[str] = field(default_factory=list)
    writes: bool = False
    executed: bool = False
    """Whether the recording's agent carried it out with success."""
    changed: bool = False
    """Whether that changed the database."""
    only_consent: bool = False
    """Nothing but the customer's consent is missing, which a transcript can't show."""
    only_stricter: bool = False
    """Denied by nothing but rules to which the benchmark does not hold its own solutions."""
    contradicts: bool = False
    """The recorded result is a failure and the database's is none, or the other way round."""

    @property
    def forbidden_executed(self) -> bool:
        """Denied for a reason other than consent, and yet it changed the database."""
        return self.verdict == "deny" and self.changed and not self.only_consent


@dataclass
class Summary:
    """All decisions of a replay."""

    policy: str
    assume_consent: bool
    decisions: list[Decided] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    episodes: int = 0
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The summary as one JSON object."""
        denied = [d for d in self.decisions if d.verdict == "deny"]
        forbidden = [d for d in denied if d.forbidden_executed]
        consent = DOMAINS[self.policy].confirmations  # told apart: it does not say why a call is forbidden
        return {
            "policy": self.policy,
            "assume_consent": self.assume_consent,
            "episodes": self.episodes,
            "unreadable": [asdict(item) for item in self.unreadable],
            "calls": len(self.decisions),
            "admitted": len(self.decisions) - len(denied),
            "denied": len(denied),
            "consent_not_shown": sum(d.only_consent for d in denied),
            "stricter_only": sum(d.only_stricter for d in denied),
            "forbidden_executed": len(forbidden),
            "forbidden_executed_by_rule": _count([r for r in d.rules if r not in consent] for d in forbidden),
            "by_rule": _count(d.rules for d in denied),
            "by_category": _count(d.categories for d in denied),
            "contradictions": sum(d.contradicts for d in self.decisions),
            "seconds": round(self.seconds, 3),
            "decisions": [{**asdict(d), "forbidden_executed": d.forbidden_executed} for d in self.decisions],
        }


def _count(lists: Iterable[list[str]]) -> dict[str, int]:
    counts = Counter(name for names in lists for name in names)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def replay(
    episodes: Path,
    policy: str,
    data: Path,
    deciders: list[Decider],
    *,
    assume_consent: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Decide every call of the episodes in a file or folder.

    A task is replayed as its reference solution, with the reads and confirmations of an honest agent.

    Args:
        episodes: recorded episodes or tasks, of tau-bench or tau2-bench.
        policy: the policy, which is also the domain.
        data: the benchmark's folder, or the domain's.
        deciders: what decides; each works on an episode of its own.
        assume_consent: take it that the customer confirmed every change.
        progress: told how many episodes of how many are done.

    Raises:
        DataError: the database can't be read.
        OSError: the episodes can't be read.
    """
    backend = open_backend(policy, data)
    began = time.monotonic()
    summary = Summary(policy, assume_consent)
    found: list[Episode] = []
    for item in read_episodes(episodes):
        if isinstance(item, Episode):
            found.append(item)
        else:
            summary.unreadable.append(item)
    summary.episodes = len(found)
    free: SimpleQueue[Decider] = SimpleQueue()
    for decider in deciders:
        free.put(decider)

    def work(episode: Episode) -> list[Decided]:
        decider = free.get()
        try:
            return list(replay_episode(episode, backend.fork(), policy, decider, assume_consent=assume_consent))
        finally:
            free.put(decider)

    with ThreadPoolExecutor(len(deciders)) as pool:
        for done, decided in enumerate(pool.map(work, found), 1):
            summary.decisions += decided
            if progress:
                progress(done, len(found))
    summary.seconds = time.monotonic() - began
    return summary


def run(
    *,
    episodes: str,
    policy: str,
    data: str,
    json_: bool = False,
    assume_consent: bool = False,
    workers: int = 1,
    without_stricter: bool = False,
) -> int:
    """The command `leanguard replay`; returns its exit code.

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
        started = [engines.enter_context(Engine.start(reporter)) for _ in range(workers)]
        deciders: list[Decider] = [WithoutStricter(engine) if without_stricter else engine for engine in started]
        try:
            summary = replay(
                path,
                policy,
                Path(data),
                deciders,
                assume_consent=assume_consent,
                progress=lambda done, total: reporter.progress("replaying", done, total),
            )
        except OSError as error:
            raise InputError(episodes, "readable episodes", str(error)) from error
        if not summary.episodes:
            reason = summary.unreadable[0].reason if summary.unreadable else "none"
            raise InputError(episodes, "at least one episode", reason)
    for item in summary.unreadable:
        note(f"{item.place}: {item.reason}")
    if json_:
        as_json(summary.as_json())
    else:
        _show(summary.as_json())
    return 0


def _show(totals: dict[str, Any]) -> None:
    say((f"{totals['episodes']} episodes, {totals['calls']} calls by the policy {totals['policy']}", "title"))
    for name in ("admitted", "denied", "consent_not_shown", "stricter_only", "forbidden_executed", "contradictions"):
        say(f"  {totals[name]:6}  {_LABELS[name]}")
    for name in ("by_rule", "by_category", "forbidden_executed_by_rule"):
        if totals[name]:
            say((_LABELS[name], "title"))
            for key, count in totals[name].items():
                say(f"  {count:6}  {key}")


def replay_episode(
    episode: Episode, backend: Backend, policy: str, decider: Decider, *, assume_consent: bool = False
) -> Iterator[Decided]:
    """Decide and carry out the calls of one episode, on a database of its own."""
    for action in episode.preparation:
        try:
            backend.initialize(action)
        except (ToolError, KeyError, TypeError):
            continue  # a preparation that the domain does not know changes nothing
    session = Session(backend, episode.name)
    steps = honest(backend, episode) if episode.reference else iter(episode.steps)
    for index, step in enumerate(steps):
        if step.kind == "customer":
            session.customer_says(step.text)
        elif step.kind == "device":
            if isinstance(step.tool, str) and isinstance(step.arguments, dict):
                backend.user_call(step.tool, step.arguments)
        elif step.kind == "confirmed":
            session.confirm(Call(tool=step.tool, arguments=step.arguments))
        else:
            yield _decide(episode, index, step, session, policy, decider, assume_consent)


def _decide(
    episode: Episode, index: int, step: Step, session: Session, policy: str, decider: Decider, assume_consent: bool
) -> Decided:
    backend = session.backend
    try:
        call = read_model(Call, {"tool": step.tool, "arguments": step.arguments})
    except ValueError:
        return Decided(
            episode=episode.name,
            index=index,
            tool=str(step.tool)[:80],
            verdict="deny",
            rules=[BAD_INPUT],
            categories=[ERROR_CATEGORY],
        )
    writes = call.tool in backend.writes
    if writes and assume_consent:
        session.confirm(call)
    snapshot = session.snapshot(call)
    decision = decider.decide(policy, call, snapshot, session.journal, TIMEOUT)
    failed = [rule.id for rule in decision.failed_rules]
    errors = [error.rule for error in decision.errors if error.rule not in failed]
    executed, contradicts = _carry_out(step, call, session)
    denied = not decision.admitted
    return Decided(
        episode=episode.name,
        index=index,
        tool=call.tool,
        arguments=call.arguments,
        verdict=decision.verdict,
        rules=list(dict.fromkeys(failed + errors)),
        categories=list(dict.fromkeys([r.category for r in decision.failed_rules] + [ERROR_CATEGORY] * bool(errors))),
        errors=[error.message for error in decision.errors],
        writes=writes,
        executed=executed,
        changed=executed and writes,
        only_consent=denied and not decision.errors and set(failed) <= backend.confirmations,
        only_stricter=denied and not decision.errors and set(failed) <= backend.stricter,
        contradicts=contradicts,
    )


def _carry_out(step: Step, call: Call, session: Session) -> tuple[bool, bool]:
    """Carries the call out unless it failed when it was recorded.

    Returns whether it ran, and whether recording and database disagree.
    """
    if not session.backend.has(call.tool):
        return not step.failed, False  # a tool that the domain does not have touches nothing of it
    if step.failed:
        contradicts = True
        try:
            session.backend.fork().run(call.model_dump())
        except ToolError:
            contradicts = False
        return False, contradicts
    try:
        session.run(call)
    except ToolError:
        return False, step.failed is False
    return True, False
