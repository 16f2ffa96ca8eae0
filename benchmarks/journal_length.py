"""Decision time against the length of the journal: the monitor reads what it remembers, never the journal.

Usage: python benchmarks/journal_length.py [--json FILE] [--longest N] [--decisions N]

The same call, snapshot and policy (retail, the example's confirmed exchange) are decided over journals of 100 events to
100,000 that one warm process follows. The events belong to many customers, conversations and orders, each with its own
look-ups, consents and outcomes; the last few are the example's own, so that every decision admits. Decisions over the
journals take turns, so that whatever else the machine does falls on all alike. The target is the project's own: over
the longest journal at most 1.2 times the time over the shortest. Exit code 1 if it is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from machine import facts

from leanguard_host.inputs import read_inputs
from leanguard_host.jsonfiles import read
from leanguard_host.lean.build import build
from leanguard_host.lean.process import LeanProcess
from leanguard_host.lean.toolchain import find_toolchain
from leanguard_host.wire import admission

EXAMPLE = Path(__file__).parent.parent / "examples" / "retail_exchange"
LENGTHS = (100, 1_000, 10_000, 100_000)
TARGET = 1.2
CHUNK = 100  # events in one request
WARM_UP = 200  # decisions over each journal before those that count
SEED = 1


def question() -> dict[str, Any]:
    """The example's confirmed exchange, as an admission request."""
    names = ("call.json", "snapshot.json", "journal_confirmed.jsonl")
    inputs = read_inputs(*(read(str(EXAMPLE / name), 2**20) for name in names))
    return admission("retail", inputs.call, inputs.snapshot, inputs.journal)


def others(count: int, before: int, choose: random.Random) -> list[dict[str, Any]]:
    """Events of other customers, oldest first: each conversation goes through authentication to the outcome."""
    events: list[dict[str, Any]] = []
    case = 0
    while len(events) < count:
        case += 1
        order, who = f"#W{choose.randrange(count)}", f"customer_{choose.randrange(count)}"
        common = {"principal": who, "conversation": f"chat-{case}"}
        about = common | {"resource": {"type": "order", "id": order}, "revision": f"r{case}"}
        look = {"tool": "get_order_details", "arguments": {"order_id": order}}
        exchange = {
            "tool": "exchange_delivered_order_items",
            "arguments": {
                "order_id": order,
                "item_ids": [f"item-{choose.randrange(1000)}"],
                "new_item_ids": [f"item-{choose.randrange(1000)}"],
                "payment_method_id": f"credit_card_{choose.randrange(10_000)}",
            },
        }
        status = choose.choice(("succeeded", "failed"))
        events += [
            {"kind": "authentication", **common},
            {"kind": "observation", **about, "call": look},
            {"kind": "consent", **about, "call": exchange},
            {"kind": "reservation", **about, "call": exchange},
            {"kind": "outcome", **about, "call": exchange, "status": status},
        ]
    return [{**event, "time": before - 1000 * (count - i)} for i, event in enumerate(events[:count])]


def follow(process: LeanProcess, name: str, events: list[dict[str, Any]]) -> list[float]:
    """Let the process follow a journal; returns the microseconds an event of each request."""
    costs = []
    for start in range(0, len(events), CHUNK):
        chunk = events[start : start + CHUNK]
        request = {"op": "observe", "policy": "retail", "journal_id": name, "events": chunk}
        answer = process.guard(request, timeout=60)
        assert answer["ok"], answer
        costs.append(answer["elapsed_us"] / len(chunk))
    return costs


def measure(longest: int, decisions: int) -> dict[str, Any]:
    """The figures of one run."""
    asked = question()
    own = asked.pop("journal")
    first = min(event["time"] for event in own)
    choose = random.Random(SEED)  # noqa: S311 - nothing secret
    lengths = [length for length in LENGTHS if length <= longest]
    inside: dict[int, list[float]] = {length: [] for length in lengths}
    whole: dict[int, list[float]] = {length: [] for length in lengths}
    learning: dict[int, list[float]] = {}
    with LeanProcess(build(find_toolchain())) as process:
        for length in lengths:
            began = time.perf_counter()
            learning[length] = follow(process, str(length), others(length - len(own), first, choose) + own)
            print(f"{length:,} events followed in {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
        for turn in range(WARM_UP + decisions):
            for shift in range(len(lengths)):
                length = lengths[(turn + shift) % len(lengths)]
                request = asked | {"journal_id": str(length), "events_seen": length}
                start = time.perf_counter()
                answer = process.guard(request, timeout=60)
                elapsed = (time.perf_counter() - start) * 1000
                assert answer["ok"] and answer["verdict"] == "admit", answer
                if turn >= WARM_UP:
                    inside[length].append(answer["elapsed_us"] / 1000)
                    whole[length].append(elapsed)
        memory = process.memory / 2**20
    figures: dict[str, Any] = {
        str(length): {
            "decision_median_ms": statistics.median(inside[length]),
            "decision_p99_ms": statistics.quantiles(inside[length], n=100)[98],
            "round_trip_median_ms": statistics.median(whole[length]),
            "learning_median_us_per_event": statistics.median(learning[length]),
        }
        for length in lengths
    }
    medians = [statistics.median(inside[length]) for length in lengths]
    # What the last events of the longest journal cost against its first ones: the work an event is constant too.
    costs = learning[lengths[-1]]
    tenth = max(1, len(costs) // 10)
    return {
        "lengths": figures,
        "ratio": medians[-1] / medians[0],
        "learning_ratio_last_to_first_tenth": statistics.median(costs[-tenth:]) / statistics.median(costs[:tenth]),
        "memory_mib": memory,
    }


def main() -> int:
    """Measure and print; exit 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--longest", type=int, default=LENGTHS[-1], metavar="N", help="leave out longer journals")
    parser.add_argument("--decisions", type=int, default=1000, metavar="N", help="decisions over each journal")
    options = parser.parse_args()
    if options.longest < LENGTHS[0] or options.decisions < 2:
        parser.error(f"--longest is at least {LENGTHS[0]}, --decisions at least 2")
    toolchain = find_toolchain()
    figures = measure(options.longest, options.decisions)
    machine = facts()
    print(f"toolchain: {toolchain.kind} {toolchain.version}; " + "; ".join(f"{k}: {v}" for k, v in machine.items()))
    print(f"{'events':>9}  {'decision':>12}  {'99th percentile':>15}  {'round trip':>10}  {'learning':>13}")
    for length, row in figures["lengths"].items():
        print(
            f"{int(length):>9,}  {row['decision_median_ms']:>9.3f} ms  {row['decision_p99_ms']:>12.3f} ms  "
            f"{row['round_trip_median_ms']:>7.3f} ms  {row['learning_median_us_per_event']:>4.0f} us/event"
        )
    met = figures["ratio"] <= TARGET
    print(f"longest to shortest: {figures['ratio']:.3f}   target {TARGET:g}: {'met' if met else 'MISSED'}")
    print(f"learning, last to first tenth: {figures['learning_ratio_last_to_first_tenth']:.3f}")
    print(f"memory: {figures['memory_mib']:.0f} MiB")
    if options.json:
        result = {"machine": machine, "toolchain": f"{toolchain.kind} {toolchain.version}", **figures}
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
