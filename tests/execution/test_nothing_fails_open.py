"""Ways in which tool guards have let calls through in the wild. Here each of them is a denial, or no guard at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from relay import Link, connect
from shop import AUTHENTICATION, Shop, confirm, exchange, failed, prepare

from leanguard_host import Denied, Guard, GuardUnavailable, ToolDenied, TurnEnded
from leanguard_host.engine import Engine
from leanguard_host.integrations.openai import execute_tool_calls
from leanguard_host.lean.errors import LeanCrashed

Run = Callable[[Guard, dict[str, Any], Any, Shop], Any]


def executed(guard: Guard, call: dict[str, Any], tool: Any, shop: Shop) -> Any:
    return guard.execute(call, tool, adapter=shop)


def awaited(guard: Guard, call: dict[str, Any], tool: Any, shop: Shop) -> Any:
    return asyncio.run(guard.asyncs().execute(call, tool, adapter=shop))


def decorated(guard: Guard, call: dict[str, Any], tool: Any, shop: Shop) -> Any:
    denied = guard.tool(tool, adapter=shop, name=call["tool"])(**call["arguments"])
    assert isinstance(denied, Denied)
    return denied.execution


WAYS = pytest.mark.parametrize("run", [executed, awaited, decorated])


class Made:
    """A tool that must not be called, and remembers that it was."""

    __name__ = "made"

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def __call__(self, /, **arguments: Any) -> str:
        self.calls.append(arguments)
        return "made"


@pytest.fixture
def made() -> Made:
    return Made()


# --- a guard whose policy does not load ---


class Answering(Link):
    """Lean whose list of policies is another one, or does not come."""

    def __init__(self, address: str, answer: Any) -> None:
        super().__init__(address)
        self.answer = answer

    def guard(self, request: Any, timeout: float) -> dict[str, Any]:
        if request["op"] == "policies":
            if isinstance(self.answer, Exception):
                raise self.answer
            return dict(self.answer)
        return super().guard(request, timeout)


@pytest.mark.parametrize(
    "answer",
    [
        LeanCrashed("the policy's initializer failed"),
        {"ok": True, "policies": []},
        {"ok": True, "policies": [{"title": "no name"}]},
        {"ok": True},
        {"ok": False, "error": {"path": "$", "message": "no policies"}},
        {},
    ],
    ids=["crash", "none", "nameless", "no list", "refused", "nothing"],
)
def test_without_its_policy_there_is_no_guard(
    answer: Any, address: str, journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*arguments: Any, **options: Any) -> Engine:
        return Engine(Answering(address, answer), toolchain="relayed Lean", keys={})

    monkeypatch.setattr(Engine, "start", start)
    with pytest.raises(GuardUnavailable):
        Guard("retail", journal)


def test_a_policy_that_lean_does_not_find_any_more_denies(address: str, journal: str, shop: Shop, made: Made) -> None:
    """The policy was there when the guard started, and Lean, started again, has another set."""
    engine = connect(address)
    with Guard("retail", journal, engine=engine, timeout=20.0) as guard:
        prepare(guard, shop, "#1")
        confirm(guard, shop, exchange("#1"))

        class Another(Link):
            def guard(self, request: Any, timeout: float) -> dict[str, Any]:
                changed = {**request, "policy": "retail_v2"} if "policy" in request else request
                return super().guard(changed, timeout)

        engine.process = Another(address)
        done = guard.execute(exchange("#1"), made, adapter=shop)
        assert done.status == "denied" and not made.calls


# --- a policy switched off by a typo in its name ---


@pytest.mark.parametrize("name", ["retial", "Retail", "retail ", "", "RETAIL", "retail\n", "off", "none", "*"])
def test_a_typo_in_the_policys_name_switches_nothing_off(name: str, lean_engine: Any, journal: str) -> None:
    with pytest.raises(GuardUnavailable, match="There is no policy named"):
        Guard(name, journal, engine=lean_engine)


def test_a_typo_in_a_setting_switches_nothing_off(guard: Guard, shop: Shop, made: Made) -> None:
    message = {"role": "assistant", "tool_calls": []}
    for setting in ("", "Raise", "ignore", "allow", None):
        with pytest.raises(ValueError, match="on_denial"):
            guard.tool(made, adapter=shop, on_denial=setting)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="on_denial"):
            execute_tool_calls(guard, message, {}, adapter=shop, on_denial=setting)  # type: ignore[arg-type]


# --- a tool that no contract names ---


@WAYS
@pytest.mark.parametrize("name", ["delete_everything", "get_order_detials", "Get_Order_Details", "get_order_details "])
def test_a_tool_that_no_contract_names_is_denied(run: Run, name: str, guard: Guard, shop: Shop, made: Made) -> None:
    prepare(guard, shop, "#1")
    done = run(guard, {"tool": name, "arguments": {"order_id": "#1"}}, made, shop)
    assert failed(done) == {"host.unknown_tool"} and done.status == "denied" and not made.calls


def test_a_lambda_has_no_name_that_a_contract_could_name(guard: Guard, shop: Shop) -> None:
    denied = guard.tool(lambda order_id: order_id, adapter=shop)("#1")
    assert isinstance(denied, Denied) and failed(denied.execution) == {"host.unknown_tool"}


# --- a tool registered after the guard started ---


def test_a_tool_registered_later_is_guarded_or_unknown(guard: Guard, shop: Shop, made: Made) -> None:
    """A guard knows contracts, not tools, and what is offered is looked up for each call."""
    guard.record(AUTHENTICATION)
    offered: dict[str, Any] = {}

    def ask(name: str, arguments: dict[str, Any]) -> str:
        function = {"name": name, "arguments": json.dumps(arguments)}
        message = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
        [answer] = execute_tool_calls(guard, message, offered, adapter=shop)
        return str(answer["content"])

    assert "no tool named" in ask("wipe", {})
    offered["wipe"] = offered["exchange_delivered_order_items"] = made
    assert "host.unknown_tool" in ask("wipe", {})
    assert "retail.status_observed" in ask("exchange_delivered_order_items", exchange("#1")["arguments"])
    assert not made.calls
    offered["get_order_details"] = made
    assert ask("get_order_details", {"order_id": "#1"}) == "made" and made.calls == [{"order_id": "#1"}]


# --- a tool whose own parameter is called like one of ours ---

NAMES = [
    *("args", "call", "guard", "self", "cls", "kwargs", "function", "func", "tool", "adapter", "timeout", "name"),
    *("session", "arguments", "named", "given", "proposed", "context", "snapshot", "value", "callable", "policy"),
]


@WAYS
def test_parameters_may_have_any_name_and_get_nothing_past_the_guard(
    run: Run, guard: Guard, shop: Shop, made: Made
) -> None:
    guard.record(AUTHENTICATION)
    for name in NAMES:
        # Beside what the contract knows: what is not in it is denied, whatever it is called.
        arguments = {"order_id": "#1", name: "x"}
        done = run(guard, {"tool": "get_order_details", "arguments": arguments}, made, shop)
        assert failed(done) == {"host.arguments"}, name
        done = run(guard, {"tool": "wipe", "arguments": {name: "x"}}, made, shop)
        assert failed(done) == {"host.unknown_tool"}, name
    assert not made.calls


def test_such_parameters_reach_an_admitted_tool(address: str, journal: str, shop: Shop, made: Made) -> None:
    """With a Lean that admits them: the real one has no such contract."""

    class Renaming(Link):
        """Decides as if the parameter were called `order_id`."""

        def guard(self, request: Any, timeout: float) -> dict[str, Any]:
            text = json.dumps(request)
            for name in NAMES:
                text = text.replace(f'"arguments": {{"{name}": "#1"}}', '"arguments": {"order_id": "#1"}')
            return super().guard(json.loads(text), timeout)

    engine = connect(address)
    engine.process = Renaming(address)
    with Guard("retail", journal, engine=engine, timeout=20.0) as guard:
        guard.record(AUTHENTICATION)

        class Reads(Shop):
            def snapshot(self, call: Any) -> Any:
                return super().snapshot(call.model_copy(update={"arguments": {"order_id": "#1"}}))

        there = Reads(shop.ledger)
        for name in NAMES:
            call = {"tool": "get_order_details", "arguments": {name: "#1"}}
            assert guard.execute(call, made, adapter=there).value == "made", name
            assert guard.execute(call, made, adapter=there, timeout=20).value == "made", name
            assert asyncio.run(guard.asyncs().execute(call, made, adapter=there)).value == "made", name

            async def coroutine(**arguments: Any) -> str:
                return made(**arguments)

            done = asyncio.run(guard.asyncs().execute(call, coroutine, adapter=there, timeout=20))
            assert done.value == "made", name
            assert guard.tool(made, adapter=there, name="get_order_details")(**{name: "#1"}) == "made", name
            assert made.calls == [{name: "#1"}] * 5
            made.calls.clear()


# --- a wrapper that swallows the denial ---


@pytest.mark.parametrize("setting", ["feedback", "raise", "end"])
def test_a_swallowed_denial_is_still_a_call_that_was_not_made(
    setting: Any, guard: Guard, shop: Shop, made: Made
) -> None:
    guarded = guard.tool(made, adapter=shop, name="get_order_details", on_denial=setting)

    def swallowing(order_id: str) -> Any:
        """As agent frameworks do."""
        try:
            return guarded(order_id=order_id)
        except Exception as error:
            return f"Tool error: {error}"

    with pytest.raises(TurnEnded) if setting == "end" else contextlib.nullcontext():
        found = swallowing("#1")
        assert "retail.identity" in str(found)
        assert isinstance(found, Denied) == (setting == "feedback")
    assert not made.calls
    # Nor does it leave anything that would let the next one pass.
    with contextlib.suppress(TurnEnded, ToolDenied):
        guarded(order_id="#1")
    assert not made.calls


# --- a result that looks like an error, or like a denial, but is none ---


def lookalikes(guard: Guard, shop: Shop) -> list[Any]:
    denied = guard.execute({"tool": "wipe", "arguments": {}}, lambda: None, adapter=shop)
    return [
        "Error: permission denied",
        denied.feedback(),
        {"error": "denied", "verdict": "deny"},
        {"isError": True},
        ValueError("returned, not raised"),
        Denied(denied),
        None,
        False,
    ]


def test_a_result_is_a_result_whatever_it_looks_like(guard: Guard, shop: Shop, journal: str) -> None:
    """The call was made, so it is on record as made: a retry is decided as a second call."""
    prepare(guard, shop, "#1")
    for order, value in enumerate(lookalikes(guard, shop), start=100):
        call = exchange(f"#{order}")
        prepare(guard, shop, f"#{order}")
        confirm(guard, shop, call)
        runs: list[int] = []

        def tool(value: Any = value, runs: list[int] = runs, **arguments: Any) -> Any:
            runs.append(1)
            return value

        done = guard.execute(call, tool, adapter=shop)
        assert done.status == "executed" and done.value is value
        again = guard.execute(call, tool, adapter=shop)
        assert again.status == "denied" and "retail.exchange_once" in failed(again)
        assert runs == [1]


def test_an_exception_that_looks_like_a_denial_is_none(guard: Guard, shop: Shop) -> None:
    """A tool that raises our own exceptions was called all the same: nobody knows what it did."""
    prepare(guard, shop, "#1")
    confirm(guard, shop, exchange("#1"))
    denied = guard.execute({"tool": "wipe", "arguments": {}}, lambda: None, adapter=shop)

    def raises(**arguments: Any) -> None:
        raise ToolDenied(denied)

    assert guard.execute(exchange("#1"), raises, adapter=shop).status == "unknown"
    again = guard.execute(exchange("#1"), raises, adapter=shop)
    assert "protocol.outcome_unknown" in failed(again)
