"""Replaying recorded episodes on the benchmark's own database: each call is decided, and then carried out as recorded.

The recording's agent was not guarded: a denied call that was carried out then is carried out here too, so that what
follows is decided in the state that it was made in. Of a recorded result only whether the call failed is believed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from leanguard_host.adapters.tau2 import Backend, Session, ToolError, open_backend
from leanguard_host.adapters.tau2.episodes import Episode, Step, read_episodes
from leanguard_host.adapters.tau2.reference import honest
from leanguard_host.models import Call, Decision, Event, Snapshot, read_model
from leanguard_host.replay.state import Kept, Run, episodes_digest
from leanguard_host.replay.summary import CONSENT, INVALID, NOT_EVALUATED, Decided, Summary
from leanguard_host.wire import BAD_INPUT, UNAVAILABLE, WRONG_ANSWER

TIMEOUT = 20.0
_NO_ANSWER = (UNAVAILABLE, WRONG_ANSWER)


class Decider(Protocol):
    """What decides: an `Engine`."""

    @property
    def digests(self) -> Mapping[str, str]:
        """Of each policy what its content is named by."""

    def decide(self, policy: str, call: Call, snapshot: Snapshot, journal: list[Event], timeout: float) -> Decision:
        """Decide a call."""


def replay(
    episodes: Path,
    policy: str,
    data: Path,
    deciders: list[Decider],
    *,
    assume_consent: bool = False,
    progress: Callable[[int, int], None] | None = None,
    keep: Path | None = None,
    strict: bool = True,
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
        keep: a file that keeps each decided episode, so that an interrupted replay goes on from there. What it has of
            this very replay is not decided again.
        strict: whether a file of another replay is an error; else it is begun anew.

    Raises:
        DataError: the database can't be read.
        InputError: `keep` is not the file of this replay, is damaged, or is in use.
        OSError: the episodes can't be read, or `keep` can't be written.
    """
    backend = open_backend(policy, data)
    began = time.monotonic()
    summary = Summary(policy, assume_consent, deciders[0].digests[policy])
    for item in read_episodes(episodes):
        if isinstance(item, Episode):
            summary.replayed.append(item)
        else:
            summary.unreadable.append(item)
    if keep is None:
        found = _decide_all(summary, backend, deciders, progress, None)
    else:
        run = Run(
            policy=policy,
            policy_digest=summary.policy_digest,
            episodes=episodes_digest(episodes),
            data=backend.digest(),
            assume_consent=assume_consent,
            count=summary.episodes,
        )
        with Kept(keep, run, strict=strict) as kept:
            summary.resumed = len(kept.decided)
            found = _decide_all(summary, backend, deciders, progress, kept)
    summary.by_episode = [found[number] for number in range(summary.episodes)]
    summary.decisions = [decided for own in summary.by_episode for decided in own]
    summary.seconds = time.monotonic() - began
    return summary


def _decide_all(
    summary: Summary,
    backend: Backend,
    deciders: list[Decider],
    progress: Callable[[int, int], None] | None,
    kept: Kept | None,
) -> dict[int, list[Decided]]:
    """The decisions of each episode by its number: those that are kept, and the others made now."""
    found = dict(kept.decided) if kept else {}
    free: SimpleQueue[Decider] = SimpleQueue()
    for decider in deciders:
        free.put(decider)
    stop = threading.Event()

    def work(episode: Episode) -> list[Decided]:
        decider = free.get()
        try:
            decisions = []
            for decided in replay_episode(
                episode, backend.fork(), summary.policy, decider, assume_consent=summary.assume_consent
            ):
                if stop.is_set():
                    break
                decisions.append(decided)
            return decisions
        finally:
            free.put(decider)

    def tell() -> None:
        if progress:
            progress(len(found), summary.episodes)

    pool = ThreadPoolExecutor(len(deciders))
    try:
        tell()
        waiting = {
            pool.submit(work, episode): number for number, episode in enumerate(summary.replayed) if number not in found
        }
        for future in as_completed(waiting):
            number = waiting[future]
            found[number] = future.result()
            if kept and not any(decided.undecided for decided in found[number]):
                kept.add(number, found[number])
            tell()
        pool.shutdown()
    except BaseException:
        # The one who interrupts does not wait: whoever holds the deciders ends them, and with them the work.
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    return found


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
        elif step.kind == "agent":
            continue
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

    def unread(error: ValueError, category: str) -> Decided:
        return Decided(
            episode=episode.name,
            index=index,
            tool=step.tool[:80] if isinstance(step.tool, str) else "",
            verdict="deny",
            rules=[BAD_INPUT],
            categories=[category],
            errors=[str(error)],
        )

    try:
        call = read_model(Call, {"tool": step.tool, "arguments": step.arguments})
    except ValueError as error:
        return unread(error, INVALID)
    writes = call.tool in backend.writes
    try:
        if writes and assume_consent:
            session.confirm(call)
        snapshot = session.snapshot(call)
    except ValueError as error:  # what an earlier call left behind can't be carried to Lean
        return unread(error, NOT_EVALUATED)
    decision = decider.decide(policy, call, snapshot, session.journal, TIMEOUT)
    failed = [rule.id for rule in decision.failed_rules]
    errors = [error.rule for error in decision.errors if error.rule not in failed]
    executed, contradicts = _carry_out(step, call, session)
    denied = not decision.admitted
    hidden = frozenset[str]() if assume_consent else backend.confirmations
    categories = [CONSENT if rule.id in hidden else rule.category for rule in decision.failed_rules]
    categories += [CONSENT if rule in hidden else NOT_EVALUATED for rule in errors]
    return Decided(
        episode=episode.name,
        index=index,
        tool=call.tool,
        arguments=call.arguments,
        verdict=decision.verdict,
        rules=list(dict.fromkeys(failed + errors)),
        categories=list(dict.fromkeys(categories)),
        errors=[error.message for error in decision.errors],
        writes=writes,
        executed=executed,
        changed=executed and writes,
        only_consent=denied and not decision.errors and set(failed) <= backend.confirmations,
        only_stricter=denied and not decision.errors and set(failed) <= backend.stricter,
        contradicts=contradicts,
        undecided=any(error.rule in _NO_ANSWER for error in decision.errors),
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
