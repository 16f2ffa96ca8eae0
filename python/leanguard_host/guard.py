"""The checkpoint as a Python object."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from leanguard_host.adapter import Adapter, DefiniteFailure, Reservation, method
from leanguard_host.denials import Denials
from leanguard_host.engine import Engine, UnknownPolicyError
from leanguard_host.execution import (
    ARGUMENTS,
    LOOKS,
    SNAPSHOT,
    Confirmation,
    Denied,
    Execution,
    Grant,
    OnDenial,
    Session,
    Settlement,
    ToolDenied,
    ToolTimeout,
    TurnEnded,
    arguments_for,
    failure,
    fits,
    known_setting,
    state,
)
from leanguard_host.jsonfiles import FILE_LIMIT, InputError, describe, json_path, parse_lines, read
from leanguard_host.lean.errors import LeanUnavailable, ToolchainUnavailable
from leanguard_host.models import Call, Decision, Event, M, ModelError, Snapshot, read_model
from leanguard_host.naming import policy_name
from leanguard_host.proving import CANDIDATES, SEARCH_SECONDS, SearchBudget
from leanguard_host.store import JournalError, JournalStore, now_ms, open_store
from leanguard_host.wire import BAD_INPUT, UNAVAILABLE, RefusedError, WrongAnswerError, denial

if TYPE_CHECKING:
    from leanguard_host.asyncguard import AsyncGuard
    from leanguard_host.lean.toolchain import Toolchain

JournalLike = Sequence[Event | Mapping[str, Any]] | str | PathLike[str]
"""Events, oldest first, or the path of a file with one on each line."""

_FAULTS = (JournalError, LeanUnavailable, RefusedError, WrongAnswerError)


class GuardUnavailable(Exception):  # noqa: N818 - says what is the case, and is the public name
    """There is no usable Lean, not that policy, or no usable journal: nothing can be checked, so no call may run.

    Attributes:
        remedy: what the user can do about it, where that is known.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


RepairMode = Literal["off", "suggest", "propose"]
"""What follows a denial: nothing; a search for a nearby call that is proved to be admitted, told with the denial; or
besides, by `execute`, a proposal of that call, so that a trusted screen can show and confirm it. Nothing runs a repair
by itself, and no confirmation is carried over to one."""


def _repair_mode(mode: object) -> RepairMode:
    """A setting for repairs; true stands for `suggest`.

    Raises:
        ValueError: there is no such setting.
    """
    if mode is True or mode is False:
        return "suggest" if mode else "off"
    if mode not in ("off", "suggest", "propose"):
        raise ValueError(f'repair must be "off", "suggest" or "propose", not {mode!r}')
    return mode


class _GivenUp(ToolTimeout):
    """Raised by us, not by a tool that itself waited for another guard."""


def _model(model: type[M], value: object, what: str) -> M:
    try:
        return read_model(model, value)
    except ModelError as problem:
        place = json_path(problem.place)
        raise InputError(what, problem.expected, problem.found, path="" if place == "$" else place) from None


def _revision(snapshot: object) -> str:
    """The snapshot's revision, as far as it can be told."""
    found = snapshot.get("revision") if isinstance(snapshot, Mapping) else getattr(snapshot, "revision", None)
    return found if isinstance(found, str) else ""


class Guard:
    """Decides calls by one policy. Use as a context manager, or call `close`.

    ```python
    with Guard(policy="retail") as guard:
        decision = guard.check(call, snapshot=snapshot, journal=events)
        if not decision.admitted:
            reply_to_model(decision.feedback())
    ```

    With a journal store, calls can be executed, each with its steps on record:

    ```python
    with Guard(policy="retail", journal="sqlite:///journal.db") as guard:
        done = guard.execute(call, tool, adapter=adapter)
        if done.status == "needs_confirmation":
            screen.show(call, done.proposal_id)          # and there: guard.confirm(proposal_id, by=customer)
    ```
    """

    def __init__(
        self,
        policy: str = "retail",
        journal: JournalLike | JournalStore | None = None,
        *,
        stricter: bool = True,
        toolchain: Toolchain | None = None,
        timeout: float = 2.0,
        engine: Engine | None = None,
        clock: Callable[[], int] = now_ms,
        repair: RepairMode | bool = "off",
        repair_candidates: int = CANDIDATES,
        repair_seconds: float = SEARCH_SECONDS,
    ) -> None:
        """Start Lean; on a new machine, install and build it first, which takes minutes.

        Args:
            policy: the policy's name.
            journal: a store or its address (`sqlite:///journal.db`, `postgresql://...`), which `execute` needs; or
                the events so far; a file of them is read again for each check.
            stricter: with the rules that are marked as stricter than the policy's source. Without them the policy has
                another name (`retail:without-stricter`) and digest, which every decision tells.
            toolchain: which Lean; found or installed if None.
            timeout: seconds that a decision may take. A slower one is a denial.
            engine: a started Lean to share with other guards; this guard does not end it.
            clock: the time of what is recorded, in milliseconds since 1970.
            repair: what follows a denial. Repairs are searched and proved in a process of their own, which the first
                search starts.
            repair_candidates: how many candidates a search tries at most.
            repair_seconds: after how many seconds a search tries no other one.

        Raises:
            GuardUnavailable: there is no usable Lean, no such policy, or a journal that can't be used.
        """
        if timeout <= 0:
            raise ValueError("timeout must be more than 0 seconds")
        if repair_candidates < 0 or repair_seconds < 0:
            raise ValueError("repair_candidates and repair_seconds can't be less than 0")
        self.repair = _repair_mode(repair)
        self._budget = SearchBudget(repair_candidates, repair_seconds)
        self.policy = policy = policy_name(policy, stricter=stricter)
        self.timeout = timeout
        self._journal: JournalLike | None = None if isinstance(journal, JournalStore) else journal
        self._own = engine is None
        self._closed = False
        self._opened: JournalStore | None = None
        self._session: Session | None = None
        self._asyncs: AsyncGuard | None = None
        self._denials = Denials()
        try:
            self._engine = engine or Engine.start(toolchain=toolchain)
        except ToolchainUnavailable as error:
            raise GuardUnavailable(str(error), error.remedy) from error
        except LeanUnavailable as error:
            raise GuardUnavailable(str(error)) from error
        try:
            self._engine.require_policy(policy)
        except UnknownPolicyError as error:
            self.close()
            raise GuardUnavailable(str(error)) from error
        try:
            if isinstance(journal, str) and "://" in journal:
                self._journal = None
                journal = self._opened = open_store(journal)
            if isinstance(journal, JournalStore):
                self._session = Session(self._engine, policy, journal, timeout, clock)
                self._session.start()
        except _FAULTS as error:
            self.close()
            raise GuardUnavailable(str(error), getattr(error, "remedy", "")) from error
        except BaseException:
            self.close()
            raise

    def check(
        self,
        call: Call | Mapping[str, Any],
        *,
        snapshot: Snapshot | Mapping[str, Any],
        journal: JournalLike | None = None,
        repair: RepairMode | bool | None = None,
    ) -> Decision:
        """Decide a call; changes nothing. Every failure is a denial with the reason in `errors`.

        Args:
            call: what the model proposed.
            snapshot: what was read from the backend for this call, with the trusted time.
            journal: the events so far, instead of the guard's own journal.
            repair: instead of the guard's own setting; `propose` is as `suggest` here. What was found is
                `decision.repair`, and how it was looked for `decision.repair_search`.

        Raises:
            ValueError: there is no such setting for repairs.
        """
        mode = self.repair if repair is None else _repair_mode(repair)
        revision = _revision(snapshot)
        if journal is None and self._session is not None:
            try:
                proposed, state_now = _model(Call, call, "the call"), _model(Snapshot, snapshot, "the snapshot")
            except InputError as problem:
                return self._denial(BAD_INPUT, str(problem), revision)
            if self._closed:
                return self._denial(UNAVAILABLE, "The call could not be checked: the guard is closed.", revision)
            decision = self._session.check(proposed, state_now)
            return decision if mode == "off" else self._session.repaired(decision, proposed, state_now, self._budget)
        try:
            events = self._events(self._journal if journal is None else journal)
            proposed, found = _model(Call, call, "the call"), _model(Snapshot, snapshot, "the snapshot")
        except InputError as problem:
            return self._denial(BAD_INPUT, str(problem), revision)
        if self._closed:
            return self._denial(UNAVAILABLE, "The call could not be checked: the guard is closed.", revision)
        decision = self._engine.decide(self.policy, proposed, found, events, self.timeout)
        decision = self._denials.note(proposed, found, decision)
        if mode == "off":
            return decision
        return self._engine.repair(decision, self.policy, proposed, found, events, self._budget)

    async def acheck(
        self,
        call: Call | Mapping[str, Any],
        *,
        snapshot: Snapshot | Mapping[str, Any],
        journal: JournalLike | None = None,
        repair: RepairMode | bool | None = None,
    ) -> Decision:
        """`check` for asyncio: the loop goes on meanwhile."""
        return await asyncio.to_thread(self.check, call, snapshot=snapshot, journal=journal, repair=repair)

    # --- executing ---

    def execute(
        self,
        call: Call | Mapping[str, Any],
        tool: Callable[..., Any],
        *,
        adapter: Adapter,
        timeout: float | None = None,
    ) -> Execution:
        """Run a tool if its call is admitted, with every step on record before the next.

        Reads the backend, proposes, decides, reserves, records the dispatch, calls `tool(**arguments)` and records the
        outcome. Whatever fails before the tool is called is a denial, and the tool is not called. What the tool raises
        is answered, not raised.

        Args:
            call: what the model proposed.
            tool: what runs it.
            adapter: reads the backend.
            timeout: seconds to wait for the tool, which then runs in a thread of its own; nothing can end it. When it
                comes to its end after all, that is recorded.

        Raises:
            RuntimeError: the guard has no journal store.
            TypeError: the tool is a coroutine function, which `AsyncGuard` runs.
        """
        session = self.session()
        if inspect.iscoroutinefunction(tool):
            raise TypeError("a coroutine function is run by AsyncGuard: await guard.asyncs().execute(...)")
        held: list[str] = []
        try:
            granted = self._granted(session, call, tool, lambda proposed: adapter.snapshot(proposed), held)
            if isinstance(granted, Execution):
                return granted
            if refused := session.dispatch(granted):
                return refused
            try:
                held.clear()  # from here on, whatever happens may have had an effect
                value = self._run(session, granted, tool, adapter, timeout)
                if inspect.iscoroutine(value):  # of a callable that does not show it
                    value.close()
                    raise DefiniteFailure("the tool is asynchronous, and AsyncGuard runs it; nothing was done")
            except BaseException as error:
                if isinstance(error, _GivenUp):
                    return granted.result("unknown", error=error)  # recorded, and will be again
                status = failure(adapter, error)
                session.settle(granted, status, error)
                if not isinstance(error, Exception):
                    raise
                return granted.result(status, error=error)
        except BaseException:
            if held:  # interrupted before the tool was called
                session.unsent(held)
            raise
        return self._executed(session, granted, adapter, value)

    def _granted(
        self,
        session: Session,
        call: object,
        tool: Callable[..., Any],
        look: Callable[[Call], object],
        held: list[str],
    ) -> Grant | Execution:
        prepared = self._prepared(call, tool)
        if isinstance(prepared, Execution):
            return prepared
        for _ in range(LOOKS):
            try:
                since = session.position()
            except JournalError as error:
                return session.fault(error)
            try:
                snapshot = state(session, look(prepared))
            except Exception as error:
                return self._unread(session, error)
            if (granted := session.begin(prepared, snapshot, since, held)) is not None:
                return self._with_repair(session, prepared, snapshot, granted)
        return self._unsteady(session)

    def _with_repair(
        self, session: Session, call: Call, snapshot: Snapshot, begun: Grant | Execution
    ) -> Grant | Execution:
        """What came of a call; a denial with a repair, if that is the setting and there is one."""
        if self.repair == "off" or not isinstance(begun, Execution) or begun.status != "denied":
            return begun
        decision = session.repaired(begun.decision, call, snapshot, self._budget)
        proposed = None
        if self.repair == "propose" and decision.repair is not None:
            proposed = session.propose(decision.repair.call, snapshot)
        return replace(begun, decision=decision, repair_proposal_id=proposed)

    def _prepared(self, call: object, tool: Callable[..., Any]) -> Call | Execution:
        """The call, or the denial of one that its tool can't take."""
        try:
            proposed = _model(Call, call, "the call")
        except InputError as problem:
            return Execution("denied", self._denial(BAD_INPUT, str(problem), ""))
        if self._closed:
            return Execution("denied", self._denial(UNAVAILABLE, "The call could not be checked: closed.", ""))
        if problem_text := fits(tool, proposed.arguments):
            return Execution("denied", self._denial(ARGUMENTS, f"The tool can't be called: {problem_text}", ""))
        return proposed

    @staticmethod
    def _unread(session: Session, error: Exception) -> Execution:
        # Of the error only its kind: the rest may be the backend's words.
        message = f"The backend's state could not be read ({type(error).__name__})."
        if isinstance(error, ModelError):
            message = f"The adapter's snapshot can't be used: {error}"
        return Execution("denied", session.denied(SNAPSHOT, message))

    @staticmethod
    def _unsteady(session: Session) -> Execution:
        return Execution("denied", session.denied(SNAPSHOT, "Others keep changing the resource; try again."))

    @staticmethod
    def _run(
        session: Session, granted: Grant, tool: Callable[..., Any], adapter: Adapter, timeout: float | None
    ) -> Any:
        arguments = arguments_for(granted.call)
        if timeout is None:
            return tool(**arguments)
        future: Future[Any] = Future()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                future.set_result(context.run(tool, **arguments))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="leanguard-tool", daemon=True).start()
        try:
            future.exception(timeout)
        except TimeoutError:
            problem = _GivenUp(f"the tool did not answer within {timeout:g} s")
            session.settle(granted, "unknown", ToolTimeout(), running=True)
            future.add_done_callback(lambda done: Guard._late(session, granted, adapter, done))
            raise problem from None
        return future.result()

    @staticmethod
    def _late(session: Session, granted: Grant, adapter: Adapter, done: Future[Any]) -> None:
        """Record what came of a tool that was given up."""
        error = done.exception()
        if error is None:
            session.settle(granted, "succeeded", facts=Guard._facts(granted, adapter, done.result())[0])
        else:
            session.settle(granted, failure(adapter, error), error)

    @staticmethod
    def _facts(granted: Grant, adapter: Adapter, value: object) -> tuple[Any, Exception | None]:
        tell = method(adapter, "facts")
        try:
            return ([] if tell is None else list(tell(granted.call, value) or ())), None
        except Exception as error:
            return [], error

    def _executed(self, session: Session, granted: Grant, adapter: Adapter, value: object) -> Execution:
        facts, problem = self._facts(granted, adapter, value)
        unrecorded = session.settle(granted, "succeeded", facts=facts)
        return granted.result("executed", value, problem or unrecorded)

    def confirm(self, proposal_id: str, *, by: str, expires_in: float | None = None) -> Confirmation:
        """Record that a person agrees to exactly this proposal. It admits one call.

        Only for what a trusted screen or an approver's token tells: never call it on account of a model's text or a
        tool's output.

        Args:
            proposal_id: from the `Execution` of the denied call.
            by: the authenticated person.
            expires_in: seconds for which it counts; for ever if None.

        Raises:
            RuntimeError: the guard has no journal store.
            ValueError: `expires_in` is not positive.
        """
        if expires_in is not None and not expires_in > 0:
            raise ValueError("expires_in must be more than 0 seconds")
        return self.session().confirm(proposal_id, by, expires_in)

    def record(self, event: Event | Mapping[str, Any]) -> Event:
        """Record a fact of the host's, such as an authentication. A mapping may leave out `time`.

        Raises:
            ValueError: it is no event, or of a kind that only the protocol records (a consent comes by `confirm`).
            GuardUnavailable: it could not be recorded.
            RuntimeError: the guard has no journal store.
        """
        try:
            return self.session().record(event)
        except _FAULTS as error:
            raise GuardUnavailable(str(error), getattr(error, "remedy", "")) from error

    def unsettled(self, *, elsewhere: bool = False) -> list[Reservation]:
        """The single-use calls that are about to run, run, or of which nobody knows how they ended.

        What a crash left behind becomes unknown here, as it does when a guard starts.

        Args:
            elsewhere: also what processes of other machines left behind, all of which must be known to have stopped.

        Raises:
            GuardUnavailable: the journal can't be followed.
            RuntimeError: the guard has no journal store.
        """
        try:
            return self.session().recover(elsewhere=elsewhere)
        except _FAULTS as error:
            raise GuardUnavailable(str(error), getattr(error, "remedy", "")) from error

    def reconcile(self, adapter: object) -> list[Settlement]:
        """Ask the backend about the calls of unknown outcome, and record what it tells.

        Args:
            adapter: one with the method `reconcile`. What that raises leaves the call unknown; the first is raised at
                the end.

        Raises:
            GuardUnavailable: the journal can't be followed or written.
            TypeError: the adapter can't reconcile.
            RuntimeError: the guard has no journal store.
        """
        ask = method(adapter, "reconcile")
        if ask is None:
            raise TypeError("the adapter has no method reconcile")
        session = self.session()
        settled: list[Settlement] = []
        problems: list[Exception] = []
        for reservation in self.unsettled():
            if reservation.phase != "unknown" or session.runs_here(reservation):
                continue
            try:
                answer = ask(reservation)
            except Exception as error:
                problems.append(error)
                continue
            if (settlement := self._reconciled(reservation, answer)) is not None:
                settled.append(settlement)
        if problems:
            raise problems[0]
        return settled

    def _reconciled(self, reservation: Reservation, answer: object) -> Settlement | None:
        try:
            return self.session().reconciled(reservation, answer)
        except _FAULTS as error:
            raise GuardUnavailable(str(error), getattr(error, "remedy", "")) from error

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        adapter: Adapter,
        name: str | None = None,
        on_denial: OnDenial = "feedback",
        timeout: float | None = None,
    ) -> Callable[..., Any]:
        """Guard a tool function: each call of it is decided first. Coroutine functions stay coroutine functions.

        The function answers what the tool answers; what the tool raises is raised, with a note where it is unknown
        whether the call had an effect.

        Args:
            function: the tool; it gets what it is called with, by name.
            adapter: reads the backend.
            name: the tool's name in the policy; the function's own if None. One that no contract names is denied.
            on_denial: what a denial does: the function answers `Denied`, which is false and whose text is for the
                model; or raises `ToolDenied`; or raises `TurnEnded`, which no `except Exception` of an agent loop
                catches.
            timeout: seconds to wait for the tool.

        Raises:
            TypeError: the function has parameters that a call by name can't fill.
            ValueError: `on_denial` is none of the settings.
            RuntimeError: the guard has no journal store.
        """
        known_setting(on_denial)
        self.session()
        if function is None:
            return functools.partial(self.tool, adapter=adapter, name=name, on_denial=on_denial, timeout=timeout)
        tool, known = function, name or function.__name__
        signature = inspect.signature(tool)
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise TypeError(f"{known}: the parameter {parameter.name} can't be given by name")
        rest = [p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD]

        def proposed(given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
            arguments = dict(signature.bind(*given, **named).arguments)
            for extra in rest:
                arguments.update(arguments.pop(extra, {}))
            return {"tool": known, "arguments": arguments}

        # The wrappers have no parameters with names, so the tool may call its own what it likes.
        if inspect.iscoroutinefunction(tool):

            @functools.wraps(tool)
            async def awaiting(*given: Any, **named: Any) -> Any:
                done = await self.asyncs().execute(proposed(given, named), tool, adapter=adapter, timeout=timeout)
                return _answer(done, on_denial)

            return awaiting

        @functools.wraps(tool)
        def calling(*given: Any, **named: Any) -> Any:
            return _answer(self.execute(proposed(given, named), tool, adapter=adapter, timeout=timeout), on_denial)

        return calling

    def session(self) -> Session:
        """The guard's journal store, as the integrations use it.

        Raises:
            RuntimeError: the guard has no journal store.
        """
        if self._session is None:
            raise RuntimeError('the guard has no journal store: give it one, as in journal="sqlite:///journal.db"')
        return self._session

    def asyncs(self) -> AsyncGuard:
        """This guard for asyncio.

        Raises:
            RuntimeError: the guard has no journal store.
        """
        from leanguard_host.asyncguard import AsyncGuard

        if self._asyncs is None:
            self._asyncs = AsyncGuard(self)
        return self._asyncs

    def _events(self, journal: JournalLike | None) -> list[Event]:
        if journal is None:
            return []
        if isinstance(journal, str | PathLike):
            source = read(fspath(journal), FILE_LIMIT)
            return [_model(Event, value, f"{source.name}, line {line}") for line, value in parse_lines(source)]
        if not isinstance(journal, Sequence):
            raise InputError("the journal", "a list of events or the path of a file", describe(journal))
        return [_model(Event, event, f"event {index} of the journal") for index, event in enumerate(journal)]

    def _denial(self, rule: str, message: str, revision: str) -> Decision:
        return denial(
            rule,
            message,
            policy=self.policy,
            revision=revision,
            policy_digest=self._engine.digests[self.policy],
            toolchain=self._engine.toolchain,
        )

    def close(self) -> None:
        """End Lean. Later checks are denials."""
        if not self._closed:
            self._closed = True
            if self._asyncs is not None:
                self._asyncs.stop()
            if self._opened is not None:
                self._opened.close()
            if self._own:
                self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _answer(done: Execution, on_denial: OnDenial) -> Any:
    """What a guarded function answers or raises."""
    if done.status == "executed":
        return done.value
    if done.status in ("failed", "unknown"):
        error = done.error or RuntimeError("the tool failed")
        error.add_note(done.feedback())
        raise error
    if on_denial == "raise":
        raise ToolDenied(done)
    if on_denial == "end":
        raise TurnEnded(done)
    return Denied(done)
