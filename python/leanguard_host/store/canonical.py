"""One text for one JSON value: RFC 8785, for the values that `jsonfiles.exact` lets through.

Numbers there have at most 15 significant digits and 6 decimal places, so that plain decimal notation is both exact and
what RFC 8785 asks for. Python's own writer differs in two points: it writes 0.00001 as 1e-05, and sorts names by code
point instead of by UTF-16 unit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_string = json.encoder.encode_basestring
_MOST_DIGITS = 17


def canonical(value: Any) -> str:
    """The canonical text of a JSON value.

    Raises:
        ValueError: the value is not JSON, or has a number that can't be written exactly.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case int():
            return int.__repr__(value)
        case float():
            return _number(value)
        case list() | tuple():
            return "[" + ",".join([canonical(item) for item in value]) + "]"
        case Mapping():
            return (
                "{"
                + ",".join([f"{_string(name)}:{canonical(value[name])}" for name in sorted(value, key=_utf16)])
                + "}"
            )
    raise ValueError(f"a Python {type(value).__name__} is no JSON value")


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be")


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < 10**_MOST_DIGITS:
        return str(int(value))
    text = repr(value)
    if "e" in text:
        text = f"{value:.6f}".rstrip("0")
    if float(text) != value or "n" in text:
        raise ValueError(f"the number {value!r} can't be written exactly")
    return text
