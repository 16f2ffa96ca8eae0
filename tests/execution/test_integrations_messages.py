"""OpenAI-style and Anthropic messages through a guard. On real Lean; the libraries' own types check what comes out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter
from shop import AUTHENTICATION, Shop, confirm, exchange, prepare

from leanguard_host import AsyncGuard, DefiniteFailure, Guard, ToolDenied, TurnEnded
from leanguard_host.integrations import anthropic, openai

READ = {"tool": "get_order_details", "arguments": {"order_id": "#1"}}
EXCHANGE = "exchange_delivered_order_items"

Calls = list[tuple[Any, Any, Any]]
"""Id, tool, arguments (JSON where the format wants it)."""


def _written(arguments: Any) -> Any:
    return json.dumps(arguments) if isinstance(arguments, dict) else arguments


class Chat:
    """Chat completions."""

    sync, coroutine = staticmethod(openai.execute_tool_calls), staticmethod(openai.aexecute_tool_calls)

    @staticmethod
    def message(calls: Calls) -> Any:
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": id_, "type": "function", "function": {"name": name, "arguments": _written(arguments)}}
                for id_, name, arguments in calls
            ],
        }

    @staticmethod
    def answers(messages: list[Any]) -> list[tuple[str, str]]:
        from openai.types.chat import ChatCompletionMessageParam

        TypeAdapter(list[ChatCompletionMessageParam]).validate_python(messages)
        assert all(message["role"] == "tool" for message in messages)
        return [(message["tool_call_id"], message["content"]) for message in messages]


class Responses:
    """The Responses API."""

    sync, coroutine = staticmethod(openai.execute_function_calls), staticmethod(openai.aexecute_function_calls)

    @staticmethod
    def message(calls: Calls) -> Any:
        said = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": []}
        return [
            said,
            *(
                {"type": "function_call", "call_id": id_, "name": name, "arguments": _written(arguments)}
                for id_, name, arguments in calls
            ),
        ]

    @staticmethod
    def answers(messages: list[Any]) -> list[tuple[str, str]]:
        from openai.types.responses import ResponseInputParam

        TypeAdapter(ResponseInputParam).validate_python(messages)
        assert all(message["type"] == "function_call_output" for message in messages)
        return [(message["call_id"], message["output"]) for message in messages]


class Anthropic:
    """Anthropic tool use."""

    sync, coroutine = staticmethod(anthropic.execute_tool_uses), staticmethod(anthropic.aexecute_tool_uses)

    @staticmethod
    def message(calls: Calls) -> Any:
        uses = [{"type": "tool_use", "id": id_, "name": name, "input": arguments} for id_, name, arguments in calls]
        return {"role": "assistant", "content": [{"type": "text", "text": "Just a moment."}, *uses]}

    @staticmethod
    def answers(messages: list[Any]) -> list[tuple[str, str]]:
        from anthropic.types import MessageParam

        TypeAdapter(list[MessageParam]).validate_python(messages)
        if not messages:
            return []
        [message] = messages
        assert message["role"] == "user"
        for block in message["content"]:
            assert block["type"] == "tool_result"
            assert block["is_error"] == any(
                word in block["content"] for word in ("denied", "failed", "not made", "known")
            )
        return [(block["tool_use_id"], block["content"]) for block in message["content"]]


FORMATS = [Chat, Responses, Anthropic]


@pytest.fixture(params=FORMATS, ids=["chat", "responses", "anthropic"])
def form(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def answer(request: pytest.FixtureRequest, form: Any, guard: Guard, shop: Shop) -> Callable[..., list[tuple[str, str]]]:
    """Runs the calls and gives id and text of each answer."""

    def run(calls: Calls, tools: Any, **options: Any) -> list[tuple[str, str]]:
        message = form.message(calls)
        if request.param:
            done = asyncio.run(form.coroutine(guard, message, tools, adapter=shop, **options))
        else:
            done = form.sync(guard, message, tools, adapter=shop, **options)
        answers: list[tuple[str, str]] = form.answers(done)
        return answers

    return run


@pytest.fixture
def tools(shop: Shop) -> dict[str, Any]:
    return {"get_order_details": shop.read, EXCHANGE: shop.exchange}


def test_each_call_is_decided_by_itself(answer: Any, guard: Guard, shop: Shop, tools: Any) -> None:
    guard.record(AUTHENTICATION)
    prepare(guard, shop, "#1")
    confirm(guard, shop, exchange("#1"))
    answers = answer(
        [
            ("a", "get_order_details", {"order_id": "#1"}),
            ("b", EXCHANGE, exchange("#1", "gift_card_6666")["arguments"]),
            ("c", EXCHANGE, exchange("#1")["arguments"]),
            ("d", EXCHANGE, exchange("#1")["arguments"]),
        ],
        tools,
    )
    assert [id_ for id_, _ in answers] == ["a", "b", "c", "d"]
    texts = dict(answers)
    assert texts["a"] == "an order" and texts["c"] == "exchanged"
    assert "denied" in texts["b"] and "retail.payment" in texts["b"]
    assert "denied" in texts["d"] and "retail.exchange_once" in texts["d"]
    assert shop.effects("#1") == 1


def test_no_calls(answer: Any, tools: Any) -> None:
    assert answer([], tools) == []


def test_what_can_not_be_read_is_denied_and_not_made(answer: Any, guard: Guard, form: Any) -> None:
    guard.record(AUTHENTICATION)
    made: list[Any] = []
    offered = {"get_order_details": lambda **arguments: made.append(arguments)}
    good = {"order_id": "#1"}
    bad = [
        ("1", "no_such_tool", good, "There is no tool named 'no_such_tool'; there are: get_order_details"),
        ("", "get_order_details", good, "no id"),
        (None, "get_order_details", good, "no id"),
        (7, "get_order_details", good, "no id"),
        ("2", "", good, "names no tool"),
        ("3", None, good, "names no tool"),
        ("same", "get_order_details", good, "2 calls have the id 'same'"),
        ("same", "get_order_details", good, "2 calls have the id 'same'"),
        ("4", "get_order_details", None, "The arguments must be"),
        ("5", "get_order_details", [good], "The arguments must be"),
    ]
    if form is not Anthropic:
        bad += [
            ("6", "get_order_details", '{"order_id": "#1"', "expected JSON"),
            ("7", "get_order_details", "", "expected JSON, found nothing"),
            ("8", "get_order_details", '{"order_id": "#2", "order_id": "#1"}', "a duplicate key"),
            ("9", "get_order_details", '["#1"]', "The arguments must be an object"),
            ("10", "get_order_details", '{"order_id": NaN}', "expected a number"),
            ("11", "get_order_details", '{"order_id": "#1"} {}', "expected JSON"),
        ]
    answers = answer([one[:3] for one in bad], offered)
    assert [id_ for id_, _ in answers] == [one[0] if isinstance(one[0], str) else "" for one in bad]
    for (_, text), (_, _, _, reason) in zip(answers, bad, strict=True):
        assert text.startswith("The call was denied and not made.") and reason in text, text
    assert not made
    with pytest.raises(ToolDenied, match="no id"):
        answer([(None, "get_order_details", good)], offered, on_denial="raise")


def test_a_denial_can_raise_or_end_the_turn(answer: Any, guard: Guard, shop: Shop, tools: Any, form: Any) -> None:
    guard.record(AUTHENTICATION)
    calls = [
        ("a", "get_order_details", {"order_id": "#1"}),
        ("b", EXCHANGE, exchange("#1", "gift_card_6666")["arguments"]),
        ("c", "get_order_details", {"order_id": "#1"}),
    ]
    for setting, error in (("raise", ToolDenied), ("end", TurnEnded)):
        with pytest.raises(error, match=r"retail\.payment") as raised:
            answer(calls, tools, on_denial=setting)
        # The conversation can go on: each call has its answer.
        told = dict(form.answers(raised.value.messages))
        assert told["a"] == "an order" and "retail.payment" in told["b"]
        assert told["c"].startswith("The call was not made")
    with pytest.raises(ValueError, match="on_denial"):
        answer(calls, tools, on_denial="ignore")
    assert shop.effects("#1") == 0


def test_tools_that_fail(answer: Any, guard: Guard, shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    def fails(**arguments: Any) -> None:
        raise DefiniteFailure("the warehouse is closed")

    def lost(**arguments: Any) -> None:
        raise ConnectionError("password=hunter2")

    prepare(guard, shop, "#1")
    call = exchange("#1")["arguments"]
    for tool, expected in ((fails, "no effect.\nthe warehouse is closed"), (lost, "not known whether it went through")):
        confirm(guard, shop, exchange("#1"))
        [(_, text)] = answer([("a", EXCHANGE, call)], {EXCHANGE: tool})
        assert expected in text and "hunter2" not in text
    assert "hunter2" in caplog.text  # the host has to know
    assert [one.phase for one in guard.unsettled()] == ["unknown"]


def test_results_become_texts(answer: Any, guard: Guard) -> None:
    guard.record(AUTHENTICATION)
    for value, text in (({"a": ["ä", None]}, '{"a": ["ä", null]}'), (None, "null"), ({1, 2}, "[1, 2]"), ("", "")):
        offered = {"get_order_details": lambda order_id, value=value: value}
        assert answer([("a", "get_order_details", {"order_id": "#1"})], offered) == [("a", text)]


def test_the_libraries_objects_are_taken(guard: Guard, shop: Shop, tools: Any) -> None:
    from anthropic.types import Message
    from openai.types.chat import ChatCompletionMessage
    from openai.types.responses import ResponseFunctionToolCall

    guard.record(AUTHENTICATION)
    calls: Calls = [("a", "get_order_details", {"order_id": "#1"})]
    chat = ChatCompletionMessage.model_validate(Chat.message(calls))
    assert Chat.answers(openai.execute_tool_calls(guard, chat, tools, adapter=shop)) == [("a", "an order")]
    item = ResponseFunctionToolCall.model_validate(Responses.message(calls)[1])
    assert Responses.answers(openai.execute_function_calls(guard, [item], tools, adapter=shop)) == [("a", "an order")]
    fields = {"id": "m", "type": "message", "model": "x", "usage": {"input_tokens": 1, "output_tokens": 1}}
    message = Message.model_validate({**Anthropic.message(calls), **fields, "stop_reason": "tool_use"})
    assert Anthropic.answers(anthropic.execute_tool_uses(guard, message, tools, adapter=shop)) == [("a", "an order")]


def test_messages_that_are_cut_off_or_nobodys(guard: Guard, shop: Shop, tools: Any) -> None:
    guard.record(AUTHENTICATION)
    calls: Calls = [(id_, "get_order_details", {"order_id": "#1"}) for id_ in ("a", "b")]
    cut = {**Anthropic.message(calls), "stop_reason": "max_tokens"}
    answers = Anthropic.answers(anthropic.execute_tool_uses(guard, cut, tools, adapter=shop))
    assert answers[0] == ("a", "an order") and "cut off" in answers[1][1]
    incomplete = [{**item, "status": "incomplete"} for item in Responses.message(calls)]
    answers = Responses.answers(openai.execute_function_calls(guard, incomplete, tools, adapter=shop))
    assert all("not complete" in text for _, text in answers) and len(answers) == 2
    custom = [{"type": "custom_tool_call", "call_id": "a", "name": "x", "input": "y"}]
    [item] = openai.execute_function_calls(guard, custom, tools, adapter=shop)
    assert item["type"] == "custom_tool_call_output" and "Only calls of functions" in item["output"]
    other = {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "x"}}, {"id": "b"}]}
    texts = dict(Chat.answers(openai.execute_tool_calls(guard, other, tools, adapter=shop)))
    assert "Only calls of functions" in texts["a"] and "can't be read" in texts["b"]
    for function, message in (
        (openai.execute_tool_calls, {**Chat.message(calls), "role": "user"}),
        (openai.execute_tool_calls, {**Chat.message(calls), "function_call": {"name": "x"}}),
        (anthropic.execute_tool_uses, {**Anthropic.message(calls), "role": "user"}),
    ):
        with pytest.raises(ValueError, match=r"role|function_call"):
            function(guard, message, tools, adapter=shop)
    for message in ("text", None, {"role": "assistant", "tool_calls": {"id": "a"}}):
        with pytest.raises(TypeError):
            openai.execute_tool_calls(guard, message, tools, adapter=shop)


def test_coroutine_functions_are_awaited_and_never_taken_for_done(guard: Guard, shop: Shop) -> None:
    made: list[str] = []

    async def get_order_details(order_id: str) -> str:
        await asyncio.sleep(0)
        made.append(order_id)
        return "awaited"

    class Hidden:
        async def __call__(self, order_id: str) -> str:
            return await get_order_details(order_id)

    guard.record(AUTHENTICATION)
    message = Chat.message([("a", "get_order_details", {"order_id": "#1"})])
    with pytest.raises(TypeError, match="coroutine"):
        openai.execute_tool_calls(guard, message, {"get_order_details": get_order_details}, adapter=shop)
    with pytest.raises(TypeError, match="AsyncGuard"):
        guard.execute(READ, get_order_details, adapter=shop)
    [(_, text)] = Chat.answers(openai.execute_tool_calls(guard, message, {"get_order_details": Hidden()}, adapter=shop))
    assert "failed" in text and not made

    async def run() -> None:
        for tool in (get_order_details, Hidden()):
            done = await openai.aexecute_tool_calls(
                AsyncGuard(guard), message, {"get_order_details": tool}, adapter=shop
            )
            assert Chat.answers(done) == [("a", "awaited")]

    asyncio.run(run())
    assert made == ["#1", "#1"]


def test_a_guard_without_a_journal(lean_engine: Any, shop: Shop, tools: Any) -> None:
    with Guard("retail", engine=lean_engine) as guard, pytest.raises(RuntimeError, match="journal"):
        openai.execute_tool_calls(guard, Chat.message([("a", "b", {})]), tools, adapter=shop)
