"""OpenAI-style tool calls, as plain dictionaries: chat completions and the Responses API.

```python
from leanguard_host.integrations.openai import execute_tool_calls

reply = client.chat.completions.create(model=..., messages=messages, tools=schemas).choices[0].message
messages.append(reply)
messages += execute_tool_calls(guard, reply, {"get_order": get_order}, adapter=adapter)
```

Any server that speaks the same dictionaries will do; the `openai` package is not needed, and its objects are taken too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leanguard_host.adapter import Adapter
from leanguard_host.execution import OnDenial
from leanguard_host.integrations._calls import (
    Message,
    Proposed,
    Tools,
    arun,
    assistants,
    items,
    plain,
    proposed,
    run,
)
from leanguard_host.jsonfiles import describe

if TYPE_CHECKING:
    from leanguard_host.asyncguard import AsyncGuard
    from leanguard_host.guard import Guard

_ONLY_FUNCTIONS = "Only calls of functions can be made."


def _chat_calls(message: object) -> list[Proposed]:
    found = assistants(message)
    if found.get("function_call") is not None:
        raise ValueError("the message has a `function_call`; only `tool_calls` are supported")
    return [_chat_call(call) for call in items(found.get("tool_calls"), "`tool_calls`")]


def _chat_call(call: Mapping[str, Any]) -> Proposed:
    if call.get("type", "function") != "function":
        inner = call.get(str(call.get("type")))
        name = inner.get("name") if isinstance(inner, Mapping) else None
        return proposed(call.get("id"), name or "?", None, written=True, problem=_ONLY_FUNCTIONS)
    try:
        function = plain(call.get("function"), "`function`")
    except TypeError as error:
        return proposed(call.get("id"), "?", None, written=True, problem=f"The call can't be read: {error}.")
    return proposed(call.get("id"), function.get("name"), function.get("arguments"), written=True)


def _chat_answer(call: Proposed, text: str, failed: bool) -> Message:
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def _unchanged(answers: list[Message]) -> list[Message]:
    return answers


def execute_tool_calls(
    guard: Guard,
    message: object,
    tools: Tools,
    *,
    adapter: Adapter,
    on_denial: OnDenial = "feedback",
    timeout: float | None = None,
) -> list[Message]:
    """Decide and run the tool calls of an assistant's chat message, one after the other.

    Args:
        guard: a guard with a journal store.
        message: the message, with `tool_calls` or without.
        tools: the tools that the model is offered, by name.
        adapter: reads the backend.
        on_denial: what a denial does.
        timeout: seconds to wait for each tool.

    Returns:
        A message of the role `tool` for each call, to be appended to the conversation: the tool's result (text as it
        is, anything else as JSON), or the feedback of a denial or failure.

    Raises:
        ToolDenied, TurnEnded: a call was denied, and `on_denial` says so; its `messages` answer all the calls.
        RuntimeError: the guard has no journal store.
        TypeError, ValueError: this is no message of an assistant's; or a tool is a coroutine function.
    """
    return run(guard, _chat_calls(message), tools, adapter, on_denial, timeout, _chat_answer, _unchanged)


async def aexecute_tool_calls(
    guard: Guard | AsyncGuard,
    message: object,
    tools: Tools,
    *,
    adapter: Adapter,
    on_denial: OnDenial = "feedback",
    timeout: float | None = None,
) -> list[Message]:
    """`execute_tool_calls` for asyncio; tools and the adapter's methods may be coroutine functions."""
    return await arun(guard, _chat_calls(message), tools, adapter, on_denial, timeout, _chat_answer, _unchanged)


# --- the Responses API ---


def _response_calls(output: object) -> list[Proposed]:
    calls = []
    for item in items(output, "the output"):
        kind, id_, problem = item.get("type"), item.get("call_id"), None
        if kind == "function_call":
            if item.get("status") not in (None, "completed"):
                problem = f"The call is not complete: its status is {describe(item.get('status'))}."
            calls.append(proposed(id_, item.get("name"), item.get("arguments"), written=True, problem=problem))
        elif kind == "custom_tool_call":
            calls.append(
                proposed(id_, item.get("name"), None, written=True, problem=_ONLY_FUNCTIONS, kind="custom_tool_call")
            )
    return calls


def _response_answer(call: Proposed, text: str, failed: bool) -> Message:
    return {"type": f"{call.kind or 'function_call'}_output", "call_id": call.id, "output": text}


def execute_function_calls(
    guard: Guard,
    output: object,
    tools: Tools,
    *,
    adapter: Adapter,
    on_denial: OnDenial = "feedback",
    timeout: float | None = None,
) -> list[Message]:
    """Decide and run the function calls in the output of a response (Responses API), one after the other.

    Args, errors: as of `execute_tool_calls`; `output` is the list of the response's items. Items of other kinds are
    left alone: what the provider runs itself does not pass here.

    Returns:
        An item `function_call_output` for each call, for the next request's input.
    """
    return run(guard, _response_calls(output), tools, adapter, on_denial, timeout, _response_answer, _unchanged)


async def aexecute_function_calls(
    guard: Guard | AsyncGuard,
    output: object,
    tools: Tools,
    *,
    adapter: Adapter,
    on_denial: OnDenial = "feedback",
    timeout: float | None = None,
) -> list[Message]:
    """`execute_function_calls` for asyncio; tools and the adapter's methods may be coroutine functions."""
    return await arun(guard, _response_calls(output), tools, adapter, on_denial, timeout, _response_answer, _unchanged)
