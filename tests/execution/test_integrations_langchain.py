"""LangChain tools behind a guard. On real Lean and the real library."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForToolRun
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ValidationError
from shop import AUTHENTICATION, Shop, confirm, exchange, failed, prepare

from leanguard_host import Guard, ToolDenied, TurnEnded
from leanguard_host.integrations.langchain import GuardedTool, ToolCallDenied, guard_tool, guard_tools

EXCHANGE = "exchange_delivered_order_items"
Invoke = Callable[..., Any]


@pytest.fixture(params=["invoke", "ainvoke", "run", "arun", "batch", "abatch"])
def invoke(request: pytest.FixtureRequest) -> Invoke:
    """Every way to call a tool."""

    def call(guarded: BaseTool, arguments: Any) -> Any:
        match request.param:
            case "invoke" | "run":
                return getattr(guarded, request.param)(arguments)
            case "batch":
                return guarded.batch([arguments])[0]
            case "abatch":
                return asyncio.run(guarded.abatch([arguments]))[0]
        return asyncio.run(getattr(guarded, request.param)(arguments))

    return call


class Item(BaseModel):
    id: str


def message(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_call", "id": "call-1", "name": name, "args": arguments}


@pytest.fixture
def exchanging(shop: Shop) -> BaseTool:
    @tool
    def exchange_delivered_order_items(
        order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> str:
        """Exchange items."""
        return shop.exchange(order_id, item_ids, new_item_ids, payment_method_id)

    return exchange_delivered_order_items


@pytest.fixture
def reading() -> BaseTool:
    @tool
    def get_order_details(order_id: str) -> str:
        """Read an order."""
        return f"order {order_id}"

    return get_order_details


@pytest.fixture
def ready(guard: Guard, shop: Shop) -> Guard:
    prepare(guard, shop, "#1")
    confirm(guard, shop, exchange("#1"))
    return guard


def test_every_way_of_calling_is_guarded(invoke: Invoke, ready: Guard, shop: Shop, exchanging: BaseTool) -> None:
    guarded = guard_tool(exchanging, ready, adapter=shop)
    denied = invoke(guarded, exchange("#1", "gift_card_6666")["arguments"])
    assert denied.startswith("The call was denied") and "retail.payment" in denied
    assert shop.effects("#1") == 0
    assert invoke(guarded, exchange("#1")["arguments"]) == "exchanged"
    assert "retail.exchange_once" in invoke(guarded, exchange("#1")["arguments"])
    assert shop.effects("#1") == 1


def test_tool_calls_get_messages(ready: Guard, shop: Shop, exchanging: BaseTool) -> None:
    [guarded] = guard_tools([exchanging], ready, adapter=shop)
    denied = guarded.invoke(message(EXCHANGE, exchange("#1", "gift_card_6666")["arguments"]))
    assert isinstance(denied, ToolMessage) and denied.status == "error" and denied.tool_call_id == "call-1"
    assert "retail.payment" in str(denied.content)
    made = asyncio.run(guarded.ainvoke(message(EXCHANGE, exchange("#1")["arguments"])))
    assert isinstance(made, ToolMessage) and (made.status, made.content) == ("success", "exchanged")


def test_a_model_sees_the_tool_as_it_was(guard: Guard, shop: Shop, exchanging: BaseTool, reading: BaseTool) -> None:
    for one in (exchanging, reading):
        guarded = guard_tool(one, guard, adapter=shop)
        assert convert_to_openai_tool(guarded) == convert_to_openai_tool(one)
        assert guarded.args == one.args


def test_what_a_denial_does(invoke: Invoke, guard: Guard, shop: Shop, reading: BaseTool) -> None:
    for setting, error in (("raise", ToolDenied), ("end", TurnEnded)):
        guarded = guard_tool(reading, guard, adapter=shop, on_denial=setting)  # type: ignore[arg-type]
        with pytest.raises(error, match=r"retail\.identity"):
            invoke(guarded, {"order_id": "#1"})
    guarded = guard_tool(reading, guard, adapter=shop)
    assert "retail.identity" in invoke(guarded, {"order_id": "#1"})
    with pytest.raises(ToolCallDenied) as raised:  # nothing that a caller could take for a result
        guarded._run(order_id="#1", config={})
    assert "retail.identity" in failed(raised.value.execution)
    with pytest.raises(ValueError, match="on_denial"):
        guard_tool(reading, guard, adapter=shop, on_denial="ignore")  # type: ignore[arg-type]


def test_what_is_no_tool_or_guarded_already(guard: Guard, shop: Shop, reading: BaseTool, lean_engine: Any) -> None:
    for wrong in (shop.read, guard_tool(reading, guard, adapter=shop)):
        with pytest.raises(TypeError):
            guard_tool(wrong, guard, adapter=shop)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no parameter other"):
        guard_tool(reading, guard, adapter=shop, injected=["other"])
    with Guard("retail", engine=lean_engine) as bare, pytest.raises(RuntimeError, match="journal"):
        guard_tool(reading, bare, adapter=shop)


def test_a_tool_that_no_contract_names(invoke: Invoke, guard: Guard, shop: Shop) -> None:
    made: list[Any] = []

    @tool
    def wipe(call: str, guard: str, function: str) -> None:
        """Wipe."""
        made.append(call)

    guarded = guard_tool(wipe, guard, adapter=shop)
    assert "host.unknown_tool" in invoke(guarded, {"call": "x", "guard": "y", "function": "z"})
    assert not made


def test_arguments_that_do_not_fit_are_no_call(invoke: Invoke, ready: Guard, shop: Shop, exchanging: BaseTool) -> None:
    guarded = guard_tool(exchanging, ready, adapter=shop)
    with pytest.raises(ValidationError):
        invoke(guarded, {"order_id": "#1"})
    assert ready.unsettled() == []
    exchanging.handle_validation_error = True
    assert invoke(guard_tool(exchanging, ready, adapter=shop), {"order_id": "#1"}) == "Tool input validation error"


def test_the_policy_decides_what_the_schema_reads(invoke: Invoke, guard: Guard, shop: Shop) -> None:
    """Defaults and nested models are decided as JSON; a parameter that is None because nobody gave it is not there."""
    guard.record(AUTHENTICATION)
    made: list[Any] = []

    @tool
    def get_order_details(order_id: str = "#1", note: str | None = None, items: list[Item] | None = None) -> str:
        """Read."""
        made.append((order_id, note, items))
        return "read"

    guarded = guard_tool(get_order_details, guard, adapter=shop)
    assert invoke(guarded, {}) == "read" and made.pop() == ("#1", None, None)
    assert "host.arguments" in invoke(guarded, {"order_id": "#1", "note": "x"})
    assert "host.arguments" in invoke(guarded, {"items": [{"id": "x"}]})
    assert not made


def test_tools_with_a_single_text(invoke: Invoke, guard: Guard, shop: Shop, reading: BaseTool) -> None:
    guard.record(AUTHENTICATION)
    guarded = guard_tool(reading, guard, adapter=shop)
    assert invoke(guarded, "#1") == "order #1"
    simple = Tool("get_order_details", lambda text: f"order {text}", "Read an order.")
    assert "host.arguments" in invoke(guard_tool(simple, guard, adapter=shop), "#1")  # its parameter has no such name
    assert "host.arguments" in invoke(guard_tool(simple, guard, adapter=shop), {"tool_input": "#1"})

    @tool
    def get_user_details(user_id: str, note: str = "") -> str:
        """Read."""
        raise AssertionError

    assert "by name" in invoke(guard_tool(get_user_details, guard, adapter=shop), "nora_feld")


def test_what_the_host_injects(guard: Guard, shop: Shop) -> None:
    guard.record(AUTHENTICATION)
    made: list[Any] = []

    @tool
    def get_order_details(
        order_id: str, call_id: Annotated[str, InjectedToolCallId], user: Annotated[str, InjectedToolArg]
    ) -> str:
        """Read an order."""
        made.append((order_id, call_id, user))
        return "read"

    arguments = {"order_id": "#1", "user": "nora_feld", "call_id": "made up by the model"}
    guarded = guard_tool(get_order_details, guard, adapter=shop, injected=["user"])
    assert guarded.invoke(message("get_order_details", arguments)).content == "read"
    assert made == [("#1", "call-1", "nora_feld")]
    # Not declared as the host's, so it may be the model's: decided, and no contract names it.
    undeclared = guard_tool(get_order_details, guard, adapter=shop)
    assert "host.arguments" in undeclared.invoke(message("get_order_details", arguments)).content
    assert len(made) == 1


def test_tools_that_fail(invoke: Invoke, guard: Guard, shop: Shop) -> None:
    prepare(guard, shop, "#1")

    def exchange_delivered_order_items(**arguments: Any) -> str:
        raise ToolException("out of stock")

    schema = {
        "type": "object",
        "properties": {name: {} for name in exchange("#1")["arguments"]},
    }
    for handling, expected in (
        (False, None),
        (True, "out of stock\nThe call was made, but it is not known"),
        ("Sorry.", "Sorry.\nThe call was made, but it is not known"),
        (lambda error: f"<{error}>", "<out of stock>\nThe call was made, but it is not known"),
    ):
        failing = StructuredTool.from_function(
            exchange_delivered_order_items, description="Exchange.", args_schema=schema, handle_tool_error=handling
        )
        guarded = guard_tool(failing, guard, adapter=shop)
        confirm(guard, shop, exchange("#1"))
        if expected is None:
            with pytest.raises(ToolException, match="out of stock") as raised:
                invoke(guarded, exchange("#1")["arguments"])
            assert "not known" in raised.value.__notes__[0]
        else:
            assert invoke(guarded, exchange("#1")["arguments"]).startswith(expected)
        assert "protocol.outcome_unknown" in invoke(guarded, exchange("#1")["arguments"])
        assert [one.status for one in guard.reconcile(shop)] == ["failed"]


def test_asynchronous_tools(ready: Guard, shop: Shop) -> None:
    async def exchange_delivered_order_items(**arguments: Any) -> str:
        await asyncio.sleep(0)
        return shop.exchange(**arguments)

    schema = {"type": "object", "properties": {name: {} for name in exchange("#1")["arguments"]}}
    only = StructuredTool.from_function(
        coroutine=exchange_delivered_order_items, description="Exchange.", args_schema=schema
    )
    guarded = guard_tool(only, ready.asyncs(), adapter=shop)
    with pytest.raises(NotImplementedError):
        guarded.invoke(exchange("#1")["arguments"])
    assert ready.unsettled() == []
    assert asyncio.run(guarded.ainvoke(exchange("#1")["arguments"])) == "exchanged"


def test_a_cancelled_task_does_not_hide_a_thread_that_goes_on(ready: Guard, shop: Shop, exchanging: BaseTool) -> None:
    go, running = threading.Event(), threading.Event()

    def pause() -> None:
        running.set()
        go.wait(30)

    shop.hooks["before"] = pause
    guarded = guard_tool(exchanging, ready, adapter=shop)

    async def run() -> None:
        task = asyncio.create_task(guarded.ainvoke(exchange("#1")["arguments"]))
        await asyncio.to_thread(running.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        here = ready.asyncs()
        assert [one.phase for one in await here.unsettled()] == ["unknown"]
        assert await here.reconcile(shop) == []  # the thread may still do it
        go.set()
        for _ in range(500):
            if not await here.unsettled():
                break
            await asyncio.sleep(0.02)
        assert await here.unsettled() == []

    asyncio.run(run())
    assert shop.effects("#1") == 1


def test_tools_get_what_langchain_hands_them(guard: Guard, shop: Shop) -> None:
    guard.record(AUTHENTICATION)
    seen: list[Any] = []

    class Reading(BaseTool):
        name: str = "get_order_details"
        description: str = "Read an order."

        def _run(self, order_id: str, settings: RunnableConfig, run_manager: CallbackManagerForToolRun) -> str:
            seen.append((order_id, settings["configurable"], run_manager.run_id))
            return "read"

    class Listening(BaseCallbackHandler):
        def __init__(self) -> None:
            self.heard: list[tuple[str, Any]] = []

        def on_tool_start(self, serialized: Any, input_str: str, **rest: Any) -> None:
            self.heard.append(("start", serialized["name"]))

        def on_tool_end(self, output: Any, **rest: Any) -> None:
            self.heard.append(("end", output))

    listening = Listening()
    config: RunnableConfig = {"configurable": {"thread": "t"}, "callbacks": [listening]}
    guarded = guard_tool(Reading(), guard, adapter=shop)
    assert guarded.invoke({"order_id": "#1"}, config) == "read"
    assert asyncio.run(guarded.ainvoke({"order_id": "#1"}, config)) == "read"
    assert [one[:2] for one in seen] == [("#1", {"thread": "t"})] * 2
    assert listening.heard == [("start", "get_order_details"), ("end", "read")] * 2
    assert isinstance(guarded, GuardedTool)


def test_without_the_extra_there_is_a_clear_message() -> None:
    code = (
        "import sys; sys.modules['langchain_core'] = None\n"
        "import leanguard_host.integrations.openai, leanguard_host.integrations.anthropic\n"
        "try: import leanguard_host.integrations.langchain\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "pip install 'leanguard[langchain]'" in done.stdout
