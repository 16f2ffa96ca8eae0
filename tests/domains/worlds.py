"""Small invented databases of the three domains, and a conversation in which calls are tried."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from leanguard_host.adapters.tau2 import Session
from leanguard_host.adapters.tau2.airline import Airline
from leanguard_host.adapters.tau2.backend import Backend
from leanguard_host.adapters.tau2.retail import Retail
from leanguard_host.adapters.tau2.telecom import Telecom
from leanguard_host.models import Call, Decision, Event, Snapshot

Row = dict[str, Any]


def _address(code: str) -> Row:
    return {"address1": "1 Elm", "address2": "", "city": "Ely", "state": "ME", "country": "USA", "zip": code}


def _user(first: str, code: str, methods: Row) -> Row:
    return {
        "name": {"first_name": first, "last_name": "Moss"},
        "email": f"{first.lower()}@example.com",
        "address": _address(code),
        "payment_methods": methods,
    }


def _variant(key: str, price: float, available: bool = True) -> Row:
    return {"item_id": key, "price": price, "available": available, "options": {"kind": key}}


def _order(user: str, status: str, paid: str, *items: str) -> Row:
    prices = {"lamp-a": ("lamp", 40.0), "mug-a": ("mug", 9.5)}
    return {
        "user_id": user,
        "status": status,
        "address": _address("04401"),
        "items": [{"item_id": i, "product_id": prices[i][0], "price": prices[i][1], "options": {}} for i in items],
        "payment_history": [
            {"transaction_type": "payment", "amount": sum(prices[i][1] for i in items), "payment_method_id": paid}
        ],
    }


def retail() -> Retail:
    """Two customers; of Ada one order of each kind."""
    lamp = [_variant("lamp-a", 40.0), _variant("lamp-b", 45.25), _variant("lamp-c", 60), _variant("lamp-d", 41, False)]
    mug = [_variant("mug-a", 9.5), _variant("mug-b", 10)]
    return Retail(
        {
            "users": {
                "ada_1": _user(
                    "Ada",
                    "04401",
                    {
                        "card_1": {"source": "credit_card"},
                        "gift_1": {"source": "gift_card", "balance": 5.25},
                        "paypal_1": {"source": "paypal"},
                    },
                ),
                "bob_2": _user("Bob", "04402", {"card_2": {"source": "credit_card"}}),
            },
            "orders": {
                "#P1": _order("ada_1", "pending", "card_1", "lamp-a", "mug-a"),
                "#D1": _order("ada_1", "delivered", "card_1", "lamp-a", "lamp-a", "mug-a"),
                "#D2": _order("ada_1", "delivered", "card_1", "mug-a"),
                "#C1": _order("ada_1", "cancelled", "card_1", "mug-a"),
                "#B1": _order("bob_2", "pending", "card_2", "mug-a"),
            },
            "products": {
                name: {"name": name, "product_id": name, "variants": {v["item_id"]: v for v in variants}}
                for name, variants in (("lamp", lamp), ("mug", mug))
            },
        }
    )


def _dates(**statuses: str) -> Row:
    seats = {"basic_economy": 5, "economy": 5, "business": 1}
    prices = {"basic_economy": 50, "economy": 100, "business": 300}
    return {
        f"2024-05-{day[1:]}": {"status": status}
        if status != "available"
        else {"status": status, "available_seats": dict(seats), "prices": dict(prices)}
        for day, status in statuses.items()
    }


def reservation(**changes: Any) -> Row:
    """A reservation of Ada's from AAA to CCC by BBB, booked long ago, in economy."""
    return {
        "user_id": "ada_1",
        "origin": "AAA",
        "destination": "CCC",
        "flight_type": "one_way",
        "cabin": "economy",
        "flights": [
            {"flight_number": "F1", "date": "2024-05-20", "price": 90, "origin": "AAA", "destination": "BBB"},
            {"flight_number": "F2", "date": "2024-05-20", "price": 80, "origin": "BBB", "destination": "CCC"},
        ],
        "passengers": [{"first_name": "Ada", "last_name": "Moss", "dob": "1980-02-29"}],
        "payment_history": [{"payment_id": "card_1", "amount": 170}],
        "created_at": "2024-05-01T10:00:00",
        "total_baggages": 1,
        "nonfree_baggages": 0,
        "insurance": "no",
        **changes,
    }


def flown(day: str) -> list[Row]:
    """One flight of the reservation above, on another day."""
    return [{"flight_number": "F1", "date": f"2024-05-{day}", "price": 90, "origin": "AAA", "destination": "BBB"}]


def airline(membership: str = "regular", **reservations: Row) -> Airline:
    """Two customers, three flights a day, and the reservation R1 of Ada's."""
    statuses = {"d10": "landed", "d12": "cancelled", "d15": "delayed", "d14": "flying"}
    statuses |= {f"d{day}": "available" for day in range(18, 28)}
    flights = {
        number: {"origin": origin, "destination": destination, "dates": _dates(**statuses)}
        for number, origin, destination in (("F1", "AAA", "BBB"), ("F2", "BBB", "CCC"), ("F3", "CCC", "AAA"))
    }
    methods = {
        "card_1": {"source": "credit_card"},
        "card_9": {"source": "credit_card"},
        "gift_1": {"source": "gift_card", "amount": 60},
        "cert_1": {"source": "certificate", "amount": 150},
        "cert_9": {"source": "certificate", "amount": 150},
    }
    rows = {"R1": reservation(), "B1": reservation(user_id="bob_2"), **reservations}
    return Airline(
        {
            "flights": flights,
            "reservations": rows,
            "users": {
                "ada_1": {
                    "membership": membership,
                    "payment_methods": methods,
                    "reservations": [key for key, row in rows.items() if row["user_id"] == "ada_1"],
                },
                "bob_2": {
                    "membership": "gold",
                    "payment_methods": {"card_2": {"source": "credit_card"}},
                    "reservations": ["B1"],
                },
            },
        }
    )


def _line(status: str = "Active", end: str = "2026-12-31", roaming: bool = False) -> Row:
    return {
        "phone_number": "555-000-0001",
        "status": status,
        "plan_id": "P1",
        "device_id": "D1",
        "data_used_gb": 5.5,
        "data_refueling_gb": 0.0,
        "roaming_enabled": roaming,
        "contract_end_date": end,
    }


def telecom(bill: str = "Overdue", **lines: Row) -> Telecom:
    """Two customers; Ada has the lines L1 and those given, and the bills B1 (of that status) and B2 (paid)."""
    rows = {"L1": _line(), "L9": {**_line(), "device_id": "D9", "phone_number": "555-000-0009"}, **lines}

    def customer(key: str, name: str, lines: list[str], bills: list[str]) -> Row:
        phone = rows[lines[0]]["phone_number"]
        return {
            "customer_id": key,
            "full_name": name,
            "date_of_birth": "1980-02-29",
            "phone_number": phone,
            "line_ids": lines,
            "bill_ids": bills,
        }

    def bill_row(key: str, status: str) -> Row:
        return {"bill_id": key, "status": status, "total_due": 40.5, "issue_date": "2025-02-01"}

    return Telecom(
        {
            "customers": {
                "C1": customer("C1", "Ada Moss", [key for key in rows if key != "L9"], ["B1", "B2"]),
                "C2": customer("C2", "Bob Moss", ["L9"], ["B9"]),
            },
            "lines": {key: {"line_id": key, **row} for key, row in rows.items()},
            "plans": {"P1": {"plan_id": "P1", "data_limit_gb": 5, "data_refueling_price_per_gb": 2.5}},
            "devices": {key: {"device_id": key} for key in ("D1", "D9")},
            "bills": {key: bill_row(key, status) for key, status in (("B1", bill), ("B2", "Paid"), ("B9", "Overdue"))},
        }
    )


line = _line


@dataclass(frozen=True)
class Situation:
    """A call that a test decided: in which state, after what, and how."""

    policy: str
    call: Call
    snapshot: Snapshot
    journal: tuple[Event, ...]
    decision: Decision

    @property
    def failed(self) -> set[str]:
        """The rules that denied it; `!` marks those that could not be evaluated."""
        rules = {rule.id for rule in self.decision.failed_rules}
        return rules | {f"!{error.rule}" for error in self.decision.errors if error.rule not in rules}

    def wire(self) -> Row:
        """As Lean reads it."""
        return {
            "call": self.call.wire(),
            "snapshot": self.snapshot.wire(),
            "journal": [event.wire() for event in self.journal],
        }


class Chat:
    """A conversation whose calls are decided and, when admitted, carried out."""

    tried: dict[str, set[str]]
    """Of each policy the rules that denied something, over all conversations."""
    passed: dict[str, set[str]]
    """Of each policy the tools of which a call was admitted."""

    recorded: list[Situation]
    """Every call that was decided as its test expected, by the whole policies."""

    tried, passed, recorded = {}, {}, []

    def __init__(self, engine: Any, backend: Backend, conversation: str = "chat-1") -> None:
        self.engine = engine
        self.session = Session(backend, conversation)

    def login(self) -> Chat:
        """Ada is identified, as the domain does it."""
        backend = self.session.backend
        if backend.name == "retail":
            self.ok("find_user_id_by_email", email="ada@example.com")
        elif backend.name == "airline":
            self.session.customer_says("Hello, I am ada_1.")
        else:
            self.ok("get_customer_by_phone", phone_number="555-000-0001")
        return self

    def decide(self, tool: str, confirm: bool, arguments: Row) -> tuple[Call, Decision]:
        """Decide a call; with `confirm`, the customer confirmed it before."""
        call = Call(tool=tool, arguments=copy.deepcopy(arguments))
        if confirm and tool in self.session.backend.writes:
            self.session.confirm(call)
        self._snapshot = self.session.snapshot(call)
        policy = self.session.backend.name
        return call, self.engine.decide(policy, call, self._snapshot, self.session.journal, 60.0)

    def _record(self, call: Call, decision: Decision) -> None:
        if decision.policy == self.session.backend.name:
            journal = tuple(self.session.journal)
            self.recorded.append(Situation(decision.policy, call, self._snapshot, journal, decision))

    def ok(self, tool: str, *, confirm: bool = True, **arguments: Any) -> Chat:
        """The call is admitted and carried out."""
        call, decision = self.decide(tool, confirm, arguments)
        assert decision.admitted, (decision.failed_rules, decision.errors)
        self.passed.setdefault(self.session.backend.name, set()).add(tool)
        self._record(call, decision)
        self.session.run(call)
        return self

    def no(self, rules: str, tool: str, *, confirm: bool = True, **arguments: Any) -> Chat:
        """The call is denied by exactly these rules; `!` marks one that could not be evaluated."""
        call, decision = self.decide(tool, confirm, arguments)
        failed = {rule.id for rule in decision.failed_rules}
        self.tried.setdefault(self.session.backend.name, set()).update(failed)
        name = self.session.backend.name
        found = failed | {f"!{error.rule}" for error in decision.errors if error.rule not in failed}
        assert not decision.admitted
        wanted = {r if "." in r else f"!{name}.{r[1:]}" if r[0] == "!" else f"{name}.{r}" for r in rules.split()}
        assert found == wanted, (decision.failed_rules, decision.errors)
        self._record(call, decision)
        return self
