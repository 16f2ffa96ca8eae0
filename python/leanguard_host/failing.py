"""Exit codes, and how the command line tells what went wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

from leanguard_host.jsonfiles import InputError
from leanguard_host.lean.errors import BuildFailed, LeanUnavailable
from leanguard_host.out import as_json, say

ADMITTED, DENIED, BAD_INPUT, NO_LEAN, INTERRUPTED = 0, 1, 2, 3, 130


@contextlib.contextmanager
def failures(json_wanted: bool = False) -> Iterator[None]:
    """Tell what went wrong in one clear line, or as one JSON object, and exit with its code.

    Raises:
        SystemExit: something did.
    """
    try:
        yield
    except InputError as problem:
        _fail(BAD_INPUT, problem.as_json(), json_wanted)
    except BuildFailed as failed:
        messages = [str(message) for message in failed.messages if message.severity == "error"]
        if not json_wanted:
            for line in "\n".join(messages).splitlines():
                say(line, error=True)
        text = "The Lean package does not compile."
        _fail(
            NO_LEAN,
            {"kind": "build", "message": text, "errors": messages, "remedy": "Correct the errors."},
            json_wanted,
        )
    except LeanUnavailable as error:
        remedy = getattr(error, "remedy", "") or "Run `leanguard doctor`: it says what is wrong with Lean here."
        text = str(error).removesuffix(remedy).strip()
        _fail(NO_LEAN, {"kind": "unavailable", "message": text, "remedy": remedy}, json_wanted)


def _fail(code: int, error: dict[str, Any], json_wanted: bool) -> NoReturn:
    if json_wanted:
        as_json({"error": error})
    else:
        say(("error: ", "bad"), error["message"], error=True)
        if error.get("remedy"):
            say(error["remedy"], error=True)
    raise SystemExit(code)
