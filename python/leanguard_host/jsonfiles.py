"""Reading JSON exactly: what can't be carried to Lean without a change is refused, with its place.

Python's own reader keeps the last of two equal keys, accepts NaN and rounds numbers. Each of these could make the call
that is decided another one than the call that is made, so here they are errors. This module imports little: the command
line reads files before anything else.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

CALL_LIMIT = 1 << 20
"""Most bytes of a call: it is written by a model."""

FILE_LIMIT = 64 << 20
"""Most bytes of any other file."""

DEEPEST = 32
LARGEST = 10**15
LONGEST_NAME = 256
_SHOWN = 60
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


class InputError(Exception):
    """Input that can't be used: where it stands, what was expected, what was found.

    Attributes:
        file: the file, `standard input`, or the option or argument at fault.
        path: the JSON path, as in `$.state.orders["#W1"]`; empty where there is none.
        line: the line of the file, where that says more than the path alone.
        column: the column, counted from 1, of a file that is not JSON.
        expected: what should be there.
        found: what is there.
    """

    def __init__(
        self,
        file: str,
        expected: str,
        found: str,
        *,
        path: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.file, self.expected, self.found = file, expected, found
        self.path, self.line, self.column = path, line, column
        super().__init__(str(self))

    def __str__(self) -> str:
        place = self.file
        if self.line is not None:
            place += f", line {self.line}"
        if self.column is not None:
            place += f", column {self.column}"
        if self.path:
            place += f", at {self.path}"
        return f"{place}: expected {self.expected}, found {self.found}"

    def as_json(self) -> dict[str, Any]:
        """The problem as an object for `--json` and for the background process."""
        fields = {name: getattr(self, name) for name in ("file", "path", "line", "column", "expected", "found")}
        return {"kind": "input", "message": str(self), **fields}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> InputError:
        """The problem that `as_json` described."""
        texts: dict[str, str] = {name: str(fields.get(name)) for name in ("file", "expected", "found", "path")}
        return cls(**texts, line=fields.get("line"), column=fields.get("column"))


class JsonValueError(Exception):
    """A value that can't be carried exactly. `place` holds the keys and positions that lead to it."""

    def __init__(self, place: tuple[str | int, ...], expected: str, found: str) -> None:
        super().__init__(f"{json_path(place)}: expected {expected}, found {found}")
        self.place, self.expected, self.found = place, expected, found


@dataclass(frozen=True)
class Source:
    """A text and the name by which problems in it are told."""

    name: str
    text: str

    def as_json(self) -> dict[str, str]:
        """The source as an object, for the background process."""
        return asdict(self)


def json_path(place: tuple[str | int, ...]) -> str:
    """The keys and positions as a JSON path."""
    parts = ["$"]
    for step in place:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _PLAIN_NAME.fullmatch(step):
            parts.append(f".{step}")
        else:
            parts.append(f"[{json.dumps(shortened(step))}]")
    return "".join(parts)


def shortened(text: str) -> str:
    """The text, or its beginning."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def describe(value: object) -> str:
    """What a value is, for messages: its kind, and for scalars the value itself."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return f"the number {shortened(str(value))}"
        case str():
            return f"the string {json.dumps(shortened(value))}"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
    return f"a Python {type(value).__name__}"


# ---- values ----


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, before duplicate keys are looked for."""


class _Unreadable(str):
    """A number as it was written, too large to be worth reading, or one that JSON has not."""


def _read_int(text: str) -> int | _Unreadable:
    return int(text) if len(text) <= 2 * len(str(LARGEST)) else _Unreadable(text)


def _read_decimal(text: str) -> Decimal | _Unreadable:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond what Decimal can hold
        return _Unreadable(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Pairs, parse_int=_read_int, parse_float=_read_decimal, parse_constant=_Unreadable
)


def _exact_number(number: Decimal) -> int | float | str:
    """The number as json.dumps writes it without a change, or what was expected instead."""
    if not number.is_finite():
        return "a number"
    if number.copy_abs() > LARGEST:  # abs() would round
        return f"a number of at most {LARGEST} in magnitude"
    significant = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    if not significant:
        return 0
    places = len(significant) - 1 - number.adjusted()
    if places <= 0:
        return int(number)
    if places > 6:
        return "a number with at most 6 decimal places"
    nearest = float(number)
    # Python writes the shortest text that reads back as the same float: of up to 15 digits always what we read.
    return nearest if Decimal(repr(nearest)) == number else "a number with at most 15 significant digits"


class _Settler:
    """Turns a value into plain JSON values, and says where it can't."""

    def __init__(self) -> None:
        self.place: list[str | int] = []

    def problem(self, expected: str, found: str) -> JsonValueError:
        return JsonValueError(tuple(self.place), expected, found)

    def name(self, name: object) -> str:
        if not isinstance(name, str):
            raise self.problem("a string as the field's name", describe(name))
        if _SURROGATE.search(name):
            raise self.problem("Unicode text", "a field's name with half of a surrogate pair")
        if len(name.encode()) > LONGEST_NAME:
            raise self.problem(f"field names of at most {LONGEST_NAME} bytes", f"one of {len(name.encode())}")
        return name

    def settle(self, value: object, depth: int) -> Any:
        match value:
            case _Unreadable():
                expected = "a number" if value[-1:] in "Ny" else f"a number of at most {LARGEST} in magnitude"
                raise self.problem(expected, shortened(value))
            case str():
                if _SURROGATE.search(value):
                    raise self.problem("Unicode text", "half of a surrogate pair")
                return str(value)
            case None | bool():
                return value
            case int():
                if abs(value) > LARGEST:
                    found = str(value) if abs(value) < 10**40 else "a larger one"
                    raise self.problem(f"a number of at most {LARGEST} in magnitude", found)
                return int(value)
            case Decimal() | float():
                number = _exact_number(value if isinstance(value, Decimal) else Decimal(repr(float(value))))
                if isinstance(number, str):
                    raise self.problem(number, shortened(str(value)))
                return number
        if not isinstance(value, list | tuple | Mapping):
            raise self.problem("a JSON value", describe(value))
        if depth == 0:
            raise self.problem(f"at most {DEEPEST} levels of nesting", "more")
        if isinstance(value, _Pairs | Mapping):
            settled: dict[str, Any] = {}
            for key, item in value.items() if isinstance(value, Mapping) else value:
                name = self.name(key)
                self.place.append(name)
                if name in settled:
                    raise self.problem("each key once", "a duplicate key")
                settled[name] = self.settle(item, depth - 1)
                self.place.pop()
            return settled
        items = []
        for index, item in enumerate(value):
            self.place.append(index)
            items.append(self.settle(item, depth - 1))
            self.place.pop()
        return items


def exact(value: object) -> Any:
    """A copy of a value, of plain JSON values alone, that crosses to Lean without a change.

    Raises:
        JsonValueError: it can't: NaN, a number out of range, deep nesting, half a surrogate pair, a duplicate key, or
            something that is not JSON.
    """
    return _Settler().settle(value, DEEPEST)


# ---- texts ----


def parse(source: Source, *, line: int | None = None) -> Any:
    """The JSON value that a text is.

    Args:
        source: the text.
        line: the line of the file that the text is, if it is one line of many.

    Raises:
        InputError: it is not JSON, or holds what `exact` refuses.
    """
    if source.text.startswith("\ufeff"):
        raise InputError(source.name, "JSON", "a byte order mark before it", line=line)
    if not source.text.strip(" \t\r\n"):
        raise InputError(source.name, "JSON", "nothing", line=line)
    try:
        return exact(_DECODER.decode(source.text))
    except json.JSONDecodeError as error:
        found = f"something else ({error.msg.removesuffix(' at')})"
        raise InputError(source.name, "JSON", found, line=line or error.lineno, column=error.colno) from None
    except RecursionError:
        raise InputError(source.name, f"at most {DEEPEST} levels of nesting", "more", line=line) from None
    except JsonValueError as problem:
        path = json_path(problem.place)
        raise InputError(source.name, problem.expected, problem.found, path=path, line=line) from None


def parse_lines(source: Source) -> list[tuple[int, Any]]:
    """The JSON values of a text with one on each line, with their line numbers. Blank lines are skipped.

    Raises:
        InputError: a line is not JSON.
    """
    if source.text.startswith("\ufeff"):
        raise InputError(source.name, "JSON", "a byte order mark before it", line=1)
    lines = enumerate(source.text.split("\n"), start=1)
    return [(number, parse(Source(source.name, line), line=number)) for number, line in lines if line.strip(" \t\r")]


def read(argument: str, limit: int) -> Source:
    """The text of a file; `-` is standard input.

    Raises:
        InputError: there is none, it can't be read, it is larger than the limit, or it is not UTF-8.
    """
    name = "standard input" if argument == "-" else argument
    if argument == "-":
        if sys.stdin is None:  # Python's sign that descriptor 0 was closed
            raise InputError(name, "JSON", "that it is closed")
        try:
            data = sys.stdin.buffer.read(limit + 1)
        except (OSError, ValueError) as error:
            raise InputError(name, "JSON", f"that it can't be read ({error})") from None
    else:
        data = _read_file(argument, limit)
    if len(data) > limit:
        raise InputError(name, f"at most {_size(limit)}", "more")
    try:
        return Source(name, data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(name, "UTF-8 text", f"the byte 0x{data[error.start]:02x}", line=line) from None


def _read_file(argument: str, limit: int) -> bytes:
    try:
        with Path(argument).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise InputError(argument, f"at most {_size(limit)}", _size(size))
            return file.read(limit + 1)
    except IsADirectoryError:
        raise InputError(argument, "a file", "a directory") from None
    except FileNotFoundError:
        raise InputError(argument, "a file", "nothing by this name") from None
    except PermissionError:
        raise InputError(argument, "a file", "one that may not be read (permission denied)") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise InputError(argument, "a file", f"that it can't be read ({error})") from None


def _size(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB".replace(".0 ", " ")
