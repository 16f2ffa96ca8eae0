"""The checkpoint as a Python object."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from leanguard_host.engine import Engine, UnknownPolicyError
from leanguard_host.jsonfiles import FILE_LIMIT, InputError, describe, json_path, parse_lines, read
from leanguard_host.lean.errors import LeanUnavailable, ToolchainUnavailable
from leanguard_host.models import Call, Decision, Event, M, ModelError, Snapshot, read_model
from leanguard_host.wire import BAD_INPUT, UNAVAILABLE, denial

if TYPE_CHECKING:
    from leanguard_host.lean.toolchain import Toolchain

JournalLike = Sequence[Event | Mapping[str, Any]] | str | PathLike[str]
"""Events, oldest first, or the path of a file with one on each line."""


class GuardUnavailable(Exception):  # noqa: N818 - says what is the case, and is the public name
    """There is no usable Lean, or not that policy: nothing can be checked, so no call may run.

    Attributes:
        remedy: what the user can do about it, where that is known.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


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
    """

    def __init__(
        self,
        policy: str = "retail",
        journal: JournalLike | None = None,
        *,
        toolchain: Toolchain | None = None,
        timeout: float = 2.0,
        engine: Engine | None = None,
    ) -> None:
        """Start Lean; on a new machine, install and build it first, which takes minutes.

        Args:
            policy: the policy's name.
            journal: the events so far; a file is read again for each check.
            toolchain: which Lean; found or installed if None.
            timeout: seconds that a decision may take. A slower one is a denial.
            engine: a started Lean to share with other guards; this guard does not end it.

        Raises:
            GuardUnavailable: there is no usable Lean or no such policy.
        """
        if timeout <= 0:
            raise ValueError("timeout must be more than 0 seconds")
        if isinstance(journal, str) and "://" in journal:
            raise GuardUnavailable(
                f"The journal {journal!r} is not a file; this version knows files and lists of events."
            )
        self.policy = policy
        self.timeout = timeout
        self._journal = journal
        self._own = engine is None
        self._closed = False
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

    def check(
        self,
        call: Call | Mapping[str, Any],
        *,
        snapshot: Snapshot | Mapping[str, Any],
        journal: JournalLike | None = None,
    ) -> Decision:
        """Decide a call; changes nothing. Every failure is a denial with the reason in `errors`.

        Args:
            call: what the model proposed.
            snapshot: what was read from the backend for this call, with the trusted time.
            journal: the events so far, instead of the guard's own journal.
        """
        revision = _revision(snapshot)
        try:
            events = self._events(self._journal if journal is None else journal)
            proposed, state = _model(Call, call, "the call"), _model(Snapshot, snapshot, "the snapshot")
        except InputError as problem:
            return self._denial(BAD_INPUT, str(problem), revision)
        if self._closed:
            return self._denial(UNAVAILABLE, "The call could not be checked: the guard is closed.", revision)
        return self._engine.decide(self.policy, proposed, state, events, self.timeout)

    async def acheck(
        self,
        call: Call | Mapping[str, Any],
        *,
        snapshot: Snapshot | Mapping[str, Any],
        journal: JournalLike | None = None,
    ) -> Decision:
        """`check` for asyncio: the loop goes on meanwhile."""
        return await asyncio.to_thread(self.check, call, snapshot=snapshot, journal=journal)

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
            if self._own:
                self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
