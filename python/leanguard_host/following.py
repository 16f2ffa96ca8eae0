"""Keeping Lean in step with a journal, and asking it for the protocol's steps.

Lean follows the journal in its own memory. What it has seen is counted with every question, so that a Lean that was
restarted, or that saw events which were not recorded in the end, is noticed and told the whole journal again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from leanguard_host.engine import START_SECONDS, Engine
from leanguard_host.models import Call, Decision, Event, FailedRule, RuleError, Snapshot, read_model
from leanguard_host.store import Head, StoredEvent
from leanguard_host.wire import RefusedError, WrongAnswerError, read_decision

# Others wait for Lean while it reads a chunk: a second or so.
_CHUNK_EVENTS, _CHUNK_CHARACTERS = 1000, 1 << 20
_LOST = ("guard.journal_id", "guard.events_seen")


class LostTrackError(Exception):
    """Lean has not seen the journal as it is; it must be told from the beginning."""


class Readable(Protocol):
    """A store, or a transaction of one."""

    def read(self, start: int = 0) -> Iterable[StoredEvent]:
        """The events from a position on."""


class StepAnswer:
    """Lean's answer to a step.

    Attributes:
        accepted: whether the step is taken.
        decision: the policy's decision, or why the step was refused.
        events: what is to be appended, even if the step was refused.
        consent: the consent that a reservation uses.
    """

    def __init__(self, accepted: bool, decision: Decision, events: Sequence[Event], consent: str | None) -> None:
        self.accepted, self.decision, self.events, self.consent = accepted, decision, tuple(events), consent


class Follower:
    """One journal, as one Lean follows it. Not safe between threads."""

    def __init__(self, engine: Engine, policy: str, timeout: float) -> None:
        self.engine, self.policy, self.timeout = engine, policy, timeout
        self.time: int | None = None
        self._forget()

    def _forget(self) -> None:
        # A new name each time: what Lean remembers under an old one can't be mistaken for this journal.
        self._id, self._seen, self._hash = uuid.uuid4().hex, 0, ""

    @property
    def seen(self) -> int:
        """How many events Lean has seen."""
        return self._seen

    def lose(self) -> None:
        """Forget where Lean is: it may have seen events that were not recorded."""
        old = self._id
        self._forget()
        with contextlib.suppress(Exception):  # it only frees memory; a Lean that can't be reached has lost it anyway
            self.engine.ask({"op": "reset", "journal_id": old}, self.timeout)

    def catch_up(self, journal: Readable, head: Head) -> None:
        """Tell Lean the events up to a head that it has not seen.

        Raises:
            LostTrackError: Lean is elsewhere; it was made to forget, so that another try starts from the beginning.
            JournalError, LeanUnavailable, RefusedError, WrongAnswerError: it can't be done.
        """
        if self._seen == head.length and self._seen and head.hash.hex() != self._hash:
            self.lose()  # the journal was replaced by another one
        if head.length < self._seen:
            self.lose()
        if self._seen == head.length and self._seen:
            return
        # From the last event that Lean saw: it must still be the same one.
        stored = iter(journal.read(max(self._seen - 1, 0)))
        if self._seen:
            last = next(stored, None)
            if last is None or last.hash != self._hash:
                self.lose()
                raise LostTrackError
        if head.length == 0:
            self._observe([], 0, "")
            return
        while batch := self._batch(stored):
            self._observe([json.loads(event.json) for event in batch], len(batch), batch[-1].hash)

    @staticmethod
    def _batch(stored: Iterable[StoredEvent]) -> list[StoredEvent]:
        batch: list[StoredEvent] = []
        size = 0
        for event in itertools.islice(stored, _CHUNK_EVENTS):
            batch.append(event)
            size += len(event.json)
            if size > _CHUNK_CHARACTERS:
                break
        return batch

    def observe(self, events: Sequence[Event], head: Head) -> None:
        """Tell Lean the events that were just appended and led to a head.

        Raises:
            LostTrackError, LeanUnavailable, RefusedError, WrongAnswerError: as `catch_up`.
        """
        self._observe([event.wire() for event in events], len(events), head.hash.hex())

    def _observe(self, events: list[dict[str, Any]], count: int, last: str) -> None:
        question = {"op": "observe", "policy": self.policy, "journal_id": self._id, "events": events}
        # A long journal is told in chunks, each of which may take longer than a decision.
        answer = self.engine.ask(question, self.timeout if count < 8 else START_SECONDS)
        if answer.get("events_seen") != self._seen + count:
            self.lose()
            raise LostTrackError
        self._seen += count
        self._hash = last or self._hash
        times = [event["time"] for event in events]
        self.time = max([*times, *([] if self.time is None else [self.time])], default=None)

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            return self.engine.ask(
                {**question, "policy": self.policy, "journal_id": self._id, "events_seen": self._seen}, self.timeout
            )
        except RefusedError as refused:
            if str(refused).startswith(_LOST):
                self.lose()
                raise LostTrackError from refused
            raise

    def decide(self, call: Call, snapshot: Snapshot) -> Decision:
        """Decide a call over the journal as far as Lean has seen it.

        Raises:
            LostTrackError, LeanUnavailable, RefusedError, WrongAnswerError: as `catch_up`.
        """
        question = {"op": "admit", "call": call.wire(), "snapshot": snapshot.wire()}
        answer = self._ask(question)
        return read_decision(
            {**question, "policy": self.policy},
            {**answer, "ok": True},
            policy_digest=self.engine.digests[self.policy],
            toolchain=self.engine.toolchain,
        )

    def step(self, step: Mapping[str, Any], revision: str) -> StepAnswer:
        """Ask for a step. It moves nothing: the events of the answer do, once they are recorded and observed.

        Args:
            step: the step.
            revision: of the snapshot that it is about, for the decision.

        Raises:
            LostTrackError, LeanUnavailable, RefusedError, WrongAnswerError: as `catch_up`.
        """
        answer = self._ask({"op": "step", "step": dict(step)})
        accepted, consent, events = answer.get("accepted"), answer.get("consent"), answer.get("events")
        if not isinstance(accepted, bool) or not isinstance(consent, str | None) or not isinstance(events, list):
            raise WrongAnswerError("it is no answer to a step")
        try:
            decision = Decision(
                verdict=answer["verdict"],
                failed_rules=tuple(FailedRule.model_validate(rule) for rule in answer["failed_rules"]),
                errors=tuple(RuleError.model_validate(error) for error in answer["errors"]),
                revision=revision,
                policy=self.policy,
                policy_digest=self.engine.digests[self.policy],
                toolchain=self.engine.toolchain,
                elapsed_ms=answer["elapsed_us"] / 1000,
            )
            recorded = [read_model(Event, event) for event in events]
        except (KeyError, TypeError, ValueError) as error:
            raise WrongAnswerError(f"it is no answer to a step ({error})") from error
        if accepted and not recorded:
            raise WrongAnswerError("it accepts a step without an event")
        return StepAnswer(accepted, decision, recorded, consent)

    def status(self) -> dict[str, Any]:
        """What is not settled, and whether the journal is consistent.

        Raises:
            LostTrackError, LeanUnavailable, RefusedError, WrongAnswerError: as `catch_up`.
        """
        answer = self._ask({"op": "status"})
        if not isinstance(answer.get("unsettled"), list):
            raise WrongAnswerError("it has no list `unsettled`")
        return answer
