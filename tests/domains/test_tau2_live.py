"""The benchmark's own environment behind the policies, beside our backend.

A stand-in for an environment shows what the adapter does of itself; where `tau2` is installed, the benchmark's own
environments show that nothing else comes of it than of our backends.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import worlds
from pydantic import BaseModel, ConfigDict
from pydantic_core import to_jsonable_python
from test_tau2 import TASKS, theirs
from worlds import Chat, Row

from leanguard_host.adapter import DefiniteFailure
from leanguard_host.adapters.tau2 import Backend, Session, Tau2MissingError, ToolError, open_backend, open_environment
from leanguard_host.adapters.tau2.backend import DataError
from leanguard_host.adapters.tau2.episodes import Episode, read_episodes
from leanguard_host.adapters.tau2.live import Live, RefusedError
from leanguard_host.adapters.tau2.reference import honest
from leanguard_host.guard import Guard
from leanguard_host.models import Call
from leanguard_host.replay import replay_episode


class Record(BaseModel):
    """A row, as an environment keeps it: an object whose fields are not those of a dictionary."""

    model_config = ConfigDict(extra="allow")


class Toolkit:
    """The agent's tools of a stand-in: those of one of our backends, on a database of objects."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.broken: Callable[[Row], None] | None = None

    @property
    def db(self) -> Any:
        tables = {
            table: {key: Record(**row) for key, row in rows.items()}
            if self.backend.name != "telecom"
            else [Record(**{f"{table[:-1]}_id": key, **row}) for key, row in rows.items()]
            for table, rows in self.backend.data.items()
        }
        return Record(**tables)

    @property
    def tools(self) -> dict[str, Callable[..., Any]]:
        found = {name[5:]: getattr(self.backend, name) for name in dir(self.backend) if name.startswith("tool_")}
        return {name: tool for name, tool in found.items() if callable(tool)}

    def has_tool(self, name: str) -> bool:
        return name in self.tools


class StandIn:
    """What the adapter uses of an environment."""

    def __init__(self, backend: Backend) -> None:
        self.domain_name = backend.name
        self.tools = Toolkit(backend)
        self.user_tools = SimpleNamespace(tools={"make_payment": None})
        self.solo_mode = True  # in which the benchmark's agent may use the device
        self.synced = 0

    def use_tool(self, tool_name: str, **arguments: Any) -> Any:
        if self.tools.broken is not None:
            self.tools.broken(self.tools.backend.data)
            raise KeyError("later")
        try:
            result = self.tools.tools[tool_name](**arguments)
        except ToolError as error:
            raise ValueError(str(error)) from None
        return Record(**result) if isinstance(result, dict) else result

    def use_user_tool(self, tool_name: str, **arguments: Any) -> Any:
        if tool_name not in self.user_tools.tools:
            raise ValueError("no such tool")
        self.tools.backend.user_call(tool_name, arguments)

    def sync_tools(self) -> None:
        self.synced += 1

    def run_env_function_call(self, call: Any) -> Any:
        self.tools.backend.initialize(vars(call))


def live(backend: Backend) -> Live:
    """A backend on a stand-in that has this database."""
    return open_environment(StandIn(backend))


WORLDS: dict[str, Callable[[], Backend]] = {
    "retail": worlds.retail,
    "airline": worlds.airline,
    "telecom": worlds.telecom,
}
ADA = {"retail": "ada_1", "airline": "ada_1", "telecom": "C1"}
CALLS: dict[str, list[Row]] = {
    "retail": [
        {"tool": "get_order_details", "arguments": {"order_id": "#P1"}},
        {"tool": "cancel_pending_order", "arguments": {"order_id": "#P1", "reason": "no longer needed"}},
        {
            "tool": "modify_pending_order_items",
            "arguments": {
                "order_id": "#P1",
                "item_ids": ["lamp-a"],
                "new_item_ids": ["lamp-b"],
                "payment_method_id": "gift_1",
            },
        },
        {"tool": "get_order_details", "arguments": {"order_id": "#none"}},
        {"tool": "get_order_details", "arguments": {"order_id": 7}},
    ],
    "airline": [
        {"tool": "get_reservation_details", "arguments": {"reservation_id": "R1"}},
        {"tool": "cancel_reservation", "arguments": {"reservation_id": "R1"}},
        {"tool": "send_certificate", "arguments": {"user_id": "ada_1", "amount": 100}},
    ],
    "telecom": [
        {"tool": "get_customer_by_phone", "arguments": {"phone_number": "555-000-0001"}},
        {"tool": "get_customer_by_phone", "arguments": {"phone_number": "none"}},
        {"tool": "get_details_by_id", "arguments": {"id": "L1"}},
        {"tool": "send_payment_request", "arguments": {"customer_id": "C1", "bill_id": "B1"}},
        {"tool": "suspend_line", "arguments": {"customer_id": "C1", "line_id": "L1", "reason": "lost"}},
    ],
}


@pytest.mark.parametrize("name", WORLDS)
def test_an_environment_is_told_as_our_backend_is(name: str) -> None:
    ours, theirs = WORLDS[name](), live(WORLDS[name]())
    assert theirs.name == name
    for principal in (None, ADA[name], "nobody"):
        for wire in CALLS[name]:
            call = Call(**wire)
            sessions = [Session(backend, "c") for backend in (ours, theirs)]
            for session in sessions:
                session.principal = principal
            assert sessions[0].snapshot(call) == sessions[1].snapshot(call)


@pytest.mark.parametrize("name", WORLDS)
def test_the_tools_run_there_and_the_revision_follows(name: str) -> None:
    ours, backend = WORLDS[name](), live(WORLDS[name]())
    environment: Any = backend.environment
    wrote = 0
    for wire in CALLS[name]:
        call, session = Call(**wire), Session(backend, "c")
        session.principal = ADA[name]
        before, whole, synced = session.snapshot(call).revision, backend.digest(), environment.synced
        try:
            result = ours.run(wire)
        except ToolError as error:
            with pytest.raises(RefusedError, match=str(error)):
                backend.run(wire)
            assert backend.digest() == whole
            continue
        assert backend.run(wire) == result
        if call.tool in backend.writes:
            wrote += 1
            assert backend.digest() != whole
            assert session.snapshot(call).revision != before
            assert environment.synced == synced + 1
        else:
            assert backend.digest() == whole
            assert session.snapshot(call).revision == before
    assert wrote > 0


def test_a_result_is_a_copy() -> None:
    backend = live(worlds.retail())
    whole = backend.digest()
    backend.run(CALLS["retail"][0])["status"] = "delivered"
    row = backend.row("orders", "#P1")
    assert row is not None
    row["status"] = "delivered"
    assert backend.digest() == whole


def test_what_else_changes_the_database_changes_the_revision() -> None:
    backend = live(worlds.telecom())
    session, call = Session(backend, "c"), Call(**CALLS["telecom"][3])
    session.principal = "C1"
    backend.run(CALLS["telecom"][3])
    before = session.snapshot(call)
    backend.user_call("make_payment", {})
    after = session.snapshot(call)
    assert (before.state["bills"]["B1"]["status"], after.state["bills"]["B1"]["status"]) == ("Awaiting Payment", "Paid")
    assert before.revision != after.revision
    backend.user_call("no_such_tool", {})  # an answer to the customer
    assert session.snapshot(call) == after
    prepared = {"env_type": "assistant", "func_name": "suspend_line", "arguments": CALLS["telecom"][4]["arguments"]}
    backend.initialize(prepared)
    assert (backend.row("lines", "L1") or {})["status"] == "Suspended"
    with pytest.raises(ToolError, match="prepared"):
        backend.initialize(prepared)  # it is suspended already


def test_the_customers_device_is_not_offered() -> None:
    backend = live(worlds.telecom())
    whole = backend.digest()
    assert set(backend.tools()) == set(backend.environment.tools.tools)
    assert not backend.has("make_payment")
    with pytest.raises(RefusedError, match="Unknown tool make_payment"):
        backend.run({"tool": "make_payment", "arguments": {}})
    for name in ("requestor", "tool_name"):  # words of the environment's own methods choose nothing
        with pytest.raises(RefusedError):
            backend.run({"tool": "get_customer_by_id", "arguments": {"customer_id": "C1", name: "user"}})
    assert backend.digest() == whole


def test_only_an_untouched_database_is_a_refusal() -> None:
    backend = live(worlds.retail())
    kit = backend.environment.tools
    write = CALLS["retail"][1]
    kit.broken = lambda data: None
    with pytest.raises(RefusedError) as refused:
        backend.run(write)
    assert isinstance(refused.value, DefiniteFailure)
    kit.broken = lambda data: data["orders"]["#P1"].update(status="cancelled")
    with pytest.raises(KeyError):
        backend.run(write)
    assert (backend.row("orders", "#P1") or {})["status"] == "cancelled"


def test_the_dust_of_sums_is_left_out_and_nothing_more() -> None:
    data = worlds.retail()
    methods = data.data["users"]["ada_1"]["payment_methods"]
    methods["gift_1"]["balance"] = 0.1 + 0.2
    methods["gift_2"] = {"source": "gift_card", "balance": 4.9999999}
    found = (live(data).row("users", "ada_1") or {})["payment_methods"]
    assert (found["gift_1"]["balance"], found["gift_2"]["balance"]) == (0.3, 4.9999999)


def test_a_copy_of_the_environment_is_another() -> None:
    backend = live(worlds.retail())
    other, whole = backend.fork(), backend.digest()
    assert other.digest() == whole
    other.run(CALLS["retail"][1])
    assert other.digest() != whole == backend.digest()


def test_what_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted in ("banking", SimpleNamespace(domain_name="banking")):
        with pytest.raises(DataError, match="no adapter for 'banking'"):
            open_environment(wanted)
    with pytest.raises(DataError, match="open_environment"):
        Live.load(Path())
    monkeypatch.setitem(sys.modules, "tau2.domains.retail.environment", None)  # as if it were not installed
    with pytest.raises(Tau2MissingError, match=r"retail.*needs its package `tau2`.*tau2-bench.*pip install"):
        open_environment("retail")


def test_a_domain_is_opened_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Row] = []

    def made(**options: Any) -> Any:
        asked.append(options)
        return StandIn(worlds.telecom())

    def lost(**options: Any) -> Any:
        raise FileNotFoundError("db.toml")

    module = SimpleNamespace(get_environment=made)
    monkeypatch.setitem(sys.modules, "tau2.domains.telecom.environment", module)
    assert open_environment("telecom").has("refuel_data")
    assert open_environment("telecom-workflow").name == "telecom"
    assert asked == [{}, {"policy_type": "workflow"}]
    module.get_environment = lost
    with pytest.raises(DataError, match="TAU2_DATA_DIR"):
        open_environment("telecom")


def test_the_policies_decide_on_an_environment(engine: Any) -> None:
    cancel = CALLS["retail"][1]["arguments"]
    chat = Chat(engine, live(worlds.retail())).login()
    chat.ok("get_order_details", order_id="#P1")
    chat.no("retail.confirmation", "cancel_pending_order", confirm=False, **cancel)
    chat.ok("cancel_pending_order", **cancel)
    assert chat.session.backend.run(CALLS["retail"][0])["status"] == "cancelled"


def conduct(guard: Guard, backend: Backend, tools: Callable[[str], Callable[..., Any]], episode: Episode) -> list[Any]:
    """Run an episode's calls through a guard; the customer confirms on a trusted screen what has to be confirmed."""
    session, ends = Session(backend, episode.name), []
    for action in episode.preparation:
        backend.initialize(action)
    for step in honest(backend, episode):
        if step.kind == "customer":
            for event in session.customer_says(step.text):
                guard.record(event)
        elif step.kind == "device":
            backend.user_call(step.tool, step.arguments)
        elif step.kind == "call":
            call = {"tool": step.tool, "arguments": step.arguments}
            done = guard.execute(call, tools(step.tool), adapter=session)
            if done.status == "needs_confirmation":
                assert session.principal is not None
                assert done.proposal_id is not None
                guard.confirm(done.proposal_id, by=session.principal)
                ends.append("confirmed")
                done = guard.execute(call, tools(step.tool), adapter=session)
            ends.append((step.tool, done.status, [rule.id for rule in done.decision.failed_rules]))
    return ends


def executed(engine: Any, place: Path, backend: Backend, episode: Episode) -> list[Any]:
    """The same with a guard and a journal of its own."""
    with Guard(
        policy=backend.name, journal=f"sqlite:///{place}", engine=engine, clock=lambda: backend.now, timeout=60
    ) as guard:
        if isinstance(backend, Live):
            return conduct(guard, backend, backend.tools().__getitem__, episode)

        def tool(name: str) -> Callable[..., Any]:
            def run(**arguments: Any) -> Any:
                try:
                    return backend.run({"tool": name, "arguments": arguments})
                except ToolError as error:
                    raise DefiniteFailure(str(error)) from error

            return run

        return conduct(guard, backend, tool, episode)


def test_a_guard_executes_on_an_environment(engine: Any, tmp_path: Path) -> None:
    backend = live(worlds.retail())
    session = Session(backend, "c")
    tools = backend.tools()
    with Guard(
        policy="retail", journal=f"sqlite:///{tmp_path}/j.db", engine=engine, clock=lambda: backend.now, timeout=60
    ) as guard:

        def execute(tool: str, **arguments: Any) -> Any:
            return guard.execute({"tool": tool, "arguments": arguments}, tools[tool], adapter=session)

        assert execute("find_user_id_by_email", email="nobody@example.com").status == "failed"
        assert execute("find_user_id_by_email", email="ada@example.com").value == "ada_1"
        assert execute("get_order_details", order_id="#P1").value["status"] == "pending"
        assert execute("get_order_details", order_id="#P1", requestor="user").status == "denied"
        cancel = CALLS["retail"][1]["arguments"]
        asked = execute("cancel_pending_order", **cancel)
        assert asked.status == "needs_confirmation"
        guard.confirm(asked.proposal_id, by="ada_1")
        backend.environment.tools.broken = lambda data: data["orders"]["#P1"].update(cancel_reason="")
        assert execute("cancel_pending_order", **cancel).status == "unknown"  # something of it was done
        assert [left.call.tool for left in guard.unsettled()] == ["cancel_pending_order"]


# --- with `tau2` ---


def environment(name: str, backend: Backend) -> Any:
    """The benchmark's environment on the same database."""
    kit = theirs(name, backend)
    module = importlib.import_module(f"tau2.domains.{name}.environment")
    if name != "telecom":
        return module.Environment(domain_name=name, policy="", tools=kit)
    device = importlib.import_module("tau2.domains.telecom.user_data_model").TelecomUserDB()
    users = importlib.import_module("tau2.domains.telecom.user_tools").TelecomUserTools(device)
    return module.TelecomEnvironment(domain_name=name, policy="", tools=kit, user_tools=users)


def to_the_cent(value: Any) -> Any:
    """Amounts to the cent: the benchmark keeps the dust of its sums."""
    if isinstance(value, dict):
        return {key: to_the_cent(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_the_cent(item) for item in value]
    return round(value, 2) if isinstance(value, float) else value


def changed(before: Row, after: Row) -> Iterator[tuple[str, str]]:
    """The rows that are not as before."""
    for table, rows in after.items():
        for key, row in rows.items():
            old = before[table].get(key)
            if old is None or (old is not row and old != row and told(table, old) != told(table, row)):
                yield table, key


def tables(backend: Live) -> Row:
    """The environment's whole database, by table and id."""
    found = to_jsonable_python(backend.environment.tools.db)
    return {
        table: rows if isinstance(rows, dict) else {row[f"{table[:-1]}_id"]: row for row in rows}
        for table, rows in found.items()
        if isinstance(rows, dict | list)
    }


def told(table: str, row: Row) -> Row:
    """What a row says, in the same words for both databases."""
    found: Row = to_the_cent({key: item for key, item in to_jsonable_python(row).items() if item is not None})
    if table == "orders":  # the benchmark gives all items that one call changes the price and options of the last one
        found["items"] = [
            {key: item[key] for key in item if key not in ("price", "options")} for item in found["items"]
        ]
    if table == "bills":
        found.pop("line_items", None)  # no rule reads them, and our backend doesn't write them
    return found


def same_changes(ours: Backend, first: Row, backend: Live, begun: Row) -> int:
    """Both changed the same rows, and to the same; returns how many."""
    now = tables(backend)
    rows = set(changed(first, ours.data))
    assert rows == set(changed(begun, now))
    for table, key in rows:
        mine, other = told(table, ours.data[table][key]), told(table, now[table][key])
        assert mine == {name: other.get(name) for name in mine}, (table, key)
    return len(rows)


@pytest.mark.parametrize("name", TASKS)
def test_the_benchmarks_environment_gives_the_same_decisions_and_databases(engine: Any, data: Path, name: str) -> None:
    pytest.importorskip(f"tau2.domains.{name}.environment")
    first = open_backend(name, data)
    base = open_environment(environment(name, first))
    begun = tables(base)
    admitted = written = 0
    for episode in read_episodes(data / TASKS[name]):
        assert isinstance(episode, Episode)
        ours, backend = first.fork(), base.fork()
        mine = [each.as_json() for each in replay_episode(episode, ours, name, engine)]
        other = [each.as_json() for each in replay_episode(episode, backend, name, engine)]
        assert mine == other
        admitted += sum(each["verdict"] == "admit" for each in mine)
        written += same_changes(ours, first.data, backend, begun)
    assert admitted > 0
    assert written > 0


@pytest.mark.parametrize("name", TASKS)
def test_a_guard_executes_the_same_on_the_benchmarks_environment(
    engine: Any, data: Path, tmp_path: Path, name: str
) -> None:
    pytest.importorskip(f"tau2.domains.{name}.environment")
    first = open_backend(name, data)
    base = open_environment(environment(name, first))
    begun = tables(base)
    written = 0
    writing = (
        episode
        for episode in read_episodes(data / TASKS[name])
        if isinstance(episode, Episode) and any(step.tool in first.writes for step in episode.steps)
    )
    for number, episode in enumerate(islice(writing, 4)):
        ours, backend = first.fork(), base.fork()
        ends = executed(engine, tmp_path / f"ours{number}.db", ours, episode)
        assert ends == executed(engine, tmp_path / f"theirs{number}.db", backend, episode)
        written += same_changes(ours, first.data, backend, begun)
    assert written > 0
