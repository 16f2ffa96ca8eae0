"""The warm Lean process: started when it is first needed, asked one thing at a time, replaced when it fails."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import psutil
from lean_interact import LeanREPLConfig, LeanServer, LocalProject

from leanguard_host.lean.build import BuildResult
from leanguard_host.lean.errors import LeanCrashed, LeanTimeout, LeanUnavailable

START_SECONDS = 120.0
_END = b"\n\n"
_MAX_REPLY = 256 << 20
_STDERR_KEPT = 8192
_READY = {"op": "policies"}  # the first request: answered when everything is imported and initialized


class _Transport(LeanServer):
    """lean-interact's server with a transport that cannot get out of step.

    Its own one reads in a helper thread that a late answer keeps alive, writes without a time limit, stops reading at
    text that is not UTF-8, waits for ever for a process that lives but says nothing useful, and leaves stderr to fill
    up. This one reads and writes in the calling thread under one deadline, refuses anything that was not asked for, and
    keeps the end of stderr.
    """

    def __init__(self, config: LeanREPLConfig) -> None:
        self._words = b""
        super().__init__(config)

    def start(self) -> None:
        """Start the process.

        Raises:
            OSError: it can't be started.
        """
        self._words = b""
        environment = {name: value for name, value in os.environ.items() if name != "LEANGUARD_FRAMED"}
        program = Path(self.config.cache_repl_dir, ".lake", "build", "bin", "repl")
        self._proc = subprocess.Popen(
            [str(self.config.lake_path), "env", str(program)],
            cwd=self.config.working_dir,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        for stream in (self._proc.stdin, self._proc.stdout):
            if stream:
                os.set_blocking(stream.fileno(), False)
        threading.Thread(target=self._drain, args=(self._proc.stderr,), name="lean-stderr", daemon=True).start()

    def _drain(self, stderr: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):  # closed
            while data := stderr.read(65536):
                self._words = (self._words + data)[-_STDERR_KEPT:]

    def get_stdout_stderr(self) -> tuple[str, str]:
        """What the process last said on stderr; stdout belongs to the protocol."""
        return "", self._words.decode(errors="replace")

    @property
    def pid(self) -> int | None:
        """The process that was started (its children may be the ones that work)."""
        return self._proc.pid if self._proc else None

    def kill(self) -> None:
        """Kill the process and all that it started, at once."""
        process, self._proc = self._proc, None
        if process is None:
            return
        doomed: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            doomed = psutil.Process(process.pid).children(recursive=True)
        with contextlib.suppress(OSError):
            os.killpg(process.pid, 9)  # it leads its own group
        for child in doomed:
            with contextlib.suppress(psutil.Error):
                child.kill()
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream:
                    stream.close()

    def _execute_cmd_in_repl(self, json_query: str, verbose: bool, timeout: float | None) -> str:
        with self._lock:
            process = self._proc
            if process is None:
                raise BrokenPipeError("the process is not running")
            return self._exchange(process, json_query.encode() + _END, timeout)

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes, timeout: float | None) -> str:
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:
            raise BrokenPipeError("the process has no pipes")
        deadline = None if timeout is None else time.monotonic() + timeout
        unsent, reply = memoryview(request), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if selector.select(0):
                early = _excerpt(os.read(stdout.fileno(), 1000))
                raise BrokenPipeError(f"it said something unasked: {early}" if early else "it had ended")
            selector.register(stdin, selectors.EVENT_WRITE)
            while not reply.endswith(_END):
                left = None if deadline is None else deadline - time.monotonic()
                ready = selector.select(left) if left is None or left > 0 else []
                if not ready:
                    raise TimeoutError(f"no answer within {timeout} s")
                for key, _ in ready:
                    if key.fileobj is stdin:
                        unsent = unsent[os.write(stdin.fileno(), unsent[:65536]) :]
                        if not unsent:
                            selector.unregister(stdin)
                        continue
                    data = os.read(stdout.fileno(), 1 << 20)
                    if not data:
                        raise BrokenPipeError(f"it ended in the middle of an answer: {_excerpt(reply)}".rstrip(": "))
                    reply += data
                    if len(reply) > _MAX_REPLY:
                        raise BrokenPipeError("an answer without an end")
        if unsent or bytes(reply).index(_END) != len(reply) - len(_END):
            raise BrokenPipeError(f"more than one answer, or one before it was asked: {_excerpt(reply)}")
        return reply.decode()


def _excerpt(data: bytes | bytearray) -> str:
    return repr(bytes(data[:200]).decode(errors="replace")) if data else ""


class LeanProcess:
    """Asks the package's `repl` program. Safe to use from several threads; one request at a time.

    The process is started by the first request and again by the first one after a failure.

    Args:
        built: the package, built.
        start_timeout: how long the process may take until it answers the first request, in seconds.
    """

    def __init__(self, built: BuildResult, *, start_timeout: float = START_SECONDS) -> None:
        self._built = built
        self._start_timeout = start_timeout
        self._server: _Transport | None = None
        self._lock = threading.Lock()
        self._ids = count(1)
        self._tag = os.urandom(4).hex()
        self._closed = False
        self.starts = 0

    def __enter__(self) -> LeanProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def built(self) -> BuildResult:
        """The package that the process runs."""
        return self._built

    @property
    def pid(self) -> int | None:
        """The process, if it runs."""
        server = self._server
        return server.pid if server else None

    @property
    def memory(self) -> int:
        """Resident bytes of the process and its children; 0 if it does not run."""
        total = 0
        with contextlib.suppress(psutil.Error):
            if (pid := self.pid) is not None:
                parent = psutil.Process(pid)
                for process in (parent, *parent.children(recursive=True)):
                    total += process.memory_info().rss
        return total

    def start(self) -> None:
        """Start the process unless it runs, and wait until it is ready.

        Raises:
            LeanUnavailable: it can't be started, or does not get ready in time.
        """
        with self._lock:
            self._ready()

    def guard(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Ask a `guard` request; returns the answer's body.

        Args:
            request: its body; an `id` is added.
            timeout: in seconds; starting the process, where that is needed, has its own limit.

        Raises:
            LeanTimeout: no answer in time; the process was stopped.
            LeanCrashed: the process died, or answered something else; what is left of it was stopped.
            LeanUnavailable: it can't be started.
        """
        with self._lock:
            return self._guard(self._ready(), request, timeout)

    def command(self, code: str, env: int | None = None, timeout: float = 60.0) -> dict[str, Any]:
        """Elaborate Lean commands, which must be our own: never anything that came from a model or a tool.

        Args:
            code: the commands.
            env: the environment that an earlier answer named; None starts afresh.
            timeout: in seconds.

        Raises:
            LeanTimeout, LeanCrashed, LeanUnavailable: as for `guard`.
        """
        request: dict[str, Any] = {"cmd": code} if env is None else {"cmd": code, "env": env}
        with self._lock:
            return self._ask(self._ready(), request, timeout)

    def close(self) -> None:
        """Stop the process, even while another thread waits for its answer. It can't be used after that."""
        self._closed = True
        server = self._server
        if server:
            server.kill()  # whoever waits gets LeanCrashed
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        server, self._server = self._server, None
        if server:
            server.kill()

    def _ready(self) -> _Transport:
        if self._closed:
            raise LeanUnavailable("the Lean process was closed")
        if self._server and not self._server.is_alive():
            self._drop()  # it died between two requests: nothing was lost
        if self._server is None:
            try:
                self._server = _Transport(self._config())
            except (OSError, ValueError, RuntimeError, AssertionError) as error:
                raise LeanUnavailable(f"the Lean process could not be started: {error}") from error
            self.starts += 1
            self._guard(self._server, _READY, self._start_timeout)
        return self._server

    def _config(self) -> LeanREPLConfig:
        lake = self._built.toolchain.lake
        return LeanREPLConfig(
            project=LocalProject(directory=self._built.root, auto_build=False, lake_path=lake),
            local_repl_path=self._built.repl_root,
            build_repl=False,
            lake_path=lake,
        )

    def _guard(self, server: _Transport, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        identity = f"{self._tag}-{next(self._ids)}"
        reply = self._ask(server, {"guard": {**request, "id": identity}}, timeout)
        body = reply.get("guard")
        if not isinstance(body, dict) or body.get("id") != identity:
            self._drop()
            raise LeanCrashed(f"the Lean process answered something else than the request: {json.dumps(reply)[:500]}")
        del body["id"]
        return body

    def _ask(self, server: _Transport, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        try:
            reply = server.run_dict(request, timeout=timeout)
        except TimeoutError as error:
            self._drop()
            raise LeanTimeout(f"the Lean process did not answer within {timeout:g} s and was stopped") from error
        except (OSError, ValueError) as error:  # ValueError: not JSON, not UTF-8, or a stream closed by another thread
            words = server.get_stdout_stderr()[1].strip()
            self._drop()
            cause = error.__cause__ if isinstance(error, ConnectionAbortedError) else error
            said = f"; it said: {words[-1000:]}" if words else ""
            raise LeanCrashed(f"the Lean process failed: {cause}{said}") from error
        except BaseException:
            self._drop()  # interrupted between request and answer: that answer must never be read as another's
            raise
        if not isinstance(reply, dict):
            self._drop()
            raise LeanCrashed(f"the Lean process answered something that is not an object: {json.dumps(reply)[:200]}")
        return reply
