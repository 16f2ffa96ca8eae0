"""Anthropic tool use, as plain dictionaries.

```python
from leanguard_host.integrations.anthropic import execute_tool_uses

reply = client.messages.create(model=..., messages=messages, tools=schemas, max_tokens=...)
messages.append({"role": "assistant", "content": reply.content})
messages += execute_tool_uses(guard, reply, {"get_order": get_order}, adapter=adapter)
```

The `anthropic` package is not needed, and its objects are taken too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leanguard_host.adapter import Adapter
from leanguard_host.execution import OnDenial
from leanguard_host.integrations._calls import Message, Proposed, Tools, arun, assistants, items, proposed, run

if TYPE_CHECKING:
    from leanguard_host.asyncguard import AsyncGuard
    from leanguard_host.guard import Guard

_CUT_OFF = "The message was cut off (max_tokens), so the call may lack something."


def _calls(message: object) -> list[Proposed]:
    found = assistants(message)
    content = found.get("content")
    if isinstance(content, str):
        return []
    blocks = items(content, "`content`")
    cut = found.get("stop_reason") == "max_tokens"
    return [
        proposed(
            block.get("id"),
            block.get("name"),
            block.get("input"),
            written=False,
            problem=_CUT_OFF if cut and index == len(blocks) - 1 else None,
        )
        for index, block in enumerate(blocks)
        if block.get("type") == "tool_use"
    ]


def _answer(call: Proposed, text: str, failed: bool) -> Message:
    return {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": failed}


def _finish(answers: list[Message]) -> list[Message]:
    return [{"role": "user", "content": answers}] if answers else []


def execute_tool_uses(
    guard: Guard,
    message: object,
    tools: Tools,
    *,
    adapter: Adapter,
    on_denial: OnDenial = "feedback",
    timeout: float | None = None,
) -> list[Message]:
    """Decide and run the `tool_use` blocks of an assistant's message, one after the other.

    Args:
        guard: a guard with a journal store.
        message: the message; with its `stop_reason`, if there is one.
        tools: the tools that the model is offered, by name.
        adapter: reads the backend.
        on_denial: what a denial does.
        timeout: seconds to wait for each tool.

    Returns:
        One message of the role `user` with a `tool_result` for each call, or no message if there are no calls. A
        denial's or a failure's has `is_error`, and the feedback as its content. What the provider runs itself
        (`server_tool_use`) does not pass here.

    Raises:
        ToolDenied, TurnEnded: a call was denied, and `on_denial` says so; its `messages` answer all the calls.
        RuntimeError: the guard has no journal store.
        TypeError, ValueError: this is no message of an assistant's; or a tool is a coroutine function.
    """
    return run(guard, _calls(message), tools, adapter, on_denial, timeout, _answer, _finish)


async def aexecute_tool_uses(
    guard: Guard | AsyncGuard,
    message: object,
    tools: Tools,
    *,
    adapter: Adapter,
    on_denial: OnDenial = "feedback",
    timeout: float | None = None,
) -> list[Message]:
    """`execute_tool_uses` for asyncio; tools and the adapter's methods may be coroutine functions."""
    return await arun(guard, _calls(message), tools, adapter, on_denial, timeout, _answer, _finish)
