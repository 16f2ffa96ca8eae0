"""Our tools against the benchmark's own, on its reference solutions, where the `tau2` package is installed."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from leanguard_host.adapters.tau2 import DOMAINS, Backend, ToolError, open_backend
from leanguard_host.adapters.tau2.episodes import Episode, read_episodes
from leanguard_host.adapters.tau2.reference import honest

TASKS = {
    "retail": "tau2/retail/tasks.json",
    "airline": "tau2/airline/tasks.json",
    "telecom": "tau2/telecom/tasks_small.json",
}


def theirs(name: str, backend: Backend) -> Any:
    """The benchmark's toolkit on the same database."""
    tools = pytest.importorskip(f"tau2.domains.{name}.tools")
    models = importlib.import_module(f"tau2.domains.{name}.data_model")
    data = backend.fork().data
    if name == "telecom":  # its tables are lists there
        data = {table: list(rows.values()) for table, rows in data.items()}
    elif name == "airline":  # tau-bench's database, which has no ids in its users
        data["users"] = {key: {"user_id": key, **row} for key, row in data["users"].items()}
    kind = {"retail": "RetailDB", "airline": "FlightDB", "telecom": "TelecomDB"}[name]
    return getattr(tools, f"{name.capitalize()}Tools")(getattr(models, kind).model_validate(data))


def mirrored(name: str, toolkit: Any) -> Backend:
    """Our backend on the benchmark's database as it is now."""
    data = toolkit.db.model_dump(mode="json", exclude_none=name != "airline")
    if name == "telecom":
        data = {table: {row[f"{table[:-1]}_id"]: row for row in rows} for table, rows in data.items() if rows}
    return DOMAINS[name](data)


def rounded(value: Any) -> Any:
    """Amounts to the cent: the benchmark keeps the dust of its sums."""
    if isinstance(value, dict):
        # The benchmark gives all items that one call changes the price of the last one.
        return {key: rounded(item) for key, item in value.items() if key != "price"}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 2) if isinstance(value, float) else value


@pytest.mark.parametrize("name", TASKS)
def test_our_tools_do_what_the_benchmarks_do(data: Path, name: str) -> None:
    first = open_backend(name, data)
    compared = 0
    for episode in read_episodes(data / TASKS[name]):
        assert isinstance(episode, Episode)
        ours = first.fork()
        toolkit = theirs(name, ours)
        for action in episode.preparation:
            ours.initialize(action)
            if action["env_type"] == "assistant":
                getattr(toolkit, action["func_name"])(**action["arguments"])
        owner: str | None = None
        for step in honest(ours, episode):
            if step.kind == "device":
                ours.user_call(step.tool, step.arguments)
                if step.tool == "make_payment":
                    waiting = [bill for bill in toolkit.db.bills if bill.status == "Awaiting Payment"]
                    toolkit._set_bill_to_paid(waiting[0].bill_id)
                continue
            if step.kind != "call":
                continue
            call = {"tool": step.tool, "arguments": json.loads(json.dumps(step.arguments))}
            results: list[bool] = []
            for run in (ours.run, lambda c, kit=toolkit: getattr(kit, c["tool"])(**c["arguments"])):
                try:
                    result = run(call)
                    results.append(True)
                    owner = owner or (ours.identified(call, result) if len(results) == 1 else None)
                except (ToolError, ValueError):
                    results.append(False)
            assert results[0] == results[1], (episode.name, call)
            if step.tool in ours.writes:
                theirs_now = mirrored(name, toolkit)
                customers = (
                    [owner] if owner else [None, *(str(v) for k, v in call["arguments"].items() if k == "user_id")]
                )
                for customer in customers:
                    assert rounded(ours.state(call, customer)) == rounded(theirs_now.state(call, customer)), (
                        episode.name
                    )
                compared += 1
    assert compared > 0
