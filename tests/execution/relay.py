"""One real Lean for many processes: a relay of `guard` requests over a socket.

The processes that the tests kill must be quick to start, and a Lean of their own would take seconds each. What they ask
is answered by the one real Lean of the test run; nothing is simulated.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leanguard_host.engine import Engine
from leanguard_host.lean.errors import LeanUnavailable


class Link:
    """What an Engine needs of a Lean process, on the other side of the relay."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._file: Any = None

    @property
    def pid(self) -> int | None:
        return None

    def start(self) -> None:
        """Nothing: Lean runs."""

    def guard(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        with self._lock:
            try:
                if self._file is None:
                    self._socket = socket.socket(socket.AF_UNIX)
                    self._socket.connect(self._address)
                    self._file = self._socket.makefile("rwb")
                self._file.write(json.dumps([request, timeout]).encode() + b"\n")
                self._file.flush()
                answer = json.loads(self._file.readline())
            except (OSError, ValueError) as error:
                self._file = None
                raise LeanUnavailable(f"the relay is gone: {error}") from error
        if "lost" in answer:
            raise LeanUnavailable(answer["lost"])
        return dict(answer["answer"])

    def close(self) -> None:
        """Let go of the socket."""
        with contextlib.suppress(OSError):
            if self._socket:
                self._socket.close()


def connect(address: str) -> Engine:
    """An engine over a relay."""
    engine = Engine(Link(address), toolchain="relayed Lean", keys={})
    engine.restarts = False
    return engine


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


@contextmanager
def relay(engine: Engine, address: Path) -> Iterator[str]:
    """Relays to an engine's process while the context lasts; gives the address."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                request, timeout = json.loads(line)
                try:
                    answer: dict[str, Any] = {"answer": engine.process.guard(request, timeout)}
                except LeanUnavailable as error:
                    answer = {"lost": str(error)}
                with contextlib.suppress(OSError):
                    self.wfile.write(json.dumps(answer).encode() + b"\n")

    with _Server(str(address), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield str(address)
        server.shutdown()


if __name__ == "__main__":
    with Engine.start() as real, relay(real, Path(sys.argv[1])):
        print("ready", flush=True)
        sys.stdin.read()
