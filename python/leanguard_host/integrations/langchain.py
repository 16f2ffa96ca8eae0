"""LangChain tools behind a guard. Extra: `langchain`.

```python
from leanguard_host.integrations.langchain import guard_tools

agent = create_agent(model, guard_tools([get_order, exchange_items], guard, adapter=adapter))
```

A guarded tool is a LangChain tool of the same name, description and schema. However it is called (`invoke`, `ainvoke`,
`run`, `batch`, from a `ToolCall` or not), the arguments as the schema read them, defaults included, are what the policy
decides and what the tool gets.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, PrivateAttr, create_model
from pydantic_core import PydanticSerializationError, to_jsonable_python

from leanguard_host.adapter import Adapter
from leanguard_host.execution import (
    ARGUMENTS,
    Execution,
    OnDenial,
    ToolDenied,
    TurnEnded,
    known_setting,
)
from leanguard_host.integrations import MissingExtraError

try:
    from langchain_core.callbacks import AsyncCallbackManagerForToolRun, CallbackManagerForToolRun
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, Tool, ToolException
except ImportError as error:  # pragma: no cover - the tests run where it is there
    raise MissingExtraError("langchain", error) from error

if TYPE_CHECKING:
    from leanguard_host.asyncguard import AsyncGuard
    from leanguard_host.guard import Guard

__all__ = ["GuardedTool", "ToolCallDenied", "guard_tool", "guard_tools"]

_SIMPLE = "tool_input"
"""What LangChain calls the only parameter of a tool without a schema."""


class ToolCallDenied(ToolException):
    """A call was denied and not made. A guarded tool answers it as LangChain answers a tool's errors.

    Attributes:
        execution: what came of the call.
    """

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution.feedback())
        self.execution = execution


class _Reported(ToolException):
    """A tool's own error, handled as the tool wants it, with what is known of its effect."""

    def __init__(self, content: Any) -> None:
        super().__init__(content)
        self.content = content


class GuardedTool(BaseTool):
    """A tool whose every call is decided first. Made by `guard_tool`."""

    _tool: BaseTool = PrivateAttr()
    _guard: Any = PrivateAttr()
    _adapter: Any = PrivateAttr()
    _on_denial: OnDenial = PrivateAttr()
    _timeout: float | None = PrivateAttr()
    _injected: frozenset[str] = PrivateAttr()

    def __init__(
        self,
        tool: BaseTool,
        guard: Guard | AsyncGuard,
        adapter: Adapter,
        on_denial: OnDenial,
        timeout: float | None,
        injected: frozenset[str],
    ) -> None:
        schema = tool.args_schema
        if schema is None and isinstance(tool, Tool):
            schema = create_model(tool.name, **{_SIMPLE: (str, ...)})  # type: ignore[call-overload]
        super().__init__(
            name=tool.name,
            description=tool.description,
            args_schema=schema,
            return_direct=tool.return_direct,
            verbose=tool.verbose,
            callbacks=tool.callbacks,
            tags=tool.tags,
            metadata=tool.metadata,
            handle_tool_error=self._handled,
            handle_validation_error=tool.handle_validation_error,
            response_format=tool.response_format,
            extras=tool.extras,
        )
        self._tool, self._guard, self._adapter = tool, guard, adapter
        self._on_denial, self._timeout = on_denial, timeout
        self._injected = injected | _ids(schema)

    @property
    def _injected_args_keys(self) -> frozenset[str]:
        return _injected_directly(self._tool)

    def get_input_schema(self, config: RunnableConfig | None = None) -> Any:
        """The tool's input schema."""
        return super().get_input_schema(config) if self.args_schema is not None else self._tool.get_input_schema(config)

    # --- running ---

    def _run(
        self,
        *given: Any,
        config: RunnableConfig,
        run_manager: CallbackManagerForToolRun | None = None,
        **named: Any,
    ) -> Any:
        """Decide the call, and run the tool if it is admitted.

        Raises:
            ToolCallDenied, ToolDenied, TurnEnded: it was denied, and was not made.
            NotImplementedError: the tool is asynchronous only.
        """
        tool = self._tool
        if isinstance(tool, StructuredTool | Tool) and tool.func is None:
            raise NotImplementedError(f"{self.name} is asynchronous only")
        call = self._proposed(given, named)
        if isinstance(call, Execution):
            return self._answer(call)
        extras = _extras(tool._run, config, run_manager)

        def made(**arguments: Any) -> Any:
            return tool._run(*given, **named, **extras)

        done = self._sync().execute(call, made, adapter=self._adapter, timeout=self._timeout)
        return self._answer(done)

    async def _arun(
        self,
        *given: Any,
        config: RunnableConfig,
        run_manager: AsyncCallbackManagerForToolRun | None = None,
        **named: Any,
    ) -> Any:
        """The same for asyncio. A tool that is not asynchronous runs in a thread."""
        tool = self._tool
        call = self._proposed(given, named)
        if isinstance(call, Execution):
            return self._answer(call)
        made: Callable[..., Any]
        if _asynchronous(tool):
            extras = _extras(tool._arun, config, run_manager)

            async def awaited(**arguments: Any) -> Any:
                return await tool._arun(*given, **named, **extras)

            made = awaited
        else:
            # Not by the tool's own `_arun`: the guard must know of the thread, which goes on when a task is cancelled.
            extras = _extras(tool._run, config, run_manager.get_sync() if run_manager else None)

            def threaded(**arguments: Any) -> Any:
                return tool._run(*given, **named, **extras)

            made = threaded
        done = await self._async().execute(call, made, adapter=self._adapter, timeout=self._timeout)
        return self._answer(done)

    def _sync(self) -> Guard:
        from leanguard_host.asyncguard import AsyncGuard

        guard: Guard = self._guard.guard if isinstance(self._guard, AsyncGuard) else self._guard
        return guard

    def _async(self) -> AsyncGuard:
        from leanguard_host.asyncguard import AsyncGuard

        return self._guard if isinstance(self._guard, AsyncGuard) else self._guard.asyncs()

    def _proposed(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any] | Execution:
        """The call that is decided, or the denial of one that can't be told."""
        if given:  # a single text, which LangChain takes for the only parameter
            names = [name for name in self.args if name not in self._injected]
            if len(names) != 1 or len(given) != 1 or named:
                return self._refused("Give the arguments by name.")
            arguments = {names[0]: given[0]}
        else:
            arguments = {name: value for name, value in named.items() if name not in self._injected}
        optional = _optional(self.args_schema)
        arguments = {name: value for name, value in arguments.items() if value is not None or name not in optional}
        try:
            arguments = to_jsonable_python(arguments)
        except (PydanticSerializationError, ValueError) as error:
            return self._refused(f"The arguments are no JSON: {error}")
        return {"tool": self.name, "arguments": arguments}

    def _refused(self, reason: str) -> Execution:
        return Execution("denied", self._sync().session().denied(ARGUMENTS, reason))

    def _answer(self, done: Execution) -> Any:
        if done.executed:
            return done.value
        if done.status in ("failed", "unknown"):
            error = done.error or RuntimeError("the tool failed")
            if isinstance(error, ToolException) and self._tool.handle_tool_error:
                raise _Reported(_with(_content(self._tool, error), done.feedback()))
            error.add_note(done.feedback())
            raise error
        if self._on_denial == "raise":
            raise ToolDenied(done)
        if self._on_denial == "end":
            raise TurnEnded(done)
        raise ToolCallDenied(done)

    def _handled(self, error: ToolException) -> Any:
        """What LangChain makes the content of a message with the status `error`."""
        if isinstance(error, ToolCallDenied):
            return error.execution.feedback()
        if isinstance(error, _Reported):
            return error.content
        raise error


def _ids(schema: object) -> frozenset[str]:
    """The parameters that LangChain itself fills with the id of the call."""
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return frozenset()
    return frozenset(
        name
        for name, field in schema.model_fields.items()
        if any(part is InjectedToolCallId or isinstance(part, InjectedToolCallId) for part in field.metadata)
    )


def _parameters(tool: BaseTool) -> set[str]:
    """All of a tool's parameters, with those that no model is shown."""
    schema = tool.args_schema
    shown = set(tool.args) | _injected_directly(tool)
    return shown | set(schema.model_fields) if isinstance(schema, type) and issubclass(schema, BaseModel) else shown


def _injected_directly(tool: BaseTool) -> frozenset[str]:
    """The parameters that LangChain recognizes by their type alone and leaves out of the schema."""
    return frozenset(getattr(tool, "_injected_args_keys", ()))


def _optional(schema: object) -> frozenset[str]:
    """The parameters whose default is None: for the tool the same as left out, and so for the policy."""
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return frozenset()
    return frozenset(name for name, field in schema.model_fields.items() if field.default is None)


def _asynchronous(tool: BaseTool) -> bool:
    if isinstance(tool, StructuredTool | Tool):
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun


def _extras(method: Callable[..., Any], config: RunnableConfig, run_manager: object) -> dict[str, Any]:
    """What LangChain hands to a tool's method beside the arguments, if that takes it."""
    extras: dict[str, Any] = {}
    if run_manager is not None and "run_manager" in inspect.signature(method).parameters:
        extras["run_manager"] = run_manager
    try:
        hints = typing.get_type_hints(method)
    except Exception:  # a name that is only there for type checkers
        hints = {}
    for name, hint in hints.items():
        if name != "return" and (hint is RunnableConfig or RunnableConfig in typing.get_args(hint)):
            extras[name] = config
    return extras


def _content(tool: BaseTool, error: ToolException) -> Any:
    """What a tool wants its error to read, as LangChain documents `handle_tool_error`."""
    wanted = tool.handle_tool_error
    if callable(wanted):
        return wanted(error)
    if isinstance(wanted, str):
        return wanted
    return error.args[0] if error.args else "Tool execution error"


def _with(content: Any, feedback: str) -> Any:
    return f"{content}\n{feedback}" if isinstance(content, str) else [*content, {"type": "text", "text": feedback}]


def guard_tool(
    tool: BaseTool,
    guard: Guard | AsyncGuard,
    *,
    adapter: Adapter,
    on_denial: OnDenial = "feedback",
    timeout: float | None = None,
    injected: Iterable[str] = (),
) -> GuardedTool:
    """A LangChain tool behind a guard.

    Args:
        tool: the tool. Its name is the tool's name in the policy; one that no contract names is always denied.
        guard: a guard with a journal store.
        adapter: reads the backend.
        on_denial: what a denial does: LangChain's answer to a tool's error, with the feedback (a `ToolMessage` of the
            status `error`, or the text alone where there is no tool call); or `ToolDenied` is raised; or `TurnEnded`,
            which no `except Exception` catches.
        timeout: seconds to wait for the tool.
        injected: parameters that the host fills and never the model. They are no part of what is decided. Any other
            parameter that LangChain would inject is decided like the rest, and denied unless the contract names it.

    Raises:
        TypeError: this is no LangChain tool, or it is guarded already.
        ValueError: `on_denial` is none of the settings; or the tool has no parameter that is named in `injected`.
        RuntimeError: the guard has no journal store.
    """
    from leanguard_host.asyncguard import AsyncGuard

    known_setting(on_denial)
    if not isinstance(tool, BaseTool) or isinstance(tool, GuardedTool):
        raise TypeError(f"expected an unguarded LangChain tool, found a {type(tool).__name__}")
    (guard.guard if isinstance(guard, AsyncGuard) else guard).session()
    filled = frozenset(injected)
    if unknown := sorted(filled - _parameters(tool)):
        raise ValueError(f"{tool.name} has no parameter {', '.join(unknown)}")
    return GuardedTool(tool, guard, adapter, on_denial, timeout, filled)


def guard_tools(
    tools: Iterable[BaseTool],
    guard: Guard | AsyncGuard,
    *,
    adapter: Adapter,
    on_denial: OnDenial = "feedback",
    timeout: float | None = None,
) -> list[GuardedTool]:
    """`guard_tool` for each of several tools."""
    return [guard_tool(tool, guard, adapter=adapter, on_denial=on_denial, timeout=timeout) for tool in tools]
