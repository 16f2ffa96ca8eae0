"""The rules that are stricter than the benchmark, and the policies without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from worlds import Chat, line, retail, telecom

from leanguard_host import Guard
from leanguard_host.adapters.tau2 import DOMAINS
from leanguard_host.engine import WithoutStricter
from leanguard_host.replay import replay

ADDRESS = {"address1": "2 Oak", "address2": "", "city": "Ely", "state": "ME", "country": "USA", "zip": "04403"}


class Lenient(Chat):
    """A conversation by the policy without its stricter rules."""

    def __init__(self, engine: Any, backend: Any) -> None:
        super().__init__(WithoutStricter(engine), backend)


@pytest.mark.parametrize("name", DOMAINS)
def test_lean_and_the_adapters_mark_the_same_rules(engine: Any, name: str) -> None:
    policy = next(policy for policy in engine.policies if policy["name"] == name)
    assert {rule["id"] for rule in policy["rules"] if rule["stricter"]} == DOMAINS[name].stricter


def test_an_order_changes_more_than_once(engine: Any) -> None:
    def changed(chat: Chat) -> Chat:
        chat.login().ok("get_order_details", order_id="#P1")
        return chat.ok("modify_pending_order_address", order_id="#P1", **ADDRESS)

    second = {"order_id": "#P1", "payment_method_id": "paypal_1"}
    changed(Chat(engine, retail())).no("modify_once", "modify_pending_order_payment", **second)
    chat = changed(Lenient(engine, retail()))
    chat.no("confirmation", "modify_pending_order_payment", confirm=False, **second)
    chat.no("payment", "modify_pending_order_payment", order_id="#P1", payment_method_id="card_2")
    chat.ok("modify_pending_order_payment", **second)


def test_other_customers_are_looked_up_and_not_served(engine: Any) -> None:
    Chat(engine, telecom()).login().no("stable_identity", "get_customer_by_phone", phone_number="555-000-0009")
    chat = Lenient(engine, telecom(L2=line())).login()
    chat.ok("get_customer_by_phone", phone_number="555-000-0009")
    chat.no("customer", "get_bills_for_customer", customer_id="C2")


def test_the_record_tells_which_policy_decided(engine: Any) -> None:
    call = {"tool": "calculate", "arguments": {"expression": "1"}}
    snapshot = {"revision": "r", "time": 0, "state": {}}
    policies, digests = set(), set()
    for stricter in (True, False):
        with Guard(policy="retail", stricter=stricter, engine=engine) as guard:
            decision = guard.check(call, snapshot=snapshot)
        assert decision.admitted
        policies.add(decision.policy)
        digests.add(decision.policy_digest)
    assert policies == {"retail", "retail:without-stricter"}
    assert len(digests) == 2


def changed_twice(engine: Any, store: str, stricter: bool) -> list[str]:
    """The rules that deny the second change of an order, both confirmed, on a followed journal."""
    backend = retail()
    chat = Chat(engine, backend).login().ok("get_order_details", order_id="#P1")
    with Guard(policy="retail", journal=store, stricter=stricter, engine=engine) as guard:
        for event in chat.session.journal:
            guard.record(event)

        def execute(tool: str, **arguments: Any) -> Any:
            def run(**given: Any) -> Any:
                return backend.run({"tool": tool, "arguments": given})

            call = {"tool": tool, "arguments": {"order_id": "#P1", **arguments}}
            asked = guard.execute(call, run, adapter=chat.session)
            assert not asked.executed and asked.proposal_id
            guard.confirm(asked.proposal_id, by="ada_1")
            return guard.execute(call, run, adapter=chat.session)

        first = execute("modify_pending_order_address", **ADDRESS)
        assert first.executed, first.feedback()
        second = execute("modify_pending_order_payment", payment_method_id="paypal_1")
        return [rule.id for rule in second.decision.failed_rules]


def test_a_followed_journal_is_decided_by_its_own_policy(engine: Any, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/journal"
    assert changed_twice(engine, f"{store}-1.db", True) == ["retail.modify_once"]
    assert changed_twice(engine, f"{store}-2.db", False) == []


def test_reference_solutions_that_only_a_stricter_rule_denies_pass_without_it(engine: Any, data: Path) -> None:
    tasks = data / "tau2" / "retail" / "tasks.json"
    strict = replay(tasks, "retail", data, [engine]).decisions
    wronged = {d.episode for d in strict if d.only_stricter}
    assert len(wronged) == 14
    lenient = replay(tasks, "retail", data, [WithoutStricter(engine)]).decisions
    denied = [d for d in lenient if d.verdict == "deny" and d.episode in wronged]
    # Task 46 also reads an order that there is not.
    assert {(d.episode, d.tool) for d in denied} <= {("46", "get_order_details")}
    assert not any(d.executed for d in lenient if d.verdict == "deny")
