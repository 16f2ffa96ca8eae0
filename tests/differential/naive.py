"""What conditions and policies mean, as naively as it can be said: a model to compare Lean with.

A trace is a non-empty tuple of moments, newest first; a trace set is a function from traces to booleans. The operators
are LeanLTL's, written out as they are defined there, with no thought of speed, except that a trace set remembers its
answers: without that, nested operators would take exponential time. Nothing here was derived from the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

Moment = dict[str, Any]  # as in Oracle.lean: an event, or an object with call, snapshot and resource
Trace = tuple[int, ...]  # positions in a history, so that traces are hashable
TraceSet = Callable[[Trace], bool]

# ---- LeanLTL -------------------------------------------------------------------------------------


def remembering(p: TraceSet) -> TraceSet:
    known: dict[Trace, bool] = {}

    def sat(t: Trace) -> bool:
        if t not in known:
            known[t] = p(t)
        return known[t]

    return sat


def const(value: bool) -> TraceSet:
    return lambda t: value


def of(predicate: Callable[[int], bool]) -> TraceSet:
    return lambda t: predicate(t[0])


def not_(p: TraceSet) -> TraceSet:
    return lambda t: not p(t)


def and_(p: TraceSet, q: TraceSet) -> TraceSet:
    return lambda t: p(t) and q(t)


def or_(p: TraceSet, q: TraceSet) -> TraceSet:
    return lambda t: p(t) or q(t)


def wshift(i: int, p: TraceSet) -> TraceSet:
    return lambda t: p(t[i:]) if i < len(t) else True


def sshift(i: int, p: TraceSet) -> TraceSet:
    return lambda t: p(t[i:]) if i < len(t) else False


def wnext(p: TraceSet) -> TraceSet:
    return wshift(1, p)


def snext(p: TraceSet) -> TraceSet:
    return sshift(1, p)


def until(p: TraceSet, q: TraceSet) -> TraceSet:
    # Some n in the definition ranges over all numbers, but no strong shift reaches beyond the end of the trace.
    return lambda t: any(all(wshift(i, p)(t) for i in range(n)) and sshift(n, q)(t) for n in range(len(t) + 1))


def finally_(p: TraceSet) -> TraceSet:
    return until(const(True), p)


def globally(p: TraceSet) -> TraceSet:
    return not_(finally_(not_(p)))


# ---- moments -------------------------------------------------------------------------------------


class UnreadableError(Exception):
    """An atom that can't be evaluated."""


def is_pending(m: Moment) -> bool:
    return "snapshot" in m


def side(m: Moment) -> dict[str, Any]:
    """Where a moment has its time, principal and so on."""
    found: dict[str, Any] = m["snapshot"] if is_pending(m) else m
    return found


def canonical(value: Any) -> Any:
    """Equal exactly for equal JSON values: in Python True is 1, and objects are no keys."""
    if isinstance(value, bool) or value is None:
        return ("constant", str(value))
    if isinstance(value, int | float):
        return ("number", Fraction(str(value)))
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, list):
        return ("list", *map(canonical, value))
    return ("object", *sorted((name, canonical(each)) for name, each in value.items()))


def dimension(name: str | dict[str, str], m: Moment) -> Any:
    """What the moment has in a dimension (an argument of the call is given as an object); None if nothing."""
    if name in ("principal", "conversation", "revision"):
        return side(m).get(name)
    if name == "resource":
        resource = m.get("resource")
        return resource and (resource["type"], resource["id"])
    call = m.get("call")
    if call is None:
        return None
    if name == "proposal":
        return canonical([call["tool"], call["arguments"]])
    if name == "tool":
        return call["tool"]
    assert isinstance(name, dict), name
    argument = name["argument"]
    return canonical(call["arguments"][argument]) if argument in call["arguments"] else None


def key(scope: list[Any], m: Moment) -> tuple[Any, ...] | None:
    values = tuple(dimension(name, m) for name in scope)
    return None if None in values else values


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UnreadableError
    return value


def atom(name: str, argument: str, m: Moment) -> bool:
    """The atoms of Oracle.lean."""
    if name == "kind":
        return not is_pending(m) and m["kind"] == argument
    if name == "ready":
        if not is_pending(m):
            raise UnreadableError
        return boolean(m["snapshot"]["state"].get("ready"))
    if name == "flag":
        return boolean((m["call"]["arguments"] if is_pending(m) else m.get("data") or {}).get(argument))
    if name == "principal":
        return bool(side(m).get("principal") == argument)
    if name == "status":
        status = None if is_pending(m) else m.get("status")
        if status is None:
            raise UnreadableError
        return bool(status == argument)
    raise AssertionError(name)


# ---- formulas ------------------------------------------------------------------------------------

ATOMS = ("kind", "ready", "flag", "principal", "status")
CONNECTIVES = ("not", "and", "or")


class Meaning:
    """The trace sets of a formula over one history: where it is true, and where it has a truth value."""

    def __init__(self, formula: list[Any], moments: list[Moment]) -> None:
        self.moments = moments
        self.interp = remembering(self._interp(formula))
        self.defined = remembering(self._defined(formula))

    def _holds(self, name: str, argument: str, wanted: tuple[bool, ...]) -> TraceSet:
        def holds(i: int) -> bool:
            try:
                return atom(name, argument, self.moments[i]) in wanted
            except UnreadableError:
                return False

        return of(holds)

    def _window(self, bound: int | None, anchor: int) -> TraceSet:
        time = [side(m)["time"] for m in self.moments]
        return of(lambda i: bound is None or time[anchor] - time[i] <= bound)

    def _anchored(self, p: Callable[[int], TraceSet]) -> TraceSet:
        return lambda t: p(t[0])(t)

    def _scoped(self, scope: list[Any], p: TraceSet) -> TraceSet:
        def sat(t: Trace) -> bool:
            mine = key(scope, self.moments[t[0]])
            if mine is None:
                return False
            return p((t[0], *(i for i in t[1:] if key(scope, self.moments[i]) == mine)))

        return sat

    def _interp(self, formula: list[Any]) -> TraceSet:
        name, *rest = formula
        if name in ATOMS:
            return self._holds(name, rest[0] if rest else "", (True,))
        if name in ("top", "bot"):
            return const(name == "top")
        if name == "not":
            return not_(self._part(rest[0]))
        if name == "and":
            return and_(self._part(rest[0]), self._part(rest[1]))
        if name == "or":
            return or_(self._part(rest[0]), self._part(rest[1]))
        if name == "within":
            return self._scoped(rest[0], self._part(rest[1]))
        bound, *parts = rest
        p, q = self._part(parts[0]), self._part(parts[-1])
        if name == "previous":
            return self._anchored(lambda a: snext(and_(self._window(bound, a), p)))
        if name == "once":
            return self._anchored(lambda a: finally_(and_(self._window(bound, a), p)))
        assert name == "since", name
        return self._anchored(lambda a: until(p, and_(self._window(bound, a), q)))

    def _part(self, formula: list[Any]) -> TraceSet:
        return remembering(self._interp(formula))

    def _defined(self, formula: list[Any]) -> TraceSet:
        name, *rest = formula
        if name in ATOMS:
            return self._holds(name, rest[0] if rest else "", (True, False))
        if name in ("top", "bot"):
            return const(True)
        parts = [remembering(self._defined(each)) for each in (rest if name in CONNECTIVES else rest[1:])]
        if name == "not":
            return parts[0]
        if name in ("and", "or"):
            return and_(*parts)
        if name == "previous":
            return wnext(parts[0])
        if name == "once":
            return globally(parts[0])
        if name == "since":
            return globally(and_(*parts))
        assert name == "within", name
        return self._scoped(rest[0], parts[0])


def verdict(meaning: Meaning, t: Trace) -> str:
    """T, F or E, as in Oracle.lean."""
    if not meaning.defined(t):
        return "E"
    return "T" if meaning.interp(t) else "F"


def verdicts(formula: list[Any], history: list[Moment]) -> str:
    """The verdict at each moment of a history, given oldest first."""
    meaning = Meaning(formula, history)
    return "".join(verdict(meaning, tuple(range(i, -1, -1))) for i in range(len(history)))


# ---- policies ------------------------------------------------------------------------------------


def fits(kind: str, value: Any) -> bool:
    """Whether a value is of an argument's type."""
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "object":
        return isinstance(value, dict)
    if kind == "strings":
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and (kind == "number" or Fraction(str(value)).denominator == 1)


def decide(policy: dict[str, Any], situation: dict[str, Any]) -> str:
    """The decision as text, as in Oracle.lean."""
    call = situation["call"]
    contract = next((each for each in policy["contracts"] if each["tool"] == call["tool"]), None)
    if contract is None:
        return "deny host.unknown_tool "
    parameters = {each["name"]: each for each in contract["parameters"]}
    arguments = call["arguments"]
    bad = sum(name not in parameters for name in arguments) + sum(
        not fits(each["type"], arguments[name]) if name in arguments else each["required"]
        for name, each in parameters.items()
    )
    if bad:
        return f"deny host.arguments {','.join(['host.arguments'] * bad)}"

    named = contract["resource"]
    resource_id = named and call["arguments"].get(named["id"])
    resource = {"type": named["type"], "id": resource_id} if isinstance(resource_id, str) else None
    pending = {"call": call, "snapshot": situation["snapshot"], "resource": resource}
    history = [*situation["journal"], pending]
    outcomes = []
    for rule in policy["rules"]:
        about = rule["tools"]
        if about == "every" or (contract["access"] == "write" if about == "writing" else call["tool"] in about):
            outcomes.append((rule, verdicts(rule["condition"], history)[-1]))

    permits = [(rule, outcome) for rule, outcome in outcomes if rule["kind"] == "permit"]
    errors = [rule["id"] for rule, outcome in outcomes if outcome == "E"]
    failed = []
    if not permits:
        failed.append("host.no_permit")
    elif "T" not in [outcome for _, outcome in permits]:
        failed += [rule["id"] for rule, outcome in permits if outcome == "F"]
    wrong = {"require": "F", "forbid": "T"}
    failed += [rule["id"] for rule, outcome in outcomes if outcome == wrong.get(rule["kind"])]
    if failed or errors:
        return f"deny {','.join(failed)} {','.join(errors)}"
    return "admit"
