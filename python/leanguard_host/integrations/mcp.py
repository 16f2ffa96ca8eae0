"""A proxy that guards any MCP server over stdio. Extra: `mcp`. Command: `leanguard mcp -- SERVER`.

The proxy is a client of the server and a server for its own client. Tools that the policy has a contract of are listed
as the server describes them, and each call goes through `AsyncGuard.execute`. Whatever else the protocol has does not
pass: no sampling, no elicitation, no subscriptions to resources; resources and prompts only where that was asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from leanguard_host import __version__
from leanguard_host.adapter import Adapter, method
from leanguard_host.execution import CALL, Execution, OnDenial, ToolTimeout, known_setting
from leanguard_host.failing import INTERRUPTED, failures
from leanguard_host.feedback import printable
from leanguard_host.integrations import MissingExtraError
from leanguard_host.jsonfiles import InputError
from leanguard_host.out import note, say
from leanguard_host.wire import UNAVAILABLE

try:
    import anyio
    from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client, stdio_server, types
    from mcp.server.lowlevel import NotificationOptions, Server
    from mcp.server.subscriptions import (
        InMemorySubscriptionBus,
        ListenHandler,
        PromptsListChanged,
        ResourcesListChanged,
        ServerEvent,
        ToolsListChanged,
    )
    from mcp.shared.message import SessionMessage
    from pydantic import TypeAdapter
except ImportError as error:  # pragma: no cover - the tests run where it is there
    raise MissingExtraError("mcp", error) from error

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

    from leanguard_host.asyncguard import AsyncGuard

META = "leanguard/call"
"""The key of a result's `_meta` that says what came of the call. Nothing that the server says gets there."""

DENIED_CODE = -32040
"""The code of the error that a denial is where it is set to raise or to end the turn."""

START_SECONDS = 60.0
READ_SECONDS = 30.0
_LONGEST_MESSAGE = 64 << 20
_RESULT: TypeAdapter[types.CallToolResult] = TypeAdapter(types.CallToolResult)
_TERMINATED = 128 + signal.SIGTERM
SERVER_ENDED = 1


class ToolReportedError(Exception):
    """The server answered a call with a result that is marked as an error: nobody knows what the call did.

    An adapter's `failed_definitely` may know.

    Attributes:
        result: the server's answer.
    """

    def __init__(self, result: types.CallToolResult) -> None:
        super().__init__("the tool reports an error")
        self.result = result


class Backend:
    """The server, for the adapter's own reads. These pass no guard: nothing that a model says may decide them."""

    def __init__(self) -> None:
        self._session: ClientSession | None = None

    def connect(self, session: ClientSession) -> None:
        """Use a connection."""
        self._session = session

    def _connected(self) -> ClientSession:
        if self._session is None:
            raise RuntimeError("the server is not connected yet: read it in `snapshot`, not when the adapter is made")
        return self._session

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> types.CallToolResult:
        """Call a tool of the server that only reads.

        Raises:
            ToolReportedError: the tool reports an error.
            MCPError: the server does not answer, or refuses.
        """
        result = await _call(self._connected(), name, arguments or {}, READ_SECONDS)
        if result.is_error:
            raise ToolReportedError(result)
        return result

    async def read_resource(self, uri: str) -> str:
        """The text of a resource.

        Raises:
            ValueError: it has no single text.
            MCPError: the server does not answer, or refuses.
        """
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri))
        found = await self._connected().send_request(request, types.ReadResourceResult, READ_SECONDS)
        texts = [content.text for content in found.contents if isinstance(content, types.TextResourceContents)]
        if len(texts) != 1 or len(found.contents) != 1:
            raise ValueError(f"the resource {uri} has no single text")
        return texts[0]


async def _call(
    session: ClientSession,
    name: str,
    arguments: Mapping[str, Any],
    seconds: float | None = None,
    progress: ProgressFnT | None = None,
) -> types.CallToolResult:
    params = types.CallToolRequestParams(name=name, arguments=dict(arguments))
    # Not `call_tool`: that also judges the result by its schema, when the effect is there already.
    return await session.send_request(
        types.CallToolRequest(params=params), _RESULT, request_read_timeout_seconds=seconds, progress_callback=progress
    )


@dataclass(frozen=True)
class Settings:
    """What the proxy is to do.

    Attributes:
        on_denial: answer a tool error with the feedback; or a protocol error; or that, and end the connection.
        tool_timeout: seconds to wait for a tool.
        resources: whether the server's resources pass, which no policy decides about.
        prompts: whether its prompts do.
    """

    on_denial: OnDenial = "feedback"
    tool_timeout: float | None = None
    resources: bool = False
    prompts: bool = False


class Proxy:
    """Between one server and one client."""

    def __init__(self, guard: AsyncGuard, adapter: Adapter, session: ClientSession, settings: Settings) -> None:
        known_setting(settings.on_denial)
        self._guard, self._adapter, self._session, self._settings = guard, adapter, session, settings
        self._policy = guard.guard.session()
        self._client: Any = None
        self._bus = InMemorySubscriptionBus()
        self._hidden: set[str] = set()
        self._running = 0
        self.gone = asyncio.Event()
        """The server has ended."""
        self.ended = asyncio.Event()
        """A denial has ended the turn."""

    async def settled(self, seconds: float) -> None:
        """Wait until each call that runs has its answer."""
        deadline = time.monotonic() + seconds
        while self._running and time.monotonic() < deadline:
            await asyncio.sleep(0.02)

    # --- for the client ---

    def server(self) -> Server[Any]:
        """What the client talks to."""
        told = self._session.server_info
        pass_resources, pass_prompts = self._settings.resources, self._settings.prompts
        server: Server[Any] = Server(
            "leanguard" if told is None else f"{told.name} (guarded)",
            version=__version__,
            instructions=self._session.instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources if pass_resources else None,
            on_list_resource_templates=self._list_templates if pass_resources else None,
            on_read_resource=self._read_resource if pass_resources else None,
            on_list_prompts=self._list_prompts if pass_prompts else None,
            on_get_prompt=self._get_prompt if pass_prompts else None,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        server.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)
        return server

    def changes(self) -> NotificationOptions:
        """Which changes the client is told."""
        return NotificationOptions(
            tools_changed=True,
            resources_changed=self._settings.resources,
            prompts_changed=self._settings.prompts,
        )

    async def _initialized(self, context: Any, params: types.NotificationParams) -> None:
        self._client = context.session

    async def heard(self, message: object) -> None:
        """Pass on that a list has changed. Nothing is kept of any list, so there is nothing else to do."""
        match message:
            case types.ToolListChangedNotification():
                await self._tell("send_tool_list_changed", ToolsListChanged())
            case types.ResourceListChangedNotification() if self._settings.resources:
                await self._tell("send_resource_list_changed", ResourcesListChanged())
            case types.PromptListChangedNotification() if self._settings.prompts:
                await self._tell("send_prompt_list_changed", PromptsListChanged())

    async def _tell(self, name: str, event: ServerEvent) -> None:
        if self._client is not None:
            await getattr(self._client, name)()
        await self._bus.publish(event)

    def _known(self, tool: str) -> bool:
        return self._policy.engine.contract(self._policy.policy, tool) is not None

    async def _list_tools(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        found = await self._session.list_tools(params=_page(params))
        for tool in found.tools:
            if not self._known(tool.name) and tool.name not in self._hidden:
                self._hidden.add(tool.name)
                note(f"The policy has no contract of the tool {tool.name}: it is not listed, and calls are denied.")
        tools = [tool for tool in found.tools if self._known(tool.name)]
        return types.ListToolsResult(tools=tools, next_cursor=found.next_cursor)

    async def _list_resources(
        self, context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await self._session.list_resources(params=_page(params))

    async def _list_templates(
        self, context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return await self._session.list_resource_templates(params=_page(params))

    async def _read_resource(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await self._session.read_resource(params.uri)

    async def _list_prompts(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return await self._session.list_prompts(params=_page(params))

    async def _get_prompt(self, context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._session.get_prompt(params.name, params.arguments)

    # --- calls ---

    async def _call_tool(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        self._running += 1
        try:
            # A task of its own: when the client cancels, anyio would cancel each step of the guard's again and again.
            work = asyncio.create_task(self._execute(context, params))
            try:
                done = await asyncio.shield(work)
            except asyncio.CancelledError:
                work.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([work])
                raise
            except Exception as error:
                note(f"A call could not be followed: {type(error).__name__}: {error}")
                text = "The guard failed. It is not known whether the call was made."
                raise MCPError(types.INTERNAL_ERROR, text) from error
            return self._answer(done)
        finally:
            self._running -= 1

    async def _execute(self, context: Any, params: types.CallToolRequestParams) -> Execution:
        if self.gone.is_set():
            return Execution("denied", self._policy.denied(UNAVAILABLE, "The server has ended."))
        if params.task is not None:
            return Execution("denied", self._policy.denied(CALL, "Calls as tasks are not supported."))
        progress = context.session.report_progress if context.meta and "progress_token" in context.meta else None

        async def forward(**arguments: Any) -> types.CallToolResult:
            result = await _call(self._session, params.name, arguments, progress=progress)
            if result.is_error:
                raise ToolReportedError(result)
            return result

        call = {"tool": params.name, "arguments": {} if params.arguments is None else params.arguments}
        return await self._guard.execute(call, forward, adapter=self._adapter, timeout=self._settings.tool_timeout)

    def _answer(self, done: Execution) -> types.CallToolResult:
        if done.error is not None and done.executed:
            note(f"What the result of a call shows was not recorded: {type(done.error).__name__}: {done.error}")
        if done.executed:
            return _marked(done.value, done)
        if done.status in ("failed", "unknown"):
            if not isinstance(done.error, ToolReportedError):
                note(f"A call is {done.status}: {type(done.error).__name__}: {done.error}")
            said = done.error.result if isinstance(done.error, ToolReportedError) else _error(_reason(done.error))
            said.content.append(types.TextContent(text=done.feedback()))
            return _marked(said, done)
        if self._settings.on_denial != "feedback":
            if self._settings.on_denial == "end":
                self.ended.set()
            raise MCPError(DENIED_CODE, done.feedback(), {META: _told(done)})
        return _marked(_error(done.feedback()), done)


def _page(params: types.PaginatedRequestParams | None) -> types.PaginatedRequestParams | None:
    """The same page, without what the client says beside it."""
    return None if params is None or params.cursor is None else types.PaginatedRequestParams(cursor=params.cursor)


def _error(*texts: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text) for text in texts if text], is_error=True)


def _reason(error: BaseException | None) -> str:
    """What a model may read of an error: what the server said of it."""
    if isinstance(error, MCPError):
        return f"The server says: {error.error.message}"
    return str(error) if isinstance(error, ToolTimeout) else ""


def _told(done: Execution) -> dict[str, Any]:
    """What came of a call, for the client's program."""
    return {
        "status": done.status,
        "failed_rules": [rule.model_dump() for rule in done.decision.failed_rules],
        "errors": [error.rule for error in done.decision.errors],
        "proposal_id": done.proposal_id,
    }


def _marked(result: types.CallToolResult, done: Execution) -> types.CallToolResult:
    """The result with our mark, and without any that the server made up."""
    meta = {key: value for key, value in dict(result.meta or {}).items() if not key.startswith("leanguard/")}
    return types.CallToolResult(
        content=result.content,
        structured_content=result.structured_content,
        is_error=result.is_error,
        _meta={**meta, META: _told(done)},
    )


# --- the adapter ---


def load_adapter(spec: str) -> Callable[[Backend], Adapter]:
    """What `--adapter MODULE:ATTRIBUTE` names: an adapter, or what makes one. See docs/integrations.md.

    Raises:
        InputError: there is no such thing, or it is no adapter.
    """

    def wrong(expected: str, found: str) -> InputError:
        return InputError("--adapter", expected, found)

    name, _, path = spec.partition(":")
    if not name or not path:
        raise wrong("MODULE:ATTRIBUTE, as in shop_adapter:ShopAdapter", repr(spec))
    if os.getcwd() not in sys.path:  # noqa: PTH109 - a name on the path of imports
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        found: Any = importlib.import_module(name)
    except Exception as error:
        raise wrong("a module that can be imported", f"{name} ({type(error).__name__}: {error})") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise wrong(f"an attribute of {name}", f"no {path}")
        found = getattr(found, part)
    if not isinstance(found, type) and method(found, "snapshot"):
        return lambda backend: found
    if not callable(found):
        raise wrong(
            "an adapter (it has a method snapshot), or a class or function that makes one", f"{spec} is neither"
        )

    def make(backend: Backend) -> Adapter:
        try:
            takes = "server" in inspect.signature(found).parameters
        except (TypeError, ValueError):
            takes = False
        try:
            made: Adapter = found(server=backend) if takes else found()
        except Exception as error:
            raise wrong("what makes an adapter", f"{spec} raised {type(error).__name__}: {error}") from error
        if method(made, "snapshot") is None:
            raise wrong("what makes an adapter (it has a method snapshot)", f"{spec} made a {type(made).__name__}")
        return made

    return make


# --- the process ---


class _Lines:
    """The client's messages, read in a thread of its own: a blocked read can't keep the process from ending."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(64)
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="leanguard-client", daemon=True).start()

    def _put(self, line: bytes | None) -> None:
        text = None if line is None else line.decode(errors="replace")
        asyncio.run_coroutine_threadsafe(self._lines.put(text), self._loop).result()

    def _read(self) -> None:
        rest = b""
        with contextlib.suppress(Exception):  # the loop has ended
            with contextlib.suppress(OSError):
                while chunk := os.read(self._descriptor, 1 << 16):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        self._put(line)
                    if len(rest) > _LONGEST_MESSAGE:
                        break
            self._put(None)

    def stop(self) -> None:
        """Nothing more is read."""
        self._stop.set()

    async def __aiter__(self) -> AsyncIterator[str]:
        while not self._stop.is_set():
            line = asyncio.ensure_future(self._lines.get())
            stop = asyncio.ensure_future(self._stop.wait())
            try:
                await asyncio.wait([line, stop], return_when=asyncio.FIRST_COMPLETED)
                if self._stop.is_set() or (text := line.result()) is None:
                    return
            finally:
                line.cancel()
                stop.cancel()
            if text.strip():
                yield text


class _OneLine(logging.Formatter):
    """What the library logs, without its tracebacks, which say nothing to who guards a server."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the library's name
        """Nothing: the message is told."""
        return ""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        text = super().format(record).strip()
        return printable(f"{text} ({record.exc_info[0].__name__})" if record.exc_info and record.exc_info[0] else text)


def _claim() -> tuple[int, IO[str]]:
    """Standard input and output for the protocol alone: whatever else is printed goes to standard error.

    Raises:
        InputError: they are closed.
    """
    try:
        client, answers = os.dup(0), os.dup(1)
        os.dup2(2, 1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
    except OSError as error:
        raise InputError("standard input and output", "an MCP client", f"that they are closed ({error})") from None
    return client, os.fdopen(answers, "w", encoding="utf-8", newline="\n")


async def _relayed(source: Any, target: Any, proxy_gone: asyncio.Event) -> None:
    """Passes the server's messages on, and notices its end."""
    async with target:
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for message in source:
                await target.send(message)
    proxy_gone.set()


async def _serve(
    command: Sequence[str],
    guard: AsyncGuard,
    make: Callable[[Backend], Adapter],
    settings: Settings,
    client: int,
    answers: IO[str],
) -> int:
    """Guard the server until the client or the server ends. Returns the exit code."""
    backend = Backend()
    adapter = make(backend)
    server_parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
    signals: list[int] = []
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        if signals:  # again: there is no time for anything
            os._exit(128 + number)
        signals.append(number)
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop, number)
    async with contextlib.AsyncExitStack() as stack:
        try:
            source, sink = await stack.enter_async_context(stdio_client(server_parameters, errlog=sys.stderr))
        except (OSError, ValueError) as error:
            raise InputError("SERVER", "a program that can be started", f"{command[0]} ({error})") from error
        relayed, source_of_session = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        gone = asyncio.Event()
        heard: list[Callable[[object], Any]] = []

        async def hear(message: object) -> None:
            for listener in heard:
                await listener(message)

        group = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(group.cancel_scope.cancel)
        group.start_soon(_relayed, source, relayed, gone)
        session = await stack.enter_async_context(
            ClientSession(
                source_of_session,
                sink,
                message_handler=hear,
                client_info=types.Implementation(name="leanguard", version=__version__),
            )
        )
        if (problem := await _initialized(session, stopping)) is not None:
            if signals:
                return _code(signals)
            say(("error: ", "bad"), f"The server {command[0]} does not answer as an MCP server: {problem}", error=True)
            return SERVER_ENDED
        backend.connect(session)
        proxy = Proxy(guard, adapter, session, settings)
        heard.append(proxy.heard)
        await _reconciled(guard, adapter)
        lines = _Lines(client)

        async def watch() -> None:
            events = {name: asyncio.ensure_future(event.wait()) for name, event in _events(stopping, gone, proxy)}
            try:
                await asyncio.wait(events.values(), return_when=asyncio.FIRST_COMPLETED)
                if events["gone"].done():
                    proxy.gone.set()
                if not events["stopping"].done():
                    await proxy.settled(10.0)  # who waits for an answer gets it
                    await asyncio.sleep(0.1)
                lines.stop()
            finally:
                for event in events.values():
                    event.cancel()

        group.start_soon(watch)
        server = proxy.server()
        async with stdio_server(lines, anyio.wrap_file(answers)) as (requests, replies):  # type: ignore[arg-type]
            await server.run(requests, replies, server.create_initialization_options(proxy.changes()))
        if signals:
            return _code(signals)
        if proxy.gone.is_set():
            say(("error: ", "bad"), f"The server {command[0]} has ended.", error=True)
            return SERVER_ENDED
        if proxy.ended.is_set():
            say("A denial has ended the turn.", error=True)
            return SERVER_ENDED
        return 0


def _events(stopping: asyncio.Event, gone: asyncio.Event, proxy: Proxy) -> list[tuple[str, asyncio.Event]]:
    return [("stopping", stopping), ("gone", gone), ("ended", proxy.ended)]


def _code(signals: list[int]) -> int:
    return INTERRUPTED if signals[0] == signal.SIGINT else _TERMINATED


async def _initialized(session: ClientSession, stopping: asyncio.Event) -> str | None:
    """Greets the server. Answers what is wrong with it."""
    greeting, stop = asyncio.ensure_future(session.initialize()), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([greeting, stop], timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not greeting.done():
            return "it was interrupted" if stop.done() else f"no greeting within {START_SECONDS:g} s"
        greeting.result()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        greeting.cancel()
        stop.cancel()
    return None


async def _reconciled(guard: AsyncGuard, adapter: Adapter) -> None:
    """Settles what an earlier run left behind, as far as the adapter can tell, and says what stays unknown."""
    if method(adapter, "reconcile") is not None:
        try:
            for settlement in await guard.reconcile(adapter):
                note(f"An earlier call of {settlement.reservation.call.tool} {settlement.status}.")
        except Exception as error:
            note(f"Earlier calls could not be reconciled: {type(error).__name__}: {error}")
    for left in await guard.unsettled():
        note(f"Nobody knows how an earlier call of {left.call.tool} ended ({left.phase}); it is not made again.")


def run(
    *,
    policy: str,
    journal: str,
    adapter: str,
    command: Sequence[str],
    timeout: float,
    settings: Settings,
) -> int:
    """`leanguard mcp`. Returns the exit code: 0 the client has left, 1 the server or a denial has ended it.

    Raises:
        SystemExit: the input can't be used (2), or there is no usable Lean (3).
    """
    from leanguard_host.asyncguard import AsyncGuard
    from leanguard_host.confirming import opened

    with failures():
        client, answers = _claim()
        log = logging.StreamHandler(sys.stderr)
        log.setFormatter(_OneLine())
        logging.basicConfig(level=logging.WARNING, handlers=[log])
        make = load_adapter(adapter)
        with opened(policy, journal, timeout, create=True) as guard:

            async def serve() -> int:
                async with AsyncGuard(guard) as here:
                    return await _serve(command, here, make, settings, client, answers)

            return asyncio.run(serve())
    raise AssertionError("failures() raises")
