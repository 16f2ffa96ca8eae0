"""What happens around a call: proposal, decision, reservation, dispatch, outcome, each recorded before the next.

A `Session` is the part of a guard that holds a journal. It takes the protocol's steps; whether a step is accepted is
Lean's to say. Guard and AsyncGuard run the tools between the steps.
"""

from __future__ import annotations

import copy
import inspect
import json
import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from leanguard_host import owners
from leanguard_host.adapter import DefiniteFailure, Phase, Reservation, Settled, method
from leanguard_host.denials import Denials
from leanguard_host.engine import Engine
from leanguard_host.feedback import printable
from leanguard_host.following import Follower, LostTrackError, StepAnswer
from leanguard_host.lean.errors import LeanUnavailable
from leanguard_host.models import Call, Decision, Event, FailedRule, ModelError, Resource, Snapshot, read_model
from leanguard_host.proving import SearchBudget, without_repair
from leanguard_host.store import JournalError, JournalStore, Transaction, now_ms
from leanguard_host.wire import BAD_INPUT, UNAVAILABLE, RefusedError, WrongAnswerError, denial

T = TypeVar("T")
Status = Literal["executed", "denied", "needs_confirmation", "failed", "unknown"]

OnDenial = Literal["feedback", "raise", "end"]
"""What a denial does: the feedback is answered in the place of the result; or `ToolDenied` is raised; or `TurnEnded`,
which no `except Exception` of an agent loop catches."""

SNAPSHOT = "host.snapshot"
"""The rule under which an error says that the adapter did not tell the backend's state."""

ARGUMENTS = "host.arguments"
"""The rule under which an error says that the tool does not take the arguments."""

CALL = "host.call"
"""The rule under which an error says that a model's message holds a call that can't be read, or of no tool."""

PROTOCOL_KINDS = frozenset(
    {"proposal", "admission", "consent", "reservation", "dispatch", "outcome", "expiry", "reconciliation"}
)
"""Events that only the protocol's own steps may record."""

LOOKS = 4
"""How often the backend is read for one call while others keep changing the same resource."""

_CONSENT = frozenset(
    f"protocol.{name}"
    for name in (
        "consent_missing",
        "consent_used",
        "consent_expired",
        "tool_changed",
        "arguments_changed",
        "resource_changed",
        "terms_changed",
        "conversation_changed",
        "revision_changed",
    )
)
_ENDED = frozenset({"protocol.outcome_recorded", "protocol.reservation_expired"})
_FAULTS = (JournalError, LeanUnavailable, RefusedError, WrongAnswerError)
_log = logging.getLogger("leanguard")


class ToolTimeout(TimeoutError):  # noqa: N818 - the public name
    """The tool did not answer in time. It may still be running, so the outcome is unknown."""


class ToolDenied(Exception):  # noqa: N818 - the public name
    """A call was denied and not made. Raised where a denial is set to raise.

    Attributes:
        execution: what came of the call.
        messages: where the call was one of a model's message, the answers to all of them; the later ones were not made.
    """

    def __init__(self, execution: Execution, messages: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(execution.feedback())
        self.execution, self.messages = execution, list(messages)


class TurnEnded(BaseException):
    """A call was denied, and the setting is that this ends the agent's turn.

    No `Exception`: agent loops catch those and tell them to the model as the tool's result.

    Attributes:
        execution: what came of the call.
        messages: where the call was one of a model's message, the answers to all of them; the later ones were not made.
    """

    def __init__(self, execution: Execution, messages: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(execution.feedback())
        self.execution, self.messages = execution, list(messages)


@dataclass(frozen=True)
class Denied:
    """What a guarded tool function answers when its call was denied; its text is for the model.

    Attributes:
        execution: what came of the call.
    """

    execution: Execution

    def __str__(self) -> str:
        return self.execution.feedback()

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True)
class Execution:
    """What came of a call.

    Attributes:
        status: `executed`; `denied`; `needs_confirmation` (denied, and for nothing but a missing confirmation);
            `failed` (the tool was called, and certainly had no effect); `unknown` (the tool was called, and nobody
            knows).
        decision: the decision, with every reason.
        proposal_id: what a trusted screen shows and `confirm` takes; None if the call was not even recorded.
        repair_proposal_id: the same of a proved repair of a denied call, where the guard proposes them.
        reservation: the id under which the call was sent; None for a denied call and for one that only reads.
        value: what the tool returned.
        error: what the tool raised; or, beside a value, why what it shows could not be recorded.
    """

    status: Status
    decision: Decision
    proposal_id: str | None = None
    reservation: str | None = None
    value: Any = None
    error: BaseException | None = None
    repair_proposal_id: str | None = None

    @property
    def executed(self) -> bool:
        """Whether the tool ran and answered."""
        return self.status == "executed"

    def feedback(self) -> str:
        """What to tell the model, beside the value: stable wording, nothing that a tool said."""
        match self.status:
            case "executed":
                return "The call was made."
            case "failed":
                return "The call was made and failed. It had no effect."
            case "unknown":
                return (
                    "The call was made, but it is not known whether it went through. "
                    "It can't be made again until that is settled."
                )
        return self.decision.feedback()


@dataclass(frozen=True)
class Confirmation:
    """What came of `confirm`.

    Attributes:
        decision: admitted, or why the confirmation does not count.
        consent: its id; None if it does not count.
    """

    decision: Decision
    consent: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the confirmation counts."""
        return self.consent is not None

    def feedback(self) -> str:
        """Why the confirmation does not count."""
        return "Confirmed." if self.accepted else self.decision.feedback()


@dataclass(frozen=True)
class Settlement:
    """How a call of unknown outcome turned out to have ended."""

    reservation: Reservation
    status: Settled


@dataclass(frozen=True)
class Grant:
    """Leave to run a call, once. `reservation` is None for a call that only reads."""

    call: Call
    snapshot: Snapshot
    decision: Decision
    proposal_id: str
    reservation: str | None
    resource: Resource | None

    def result(self, status: Status, value: Any = None, error: BaseException | None = None) -> Execution:
        """What came of it."""
        if self.reservation is None and status == "unknown":
            status = "failed"  # what only reads has no effect, whatever becomes of it
        return Execution(status, self.decision, self.proposal_id, self.reservation, value, error)


@dataclass
class _Closing:
    """A step that is still to be recorded about a reservation: the first of `steps` that is accepted."""

    reservation: str
    steps: list[dict[str, Any]]
    facts: list[Event] = field(default_factory=list)
    running: bool = False
    """The tool still runs: whether it will have an effect is not for the backend to tell yet."""


def _unsent(reservation: str) -> _Closing:
    """Ends a reservation whose tool was and will be not called, whether or not its dispatch is on record."""
    outcome = {"step": "outcome", "status": "failed", "details": {"sent": False}}
    return _Closing(reservation, [{"step": "expire"}, outcome])


def reached(point: str) -> None:
    """Do nothing. The tests of crashes put themselves in its place."""


def _hosts(decision: Decision, rule: str, message: str) -> Decision:
    return denial(
        rule,
        printable(message)[:400],
        policy=decision.policy,
        revision=decision.revision,
        policy_digest=decision.policy_digest,
        toolchain=decision.toolchain,
    )


class Session:
    """A guard's journal: the protocol's steps on it. Safe between threads; several processes may share the store."""

    def __init__(
        self, engine: Engine, policy: str, store: JournalStore, timeout: float, clock: Callable[[], int] = now_ms
    ) -> None:
        """Follow a journal.

        Args:
            engine: Lean.
            policy: the policy's name.
            store: the journal.
            timeout: seconds that Lean may take for one step.
            clock: the time, in milliseconds since 1970.
        """
        self.engine, self.policy, self.store, self.clock = engine, policy, store, clock
        self._follower = Follower(engine, policy, timeout)
        self._lock = threading.RLock()
        self._dirty = False
        self._closings: deque[_Closing] = deque()
        self._denials = Denials()

    # --- transactions ---

    def _transact(self, work: Callable[[Transaction], T], *, closing: bool = True) -> T:
        """Do something in an exclusive section of the journal, which Lean has seen to its end.

        Raises:
            JournalError, LeanUnavailable, RefusedError, WrongAnswerError: it was not done; nothing is recorded.
        """
        with self._lock:
            if closing:
                self._close_rest()
            for _ in range(3):
                try:
                    # What is long is told before others are kept out.
                    head = self.store.head()
                    if head.length - self._follower.seen > 32:
                        self._follower.catch_up(self.store, head)
                    self._dirty = False
                    with self.store.transaction() as section:
                        self._follower.catch_up(section, section.head)
                        return work(section)
                except LostTrackError:
                    continue
                except BaseException:
                    if self._dirty:  # Lean may have seen events that are not recorded now.
                        self._follower.lose()
                    raise
            raise LeanUnavailable("Lean did not keep track of the journal")

    def _append(self, section: Transaction, events: Iterable[Event], *, observe: bool = False) -> None:
        recorded = list(events)
        if recorded:
            self._dirty = True
            section.append(recorded)
            if observe:
                self._follower.observe(recorded, section.head)

    def _now(self) -> int:
        """The time, never before that of an event: a clock that jumps back is not believed."""
        return max(self.clock(), self._follower.time or 0)

    def _current(self, snapshot: Snapshot) -> Snapshot:
        last = self._follower.time
        return snapshot if last is None or snapshot.time >= last else snapshot.model_copy(update={"time": last})

    # --- deciding ---

    def start(self) -> None:
        """Tell Lean the whole journal, and end what a crash left behind.

        Raises:
            JournalError, LeanUnavailable, RefusedError, WrongAnswerError: it can't be done.
        """
        self.recover()

    def denied(self, rule: str, message: str, revision: str = "") -> Decision:
        """A denial for a reason of the host's."""
        return denial(
            rule,
            printable(message)[:400],
            policy=self.policy,
            revision=revision,
            policy_digest=self.engine.digests[self.policy],
            toolchain=self.engine.toolchain,
        )

    def fault(self, error: BaseException, revision: str = "") -> Execution:
        """What came of a call that could not be decided, reserved or dispatched."""
        return Execution("denied", self.denied(UNAVAILABLE, f"The call could not be checked: {error}", revision))

    def check(self, call: Call, snapshot: Snapshot) -> Decision:
        """Decide over the journal, and record nothing. Every failure is a denial."""
        try:
            decision = self._following(lambda: self._follower.decide(call, self._current(snapshot)))
            return self._denials.note(call, snapshot, decision)
        except _FAULTS as error:
            reason = str(error)
        except Exception as error:  # a fault of ours must not look like an admission either
            reason = f"{type(error).__name__}: {error}"
        return self.denied(UNAVAILABLE, f"The call could not be checked: {reason}", snapshot.revision)

    def repaired(self, decision: Decision, call: Call, snapshot: Snapshot, budget: SearchBudget) -> Decision:
        """A denial over the journal, with a proved repair or the reason why there is none."""
        if decision.admitted:
            return decision
        try:
            with self._lock:
                current, events = self._current(snapshot), [stored.event for stored in self.store.read()]
        except JournalError as error:
            return without_repair(decision, f"The journal could not be read: {error}")
        return self.engine.repair(decision, self.policy, call, current, events, budget)

    def propose(self, call: Call, snapshot: Snapshot) -> str | None:
        """Record a proposal of a call, for a person to confirm, and nothing else; None if it could not be recorded."""
        proposal = uuid.uuid4().hex

        def work(section: Transaction) -> bool:
            state = self._current(snapshot)
            step: dict[str, Any] = {"step": "propose", "time": self._now(), "proposal": proposal, "call": call.wire()}
            answer = self._step(step | {"snapshot": state.wire()}, state)
            self._append(section, answer.events, observe=answer.accepted)
            return answer.accepted

        try:
            return proposal if self._transact(work) else None
        except _FAULTS:
            return None

    def position(self) -> int:
        """The length of the journal, to be noted before the backend is read.

        Raises:
            JournalError: it can't be read.
        """
        return self.store.length()

    def resource(self, call: Call) -> Resource | None:
        """The resource that the call touches, by its contract."""
        named = (self.engine.contract(self.policy, call.tool) or {}).get("resource")
        if not isinstance(named, dict):
            return None
        found = call.arguments.get(str(named.get("argument")))
        return Resource(type=str(named["type"]), id=found) if isinstance(found, str) and found else None

    def reads(self, call: Call) -> bool:
        """Whether the call's contract says that it only reads."""
        return (self.engine.contract(self.policy, call.tool) or {}).get("access") == "read"

    def begin(
        self, call: Call, snapshot: Snapshot, since: int, held: list[str] | None = None
    ) -> Grant | Execution | None:
        """Propose, decide and reserve, in one section of the journal.

        Args:
            call: the call.
            snapshot: what was read for it.
            since: the length of the journal before that.
            held: gets the reservation's id before it is recorded, for a caller who may be interrupted meanwhile.

        Returns:
            Leave to dispatch; or the denial; or None if the resource was changed since: read the backend again.
        """
        try:
            begun = self._transact(lambda section: self._begin(section, call, self._current(snapshot), since, held))
        except _FAULTS as error:
            return self.fault(error, snapshot.revision)
        reached("begun")
        if isinstance(begun, Grant):
            self._denials.note(call, snapshot, begun.decision)
        elif begun is not None:
            begun = replace(begun, decision=self._denials.note(call, snapshot, begun.decision))
        return begun

    def _begin(
        self, section: Transaction, call: Call, snapshot: Snapshot, since: int, held: list[str] | None
    ) -> Grant | Execution | None:
        resource, reads = self.resource(call), self.reads(call)
        if not reads and self._changed(section, since, resource):
            return None
        time, proposal, state = self._now(), uuid.uuid4().hex, snapshot.wire()
        step = self._step(
            {"step": "propose", "time": time, "proposal": proposal, "call": call.wire(), "snapshot": state}, snapshot
        )
        if not step.accepted:
            self._append(section, step.events)
            return Execution("denied", step.decision)
        asks = bool((step.events[0].data or {}).get("asks_consent"))
        self._append(section, step.events, observe=True)
        reached("proposed")
        step = self._step({"step": "decide", "time": time, "proposal": proposal, "snapshot": state}, snapshot)
        self._append(section, step.events, observe=not reads)
        decision = step.decision
        reached("decided")
        if not step.accepted:
            return Execution("denied", decision, proposal)
        if reads:
            granted = Grant(call, snapshot, decision, proposal, None, resource)
            return granted if decision.admitted else Execution("denied", decision, proposal)
        reservation = owners.new_reservation()
        step = self._step(
            {"step": "reserve", "time": time, "proposal": proposal, "reservation": reservation, "snapshot": state},
            snapshot,
        )
        if decision.admitted and step.accepted and step.decision.admitted:
            # Before it is recorded, so that nobody in this process takes it for abandoned.
            owners.started(reservation)
            if held is not None:
                held[:] = [reservation]
            try:
                self._append(section, step.events)
                reached("reserved")
            except BaseException:
                owners.ended(reservation)
                raise
            return Grant(call, snapshot, step.decision, proposal, reservation, resource)
        if not step.accepted:
            self._append(section, step.events)
        decision = _both(decision, step.decision)
        return Execution(_denied_status(decision, asks), decision, proposal)

    def _step(self, step: dict[str, Any], snapshot: Snapshot | None = None) -> StepAnswer:
        return self._follower.step(step, snapshot.revision if snapshot else "")

    @staticmethod
    def _changed(section: Transaction, since: int, resource: Resource | None) -> bool:
        """Whether a call on the resource ended since: the snapshot may be older than its effect."""
        if section.length <= since:
            return False
        for stored in section.read(since):
            event = json.loads(stored.json)
            if event["kind"] in ("outcome", "reconciliation"):
                found = event.get("resource")
                if resource is None or found is None or found == {"type": resource.type, "id": resource.id}:
                    return True
        return False

    # --- dispatching ---

    def dispatch(self, grant: Grant) -> Execution | None:
        """Record that the call is being sent; durable when this answers None. Otherwise it must not be sent."""
        if grant.reservation is None:
            return None
        step = {"step": "dispatch", "reservation": grant.reservation}
        try:
            refused = self._transact(lambda section: self._dispatch(section, step, grant))
        except _FAULTS as error:
            self.withdraw(grant)
            failure = self.fault(error, grant.snapshot.revision)
            return Execution("denied", failure.decision, grant.proposal_id)
        except BaseException:
            self.withdraw(grant)
            raise
        if refused is None:
            reached("dispatched")
        else:
            self.withdraw(grant)
        return refused

    def _dispatch(self, section: Transaction, step: dict[str, Any], grant: Grant) -> Execution | None:
        answer = self._step({**step, "time": self._now()}, grant.snapshot)
        self._append(section, answer.events)
        reached("dispatching")
        if answer.accepted and answer.decision.admitted:
            return None
        return Execution("denied", answer.decision, grant.proposal_id)

    def withdraw(self, grant: Grant) -> None:
        """The tool will not be called: end the reservation."""
        if grant.reservation is not None:
            self.unsent([grant.reservation])

    def unsent(self, reservations: Iterable[str]) -> None:
        """End reservations whose tools will not be called."""
        self._closings.extend(map(_unsent, reservations))
        self._try_closings()

    def settle(
        self,
        grant: Grant,
        status: Literal["succeeded", "failed", "unknown"],
        error: BaseException | None = None,
        facts: Iterable[Event | Mapping[str, Any]] = (),
        *,
        running: bool = False,
    ) -> BaseException | None:
        """Record how the call ended, and what that shows.

        Args:
            grant: the leave that it had.
            status: how it ended.
            error: what the tool raised.
            facts: what the result shows.
            running: whether the tool still runs, and will be settled again.

        Returns:
            Why that can't be recorded now, if so. An outcome will be tried again with the next step.
        """
        details: dict[str, Any] = {}
        if error is not None:
            details["error"] = type(error).__name__[:100]  # its text is the tool's, and may be secret or hostile
        problem: BaseException | None = None
        told: list[Event] = []
        try:
            told = self.facts(facts)
        except Exception as fault:  # an adapter's; the outcome is recorded all the same
            problem = fault
        if grant.reservation is None:
            if status != "succeeded":
                return problem
            seen = Event(
                kind="observation",
                time=self.clock(),
                principal=grant.snapshot.principal,
                conversation=grant.snapshot.conversation,
                resource=grant.resource,
                revision=grant.snapshot.revision,
                call=grant.call,
            )
            try:
                self._transact(lambda section: self._append(section, map(self._timed, [seen, *told])))
            except _FAULTS as fault:
                return fault
            return problem
        outcome: dict[str, Any] = {"step": "outcome", "status": status}
        if details:
            outcome["details"] = details
        steps = [outcome]
        if status != "unknown":
            # If it was thought to be unknown meanwhile, this settles it.
            steps.append({"step": "reconcile", "status": status, "details": {**details, "late": True}})
        self._closings.append(_Closing(grant.reservation, steps, told, running=running))
        return self._try_closings() or problem

    def _timed(self, event: Event) -> Event:
        last = self._follower.time
        return event if last is None or event.time >= last else event.model_copy(update={"time": last})

    def facts(self, facts: Iterable[Event | Mapping[str, Any]]) -> list[Event]:
        """Facts as events of now, where they don't say when.

        Raises:
            ValueError: one is no event, or of a kind that only the protocol records.
        """
        events = []
        for fact in facts or ():
            timed = {"time": self.clock(), **fact} if isinstance(fact, Mapping) else fact
            event = read_model(Event, timed)
            if event.kind in PROTOCOL_KINDS:
                raise ValueError(f"an event of kind {event.kind!r} is recorded by the protocol's own steps alone")
            events.append(event)
        return events

    def _try_closings(self) -> BaseException | None:
        try:
            with self._lock:
                self._close_rest()
        except _FAULTS as error:
            _log.warning("An outcome could not be recorded; it will be tried again: %s", error)
            return error
        return None

    def _close_rest(self) -> None:
        """Record what could not be recorded before."""
        while self._closings:
            closing = self._closings[0]
            self._transact(lambda section, closing=closing: self._close(section, closing), closing=False)  # type: ignore[misc]
            self._closings.popleft()
            if not closing.running:
                owners.ended(closing.reservation)
            reached("settled")

    def _close(self, section: Transaction, closing: _Closing) -> None:
        for step in closing.steps:
            answer = self._step({**step, "time": self._now(), "reservation": closing.reservation})
            if answer.accepted:
                self._append(section, answer.events)
                break
        if answer.accepted:
            self._append(section, map(self._timed, closing.facts))
        elif not _ENDED.intersection(rule.id for rule in answer.decision.failed_rules):
            # A restored journal does not know the reservation, or another machine's was taken for abandoned.
            _log.warning("The end of %s was refused: %s", closing.reservation, answer.decision.feedback())
        reached("settling")

    # --- facts, consent ---

    def record(self, event: Event | Mapping[str, Any]) -> Event:
        """Record a fact of the host's.

        Raises:
            ValueError: it is no event, or of a kind that only the protocol records.
            JournalError, LeanUnavailable, RefusedError, WrongAnswerError: it was not recorded.
        """
        [fact] = self.facts([event])

        def work(section: Transaction) -> Event:
            timed = self._timed(fact)
            self._append(section, [timed])
            return timed

        return self._transact(work)

    def confirm(self, proposal_id: str, by: str, expires_in: float | None) -> Confirmation:
        """Record a person's consent to a proposal."""

        def work(section: Transaction) -> Confirmation:
            now, consent = self._now(), uuid.uuid4().hex
            step: dict[str, Any] = {"step": "confirm", "time": now, "proposal": proposal_id}
            step |= {"consent": consent, "by": by}
            if expires_in is not None:
                step["expires"] = now + round(expires_in * 1000)
            answer = self._step(step)
            self._append(section, answer.events)
            return Confirmation(answer.decision, consent if answer.accepted else None)

        try:
            return self._transact(work)
        except RefusedError as error:
            return Confirmation(self.denied(BAD_INPUT, f"The confirmation can't be used: {error}"))
        except _FAULTS as error:
            return Confirmation(self.denied(UNAVAILABLE, f"The confirmation was not recorded: {error}"))

    # --- what is not settled ---

    def recover(self, *, elsewhere: bool = False) -> list[Reservation]:
        """End the reservations that a crash left behind: those that were sent are of unknown outcome from now on.

        Args:
            elsewhere: also those of other machines, which must be known to have stopped.

        Returns:
            What is not settled now.

        Raises:
            JournalError, LeanUnavailable, RefusedError, WrongAnswerError: it can't be done.
        """
        with self._lock:
            self._close_rest()
            found = self._unsettled()
            left = [one for one in found if one.phase != "unknown" and owners.abandoned(one.id, elsewhere=elsewhere)]
            for one in left:
                lost: dict[str, Any] = {"step": "outcome", "status": "unknown", "details": {"error": "crash"}}
                closing = _unsent(one.id) if one.phase == "reserved" else _Closing(one.id, [lost])
                self._transact(lambda section, closing=closing: self._close(section, closing))  # type: ignore[misc]
            return self._unsettled() if left else found

    def _unsettled(self) -> list[Reservation]:
        items: list[Any] = self._following(lambda: self._follower.status()["unsettled"])
        try:
            return [_reservation(item) for item in items]
        except (KeyError, TypeError, ModelError) as error:
            raise WrongAnswerError(f"it tells an unsettled call that is none ({error})") from error

    def _following(self, ask: Callable[[], T]) -> T:
        """Ask Lean something about the journal as it is now."""
        with self._lock:
            for _ in range(3):
                try:
                    self._follower.catch_up(self.store, self.store.head())
                    return ask()
                except LostTrackError:
                    continue
        raise LeanUnavailable("Lean did not keep track of the journal")

    def reconciled(self, reservation: Reservation, status: object) -> Settlement | None:
        """Record what the backend tells of a call of unknown outcome; None if it does not tell, or others were first.

        Raises:
            ValueError: the status is none.
            JournalError, LeanUnavailable, RefusedError, WrongAnswerError: it was not recorded.
        """
        if status is None:
            return None
        if status not in ("succeeded", "failed"):
            raise ValueError(f'an adapter\'s reconcile answers "succeeded", "failed" or None, not {status!r}')
        settled: Settled = "succeeded" if status == "succeeded" else "failed"

        def work(section: Transaction) -> bool:
            step = {"step": "reconcile", "time": self._now(), "reservation": reservation.id, "status": settled}
            answer = self._step(step)
            self._append(section, answer.events)
            return answer.accepted

        return Settlement(reservation, settled) if self._transact(work) else None

    @staticmethod
    def runs_here(reservation: Reservation) -> bool:
        """Whether the call's tool still runs in this process, so that no backend can tell how it will end."""
        return owners.runs_here(reservation.id)


def _reservation(item: Mapping[str, Any]) -> Reservation:
    phases: dict[str, Phase] = {"reserved": "reserved", "dispatched": "dispatched", "unknown": "unknown"}
    resource = item["resource"]
    return Reservation(
        id=item["reservation"],
        proposal_id=item["proposal"],
        phase=phases[item["phase"]],
        call=read_model(Call, item["call"]),
        resource=None if resource is None else read_model(Resource, resource),
        revision=item["revision"],
    )


def known_setting(on_denial: str) -> None:
    """Check a setting of what a denial does.

    Raises:
        ValueError: there is no such setting.
    """
    if on_denial not in ("feedback", "raise", "end"):
        raise ValueError(f'on_denial must be "feedback", "raise" or "end", not {on_denial!r}')


def _both(decided: Decision, refused: Decision) -> Decision:
    """A denial with the policy's reasons and with the protocol's, which say what a consent lacks."""
    rules: dict[str, FailedRule] = {rule.id: rule for rule in decided.failed_rules}
    known = {"protocol.not_admitted"} if decided.failed_rules or decided.errors else set()
    if any(_about_consent(rule) for rule in decided.failed_rules):
        known.add("protocol.consent_missing")  # the policy's own rule says it better
    rules |= {rule.id: rule for rule in refused.failed_rules if rule.id not in known}
    errors = decided.errors or refused.errors
    return refused.model_copy(
        update={"verdict": "deny", "failed_rules": tuple(rules.values()), "errors": errors},
    )


def _about_consent(rule: FailedRule) -> bool:
    """Whether a rule asks for a confirmation. One of a policy has `confirm` in its id."""
    return rule.id in _CONSENT or "confirm" in rule.id.rpartition(".")[2]


def _denied_status(decision: Decision, asks_consent: bool) -> Status:
    """Whether nothing but a confirmation is missing."""
    missing = [_about_consent(rule) for rule in decision.failed_rules]
    return "needs_confirmation" if asks_consent and not decision.errors and missing and all(missing) else "denied"


def state(session: Session, found: object) -> Snapshot:
    """What an adapter read, as a snapshot of now if it does not say when.

    Raises:
        ModelError: it is none.
    """
    if isinstance(found, Mapping):
        found = {"time": session.clock(), **found}
    return read_model(Snapshot, found)


def fits(tool: Callable[..., Any], arguments: Mapping[str, Any]) -> str | None:
    """Why a tool does not take the arguments; None if it does."""
    try:
        signature = inspect.signature(tool)
    except (TypeError, ValueError):
        return None  # a builtin that does not tell
    try:
        signature.bind(**arguments)
    except TypeError as error:
        return str(error)
    return None


def arguments_for(call: Call) -> dict[str, Any]:
    """The arguments as the tool gets them: its own copy, so that it can't change what is recorded."""
    return copy.deepcopy(dict(call.arguments))


def failure(adapter: object, error: BaseException) -> Literal["failed", "unknown"]:
    """Whether a tool's exception means that the call had no effect."""
    if isinstance(error, DefiniteFailure):
        return "failed"
    judge = method(adapter, "failed_definitely")
    try:
        return "failed" if judge is not None and judge(error) is True else "unknown"
    except Exception:
        return "unknown"
