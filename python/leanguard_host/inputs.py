"""From texts to the models: what `leanguard check` is given, with every problem told by file and JSON path."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from leanguard_host.jsonfiles import InputError, Source, json_path, parse, parse_lines
from leanguard_host.models import Call, Event, M, ModelError, Snapshot, read_model


@dataclass(frozen=True)
class Inputs:
    """What one decision is about."""

    call: Call
    snapshot: Snapshot
    journal: list[Event]


def _read(model: type[M], value: Any, name: str, line: int | None = None) -> M:
    try:
        return read_model(model, value)
    except ModelError as problem:
        raise InputError(name, problem.expected, problem.found, path=json_path(problem.place), line=line) from None


def read_inputs(call: Source, snapshot: Source, journal: Source | None) -> Inputs:
    """Read a call, a snapshot and a journal (one event a line, oldest first; none is an empty one).

    A snapshot without a time is of now.

    Raises:
        InputError: one of them can't be used.
    """
    state = parse(snapshot)
    if isinstance(state, dict):
        state.setdefault("time", time.time_ns() // 1_000_000)
    return Inputs(
        _read(Call, parse(call), call.name),
        _read(Snapshot, state, snapshot.name),
        [_read(Event, value, journal.name, line) for line, value in parse_lines(journal)] if journal else [],
    )
