"""The builder: one Lean process that compiles modules, one request after another."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from leanguard_host.lean.errors import LeanCrashed, LeanTimeout, Message
from leanguard_host.lean.portable.fetch import find_node
from leanguard_host.lean.portable.install import Install

BOOT = Path(__file__).with_name("boot.js")
SOURCE = Path(__file__).with_name("Build.lean")
START_SECONDS, SLOW_START_SECONDS = 120.0, 400.0
MODULE_SECONDS = 600.0
_MEMORY_LIMIT = 2_200_000_000  # of the whole process; Lean's own memory can't grow beyond 2 GB


def _stack_kib() -> int:
    """How much of its thread's stack V8 may use, in KiB: its own limit of 1 MB is too small for Lean's recursion."""
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return 6000 if soft == resource.RLIM_INFINITY else max(900, min(6000, soft // 1024 * 3 // 4))


# lean.wasm is known to the byte, so its 137 MB need not be validated at each start.
NODE_FLAGS = ("--wasm-lazy-validation", f"--stack-size={_stack_kib()}")
# A build runs much code a few times: optimizing it takes longer than it saves.
BUILDER_FLAGS = (*NODE_FLAGS, "--no-wasm-tier-up")


def environment(install: Install, lean_path: list[Path]) -> dict[str, str]:
    """The variables that boot.js needs, added to our own."""
    return os.environ | {
        "LEANGUARD_PORTABLE": str(install.folder),
        "LEANGUARD_LEAN_PATH": ":".join(str(folder) for folder in lean_path),
    }


@dataclass(frozen=True)
class Compiled:
    """The builder's answer about one module."""

    ok: bool
    messages: list[Message]
    import_ms: int
    ms: int


class Builder:
    """Compiles modules. Not for several threads at once. Starts when it is first needed, and again after a failure.

    Args:
        install: the portable toolchain.
        folder: holds the compiled builder; None runs it from its source, which takes half a minute to start.
    """

    def __init__(self, install: Install, folder: Path | None) -> None:
        self._install = install
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""
        self._asked = False
        self._spent = ""

    def __enter__(self) -> Builder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def compile(
        self,
        module: str,
        source: str,
        shown: str,
        path: list[Path],
        olean: Path | None,
        keep: str = "",
        *,
        initializers: bool = False,
    ) -> Compiled:
        """Compile one module.

        Args:
            module: its name.
            source: its source text.
            shown: the file name to put in messages.
            path: the folders with the compiled modules that it may import, beside the core library.
            olean: where to write it, in a folder that exists; None only checks it.
            keep: a key under which the imported environment is kept for the next request with that key; "" keeps none.
            initializers: the import runs initializers of the package. It gets a process of its own: an attribute that
                an import registers is known to that import only if it is the process's first, and what is registered
                would stay for modules that do not import it.

        Raises:
            LeanCrashed: the builder died.
            LeanTimeout: it took longer than MODULE_SECONDS.
        """
        if (initializers and self._asked and not (keep and keep == self._spent)) or (
            self._spent and keep != self._spent
        ):
            self.close()
        request = {
            "module": module,
            "source": source,
            "shown": shown,
            "path": ["/lib/lean", *(str(folder) for folder in path)],
            "olean": str(olean or ""),
            "keep": keep,
        }
        try:
            answer = self._ask(request)
        except LeanTimeout as error:
            raise LeanTimeout(f"{shown}: {error}") from error
        self._spent = (keep or "-") if initializers else ""
        if "crash" in answer:
            message = Message("error", shown, 1, 0, f"the builder could not compile this file: {answer['crash']}")
            return Compiled(False, [message], 0, 0)
        messages = [
            Message(each["severity"], each["file"], each["line"], each["column"], each["data"])
            for each in answer["messages"]
        ]
        if olean is not None and olean.is_file():
            olean.chmod(0o644)  # this build of Lean knows no umask
        return Compiled(answer["ok"], messages, answer["import_ms"], answer["ms"])

    def close(self) -> None:
        """Stop the process."""
        process, self._process = self._process, None
        self._asked, self._spent = False, ""
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        used = self._process is not None
        try:
            return self._ask_once(request)
        except LeanCrashed:
            if not used:
                raise
            return self._ask_once(request)  # it may have run out of memory over earlier modules: try a fresh one

    def _ask_once(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self._started()
        self._asked = True
        try:
            assert process.stdin is not None  # noqa: S101 - it is a pipe
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            return self._receive(process, MODULE_SECONDS)
        except OSError as error:
            self.close()
            raise LeanCrashed(f"the builder died: {error}") from error
        except BaseException:
            self.close()  # a late answer must not be taken for the next one
            raise

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process and (self._process.poll() is not None or self._memory() > _MEMORY_LIMIT):
            self.close()
        if self._process is None:
            self._received = b""
            program = ["Build"] if self._folder else ["--run", str(SOURCE)]
            self._process = subprocess.Popen(
                [str(find_node()), *BUILDER_FLAGS, str(BOOT), *program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(self._install, [self._folder] if self._folder else []),
                start_new_session=True,  # Ctrl-C is ours to handle
            )
            try:
                self._receive(self._process, START_SECONDS if self._folder else SLOW_START_SECONDS)
            except BaseException:
                self.close()
                raise
        return self._process

    def _memory(self) -> int:
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss) if self._process else 0
        except psutil.Error:
            return 0

    def _receive(self, process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
        """The next answer: one line, then an empty one."""
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n\n" not in self._received:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise LeanTimeout(f"the builder did not answer in {seconds:g} s")
                data = os.read(process.stdout.fileno(), 1 << 20)
                if not data:
                    raise LeanCrashed(f"the builder died: {self._last_words(process)}")
                self._received += data
        line, _, self._received = self._received.partition(b"\n\n")
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise LeanCrashed(f"the builder answered something that is not JSON: {line[:200]!r}") from error
        if not isinstance(answer, dict):
            raise LeanCrashed(f"the builder answered something that is not an object: {line[:200]!r}")
        return answer

    @staticmethod
    def _last_words(process: subprocess.Popen[bytes]) -> str:
        process.kill()
        process.wait()
        words = process.stderr.read().decode(errors="replace").strip() if process.stderr else ""
        return words[-2000:] or f"exit code {process.returncode}"
