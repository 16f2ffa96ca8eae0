"""The `leanguard` program.

An agent waits for `leanguard check` before each of its calls, so a plain one is run without importing the machinery of
the other commands, which would take longer than all the rest. What is not plain (help, a mistake, another command) goes
to `commands`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import Any

from leanguard_host.failing import DENIED, INTERRUPTED

_VALUES = {f"--{name}": name for name in ("policy", "snapshot", "journal", "call", "timeout")} | {"--feedback": "style"}
_FLAGS = {"--json": "json_", "--repair": "repair", "--no-daemon": "no_daemon", "--without-stricter": "without_stricter"}


def plain_check(arguments: list[str]) -> dict[str, Any] | None:
    """The options of a `check` command that has each at most once and all that it needs; None for anything else."""
    if arguments[:1] != ["check"]:
        return None
    options: dict[str, Any] = {}
    rest = iter(arguments[1:])
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in _FLAGS and not equals:
            options[_FLAGS[name]] = True
        elif name in _VALUES and _VALUES[name] not in options:
            given = value if equals else next(rest, "--")
            if not equals and given.startswith("-") and given != "-":
                return None
            options[_VALUES[name]] = given
        else:
            return None
    if not {"policy", "snapshot", "journal", "call"} <= set(options):
        return None
    if "timeout" in options:
        try:
            options["timeout"] = float(options["timeout"])
        except ValueError:
            return None
    return options


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise SystemExit(INTERRUPTED)


def main() -> None:
    """Run the command that the arguments name.

    Raises:
        SystemExit: always, with the command's exit code.
    """
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, _interrupted)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a narrow encoding is no reason to fail
    options = plain_check(sys.argv[1:])
    if options is None:
        from leanguard_host.commands import app

        app(prog_name="leanguard")
    else:
        raise SystemExit(_run_check(options))


def _run_check(options: dict[str, Any]) -> int:
    from leanguard_host.checking import run

    try:
        code = run(**options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # the verdict could not be told, so it must not be taken for an admission
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again at its end
        if not isinstance(error, BrokenPipeError):
            print(f"error: the decision can't be written: {error.strerror}", file=sys.stderr)
        return DENIED
    return code


if __name__ == "__main__":
    main()
