"""What repairs and proofs cost, over the calls of the benchmark's tasks, as they are and with one wrong argument.

Usage: python benchmarks/repair.py [--json FILE] [--data FOLDER] [--most N] [--policies NAME ...]

Every call is proved as it was decided: admitted or denied. Then an argument of each call is made wrong, as an injected
instruction or a model's slip would have it: a payment method, bill, order or reservation of somebody else, a wrong
count of charged bags, too much data. Each of these denials is proved and repaired. How many could be repaired is told
by the argument and by the rule that denied; an order, a reservation or an item is what the customer wants, so that no
repair may change it. Times are what one who asks waits, and, with `cpu_ms`, what the process computed. The figures are
of one run on one machine, whose facts are printed with them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import psutil
from machine import facts

from leanguard_host.adapters.tau2 import DOMAINS, open_backend
from leanguard_host.adapters.tau2.episodes import Episode, read_episodes
from leanguard_host.models import Call, Decision, Event, Snapshot
from leanguard_host.replay import replay_episode

Json = dict[str, Any]
Ask = Callable[[Json], Json]

FOREIGN = "gift_card_0000666"
Wrong = Callable[[Json], Json | None]


def _with(name: str, value: Any) -> Wrong:
    """The arguments with one of them replaced, if they have it."""
    return lambda arguments: {**arguments, name: value} if name in arguments else None


def _payments(arguments: Json) -> Json | None:
    """The arguments of a booking, its first payment by somebody else's method."""
    first, *rest = arguments.get("payment_methods") or [None]
    return first and {**arguments, "payment_methods": [{**first, "payment_id": FOREIGN}, *rest]}


def _bags(arguments: Json) -> Json | None:
    """The arguments with one charged bag more."""
    count = arguments.get("nonfree_baggages")
    return {**arguments, "nonfree_baggages": count + 1} if isinstance(count, int) else None


WRONG: dict[str, dict[str, tuple[tuple[str, ...], Wrong]]] = {
    "retail": {
        "payment method": (
            ("exchange_delivered_order_items", "modify_pending_order_items", "return_delivered_order_items"),
            _with("payment_method_id", FOREIGN),
        ),
        "item": (
            ("exchange_delivered_order_items", "modify_pending_order_items"),
            _with("new_item_ids", ["0000000666"]),
        ),
    },
    "airline": {
        "payment method": (("update_reservation_flights", "update_reservation_baggages"), _with("payment_id", FOREIGN)),
        "payments": (("book_reservation",), _payments),
        "charged bags": (("update_reservation_baggages", "book_reservation"), _bags),
        "passengers": (("update_reservation_passengers",), _with("passengers", [])),
    },
    "telecom": {
        "bill": (("send_payment_request",), _with("bill_id", "B0000")),
        "amount of data": (("refuel_data",), _with("gb_amount", 99)),
    },
}
"""For each domain what is made wrong, of which tools, and how."""

TIMEOUT = 60.0
FIRST: Json = {
    "policy": "retail",
    "call": {"tool": "calculate", "arguments": {"expression": "1"}},
    "snapshot": {"revision": "r", "time": 0, "state": {}},
    "journal": [],
}


class Recorder:
    """Takes every call for admitted, and keeps what was asked."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.requests: list[Json] = []
        self.digests = {policy: ""}

    def decide(
        self, policy: str, call: Call, snapshot: Snapshot, journal: Sequence[Event], timeout: float = 0.0
    ) -> Decision:
        """Keep the question."""
        del timeout
        self.requests.append(
            {
                "policy": policy,
                "call": call.wire(),
                "snapshot": snapshot.wire(),
                "journal": [event.wire() for event in journal],
            }
        )
        return Decision(
            verdict="admit",
            failed_rules=(),
            errors=(),
            revision=snapshot.revision,
            policy=policy,
            policy_digest="",
            toolchain="",
            elapsed_ms=0.0,
        )


def recorded(policy: str, data: Path) -> list[Json]:
    """The questions that an honest agent's calls raise, over all tasks of the domain; in half of them unconfirmed."""
    backend = open_backend(policy, data)
    tasks = next(data.glob(f"tau2/{policy}/tasks*.json"))
    recorder = Recorder(policy)
    for number, episode in enumerate(read_episodes(tasks)):
        if not isinstance(episode, Episode):
            continue
        for _ in replay_episode(episode, backend.fork(), policy, recorder, assume_consent=number % 2 == 0):
            pass
    return recorder.requests


def injected(requests: list[Json], tools: tuple[str, ...], wrong: Wrong) -> list[Json]:
    """The same questions about calls with a wrong argument."""
    made = []
    for request in requests:
        call = request["call"]
        if call["tool"] in tools and (arguments := wrong(call["arguments"])):
            made.append({**request, "call": {**call, "arguments": arguments}})
    return made


def figures(milliseconds: list[float]) -> Json:
    """Median, 95th percentile, maximum and how many."""
    if not milliseconds:
        return {"count": 0}
    ordered = sorted(milliseconds)
    return {
        "median_ms": round(statistics.median(ordered), 2),
        "p95_ms": round(ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 2),
        "max_ms": round(ordered[-1], 2),
        "count": len(ordered),
    }


def spread(items: list[Json], most: int) -> list[Json]:
    """At most so many of them, evenly."""
    step = max(1, -(-len(items) // most))
    return items[::step]


class Watch:
    """Asks, and measures how long one waits and how much the process computes."""

    def __init__(self, ask: Ask, cpu: Callable[[], float]) -> None:
        self._ask, self._cpu = ask, cpu
        self.waited: dict[str, list[float]] = {}
        self.computed: dict[str, list[float]] = {}

    def __call__(self, request: Json, kind: Callable[[Json], str]) -> Json:
        """The answer; `kind` says under what its time counts."""
        computed, began = self._cpu(), time.perf_counter()
        answer = self._ask(request)
        waited = time.perf_counter() - began
        name = kind(answer)
        self.waited.setdefault(name, []).append(waited * 1000)
        self.computed.setdefault(name, []).append((self._cpu() - computed) * 1000)
        return answer

    def figures(self) -> Json:
        """All times, by kind."""
        return {
            name: {**figures(waited), "cpu_ms": round(statistics.mean(self.computed[name]), 1)}
            for name, waited in self.waited.items()
        }


def proofs(watch: Watch, requests: list[Json]) -> Json:
    """Prove the decision on every request."""
    refused: list[Json] = []
    axioms: set[str] = set()
    for request in requests:
        answer = watch(
            {"op": "prove", **request}, lambda a: f"{a.get('verdict')} {'proved' if a.get('proved') else 'not proved'}"
        )
        if answer.get("proved"):
            axioms.update(answer["axioms"])
        else:
            refused.append({"call": request["call"], "why": answer.get("message") or answer.get("error")})
    return {
        "proofs": len(requests) - len(refused),
        "not_proved": len(refused),
        "first_refusals": refused[:5],
        "axioms": sorted(axioms),
    }


def repairs(watch: Watch, requests: list[Json]) -> Json:
    """Repair every request; how many could be, by the rule that denied the call."""
    denied: Counter[str] = Counter()
    repaired: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    count = 0
    for request in requests:
        answer = watch({"op": "repair", **request}, lambda a: "repaired" if a.get("repair") else "no repair")
        rules = [rule["id"] for rule in answer.get("failed_rules", [])] + [e["rule"] for e in answer.get("errors", [])]
        denied.update(set(rules))
        if answer.get("repair"):
            count += 1
            repaired.update(set(rules))
        else:
            notes[str(answer.get("note") or answer.get("error"))] += 1
    return {
        "denials": len(requests),
        "repaired": count,
        "notes": dict(notes.most_common()),
        "by_rule": {rule: f"{repaired[rule]} of {total}" for rule, total in denied.most_common()},
    }


def measure(ask: Ask, cpu: Callable[[], float], data: Path, policies: Sequence[str], most: int) -> Json:
    """All figures, by policy."""
    result: Json = {}
    whole = Watch(ask, cpu)
    for policy in policies:
        requests = recorded(policy, data)
        attacks = {name: injected(requests, *what) for name, what in WRONG.get(policy, {}).items()}
        questions = spread(requests, most)
        for request in questions[:20] + [attack for some in attacks.values() for attack in spread(some, 10)]:
            ask({"op": "prove", **request})  # warm up
        watch = Watch(ask, cpu)
        result[policy] = {"calls": len(requests), "as_recorded": proofs(watch, questions) | {"times": watch.figures()}}
        for name, some in attacks.items():
            chosen = spread(some, most)
            result[policy][f"wrong {name}"] = {**proofs(whole, chosen), **repairs(whole, chosen)}
    result["denials of all policies"] = whole.figures()
    return result


def main() -> None:
    """Run the benchmark on the process that the package builds."""
    from leanguard_host.lean.build import build
    from leanguard_host.lean.process import LeanProcess
    from leanguard_host.lean.toolchain import find_toolchain

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        default=os.environ.get("LEANGUARD_DATA"),
        help="the benchmark's data (LEANGUARD_DATA)",
    )
    parser.add_argument("--most", type=int, default=150, help="how many calls of each kind at most")
    parser.add_argument("--policies", nargs="*", default=sorted(DOMAINS), help="which domains")
    options = parser.parse_args()
    if not options.data:
        parser.error("the benchmark's data are needed: --data FOLDER")
    with LeanProcess(build(find_toolchain())) as process:

        def cpu() -> float:
            parent = psutil.Process(process.pid)
            return float(sum(sum(p.cpu_times()[:2]) for p in (parent, *parent.children(recursive=True))))

        process.start()
        began = time.perf_counter()
        process.guard({"op": "prove", **FIRST}, timeout=TIMEOUT)
        first = round(time.perf_counter() - began, 2)
        result = measure(
            lambda request: process.guard(request, timeout=TIMEOUT),
            cpu,
            Path(options.data),
            options.policies,
            options.most,
        )
    result["first_proof_seconds"] = first
    text = json.dumps({"machine": facts(), "policies": result}, indent=2)
    if options.json:
        Path(options.json).write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
