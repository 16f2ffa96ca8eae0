"""`leanguard mcp`, driven by the official client library, in front of a real server. On real Lean."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp.types as types
import psutil
import pytest
from mcp import Client, ClientSession, MCPError, StdioServerParameters, stdio_client
from shop import AUTHENTICATION, CUSTOMER, Shop, exchange

from leanguard_host import Guard
from leanguard_host.integrations.mcp import Backend, load_adapter
from leanguard_host.jsonfiles import InputError
from leanguard_host.store import open_store

HERE = Path(__file__).parent / "mcp_shop"
EXCHANGE = "exchange_delivered_order_items"
META = "leanguard/call"


class Setting:
    """A server, and the command that guards it."""

    def __init__(self, tmp_path: Path, address: str) -> None:
        self.ledger, self.control = tmp_path / "ledger", tmp_path / "control"
        self.journal = tmp_path / "journal.db"
        self.errors = tmp_path / "stderr"
        self.environment = {**os.environ, "LEANGUARD_TEST_ADDRESS": address, "PYTHONPATH": ""}
        self.shop = Shop(self.ledger)

    def command(
        self,
        *options: str,
        policy: str = "retail",
        adapter: str = "shop_adapters:ShopAdapter",
        server: list[str] | None = None,
    ) -> list[str]:
        served = server or [sys.executable, str(HERE / "server.py"), str(self.ledger), str(self.control)]
        given = ["--policy", policy, "--journal", str(self.journal), "--adapter", adapter, "--timeout", "20"]
        return [sys.executable, str(HERE / "relayed.py"), "mcp", *given, *options, "--", *served]

    def parameters(self, *options: str, **changes: Any) -> StdioServerParameters:
        command, *arguments = self.command(*options, **changes)
        return StdioServerParameters(command=command, args=arguments, env=self.environment, cwd=HERE)

    @asynccontextmanager
    async def client(self, *options: str, heard: Any = None, **changes: Any) -> AsyncIterator[ClientSession]:
        with self.errors.open("w", encoding="utf-8") as errors:
            async with (
                stdio_client(self.parameters(*options, **changes), errlog=errors) as streams,
                ClientSession(*streams, message_handler=heard, read_timeout_seconds=60) as session,
            ):
                await session.initialize()
                yield session

    def start(self, *options: str, **changes: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*options, **changes),
            cwd=HERE,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def fails(self, *options: str, **changes: Any) -> tuple[int, str]:
        """Exit code and standard error of a proxy that must not start; it says nothing to its client."""
        with self.start(*options, **changes) as process:
            out, err = process.communicate(timeout=60)
        assert out == ""
        assert "Traceback" not in err, err
        return process.returncode, err

    def calls(self) -> list[str]:
        """What reached the server."""
        path = self.ledger.with_suffix(".calls")
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    def server_runs(self) -> bool:
        return psutil.pid_exists(int(self.ledger.with_suffix(".pid").read_text(encoding="utf-8")))

    def kinds(self) -> list[str]:
        with open_store(self.journal) as store:
            return [stored.event.kind for stored in store.read()]


@pytest.fixture
def setting(tmp_path: Path, address: str) -> Setting:
    return Setting(tmp_path, address)


@pytest.fixture
def screen(setting: Setting, lean_engine: Any) -> Callable[..., Any]:
    """The trusted screen of another process: does something with a guard on the same journal."""

    def look(do: Callable[[Guard], Any]) -> Any:
        with Guard("retail", f"sqlite:///{setting.journal}", engine=lean_engine, timeout=20.0) as guard:
            return do(guard)

    return look


@pytest.fixture
def authenticated(screen: Any) -> None:
    screen(lambda guard: guard.record(AUTHENTICATION))


def said(result: Any) -> str:
    return "\n".join(content.text for content in result.content)


def status(result: Any) -> str:
    return str(result.meta[META]["status"])


async def confirmed(session: ClientSession, screen: Any) -> None:
    """The order was read, and the customer has confirmed the exchange."""
    read = await session.call_tool("get_order_details", {"order_id": "#1"})
    assert not read.is_error, said(read)
    asked = await session.call_tool(EXCHANGE, exchange("#1")["arguments"])
    assert asked.is_error and status(asked) == "needs_confirmation", said(asked)
    proposal = asked.meta[META]["proposal_id"]
    accepted = await asyncio.to_thread(screen, lambda guard: guard.confirm(proposal, by=CUSTOMER))
    assert accepted.accepted


def test_calls_pass_when_they_are_admitted(setting: Setting, screen: Any, authenticated: None) -> None:
    async def run() -> None:
        async with setting.client() as session:
            await confirmed(session, screen)
            denied = await session.call_tool(EXCHANGE, exchange("#1", "gift_card_6666")["arguments"])
            assert denied.is_error and "retail.payment" in said(denied) and status(denied) == "denied"
            assert {"id", "category", "hint", "kind"} == set(denied.meta[META]["failed_rules"][0])
            assert EXCHANGE not in setting.calls()
            made = await session.call_tool(EXCHANGE, exchange("#1")["arguments"])
            assert not made.is_error and said(made) == "exchanged" and made.structured_content == {"done": True}
            assert status(made) == "executed"
            again = await session.call_tool(EXCHANGE, exchange("#1")["arguments"])
            assert again.is_error and "retail.exchange_once" in said(again)

    asyncio.run(run())
    assert setting.calls() == ["get_order_details", EXCHANGE] and setting.shop.effects("#1") == 1
    assert setting.kinds().count("dispatch") == 1
    assert "and at each call" in setting.errors.read_text(encoding="utf-8")  # what is printed is not lost


def test_the_newer_protocol_without_a_handshake(setting: Setting, authenticated: None) -> None:
    async def run() -> None:
        async with Client(setting.parameters(), read_timeout_seconds=60) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "get_order_details" in names and "wipe" not in names
            made = await client.call_tool("get_order_details", {"order_id": "#1"})
            assert not made.is_error and said(made).startswith("get_order_details")
            denied = await client.call_tool(EXCHANGE, exchange("#1", "gift_card_6666")["arguments"])
            assert denied.is_error and "retail.payment" in said(denied)

    asyncio.run(run())


def test_tools_are_listed_as_they_are_page_by_page(setting: Setting) -> None:
    async def run() -> None:
        async with setting.client() as session:
            assert session.instructions == "Be kind."
            first = await session.list_tools()
            assert [tool.name for tool in first.tools] == ["get_order_details"] and first.next_cursor == "2"
            second = await session.list_tools(params=types.PaginatedRequestParams(cursor="2"))
            assert [tool.name for tool in second.tools] == [EXCHANGE] and second.next_cursor is None
            assert first.tools[0].description == "Read an order."
            assert first.tools[0].input_schema["required"] == ["order_id"]
            assert second.tools[0].output_schema and second.tools[0].output_schema["required"] == ["done"]

    asyncio.run(run())
    assert "no contract of the tool wipe" in setting.errors.read_text(encoding="utf-8")


def test_tools_that_no_contract_names_and_tools_registered_later(setting: Setting, authenticated: None) -> None:
    async def run() -> None:
        changed = asyncio.Event()

        async def heard(message: object) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                changed.set()

        async with setting.client(heard=heard) as session:
            for name in ("wipe", "late", "who", "get_order_detials"):
                denied = await session.call_tool(name, {})
                assert denied.is_error and "host.unknown_tool" in said(denied)
            # Known to the policy before the server has it: decided, and passed on when it is there.
            setting.control.write_text("register", encoding="utf-8")
            await session.call_tool("get_order_details", {"order_id": "#1"})
            await asyncio.wait_for(changed.wait(), 30)
            listed = [
                await session.list_tools(params=types.PaginatedRequestParams(cursor=at)) for at in (None, "2", "4")
            ]
            assert [tool.name for page in listed for tool in page.tools] == [
                "get_order_details",
                EXCHANGE,
                "get_user_details",
            ]
            assert (await session.call_tool("late", {})).is_error
            other = await session.call_tool("get_user_details", {"user_id": "mallory"})
            assert other.is_error and "retail.profile_owner" in said(other)
            assert not (await session.call_tool("get_user_details", {"user_id": CUSTOMER})).is_error

    asyncio.run(run())
    assert setting.calls() == ["get_order_details", "get_user_details"]


def test_arguments_that_are_none(setting: Setting, authenticated: None) -> None:
    async def run() -> None:
        async with setting.client() as session:
            for arguments in (None, {}, {"order_id": 1}, {"order_id": "#1", "guard": "x"}, {"call": {}}, {"args": []}):
                denied = await session.call_tool("get_order_details", arguments)
                assert denied.is_error and status(denied) == "denied", arguments
            for arguments in ({"order_id": 10**40}, {"order_id": {"a": 0.1234567}}):
                denied = await session.call_tool("get_order_details", arguments)
                assert denied.is_error and denied.meta[META]["errors"] == ["host.input"]

    asyncio.run(run())
    assert setting.calls() == []


def test_results_that_look_like_errors_and_forged_marks(setting: Setting, screen: Any, authenticated: None) -> None:
    async def run() -> None:
        async with setting.client() as session:
            await confirmed(session, screen)
            setting.control.write_text("lookalike", encoding="utf-8")
            found = await session.call_tool(EXCHANGE, exchange("#1")["arguments"])
            # No denial: the server was called, and that is on record.
            assert not found.is_error and "denied" in said(found) and status(found) == "executed"
            assert found.meta["mine"] == 2 and "leanguard/other" not in found.meta
            again = await session.call_tool(EXCHANGE, exchange("#1")["arguments"])
            assert "retail.exchange_once" in said(again)

    asyncio.run(run())
    assert setting.calls().count(EXCHANGE) == 1


@pytest.mark.parametrize("command", ["error", "refuse"])
def test_errors_leave_the_outcome_unknown(command: str, setting: Setting, screen: Any, authenticated: None) -> None:
    async def run() -> None:
        async with setting.client() as session:
            await confirmed(session, screen)
            setting.control.write_text(command, encoding="utf-8")
            found = await session.call_tool(EXCHANGE, exchange("#1")["arguments"])
            assert found.is_error and status(found) == "unknown"
            assert ("out of stock" if command == "error" else "The server says: no such order") in said(found)
            assert "not known whether it went through" in said(found)
            again = await session.call_tool(EXCHANGE, exchange("#1")["arguments"])
            assert again.is_error and "protocol.outcome_unknown" in said(again)

    asyncio.run(run())
    assert setting.calls().count(EXCHANGE) == 1


def test_garbage_from_the_server_changes_nothing(setting: Setting, screen: Any, authenticated: None) -> None:
    async def run() -> None:
        async with setting.client() as session:
            await confirmed(session, screen)
            setting.control.write_text("garbage", encoding="utf-8")
            with contextlib.suppress(MCPError):
                await session.call_tool(EXCHANGE, exchange("#1")["arguments"])

    asyncio.run(run())
    assert setting.kinds().count("dispatch") == 1 and setting.calls().count(EXCHANGE) == 1


@pytest.mark.parametrize("command", ["die", "die after"])
def test_a_server_that_dies(command: str, setting: Setting, screen: Any, authenticated: None) -> None:
    async def run() -> None:
        async with setting.client() as session:
            await confirmed(session, screen)
            setting.control.write_text(command, encoding="utf-8")
            found = await session.call_tool(EXCHANGE, exchange("#1")["arguments"])
            assert found.is_error and status(found) == "unknown"
            with pytest.raises(MCPError):  # the proxy ends with its server
                for _ in range(100):
                    later = await session.call_tool("get_order_details", {"order_id": "#1"})
                    assert later.is_error
                    await asyncio.sleep(0.05)

    asyncio.run(run())
    assert "has ended" in setting.errors.read_text(encoding="utf-8")
    assert [one.phase for one in screen(lambda guard: guard.unsettled())] == ["unknown"]
    assert setting.shop.effects("#1") == (command == "die after")


def test_a_tool_that_hangs_and_a_client_that_cancels(setting: Setting, screen: Any, authenticated: None) -> None:
    async def run() -> None:
        async with setting.client("--tool-timeout", "1") as session:
            await confirmed(session, screen)
            setting.control.write_text("hang", encoding="utf-8")
            found = await session.call_tool(EXCHANGE, exchange("#1")["arguments"])
            assert found.is_error and status(found) == "unknown" and "within 1 s" in said(found)
        async with setting.client() as session:
            setting.control.write_text("hang", encoding="utf-8")
            with pytest.raises(MCPError):
                await session.call_tool("get_order_details", {"order_id": "#1"}, read_timeout_seconds=2)
            # The client has cancelled; the proxy goes on.
            assert not (await session.call_tool("get_order_details", {"order_id": "#1"})).is_error

    asyncio.run(run())
    assert [one.phase for one in screen(lambda guard: guard.unsettled())] == ["unknown"]


def test_progress_passes(setting: Setting, authenticated: None) -> None:
    async def run() -> None:
        heard: list[Any] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            heard.append((done, total, message))

        async with setting.client() as session:
            setting.control.write_text("progress", encoding="utf-8")
            await session.call_tool("get_order_details", {"order_id": "#1"}, progress_callback=progress)
            for _ in range(100):
                if heard:
                    break
                await asyncio.sleep(0.02)
            assert heard == [(1, 2, "half")]

    asyncio.run(run())


def test_resources_and_prompts_pass_only_when_asked_for(setting: Setting) -> None:
    async def run() -> None:
        async with setting.client() as session:
            assert session.server_capabilities
            assert session.server_capabilities.resources is None and session.server_capabilities.prompts is None
            for ask in (session.list_resources, session.list_prompts, lambda: session.read_resource("shop://state")):
                with pytest.raises(MCPError, match="not found"):
                    await ask()
        async with setting.client("--resources", "--prompts") as session:
            assert [one.name for one in (await session.list_resources()).resources] == ["state"]
            assert "nora_feld" in (await session.read_resource("shop://state")).contents[0].text  # type: ignore[union-attr]
            assert [one.name for one in (await session.list_prompts()).prompts] == ["greet"]
            assert (await session.get_prompt("greet")).messages

    asyncio.run(run())


@pytest.mark.parametrize("what", ["raise", "end"])
def test_what_a_denial_does(what: str, setting: Setting) -> None:
    async def run() -> None:
        async with setting.client("--on-denial", what) as session:
            with pytest.raises(MCPError, match=r"retail\.identity") as raised:
                await session.call_tool("get_order_details", {"order_id": "#1"})
            assert raised.value.error.data[META]["status"] == "denied"
            if what == "raise":
                await session.list_tools()
                return
            with pytest.raises(MCPError):
                for _ in range(100):
                    await session.list_tools()
                    await asyncio.sleep(0.05)

    asyncio.run(run())
    assert setting.calls() == []
    assert ("ended the turn" in setting.errors.read_text(encoding="utf-8")) == (what == "end")


def test_an_adapter_that_can_not_read_the_backend(setting: Setting, authenticated: None) -> None:
    async def run() -> None:
        for adapter in ("shop_adapters:Silent", "shop_adapters:silent"):
            async with setting.client(adapter=adapter) as session:
                denied = await session.call_tool("get_order_details", {"order_id": "#1"})
                assert denied.is_error and denied.meta[META]["errors"] == ["host.snapshot"]
        async with setting.client(adapter="shop_adapters:made_up") as session:
            assert not (await session.call_tool("get_order_details", {"order_id": "#1"})).is_error

    asyncio.run(run())
    assert setting.calls() == ["get_order_details"]


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"policy": "retial"}, 2, "did you mean retail?"),
        ({"adapter": "shop_adapters:ShopAdaptor"}, 2, "no ShopAdaptor"),
        ({"server": ["/no/such/program"]}, 2, "a program that can be started"),
        ({"server": [sys.executable, "-c", "print('hello')"]}, 1, "does not answer as an MCP server"),
    ],
)
def test_what_does_not_start(changes: dict[str, Any], code: int, words: str, setting: Setting) -> None:
    found, err = setting.fails(**changes)
    assert (found, words in err) == (code, True), err


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("shop_adapters", "MODULE:ATTRIBUTE"),
        (":x", "MODULE:ATTRIBUTE"),
        ("no_such_module:x", "No module named 'no_such_module'"),
        ("shop_adapters:ShopAdapter.snapshots", "no ShopAdapter.snapshots"),
        ("shop_adapters:NoAdapter", "made a NoAdapter"),
        ("shop_adapters:number", "is neither"),
        ("shop_adapters:Failing", "raised RuntimeError: broken"),
    ],
)
def test_adapters_that_are_none(spec: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    with pytest.raises(InputError) as raised:
        load_adapter(spec)(Backend())
    assert raised.value.file == "--adapter" and words in str(raised.value)


def test_settings_that_can_not_be(setting: Setting) -> None:
    for options, words in (
        (["--on-denial", "ignore"], "feedback, raise or end"),
        (["--tool-timeout", "0"], "more than 0 seconds"),
        (["--journal", "/no/such/folder/j.db"], "--journal"),
    ):
        found, err = setting.fails(*options)
        assert found == 2 and words in err, err


def answers(process: subprocess.Popen[str], *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Asks, line by line, as any client would."""
    assert process.stdin and process.stdout
    found = []
    for number, request in enumerate(requests):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
        process.stdin.flush()
        if "id" in request:
            found.append(json.loads(process.stdout.readline()))
            assert found[-1]["id"] == request["id"], number
    return found


GREETING = (
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    },
    {"method": "notifications/initialized"},
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_and_a_call_that_runs_is_unknown(
    number: signal.Signals, setting: Setting, screen: Any, authenticated: None
) -> None:
    async def prepare() -> None:
        async with setting.client() as session:
            await confirmed(session, screen)

    asyncio.run(prepare())
    before = len(setting.calls())
    setting.control.write_text("hang", encoding="utf-8")
    with setting.start() as process:
        answers(process, *GREETING)
        assert process.stdin
        call = {"name": EXCHANGE, "arguments": exchange("#1")["arguments"]}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        deadline = time.monotonic() + 30
        while len(setting.calls()) == before and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        process.wait(30)
        assert process.stdout and process.stderr
        # At most an error for the call that runs, and never a result.
        assert all("error" in json.loads(line) for line in process.stdout.read().splitlines())
        assert "Traceback" not in process.stderr.read()
    assert process.returncode == 128 + number
    assert [one.phase for one in screen(lambda guard: guard.unsettled())] == ["unknown"]
    assert not setting.server_runs()


def test_a_client_that_leaves(setting: Setting) -> None:
    with setting.start() as process:
        [greeted] = answers(process, *GREETING)
        assert greeted["result"]["serverInfo"]["name"] == "shop (guarded)"
        assert process.stdin and process.stdout
        process.stdin.write("no message\n{}\n[]\n\n")
        process.stdin.close()
        assert process.wait(30) == 0
        for line in process.stdout.read().splitlines():
            assert json.loads(line)["jsonrpc"] == "2.0"
    assert not setting.server_runs()


@pytest.mark.skipif(bool(os.environ.get("LEANGUARD_TEST_RELAY")), reason="starts a Lean of its own")
def test_consent_from_the_command_line(setting: Setting, screen: Any, authenticated: None) -> None:
    async def run() -> None:
        async with setting.client() as session:
            await session.call_tool("get_order_details", {"order_id": "#1"})
            asked = await session.call_tool(EXCHANGE, exchange("#1")["arguments"])
            proposal = asked.meta[META]["proposal_id"]
            for by, code in (("mallory", 1), (CUSTOMER, 0)):
                given = ["--policy", "retail", "--journal", str(setting.journal), "--by", by]
                command = [sys.executable, "-m", "leanguard_host", "confirm", proposal, *given]
                done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=120)
                assert done.returncode == code, done.stderr
            assert not (await session.call_tool(EXCHANGE, exchange("#1")["arguments"])).is_error

    asyncio.run(run())
    assert setting.shop.effects("#1") == 1


def test_without_the_extra_there_is_a_clear_message() -> None:
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "sys.argv = ['leanguard', 'mcp', '--policy', 'p', '--journal', 'j', '--adapter', 'a:b', '--', 'server']\n"
        "from leanguard_host.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "pip install 'leanguard[mcp]'" in done.stderr and done.stdout == ""
