"""The checkpoint for asyncio."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from leanguard_host.adapter import Adapter, Reservation, method
from leanguard_host.execution import (
    LOOKS,
    Confirmation,
    Execution,
    Grant,
    Session,
    Settlement,
    ToolTimeout,
    arguments_for,
    failure,
    state,
)
from leanguard_host.guard import Guard, RepairMode
from leanguard_host.models import Call, Decision, Event, Snapshot
from leanguard_host.store import JournalError

T = TypeVar("T")


class AsyncGuard:
    """A `Guard` for asyncio: the same steps, and the loop goes on. Tools and adapters may be coroutine functions.

    ```python
    async with await AsyncGuard.open(policy="retail", journal="sqlite:///journal.db") as guard:
        done = await guard.execute(call, tool, adapter=adapter)
    ```

    A task that is cancelled while its tool runs leaves an unknown outcome on record; one that is cancelled before
    leaves nothing that would be in the way.
    """

    def __init__(self, guard: Guard) -> None:
        """Over a guard with a journal store, which `close` closes."""
        self.guard = guard
        # The journal is exclusive anyway: one thread is a fair queue, and waiting tasks hold none of the loop's own.
        self._steps = ThreadPoolExecutor(1, "leanguard-steps")

    @classmethod
    async def open(cls, *arguments: Any, **options: Any) -> Self:
        """Start a guard; arguments and errors as of `Guard`."""
        return cls(await asyncio.to_thread(Guard, *arguments, **options))

    async def _step(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.wrap_future(self._steps.submit(function, *arguments))

    async def _sure(self, function: Callable[..., T], *arguments: Any) -> T:
        """A step that a cancellation does not interrupt: it is waited for, and then the cancellation goes on."""
        task = asyncio.ensure_future(self._step(function, *arguments))
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError as error:
                if task.cancelled():
                    raise
                cancelled = error
            except Exception:  # the task's own, told below
                break
        if cancelled is not None:
            raise cancelled
        return task.result()

    async def check(
        self,
        call: Call | Mapping[str, Any],
        *,
        snapshot: Snapshot | Mapping[str, Any],
        repair: RepairMode | bool | None = None,
    ) -> Decision:
        """As `Guard.check`."""
        return await self._step(lambda: self.guard.check(call, snapshot=snapshot, repair=repair))

    async def execute(
        self,
        call: Call | Mapping[str, Any],
        tool: Callable[..., Any],
        *,
        adapter: Adapter,
        timeout: float | None = None,
    ) -> Execution:
        """As `Guard.execute`. A tool that is no coroutine function runs in a thread.

        Raises:
            RuntimeError: the guard has no journal store.
            CancelledError: the task was cancelled; where the tool ran, its outcome is recorded as unknown.
        """
        session = self.guard.session()
        granted = await self._granted(session, call, tool, adapter)
        if isinstance(granted, Execution):
            return granted
        sent: list[Execution | None] = []
        try:
            await self._sure(lambda: sent.append(session.dispatch(granted)))
        except BaseException:
            if sent == [None]:  # recorded as sent, and cancelled before the tool was called
                self._steps.submit(session.withdraw, granted)
            raise
        if refused := sent[0]:
            return refused
        return await self._run(session, granted, tool, adapter, timeout)

    async def _granted(
        self, session: Session, call: object, tool: Callable[..., Any], adapter: Adapter
    ) -> Grant | Execution:
        prepared = self.guard._prepared(call, tool)
        if isinstance(prepared, Execution):
            return prepared
        for _ in range(LOOKS):
            try:
                since = await self._step(session.position)
            except JournalError as error:
                return session.fault(error)
            try:
                found: Any = await _either(adapter.snapshot, prepared)
                snapshot = state(session, found)
            except Exception as error:
                return self.guard._unread(session, error)
            future = self._steps.submit(session.begin, prepared, snapshot, since)
            try:
                granted = await asyncio.shield(asyncio.wrap_future(future))
            except BaseException:
                # It goes on in its thread; what it is granted will not be used.
                future.add_done_callback(lambda done: self._unused(session, done))
                raise
            if isinstance(granted, Execution):
                # Not among the steps, which must not wait for a search.
                return await asyncio.to_thread(self.guard._with_repair, session, prepared, snapshot, granted)
            if granted is not None:
                return granted
        return self.guard._unsteady(session)

    def _unused(self, session: Session, done: Future[Grant | Execution | None]) -> None:
        if not done.cancelled() and done.exception() is None:
            granted = done.result()
            if isinstance(granted, Grant):
                session.withdraw(granted)

    async def _run(
        self, session: Session, granted: Grant, tool: Callable[..., Any], adapter: Adapter, timeout: float | None
    ) -> Execution:
        work = asyncio.ensure_future(_either(tool, **arguments_for(granted.call)))
        threaded = not inspect.iscoroutinefunction(tool)
        try:
            await asyncio.wait([work], timeout=timeout)
        except asyncio.CancelledError as cancelled:
            await self._give_up(session, granted, adapter, work, threaded, cancelled)
            raise
        if not work.done():
            problem = ToolTimeout(f"the tool did not answer within {timeout:g} s")
            await self._give_up(session, granted, adapter, work, threaded, problem)
            return granted.result("unknown", error=problem)
        if work.cancelled():
            await self._sure(session.settle, granted, "unknown", asyncio.CancelledError())
            return granted.result("unknown", error=asyncio.CancelledError())
        if (error := work.exception()) is not None:
            status = failure(adapter, error)
            await self._sure(session.settle, granted, status, error)
            if not isinstance(error, Exception):
                raise error
            return granted.result(status, error=error)
        value, facts, problem_of_facts = work.result(), [], None
        try:
            if (tell := method(adapter, "facts")) is not None:
                facts = list(await _either(tell, granted.call, value) or ())
        except Exception as error:
            problem_of_facts = error
        except asyncio.CancelledError:
            # The outcome is known, whatever becomes of the task.
            await self._sure(session.settle, granted, "succeeded")
            raise
        unrecorded = await self._sure(lambda: session.settle(granted, "succeeded", facts=facts))
        return granted.result("executed", value, problem_of_facts or unrecorded)

    async def _give_up(
        self,
        session: Session,
        granted: Grant,
        adapter: Adapter,
        work: asyncio.Future[Any],
        threaded: bool,
        problem: BaseException,
    ) -> None:
        """Record that nobody knows; and what the tool answers after all, if it goes on in a thread."""

        def late(done: asyncio.Future[Any]) -> None:
            if done.cancelled():
                self._steps.submit(session.settle, granted, "unknown", asyncio.CancelledError())
            elif (error := done.exception()) is not None:
                self._steps.submit(session.settle, granted, failure(adapter, error), error)
            else:
                self._steps.submit(session.settle, granted, "succeeded")

        try:
            await self._sure(lambda: session.settle(granted, "unknown", problem, running=True))
        finally:
            if not threaded:
                work.cancel()
            work.add_done_callback(late)

    async def confirm(self, proposal_id: str, *, by: str, expires_in: float | None = None) -> Confirmation:
        """As `Guard.confirm`."""
        return await self._step(lambda: self.guard.confirm(proposal_id, by=by, expires_in=expires_in))

    async def record(self, event: Event | Mapping[str, Any]) -> Event:
        """As `Guard.record`."""
        return await self._step(self.guard.record, event)

    async def unsettled(self, *, elsewhere: bool = False) -> list[Reservation]:
        """As `Guard.unsettled`."""
        return await self._step(lambda: self.guard.unsettled(elsewhere=elsewhere))

    async def reconcile(self, adapter: object) -> list[Settlement]:
        """As `Guard.reconcile`; the adapter's method may be a coroutine function."""
        ask = method(adapter, "reconcile")
        if ask is None:
            raise TypeError("the adapter has no method reconcile")
        session, settled, problems = self.guard.session(), [], []
        for reservation in await self._step(self.guard.unsettled):
            if reservation.phase != "unknown" or session.runs_here(reservation):
                continue
            try:
                answer: Any = await _either(ask, reservation)
            except Exception as error:
                problems.append(error)
                continue
            found = await self._step(self.guard._reconciled, reservation, answer)
            if found is not None:
                settled.append(found)
        if problems:
            raise problems[0]
        return settled

    def tool(self, function: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
        """As `Guard.tool`."""
        return self.guard.tool(function, **options)

    def stop(self) -> None:
        """End the thread, after what it has been given."""
        self._steps.shutdown(wait=True)

    async def close(self) -> None:
        """End the guard."""
        await asyncio.to_thread(self.stop)
        await asyncio.to_thread(self.guard.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


async def _either(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Call a function in a thread, or a coroutine function in the loop."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments, **named)
    found = await asyncio.to_thread(function, *arguments, **named)
    return await found if inspect.isawaitable(found) else found
