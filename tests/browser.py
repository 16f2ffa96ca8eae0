"""A headless Chromium, driven over its debugging pipe; no package is needed for that."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60.0


def find() -> str | None:
    """The program, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page in a Chromium. To be used in a `with` statement."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for pair in (os.pipe(), os.pipe()) for end in pair]
        theirs, self._to, self._from, out = ends[0], ends[1], ends[2], ends[3]

        def connect() -> None:
            os.dup2(theirs, 3)
            os.dup2(out, 4)

        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--remote-debugging-pipe", f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(
            [self.program, *options],
            preexec_fn=connect,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(out)
        self._number, self._session, self._rest = 0, "", b""
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the debugging protocol."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._from, 1 << 16) if ready else b""
            assert data, "the browser does not answer"
            self._rest += data
        one, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, file: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.events.clear()
        self.ask("Page.navigate", url=file.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def screenshot(self, file: Path, *, width: int = 1280, height: int = 1600, dark: bool = False) -> None:
        """Take a picture."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=scheme)
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        data = self.ask("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(data))

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"])

    def trouble(self) -> list[dict[str, Any]]:
        """What was logged as an error, thrown, or loaded beside the opened file."""
        loaded = [e for e in self.events if e["method"] == "Network.requestWillBeSent"][1:]
        thrown = [e for e in self.events if e["method"] == "Runtime.exceptionThrown"]
        logged = [
            e for e in self.events if e["method"] == "Log.entryAdded" and e["params"]["entry"]["level"] == "error"
        ]
        return loaded + thrown + logged
