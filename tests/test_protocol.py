"""What counts as an answer of Lean's: only one that is right in every detail can admit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leanguard_host.checking import is_decision
from leanguard_host.engine import Engine, UnknownPolicyError, policy_digest
from leanguard_host.lean.errors import LeanCrashed, LeanTimeout, LeanUnavailable
from leanguard_host.models import Call, Decision, Event, Snapshot
from leanguard_host.naming import base_name, policy_name
from leanguard_host.wire import admission, read_decision

CALL = Call(tool="t", arguments={"price": 54.04})
SNAPSHOT = Snapshot(revision="r1", time=1, state={})
QUESTION = admission("retail", CALL, SNAPSHOT, [Event(kind="k", time=0)])
ADMISSION = {
    "ok": True,
    "verdict": "admit",
    "failed_rules": [],
    "errors": [],
    "policy": "retail",
    "revision": "r1",
    "elapsed_us": 1500,
}
FAILED = {"id": "retail.x", "kind": "require", "category": "policy prohibition", "hint": "h"}
ERROR = {"rule": "retail.x", "message": "m"}


def decide(answer: Any) -> Decision:
    return read_decision(QUESTION, answer, policy_digest="sha256:0", toolchain="t")


def test_the_question() -> None:
    assert json.dumps(QUESTION) == (
        '{"op": "admit", "policy": "retail", "call": {"tool": "t", "arguments": {"price": 54.04}}, "snapshot": '
        '{"revision": "r1", "time": 1, "state": {}}, "journal": [{"kind": "k", "time": 0}]}'
    )


def test_a_right_answer() -> None:
    assert decide(ADMISSION).admitted
    assert decide(ADMISSION).elapsed_ms == 1.5
    denial = decide({**ADMISSION, "verdict": "deny", "failed_rules": [FAILED], "errors": [ERROR]})
    assert [rule.id for rule in denial.failed_rules] == ["retail.x"]
    assert denial.errors[0].message == "m"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ok": False}, "without a reason"),
        ({"ok": False, "error": {"path": "guard.call", "message": "missing"}}, "guard.call: missing"),
        ({"ok": 1}, "not marked"),
        ({"ok": "true"}, "not marked"),
        ({"policy": "airline"}, "another policy"),
        ({"policy": None}, "another policy"),
        ({"revision": "r2"}, "another revision"),
        ({"verdict": "ADMIT"}, "no verdict"),
        ({"verdict": None}, "no verdict"),
        ({"verdict": "deny"}, "does not fit"),
        ({"failed_rules": [FAILED]}, "does not fit"),
        ({"errors": [ERROR]}, "does not fit"),
        ({"failed_rules": None}, "no list"),
        ({"errors": {}}, "no list"),
        ({"failed_rules": [{**FAILED, "kind": "perhaps"}], "verdict": "deny"}, "no known kind"),
        ({"failed_rules": [{"id": "x"}], "verdict": "deny"}, "fields"),
        ({"failed_rules": ["x"], "verdict": "deny"}, "fields"),
        ({"errors": [{"rule": "x", "message": 1}], "verdict": "deny"}, "fields"),
        ({"elapsed_us": -1}, "elapsed_us"),
        ({"elapsed_us": True}, "elapsed_us"),
    ],
)
def test_a_wrong_answer_is_a_denial(changes: dict[str, Any], reason: str) -> None:
    denial = decide({**ADMISSION, **changes})
    assert not denial.admitted
    assert reason in denial.errors[0].message
    assert denial.errors[0].rule in ("host.answer", "host.request")
    assert denial.revision == "r1"


@pytest.mark.parametrize("missing", sorted(ADMISSION))
def test_an_answer_that_lacks_something_is_a_denial(missing: str) -> None:
    assert not decide({name: value for name, value in ADMISSION.items() if name != missing}).admitted


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["admit", "deny", "retail", "r1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@given(JSON | st.dictionaries(st.sampled_from(sorted(ADMISSION)), JSON))
def test_malformed_answers_never_admit(answer: Any) -> None:
    if answer != ADMISSION:
        assert not decide(answer).admitted


@given(st.sampled_from(sorted(ADMISSION)), JSON)
def test_one_changed_field_never_admits(name: str, value: Any) -> None:
    if name == "elapsed_us" and type(value) is int and value >= 0:
        return
    if type(value) is type(ADMISSION[name]) and value == ADMISSION[name]:
        return
    assert not decide({**ADMISSION, name: value}).admitted


@given(JSON | st.dictionaries(st.sampled_from([*Decision.model_fields]), JSON))
def test_malformed_decisions_of_the_background_process_never_count(decision: Any) -> None:
    assert not isinstance(decision, dict) or not is_decision(decision, "retail")


def test_the_background_process_must_decide_by_the_policy_that_was_asked_for() -> None:
    good = decide(ADMISSION).model_dump(mode="json")
    assert is_decision(good, "retail")
    for changes in ({"policy": "airline"}, {"verdict": "deny"}, {"errors": [ERROR]}, {"elapsed_ms": "1"}, {"more": 1}):
        assert not is_decision({**good, **changes}, "retail")


class FakeLean:
    """A process that answers what it is told to."""

    pid = None

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.starts = 0

    def start(self) -> None:
        self.starts += 1

    def guard(self, request: Mapping[str, Any], timeout: float) -> Any:
        if request["op"] == "policies":
            return {"ok": True, "policies": [{"name": "retail", "contracts": [], "rules": []}]}
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "failure",
    [
        LeanCrashed("it died"),
        LeanTimeout("too slow"),
        LeanUnavailable("gone"),
        ValueError("odd"),
        RecursionError(),
        OSError(),
    ],
)
def test_every_failure_is_a_denial(failure: Exception) -> None:
    engine = Engine(FakeLean(failure), toolchain="t", keys={"Retail": "ab"})
    denial = engine.decide("retail", CALL, SNAPSHOT, [], 1.0)
    assert not denial.admitted
    assert denial.errors[0].rule == "host.unavailable"
    assert str(failure) in denial.errors[0].message


def test_unknown_policies_are_refused() -> None:
    engine = Engine(FakeLean(ADMISSION), toolchain="t", keys={})
    with pytest.raises(UnknownPolicyError, match=r"there are: retail\. Did you mean retail\?"):
        engine.decide("Retial", CALL, SNAPSHOT, [], 1.0)


@pytest.mark.parametrize(
    "answer", [{}, {"ok": True}, {"ok": True, "policies": []}, {"ok": True, "policies": [{}]}, None]
)
def test_a_process_without_policies_is_unusable(answer: Any) -> None:
    class Strange(FakeLean):
        def guard(self, request: Mapping[str, Any], timeout: float) -> Any:
            return answer

    with pytest.raises(LeanUnavailable):
        Engine(Strange(answer), toolchain="t", keys={})


def test_policy_digests() -> None:
    keys = {"Policies": "1", "LeanGuard.Retail": "2", "TelecomWorkflow": "3"}
    assert policy_digest("retail", keys) == "sha256:2"
    assert policy_digest("telecom_workflow", keys) == "sha256:3"
    whole = policy_digest("airline", keys)
    assert whole.startswith("sha256:") and len(whole) == 71
    assert whole != policy_digest("airline", {**keys, "Policies": "4"})
    without = {policy_digest(f"{name}:without-stricter", keys) for name in ("retail", "telecom_workflow", "airline")}
    assert len(without | {"sha256:2", "sha256:3", whole}) == 6
    assert all(digest.startswith("sha256:") and len(digest) == 71 for digest in without)


def test_a_policy_without_stricter_rules_has_its_own_name() -> None:
    engine = Engine(FakeLean(ADMISSION), toolchain="t", keys={"Retail": "ab"})
    lenient = policy_name("retail", stricter=False)
    assert policy_name(lenient, stricter=False) == policy_name(lenient, stricter=True) == lenient
    assert base_name(lenient) == base_name("retail") == "retail"
    # An answer about the other policy is not believed.
    assert engine.decide("retail", CALL, SNAPSHOT, [], 1.0).admitted
    denial = engine.decide(lenient, CALL, SNAPSHOT, [], 1.0)
    assert not denial.admitted
    assert (denial.policy, denial.errors[0].rule) == (lenient, "host.answer")
    assert denial.policy_digest != engine.digests["retail"]


def test_the_hand_written_answer_is_like_the_real_one(engine: Engine, call: Any, snapshot: Any, events: Any) -> None:
    question = admission(
        "retail",
        Call.model_validate(call),
        Snapshot.model_validate(snapshot),
        [Event.model_validate(event) for event in events],
    )
    answer = engine.process.guard(question, 10.0)
    assert set(answer) == set(ADMISSION)
    assert answer["verdict"] == "admit"


def test_lean_refuses_what_python_would_not_send(engine: Engine) -> None:
    answer = engine.process.guard({**QUESTION, "extra": 1}, 10.0)
    assert answer["ok"] is False
    denial = read_decision(QUESTION, answer, policy_digest="sha256:0", toolchain="t")
    assert denial.errors[0].rule == "host.request"


def test_numbers_reach_lean_as_they_were_written(engine: Engine, call: Any, snapshot: Any, events: Any) -> None:
    """The gift card covers the price difference exactly, and not if it has a millionth less."""
    snapshot["state"]["users"]["nora_feld"]["payment_methods"]["gift_card_7003"]["balance"] = 7.16
    call["arguments"]["payment_method_id"] = events[-1]["call"]["arguments"]["payment_method_id"] = "gift_card_7003"
    journal = [Event.model_validate(event) for event in events]
    proposed = Call.model_validate(call)
    assert engine.decide("retail", proposed, Snapshot.model_validate(snapshot), journal, 10.0).admitted
    snapshot["state"]["users"]["nora_feld"]["payment_methods"]["gift_card_7003"]["balance"] = 7.159999
    denial = engine.decide("retail", proposed, Snapshot.model_validate(snapshot), journal, 10.0)
    assert [rule.id for rule in denial.failed_rules] == ["retail.payment"]


def test_both_ways_to_ask_give_the_same_answer(engine: Engine, call: Any, snapshot: Any, events: Any) -> None:
    """As a `guard` request, and as a person at a REPL would."""
    env = ask_both_ways(engine, call, snapshot, events, "admit", None)
    ask_both_ways(engine, call, snapshot, events[:-1], "deny", env)


def test_recursion_without_end_ends_lean_and_nothing_else(
    engine: Engine, call: Any, snapshot: Any, events: Any
) -> None:
    """A stack that nothing checks would be worse: what lies below it would be written over."""
    with pytest.raises(LeanCrashed):
        engine.process.command("def deep : Nat → Nat | 0 => 0 | n + 1 => deep n + 1\n#eval deep 1000000", timeout=120.0)  # type: ignore[attr-defined]
    journal = [Event.model_validate(event) for event in events]
    asked = Call.model_validate(call), Snapshot.model_validate(snapshot)
    assert engine.decide("retail", *asked, journal, timeout=10.0).admitted


@pytest.mark.parametrize("count", [100, 10_000])
def test_many_events_at_once(engine: Engine, count: int) -> None:
    event = {"kind": "authentication", "principal": "p", "conversation": "c", "revision": "r"}
    events = [{**event, "time": n, "resource": {"type": "order", "id": f"#{n}"}} for n in range(count)]
    told = engine.ask({"op": "observe", "policy": "retail", "journal_id": f"many-{count}", "events": events}, 120.0)
    assert told["events_seen"] == count
    engine.ask({"op": "reset", "journal_id": f"many-{count}"}, 10.0)


def ask_both_ways(engine: Engine, call: Any, snapshot: Any, events: Any, verdict: str, env: int | None) -> int:
    journal = [Event.model_validate(event) for event in events]
    question = admission("retail", Call.model_validate(call), Snapshot.model_validate(snapshot), journal)
    answer = engine.process.guard(question, 10.0)
    assert answer.pop("elapsed_us") >= 0
    del question["op"], question["policy"]
    literal = json.dumps(json.dumps(question))  # JSON's escapes are Lean's, as long as the text is ASCII
    reply = engine.process.command(f'#eval LeanGuard.admitJson "retail" {literal}', env, timeout=120.0)  # type: ignore[attr-defined]
    assert [message["severity"] for message in reply["messages"]] == ["info"]
    told = json.loads(reply["messages"][0]["data"])
    assert told.pop("id") is None
    assert told == answer
    assert told["verdict"] == verdict
    return int(reply["env"])
