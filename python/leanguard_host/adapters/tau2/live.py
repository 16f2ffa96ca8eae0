"""The benchmark's own environment as the backend: its tools run, and its database is read as it is now.

```python
backend = open_environment("retail")                     # or an Environment of tau2's
session = Session(backend, "conversation-1")
with Guard(policy="retail", journal="sqlite:///journal.db", clock=lambda: backend.now) as guard:
    guard.execute(call, backend.tools()[call["tool"]], adapter=session)
```

Nothing of `tau2` is imported until a domain is opened by its name.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, Self

from pydantic_core import to_jsonable_python

from leanguard_host.adapter import DefiniteFailure
from leanguard_host.adapters.tau2.airline import Airline
from leanguard_host.adapters.tau2.backend import Backend, DataError, Json, ToolError
from leanguard_host.adapters.tau2.retail import Retail
from leanguard_host.adapters.tau2.telecom import Telecom

_DUST = 1e-9
"""How far a sum of binary fractions may be from the decimal number that it stands for, relative to it."""


class Tau2MissingError(ImportError):
    """The package `tau2` can't be imported."""

    def __init__(self, domain: str, error: ImportError) -> None:
        super().__init__(
            f"The domain {domain} of tau2-bench needs its package `tau2`: install it from a checkout of "
            f"https://github.com/sierra-research/tau2-bench with `pip install -e .` ({error}).",
            name=error.name,
        )


class RefusedError(ToolError, DefiniteFailure):
    """The environment refuses the call, and its database was seen to be as before."""


class Environment(Protocol):
    """What is used of an `Environment` of tau2's."""

    domain_name: str
    tools: Any
    """The agent's toolkit, with its database `db`."""
    user_tools: Any

    def use_tool(self, tool_name: str, /, **arguments: Any) -> Any: ...

    def use_user_tool(self, tool_name: str, /, **arguments: Any) -> Any: ...

    def sync_tools(self) -> None: ...

    def run_env_function_call(self, env_function_call: Any, /) -> Any: ...


def _undusted(value: Any) -> Any:
    """Numbers without the dust of the environment's sums. What is more than dust stays, and is refused by Lean."""
    if isinstance(value, dict):
        return {key: _undusted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_undusted(item) for item in value]
    if isinstance(value, float):
        near = round(value, 6)  # the decimals that a policy can read
        return near if abs(near - value) <= _DUST * max(1.0, abs(value)) else value
    return value


class Live(Backend):
    """A domain whose database and tools are those of an environment.

    Only the agent's tools are run as calls: those of the customer's own device are not the agent's, not even where the
    environment would let it use them.
    """

    def __init__(self, environment: Environment) -> None:
        super().__init__({})  # the rows are read from the environment, each time
        self.environment = environment

    @classmethod
    def load(cls, folder: Path) -> Self:
        """An environment is not read from a folder.

        Raises:
            DataError: always.
        """
        raise DataError("An environment is opened by `open_environment`, not read from a folder.")

    def fork(self) -> Self:
        """A copy of the whole environment."""
        return type(self)(copy.deepcopy(self.environment))

    def digest(self) -> str:
        """A name for the whole database: equal ones have equal names."""
        text = json.dumps(to_jsonable_python(self.environment.tools.db), sort_keys=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def row(self, table: str, key: object) -> Json | None:
        """A copy of a row of the environment's database as it is now."""
        if not isinstance(key, str):
            return None
        rows = getattr(self.environment.tools.db, table)  # an update replaces the database: never keep it
        if isinstance(rows, Mapping):
            found = rows.get(key)
        else:
            identity = f"{table[:-1]}_id"
            found = next((row for row in rows if getattr(row, identity) == key), None)
        told = _undusted(to_jsonable_python(found))
        return told if isinstance(told, dict) else None

    def need(self, table: str, key: object, what: str) -> Json:
        """A copy of a row.

        Raises:
            ToolError: there is none.
        """
        if (found := self.row(table, key)) is None:
            raise ToolError(f"{what} not found")
        return found

    def has(self, tool: str) -> bool:
        """Whether the environment has that agent tool."""
        return bool(self.environment.tools.has_tool(tool))

    def tools(self) -> dict[str, Callable[..., Any]]:
        """The agent's tools by name, to be run by a guard. Each has the parameters of the environment's own."""
        return {name: self._tool(name, tool) for name, tool in self.environment.tools.tools.items()}

    def _tool(self, name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tool)
        def run(**arguments: Any) -> Any:
            return self.run({"tool": name, "arguments": arguments})

        return run

    def run(self, call: Json) -> Any:
        """Have the environment run an agent tool; the result is told as JSON values.

        Raises:
            RefusedError: it refuses, or there is no such tool; nothing was changed.
            Exception: what a tool raised that had changed something before: nobody knows what of its work is done.
        """
        name = call["tool"]
        if not self.has(name):
            raise RefusedError(f"Unknown tool {name}")
        writes = name in self.writes
        before = self.digest() if writes else ""
        try:
            # Not `make_tool_call`: an argument `requestor` would choose the customer's device there.
            result = self.environment.use_tool(name, **call["arguments"])
            if writes:
                self.environment.sync_tools()
        except Exception as error:
            if writes and self.digest() != before:
                raise
            raise RefusedError(str(error)) from error
        return _undusted(to_jsonable_python(result))

    def initialize(self, action: Json) -> None:
        """Prepare a task's world, the customer's device included.

        Raises:
            ToolError: the environment can't do that.
        """
        wanted = {name: action.get(name) for name in ("env_type", "func_name", "arguments")}
        try:
            self.environment.run_env_function_call(SimpleNamespace(**wanted))
        except Exception as error:
            raise ToolError(f"The environment can't be prepared: {error}") from error

    def user_call(self, name: str, arguments: Json) -> None:
        """Have the customer's device do something, and the backend hear of it. What it refuses changes nothing."""
        with contextlib.suppress(Exception):  # as in a conversation, where a refusal is an answer
            self.environment.use_user_tool(name, **arguments)
            self.environment.sync_tools()


class LiveRetail(Live, Retail):
    """Retail on the benchmark's environment."""


class LiveAirline(Live, Airline):
    """Airline on the benchmark's environment."""


class LiveTelecom(Live, Telecom):
    """Telecom on the benchmark's environment."""


_LIVE: dict[str, type[Live]] = {
    "retail": LiveRetail,
    "airline": LiveAirline,
    "telecom": LiveTelecom,
    "telecom-workflow": LiveTelecom,  # the same with another manual
}


def open_environment(environment: Environment | str) -> Live:
    """The backend that drives an environment of tau2's, or a new one of a domain's name.

    A `Session` on it is the adapter. Whoever runs the conversation may go on using the environment beside it, such as
    for the customer's device.

    Raises:
        Tau2MissingError: a domain's name is given, and `tau2` can't be imported.
        DataError: there is no adapter for that domain, or no data of it.
    """
    name = environment if isinstance(environment, str) else environment.domain_name
    if name not in _LIVE:
        raise DataError(f"There is no adapter for {name!r}; there are: {', '.join(_LIVE)}.")
    return _LIVE[name](_new(name) if isinstance(environment, str) else environment)


def _new(name: str) -> Environment:
    domain, _, manual = name.partition("-")
    try:
        module = importlib.import_module(f"tau2.domains.{domain}.environment")
    except ImportError as error:
        raise Tau2MissingError(name, error) from error
    try:
        made: Environment = module.get_environment(**({"policy_type": manual} if manual else {}))
    except OSError as error:
        raise DataError(f"tau2 has no data of {name} ({error}); let TAU2_DATA_DIR name its folder `data`.") from error
    return made
