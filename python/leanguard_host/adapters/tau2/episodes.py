"""Recorded episodes and tasks of tau-bench and tau2-bench, read into one form."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from leanguard_host.adapters.tau2.backend import Json, objects

_ERRORS = ("Error", "error")


@dataclass(frozen=True)
class Step:
    """One thing of an episode, in its order."""

    kind: Literal["customer", "agent", "call", "device", "confirmed"]
    """The customer's words; the agent's, which are for readers alone; the agent's call; a call on the customer's own
    device; a confirmation from a trusted screen, which only tasks have."""
    text: str = ""
    tool: Any = None
    arguments: Any = None
    failed: bool | None = None
    """Whether the recorded result says that the call failed; None if there is no result."""
    result: str = ""
    """The recorded result, for readers alone."""


@dataclass(frozen=True)
class Episode:
    """A conversation, or a task with its reference solution."""

    name: str
    steps: list[Step]
    preparation: list[Json] = field(default_factory=list)
    reference: bool = False


@dataclass(frozen=True)
class Unreadable:
    """A part of a file that is no episode."""

    place: str
    reason: str


def episode_files(path: Path) -> list[Path]:
    """The episode files of a folder in their order, or the one file itself."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in (".json", ".jsonl") and file.is_file())


def read_episodes(path: Path) -> Iterator[Episode | Unreadable]:
    """The episodes of a JSON or JSONL file, or of the files of a folder. What can't be read is told, the rest is read.

    Raises:
        OSError: the file or folder can't be read.
    """
    if path.is_dir():
        for file in episode_files(path):
            yield from read_episodes(file)
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".jsonl":
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield from _parsed(line, f"{path.name}, line {number}", f"{path.stem}:{number}")
    else:
        yield from _parsed(text, path.name, path.stem)


def _parsed(text: str, place: str, name: str) -> Iterator[Episode | Unreadable]:
    try:
        value = json.loads(text)
    except ValueError as error:
        yield Unreadable(place, f"not JSON ({error}); is it cut?")
        return
    except RecursionError:
        yield Unreadable(place, "nested too deep")
        return
    yield from _episodes(value, place, name)


def _episodes(value: Any, place: str, name: str) -> Iterator[Episode | Unreadable]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _episodes(item, f"{place}, item {index}", f"{name}:{index}")
    elif not isinstance(value, dict):
        yield Unreadable(place, "expected an episode, a task or a list of them")
    elif isinstance(value.get("simulations"), list):
        tasks = {str(task.get("id")): task for task in objects(value.get("tasks"))}
        for index, item in enumerate(value["simulations"]):
            if not isinstance(item, dict) or not isinstance(item.get("messages"), list):
                yield Unreadable(f"{place}, simulation {index}", "expected an object with messages")
                continue
            task = tasks.get(str(item.get("task_id")), {})
            yield Episode(
                f"{item.get('task_id')}#{item.get('trial', index)}",
                list(steps_of(item["messages"])),
                _preparation(task),
            )
    elif isinstance(value.get("traj"), list):
        yield Episode(f"{value.get('task_id', name)}#{value.get('trial', 0)}", list(steps_of(value["traj"])))
    elif isinstance(value.get("messages"), list):
        yield Episode(str(value.get("id", name)), list(steps_of(value["messages"])))
    elif isinstance(value.get("evaluation_criteria"), dict):
        yield Episode(str(value.get("id", name)), list(_solution(value)), _preparation(value), reference=True)
    else:
        yield Unreadable(place, "expected `traj`, `messages`, `simulations` or `evaluation_criteria`")


def _object(value: Any) -> Json:
    """The value if it is an object; else one without fields."""
    return value if isinstance(value, dict) else {}


def _preparation(task: Mapping[str, Any]) -> list[Json]:
    return objects(_object(task.get("initial_state")).get("initialization_actions"))


def steps_of(messages: list[Any]) -> Iterator[Step]:
    """The steps of a conversation, from the messages of tau-bench or tau2-bench."""
    # The result of a call is the next tool message, not the one of its id: the recorded ids repeat.
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            continue
        role, content = message.get("role"), message.get("content")
        if role in ("user", "assistant") and isinstance(content, str) and content:
            yield Step("customer" if role == "user" else "agent", text=content)
        following = iter(messages[index + 1 :])
        for call in objects(message.get("tool_calls")):
            function = call["function"] if isinstance(call.get("function"), dict) else call
            arguments = function.get("arguments")
            if isinstance(arguments, str):
                with contextlib.suppress(ValueError, RecursionError):  # else it is kept as it is, and denied
                    arguments = json.loads(arguments)
            device = role == "user" or call.get("requestor") == "user"
            answer = next(following, None)
            yield Step(
                "device" if device else "call", "", function.get("name"), arguments, _failed(answer), _result(answer)
            )


def _failed(result: Any) -> bool | None:
    if not isinstance(result, dict) or result.get("role") != "tool":
        return None
    if isinstance(result.get("error"), bool):
        return bool(result["error"])
    return str(result.get("content")).startswith(_ERRORS)


def _result(result: Any) -> str:
    return str(result.get("content")) if isinstance(result, dict) and result.get("role") == "tool" else ""


def _solution(task: Json) -> Iterator[Step]:
    """The reference actions; what an honest agent does between them is `reference.honest`."""
    instructions = _object(task.get("user_scenario")).get("instructions") or {}
    if isinstance(instructions, dict):
        yield Step("customer", text=str(instructions.get("known_info") or ""))
    else:
        yield Step("customer", text=str(instructions))
    for action in objects(task["evaluation_criteria"].get("actions")):
        device = action.get("requestor") == "user"
        yield Step("device" if device else "call", "", action.get("name"), action.get("arguments"))
