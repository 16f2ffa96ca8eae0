"""Formulas, histories, policies and situations for hypothesis, as JSON.

The alphabets are small, so that things often agree; everything else is meant to be hard: clocks that run backwards,
moments that lack a dimension, atoms that can't be evaluated at some moments, pending moments in the past, values that
are equal in one language and not in another. Choices are drawn several at a time: hypothesis takes its time for each
draw, and tens of thousands of cases are wanted.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import strategies as st

Json = Any
Moment = dict[str, Json]

NAMES = ("x", "y")
PEOPLE = ("ann", "bob")
DIMENSIONS = (
    "principal",
    "conversation",
    "resource",
    "revision",
    "proposal",
    "tool",
    {"argument": "x"},
    {"argument": "y"},
)
RESOURCES = ({"type": "order", "id": "1"}, {"type": "order", "id": "2"}, {"type": "user", "id": "1"})
# Equal in Python or in JavaScript but not in JSON, or the other way round; a string of 300 bytes is no symbol.
ODD: tuple[Json, ...] = (
    None, 0, 1, 1.0, 1.5, -1, "1", "", "true", "é", "x" * 300, [], [1], [True], [[]],
    {}, {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2},
)  # fmt: skip
FLAGS = tuple({"x": x, "y": y} for x, y in product((True, False), repeat=2))
FIELDS = (
    *FLAGS * 6,
    {},
    {"x": True},
    {"y": False},
    *({"x": value} for value in ODD),
    *({"x": True, "y": value} for value in ODD),
)


def weighted(*choices: tuple[int, Json]) -> st.SearchStrategy[Json]:
    """One of the choices, each as often as its weight says."""
    return st.sampled_from([choice for weight, choice in choices for _ in range(weight)])


def present(moment: Moment) -> Moment:
    """Without the fields that have nothing; but absent and null are the same on the wire, and one field shows it."""
    return {name: value for name, value in moment.items() if value is not None or name == "revision"}


# ---- moments -------------------------------------------------------------------------------------

calls = st.tuples(st.sampled_from("tu"), st.sampled_from(FIELDS)).map(lambda c: {"tool": c[0], "arguments": c[1]})
times = st.integers(-3, 12)
_who = st.sampled_from(list(product((*PEOPLE, *PEOPLE, None), ("c", "c", "d", None))))
_what = st.sampled_from(list(product((*RESOURCES, None), ("r", "r", "s", None))))
_how = st.sampled_from(list(product("abc", ("succeeded", "succeeded", "failed", None))))
_state = weighted((3, {"ready": True}), (2, {"ready": False}), (1, {}), (1, {"ready": None}))


@st.composite
def events(draw: st.DrawFn) -> Moment:
    kind, status = draw(_how)
    principal, conversation = draw(_who)
    resource, revision = draw(_what)
    return present(
        {
            "kind": kind,
            "time": draw(times),
            "principal": principal,
            "conversation": conversation,
            "resource": resource,
            "revision": revision,
            "call": draw(calls) if draw(st.integers(0, 3)) else None,
            "status": status,
            "data": draw(st.sampled_from(FIELDS)),
        }
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Moment:
    principal, conversation = draw(_who)
    revision = draw(st.sampled_from("rs"))
    return present(
        {
            "revision": revision,
            "time": draw(times),
            "principal": principal,
            "conversation": conversation,
            "state": draw(_state),
        }
    )


@st.composite
def pending(draw: st.DrawFn) -> Moment:
    resource = draw(st.sampled_from((*RESOURCES, None)))
    return present({"call": draw(calls), "snapshot": draw(snapshots()), "resource": resource})


def in_time(moments: list[Moment]) -> list[Moment]:
    """The same moments with their times in order."""
    ordered = sorted(each.get("snapshot", each)["time"] for each in moments)
    return [
        {**each, "snapshot": {**each["snapshot"], "time": time}} if "snapshot" in each else {**each, "time": time}
        for each, time in zip(moments, ordered, strict=True)
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[Moment]:
    """Up to 12 moments, now and then pending ones, and a pending one behind them: oldest first."""
    sorted_times, mixed = draw(weighted((2, (True, False)), (1, (False, False)), (1, (True, True)), (1, (False, True))))
    moment = st.one_of(events(), events(), events(), pending()) if mixed else events()
    moments = [*draw(sized_lists(moment, (0, 1, 2, 3, 4, 6, 8, 10, 12))), draw(pending())]
    return in_time(moments) if sorted_times else moments


# ---- formulas ------------------------------------------------------------------------------------

windows = weighted((3, None), *((1, bound) for bound in range(9)))
scopes = st.lists(st.sampled_from(DIMENSIONS), max_size=3)
atoms = weighted(
    *((4, ["kind", kind]) for kind in "abc"),
    *((3, ["principal", name]) for name in PEOPLE),
    *((2, ["flag", name]) for name in NAMES),
    (1, ["status", "succeeded"]),
    (1, ["ready"]),
    (1, ["top"]),
    (1, ["bot"]),
)


def _larger(part: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    since = st.tuples(st.just("since"), windows, part, part)
    return st.one_of(
        st.tuples(st.just("not"), part),
        st.tuples(st.sampled_from(("and", "or")), part, part),
        st.tuples(st.sampled_from(("previous", "once")), windows, part),
        since,
        since,
        st.tuples(st.just("within"), scopes, part),
    ).map(list)


formulas = st.recursive(atoms, _larger, max_leaves=8)

# ---- policies ------------------------------------------------------------------------------------

_types = weighted((25, "boolean"), (1, "string"), (1, "integer"), (1, "number"), (1, "object"), (1, "strings"))


def _parameter(name: str) -> st.SearchStrategy[Json]:
    required = weighted((3, False), (1, True))
    return st.tuples(_types, required).map(lambda p: {"name": name, "type": p[0], "required": p[1]})


_contract = st.fixed_dictionaries(
    {
        "access": st.sampled_from(("read", "write")),
        "parameters": st.tuples(_parameter("x"), _parameter("y")).map(list),
        "resource": st.sampled_from(({"type": "order", "id": "x"}, {"type": "order", "id": "y"}, None)),
    }
)
_rule = st.fixed_dictionaries(
    {
        "kind": weighted((2, "permit"), (1, "require"), (1, "forbid")),
        "tools": weighted((4, "every"), (2, "writing"), (1, ["t"]), (1, ["u"]), (1, ["u", "t"]), (1, [])),
        "condition": st.one_of(atoms, st.recursive(atoms, _larger, max_leaves=4)),
    }
)


@st.composite
def policies(draw: st.DrawFn) -> Json:
    """Contracts for two tools, and up to eight rules."""
    rules = draw(sized_lists(_rule, (0, 1, 2, 3, 4, 5, 6, 8)))
    return {
        "contracts": [{"tool": tool, **draw(_contract)} for tool in "tu"],
        "rules": [{"id": f"rule{i}", **rule} for i, rule in enumerate(rules)],
    }


@st.composite
def situations(draw: st.DrawFn) -> Json:
    """A call, its snapshot and a journal, oldest first. Tool `v` has no contract."""
    tool = draw(weighted((8, "t"), (8, "u"), (1, "v")))
    arguments = draw(st.sampled_from((*FLAGS * 30, {"x": True, "z": True}, *FIELDS)))
    return {
        "call": {"tool": tool, "arguments": arguments},
        "snapshot": draw(snapshots()),
        "journal": draw(sized_lists(events(), (0, 1, 2, 4, 8, 12))),
    }


# ---- lists ---------------------------------------------------------------------------------------


@st.composite
def sized_lists(draw: st.DrawFn, item: st.SearchStrategy[Json], sizes: tuple[int, ...]) -> list[Json]:
    """A list of one of the sizes. They come as often as they are named, and a failure is reduced to the first ones."""
    size = draw(st.sampled_from(sizes))
    return [draw(item) for _ in range(size)]
