"""Showing progress on stderr: a bar on a terminal, plain lines elsewhere, nothing on stdout."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

_PLAIN_SECONDS = 10.0


class ConsoleProgress:
    """Shows how an installation or a build gets on. To be used in a `with` statement.

    Pass `announce`, `install` and `build` to the functions that take such a callback.

    Args:
        console: where to show it; a console on stderr if None.
        quiet: show nothing at all.
    """

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self._console = console or Console(stderr=True)
        self._quiet = quiet
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._what = ""
        self._told = 0.0

    def __enter__(self) -> ConsoleProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def announce(self, text: str) -> None:
        """Print a line."""
        if not self._quiet:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def install(self, what: str, done: int, total: int) -> None:
        """Show a step of an installation."""
        percent = f" {100 * done // total} %" if total else ""
        self._show(what, done, total, f"{what}{percent}")

    def build(self, module: str, done: int, total: int) -> None:
        """Show a step of a build."""
        if module:
            self._show(f"building {module}", done, total, f"[{done + 1}/{total}] building {module}")
        else:
            self._stop()

    def _show(self, what: str, done: int, total: int, plain: str) -> None:
        if self._quiet:
            return
        if not self._console.is_terminal:
            self._tell(what, plain)
            return
        if self._bar is None:
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task(what)
            self._bar.start()
        if self._task is not None:
            self._bar.update(self._task, description=what, completed=done, total=total or None)

    def _tell(self, what: str, plain: str) -> None:
        now = time.monotonic()
        if what != self._what or now - self._told > _PLAIN_SECONDS:
            self._what, self._told = what, now
            self._console.print(plain, highlight=False, markup=False, soft_wrap=True)

    def _stop(self) -> None:
        bar, self._bar = self._bar, None
        if bar:
            bar.stop()
