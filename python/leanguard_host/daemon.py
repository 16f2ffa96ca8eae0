"""The background process: one Lean, shared by all commands of this user, until nobody has asked for a while.

It speaks lines of JSON. It greets each connection with one line and then answers each request, in order, with one line
that repeats the request's `id`. Operations: `check` (texts of a call, a snapshot and a journal), `policies`, `status`,
`stop`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from leanguard_host import __version__
from leanguard_host.client import PROTOCOL, family, lock, socket_path
from leanguard_host.engine import Engine, UnknownPolicyError, policy_problem
from leanguard_host.inputs import read_inputs
from leanguard_host.jsonfiles import InputError, Source
from leanguard_host.lean.errors import LeanUnavailable
from leanguard_host.warmup import warm_up

IDLE_SECONDS = 900.0
_LONGEST_LINE = 512 << 20
_FAREWELL_SECONDS = 5.0
_WARM_UP = "warm-up"
_PREDECESSOR_SECONDS = 15.0
_LOOK_SECONDS = 2.0


def idle_seconds() -> float:
    """How long the process waits for a request before it ends: LEANGUARD_IDLE_SECONDS, or 15 minutes."""
    try:
        seconds = float(os.environ.get("LEANGUARD_IDLE_SECONDS", ""))
    except ValueError:
        return IDLE_SECONDS
    return seconds if seconds > 0 else IDLE_SECONDS


def _source(value: Any) -> Source:
    return Source(str(value["name"]), str(value["text"]))


def check(engine: Engine, request: dict[str, Any]) -> dict[str, Any]:
    """Decide what a `check` request asks: `decision`, or `problem` if its input can't be used."""
    try:
        engine.require_policy(request["policy"])
        journal = request.get("journal")
        inputs = read_inputs(
            _source(request["call"]), _source(request["snapshot"]), _source(journal) if journal else None
        )
    except UnknownPolicyError as unknown:
        return {"problem": policy_problem(unknown).as_json()}
    except InputError as problem:
        return {"problem": problem.as_json()}
    question = request["policy"], inputs.call, inputs.snapshot, inputs.journal
    decision = engine.decide(*question, float(request["timeout"]))
    if request.get("repair"):
        decision = engine.repair(decision, *question)
    return {"decision": decision.model_dump(mode="json")}


class Server:
    """Answers on a socket."""

    def __init__(self, engine: Engine, path: Path, idle: float | None) -> None:
        """Listen.

        Args:
            engine: what decides.
            path: the socket; one that is there already is stale, since we hold the lock.
            idle: seconds without a request after which it ends; None for never.
        """
        self._engine, self._path, self._idle = engine, path, idle
        self._family = family()
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._inode = path.stat().st_ino
        self._listener.listen(64)
        self._wake, self._woken = socket.socketpair()
        self._lock = threading.Lock()
        self._stopping = False
        self._busy = 0
        self._requests = 0
        self._started = self._active = time.monotonic()
        self._threads: set[threading.Thread] = set()

    def stop(self) -> None:
        """Make `serve` return soon. Safe in a signal handler."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._wake.send(b"x")

    def serve(self) -> None:
        """Answer until stopped or idle; requests that are being answered are finished."""
        try:
            while not self._stopping and (left := self._patience()) > 0 and self._reachable():
                ready, _, _ = select.select([self._listener, self._woken], [], [], min(left, _LOOK_SECONDS))
                if self._woken in ready:
                    self._woken.recv(1024)
                if self._listener in ready:
                    connection, _ = self._listener.accept()
                    thread = threading.Thread(target=self._talk, args=(connection,), daemon=True)
                    self._threads.add(thread)
                    thread.start()
        finally:
            if self._reachable():
                self._path.unlink(missing_ok=True)  # first, so that new commands start another process
            self._listener.close()
            deadline = time.monotonic() + _FAREWELL_SECONDS
            while self._busy and time.monotonic() < deadline:
                time.sleep(0.02)

    def _patience(self) -> float:
        """Seconds until it is idle enough to end."""
        if self._idle is None:
            return 3600.0
        with self._lock:
            return self._idle if self._busy else self._active + self._idle - time.monotonic()

    def _reachable(self) -> bool:
        """Whether the socket is still ours: somebody may have cleaned the folder."""
        try:
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as lines:
            greeting = {"protocol": PROTOCOL, "leanguard": __version__, "pid": os.getpid()}
            greeting |= {"family": self._family, "toolchain": self._engine.toolchain, "digests": self._engine.digests}
            _send(connection, greeting)
            while self._answer_one(connection, lines):
                pass
        self._threads.discard(threading.current_thread())

    def _answer_one(self, connection: socket.socket, lines: BinaryIO) -> bool:
        line = lines.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            return False
        with self._lock:
            self._busy += 1
            self._requests += 1
        identity = None
        try:
            try:
                request = json.loads(line)
                identity = request["id"]
                answer = self._answer(request)
            except Exception as error:  # a fault must not end the process: the asker is told, and denies
                answer = {"fault": f"{type(error).__name__}: {error}"}
            _send(connection, {**answer, "id": identity})
        finally:
            with self._lock:
                self._busy -= 1
                self._active = time.monotonic()
        return True

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["op"]:
            case "check":
                return check(self._engine, request)
            case "policies":
                return {"policies": self._engine.policies}
            case "status":
                return {"status": self._status()}
            case "stop":
                self.stop()
                return {"stopping": True}
            case other:
                return {"fault": f"there is no operation {other!r}"}

    def _status(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "lean_pid": self._engine.process.pid,
            "socket": str(self._path),
            "toolchain": self._engine.toolchain,
            "policies": sorted(policy["name"] for policy in self._engine.policies),
            "requests": self._requests,
            "up_seconds": round(time.monotonic() - self._started, 1),
            "idle_seconds": self._idle,
            "warming_up": any(thread.name == _WARM_UP for thread in threading.enumerate()),
        }


def _send(connection: socket.socket, answer: dict[str, Any]) -> None:
    connection.sendall(json.dumps(answer).encode() + b"\n")


def run(engine: Engine, path: Path, idle: float | None, ready: Any = None) -> None:
    """Serve until SIGTERM, idleness or a `stop` request, then end Lean. For the main thread."""
    server = Server(engine, path, idle)

    def on_signal(number: int, frame: FrameType | None) -> None:
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    try:
        if ready:
            ready()
        server.serve()
    finally:
        engine.close()


def main(arguments: list[str]) -> int:
    """The process that `client.connect_or_start` starts.

    Args:
        arguments: the socket's path, and the descriptor on which to tell that it is ready, or why not.
    """
    path, descriptor = Path(arguments[0]), int(arguments[1])

    def tell(text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(descriptor, text.encode()[:4000])
        os.close(descriptor)

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with lock(path.with_suffix(".lock"), _PREDECESSOR_SECONDS) as had:
        if not had:
            tell("another background process is there, but does not answer")
            return 1
        try:
            engine = Engine.start()
        except LeanUnavailable as error:
            tell(str(error))
            return 1
        if path != socket_path():
            tell("the sources changed while it was starting")
            engine.close()
            return 1

        def ready() -> None:
            tell("ready")
            threading.Thread(target=warm_up, args=(engine,), name=_WARM_UP, daemon=True).start()

        run(engine, path, idle_seconds(), ready)
        for suffix in (".log", ".start", ".lock"):  # after a crash the log stays
            path.with_suffix(suffix).unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
