"""What the command line prints. Colours only on a terminal; control characters of untrusted texts never."""

from __future__ import annotations

import json
import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from leanguard_host.feedback import printable

if TYPE_CHECKING:
    from rich.console import Console

    from leanguard_host.lean.progress import ConsoleProgress

STYLES = {"good": "bold green", "bad": "bold red", "warn": "yellow", "dim": "dim", "title": "bold"}


def coloured(stream: TextIO | None) -> bool:
    """Whether to print colours: on a terminal that has them, unless NO_COLOR says otherwise."""
    if stream is None or not stream.isatty():
        return False
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False, soft_wrap=True)


def say(*parts: str | tuple[str, str], error: bool = False) -> None:
    """Print one line on standard output or standard error.

    Args:
        parts: texts, or pairs of a text and a style of STYLES.
        error: whether it goes to standard error.
    """
    stream = sys.stderr if error else sys.stdout
    if stream is None:  # closed
        return
    pairs = [(part, "") if isinstance(part, str) else (part[0], STYLES[part[1]]) for part in parts]
    pieces = [(printable(text), style) for text, style in pairs]
    if coloured(stream):
        from rich.text import Text

        _console(stream).print(Text.assemble(*pieces))
    else:
        print("".join(text for text, _ in pieces), file=stream)


def note(text: str) -> None:
    """Print a remark on standard error."""
    say((text, "dim"), error=True)


def as_json(value: Any) -> None:
    """Print one JSON value, and nothing else, on standard output."""
    if sys.stdout is not None:
        print(json.dumps(value, indent=2, ensure_ascii=False))


class Progressing:
    """A Reporter on standard error. What it takes to draw is imported when there is something to show."""

    def __init__(self) -> None:
        self._shown: ConsoleProgress | None = None

    def _show(self) -> ConsoleProgress:
        if self._shown is None:
            from leanguard_host.lean.progress import ConsoleProgress

            self._shown = ConsoleProgress(quiet=sys.stderr is None)
        return self._shown

    def announce(self, text: str) -> None:
        """Say that something large is going to happen."""
        self._show().announce(text)

    def progress(self, what: str, done: int, total: int) -> None:
        """Show a step."""
        # Without a terminal, what takes seconds is not worth a line among those of a program's log.
        if total or (sys.stderr is not None and sys.stderr.isatty()):
            self._show().install(what, done, total)

    def build(self, module: str, done: int, total: int) -> None:
        """Show a module that is built, or that the build has ended."""
        self._show().build(module, done, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown.__exit__(kind, error, traceback)
            self._shown = None
