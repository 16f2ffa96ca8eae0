"""What the three domains share: a database, the tools that read and change it, and what the policy is told of it."""

from __future__ import annotations

import copy
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, ClassVar, Self

from leanguard_host.jsonfiles import LONGEST_NAME

Json = dict[str, Any]
"""A JSON object."""

EST = timezone(timedelta(hours=-5), "EST")
"""The benchmark's clock and databases: no daylight saving time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ToolError(Exception):
    """A tool refuses the call; nothing was changed."""


class DataError(Exception):
    """The benchmark's data are missing or not what they should be."""


def milliseconds(moment: datetime | str) -> int:
    """A moment of the benchmark's local time, in milliseconds since 1970."""
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return (at.replace(tzinfo=at.tzinfo or EST) - _EPOCH) // timedelta(milliseconds=1)


def midnight(day: date | str) -> int:
    """When a day begins, in milliseconds since 1970."""
    on = date.fromisoformat(day) if isinstance(day, str) else day
    return milliseconds(datetime(on.year, on.month, on.day))


def usable(key: object) -> bool:
    """Whether it can name a row: a text that is no longer than an identifier may be."""
    return isinstance(key, str) and len(key.encode("utf-8", "replace")) <= LONGEST_NAME


def texts(value: object) -> list[str]:
    """The items that can name a row, if the value is a list."""
    return [item for item in value if usable(item)] if isinstance(value, list) else []


def objects(value: object) -> list[Json]:
    """The items that are objects, if the value is a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def digest(value: object) -> str:
    """A name for a JSON value: equal values have equal names."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:24]


class Backend(ABC):
    """One domain's database and tools, as the authoritative system of record.

    A subclass has a method `tool_NAME(**arguments)` for each agent tool: it raises ToolError and leaves the data alone,
    or does the work.
    """

    name: ClassVar[str]
    now: ClassVar[int]
    """The benchmark's fixed clock, in milliseconds since 1970."""
    writes: ClassVar[frozenset[str]]
    confirmations: ClassVar[frozenset[str]]
    """The rules that ask for the customer's consent."""
    stricter: ClassVar[frozenset[str]] = frozenset()
    """The rules to which the benchmark does not hold its own solutions."""
    resources: ClassVar[Mapping[str, tuple[str, str]]]
    """Of each tool that touches one thing: its type and the argument with its id, as in the policy's contracts."""

    def __init__(self, data: Json) -> None:
        self.data = data
        self._own: set[tuple[str, str]] = set()

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """Read the database from the folder.

        Raises:
            DataError: it is not there.
        """

    @abstractmethod
    def state(self, call: Json, principal: str | None) -> Json:
        """What the policy is told for the call: tables by id, with what the call needs; null for no such row."""

    def fork(self) -> Self:
        """The same database, to be changed on its own."""
        other = copy.copy(self)
        other.data = {table: dict(rows) for table, rows in self.data.items()}
        # From now on they share their rows: each copies what it is about to change.
        self._own, other._own = set(), set()
        return other

    def digest(self) -> str:
        """A name for the whole database: equal ones have equal names."""
        text = json.dumps(self.data, sort_keys=True, default=str)  # dates of a TOML file
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def has(self, tool: str) -> bool:
        """Whether the domain has that agent tool."""
        return hasattr(self, f"tool_{tool}")

    def run(self, call: Json) -> Any:
        """Run a tool as the backend would.

        Raises:
            ToolError: it refuses, or there is no such tool.
        """
        tool = getattr(self, f"tool_{call['tool']}", None)
        if tool is None:
            raise ToolError(f"Unknown tool {call['tool']}")
        try:
            return tool(**call["arguments"])
        except (TypeError, KeyError, AttributeError, ValueError) as error:  # arguments that no tool of the schema takes
            raise ToolError(f"Bad arguments: {error}") from error

    def resource(self, call: Json) -> Json | None:
        """The thing that the call touches."""
        found = self.resources.get(call["tool"])
        if found and usable(key := call["arguments"].get(found[1])) and key:  # nothing has an empty id
            return {"type": found[0], "id": key}
        return None

    def seen(self, call: Json, result: Any) -> list[Json]:
        """The things that a successful read showed."""
        found = self.resource(call)
        return [found] if found else []

    def identified(self, call: Json, result: Any) -> str | None:
        """The customer whom a successful look-up establishes by the benchmark's convention."""
        return None

    def claimed(self, text: str) -> str | None:
        """The customer whom the customer's own words establish by the benchmark's convention."""
        return None

    def disruption(self, call: Json) -> Json | None:
        """What a rule of compensation must know of the state before the call changes it."""
        return None

    def initialize(self, action: Json) -> None:  # noqa: B027 - most have nothing to prepare
        """Prepare a task's world."""

    def user_call(self, name: str, arguments: Json) -> None:  # noqa: B027 - most change nothing there
        """What a tool of the customer's own changes in the backend."""

    def row(self, table: str, key: object) -> Json | None:
        """A row of the database, to be read alone: a fork may share it."""
        found = self.data[table].get(key) if isinstance(key, str) else None
        return found if isinstance(found, dict) else None

    def need(self, table: str, key: object, what: str) -> Json:
        """A row that a tool may change.

        Raises:
            ToolError: there is none.
        """
        if (found := self.row(table, key)) is None or not isinstance(key, str):
            raise ToolError(f"{what} not found")
        if (table, key) not in self._own:
            self._own.add((table, key))
            found = self.data[table][key] = copy.deepcopy(found)
        return found

    def tool_calculate(self, expression: str) -> str:
        """Only that it was called matters: the expression is a model's text and is not evaluated here."""
        return ""

    def tool_transfer_to_human_agents(self, summary: str) -> str:
        """Nothing of the data changes."""
        return "Transfer successful"


def read_json(path: Path) -> Any:
    """A JSON file of the benchmark's.

    Raises:
        DataError: it is not there, or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}") from error
