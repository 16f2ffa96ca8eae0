"""`leanguard confirm`, and the guard of a command line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from leanguard_host.engine import Engine, UnknownPolicyError, policy_problem
from leanguard_host.failing import ADMITTED, DENIED, failures
from leanguard_host.guard import Guard, GuardUnavailable
from leanguard_host.jsonfiles import InputError
from leanguard_host.lean.errors import LeanUnavailable
from leanguard_host.out import Progressing, say
from leanguard_host.store import JournalError, open_store


@contextlib.contextmanager
def opened(policy: str, journal: str, timeout: float, *, create: bool) -> Iterator[Guard]:
    """A guard as the options of a command describe it.

    Raises:
        InputError: there is no such policy, or no such journal.
        LeanUnavailable: there is no usable Lean, or the journal can't be followed.
    """
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(open_store(journal, create=create))
        except JournalError as error:
            raise InputError("--journal", "a journal that can be used", str(error)) from error
        with Progressing() as reporter:
            engine = stack.enter_context(Engine.start(reporter))
        try:
            engine.require_policy(policy)
            guard = stack.enter_context(Guard(policy, store, engine=engine, timeout=timeout))
        except UnknownPolicyError as error:
            raise policy_problem(error) from error
        except GuardUnavailable as error:
            raise LeanUnavailable(f"{error} {error.remedy}".strip()) from error
        yield guard


def run(*, proposal: str, policy: str, journal: str, by: str, expires_in: float | None) -> int:
    """Record a consent. Returns the exit code.

    Raises:
        SystemExit: the input can't be used (2), or there is no usable Lean (3).
    """
    with failures():
        if expires_in is not None and not expires_in > 0:
            raise InputError("--expires-in", "more than 0 seconds", str(expires_in))
        with opened(policy, journal, 20.0, create=False) as guard:
            confirmed = guard.confirm(proposal, by=by, expires_in=expires_in)
        say(confirmed.feedback() if confirmed.accepted else ("not confirmed", "bad"), error=not confirmed.accepted)
        if not confirmed.accepted:
            say(confirmed.feedback(), error=True)
        return ADMITTED if confirmed.accepted else DENIED
    raise AssertionError("failures() raises")
