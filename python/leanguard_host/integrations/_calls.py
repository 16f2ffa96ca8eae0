"""What the integrations for plain dictionaries share.

A model's message holds calls. One after the other each is decided and run, and each gets its answer. What can't be read
is denied, and nothing is guessed.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import logging
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from leanguard_host.adapter import Adapter, DefiniteFailure
from leanguard_host.execution import (
    ARGUMENTS,
    CALL,
    Execution,
    OnDenial,
    Session,
    ToolDenied,
    TurnEnded,
    known_setting,
)
from leanguard_host.jsonfiles import CALL_LIMIT, InputError, Source, describe, parse

if TYPE_CHECKING:
    from leanguard_host.asyncguard import AsyncGuard
    from leanguard_host.guard import Guard

_log = logging.getLogger("leanguard")

Tools: TypeAlias = Mapping[str, Callable[..., Any]]
"""The tools that a model is offered, by name. What is not among them can't be called."""

Message: TypeAlias = dict[str, Any]

NOT_MADE = "The call was not made: another call was denied, and that ended the turn."


@dataclass(frozen=True)
class Proposed:
    """A call of a message.

    Attributes:
        id: what its answer must name; empty if there is none.
        name: the tool.
        arguments: an object, unless there is a problem.
        problem: rule and reason, if the call can't be read.
        kind: the kind of answer, where there is more than one.
    """

    id: str
    name: str
    arguments: Any
    problem: tuple[str, str] | None = None
    kind: str = ""


Answer: TypeAlias = Callable[[Proposed, str, bool], Message]
"""Makes the answer to a call: the call, the text, and whether it is about a denial or failure."""

Finish: TypeAlias = Callable[[list[Message]], list[Message]]
"""Makes messages of the answers."""

Asked: TypeAlias = tuple[dict[str, Any], Callable[..., Any]]


def plain(value: object, what: str) -> Mapping[str, Any]:
    """A mapping, or a library's model as one.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    found = dump() if callable(dump) else None
    if not isinstance(found, Mapping):
        raise TypeError(f"{what} must be a mapping, not {describe(value)}")
    return found


def items(value: object, what: str) -> list[Mapping[str, Any]]:
    """A list of mappings; None is an empty one.

    Raises:
        TypeError: it is none.
    """
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise TypeError(f"{what} must be a list, not {describe(value)}")
    return [plain(item, f"item {index} of {what}") for index, item in enumerate(value)]


def assistants(message: object) -> Mapping[str, Any]:
    """A message of the model's. Calls in any other message are nobody's proposal.

    Raises:
        TypeError: it is no mapping.
        ValueError: it is not the model's.
    """
    found = plain(message, "the message")
    if found.get("role") != "assistant":
        raise ValueError(f'the message must have the role "assistant", not {describe(found.get("role"))}')
    return found


def proposed(
    id_: object, name: object, arguments: object, *, written: bool, problem: str | None = None, kind: str = ""
) -> Proposed:
    """A call as it stands in a message.

    Args:
        id_: what the answer must name.
        name: the tool.
        arguments: the arguments.
        written: whether the arguments are JSON as the model wrote it, rather than an object.
        problem: why the call can't be made, where the message tells.
        kind: the kind of answer.
    """
    found = id_ if isinstance(id_, str) else ""
    tool = name if isinstance(name, str) else ""
    if not found:
        return Proposed("", tool, None, (CALL, "The call has no id, so no answer could name it."), kind)
    if not tool:
        return Proposed(found, "", None, (CALL, "The call names no tool."), kind)
    if problem is not None:
        return Proposed(found, tool, None, (CALL, problem), kind)
    if written:
        if not isinstance(arguments, str):
            reason = f"The arguments must be a string with JSON, not {describe(arguments)}."
            return Proposed(found, tool, None, (ARGUMENTS, reason), kind)
        try:
            if len(arguments) > CALL_LIMIT:
                raise InputError("arguments", f"at most {CALL_LIMIT} characters", "more")
            arguments = parse(Source("arguments", arguments))
        except InputError as error:
            return Proposed(found, tool, None, (ARGUMENTS, f"The call can't be read: {error}"), kind)
    if not isinstance(arguments, Mapping):
        reason = f"The arguments must be an object, not {describe(arguments)}."
        return Proposed(found, tool, None, (ARGUMENTS, reason), kind)
    return Proposed(found, tool, dict(arguments), kind=kind)


def _refusal(session: Session, call: Proposed, tools: Tools, ids: Counter[str]) -> Execution | None:
    """The denial of a call that nobody need decide."""
    problem = call.problem
    if problem is None and ids[call.id] > 1:
        problem = (CALL, f"{ids[call.id]} calls have the id {call.id!r}, so no answer could tell them apart.")
    if problem is None and call.name not in tools:
        problem = (CALL, f"There is no tool named {call.name!r}; there are: {', '.join(sorted(tools)) or 'none'}.")
    return None if problem is None else Execution("denied", session.denied(*problem))


def _steps(
    session: Session, calls: list[Proposed], tools: Tools, on_denial: OnDenial, answer: Answer, finish: Finish
) -> Generator[Asked, Execution, list[Message]]:
    """Asks for each call to be executed, and makes the answers."""
    ids = Counter(call.id for call in calls)
    answers: list[Message] = []
    for index, call in enumerate(calls):
        done = _refusal(session, call, tools, ids)
        if done is None:
            done = yield {"tool": call.name, "arguments": call.arguments}, tools[call.name]
            if done.error is not None:  # the model is not told, so somebody must be
                reason = "what it shows was not recorded" if done.executed else done.status
                _log.warning("A call of %s: %s.", call.name, reason, exc_info=done.error)
        answers.append(answer(call, told(done), not done.executed))
        if done.status in ("denied", "needs_confirmation") and on_denial != "feedback":
            answers += [answer(later, NOT_MADE, True) for later in calls[index + 1 :]]
            raise (ToolDenied if on_denial == "raise" else TurnEnded)(done, finish(answers))
    return finish(answers)


def run(
    guard: Guard,
    calls: list[Proposed],
    tools: Tools,
    adapter: Adapter,
    on_denial: OnDenial,
    timeout: float | None,
    answer: Answer,
    finish: Finish,
) -> list[Message]:
    """Execute calls one after the other.

    Raises:
        ToolDenied, TurnEnded: a call was denied, and `on_denial` says so.
        RuntimeError: the guard has no journal store.
        TypeError: a tool is a coroutine function.
    """
    known_setting(on_denial)
    for name, tool in tools.items():
        if inspect.iscoroutinefunction(tool):
            raise TypeError(f"{name} is a coroutine function, which only the asynchronous function runs")
    steps = _steps(guard.session(), calls, tools, on_denial, answer, finish)
    try:
        asked = next(steps)
        while True:
            asked = steps.send(guard.execute(*asked, adapter=adapter, timeout=timeout))
    except StopIteration as end:
        return _result(end)


async def arun(
    guard: Guard | AsyncGuard,
    calls: list[Proposed],
    tools: Tools,
    adapter: Adapter,
    on_denial: OnDenial,
    timeout: float | None,
    answer: Answer,
    finish: Finish,
) -> list[Message]:
    """The same for asyncio; tools and adapters may be coroutine functions."""
    from leanguard_host.asyncguard import AsyncGuard

    known_setting(on_denial)
    here = guard if isinstance(guard, AsyncGuard) else guard.asyncs()
    steps = _steps(here.guard.session(), calls, tools, on_denial, answer, finish)
    try:
        asked = next(steps)
        while True:
            asked = steps.send(await here.execute(*asked, adapter=adapter, timeout=timeout))
    except StopIteration as end:
        return _result(end)


def _result(end: StopIteration) -> list[Message]:
    messages: list[Message] = end.value
    return messages


def told(done: Execution) -> str:
    """What a model is told of a call: the result; or the feedback and, of a `DefiniteFailure`, its text.

    The text of any other exception is for the host's log: it may hold what no model should read.
    """
    if done.executed:
        return text(done.value)
    reason = str(done.error) if isinstance(done.error, DefiniteFailure) else ""
    return "\n".join(filter(None, (done.feedback(), reason)))


def text(value: object) -> str:
    """A tool's result as a text: a string as it is, anything else as JSON where it can be."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=_as_json)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _as_json(value: object) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)
