"""What `leanguard replay` decides in a second, with one worker and with two, as a ratio of one run.

Usage: python benchmarks/replay.py [--data FOLDER --policy NAME EPISODES] [--rounds N] [--json FILE]

Without EPISODES an invented airline's are replayed. One and two workers take turns, so that a busy machine slows both;
the figures are the medians of the rounds. Starting Lean is not in them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from machine import facts

from leanguard_host.engine import Engine
from leanguard_host.replay import Decider, replay

EPISODES = 120
CALLS = 10
WORKERS = (1, 2)


def invented(folder: Path) -> Path:
    """Writes an airline's database and episodes on it; returns the episodes' file."""
    legs = [{"flight_number": "F1", "date": "2024-05-20", "price": 90, "origin": "AAA", "destination": "BBB"}]
    dates = {"2024-05-20": {"status": "available", "available_seats": {"economy": 9}, "prices": {"economy": 90}}}
    person = {"first_name": "Ada", "last_name": "Moss", "dob": "1980-02-29"}
    reservation = {
        "user_id": "ada_1",
        "origin": "AAA",
        "destination": "BBB",
        "flight_type": "one_way",
        "cabin": "economy",
        "flights": legs,
        "passengers": [person],
        "payment_history": [],
        "created_at": "2024-05-01T10:00:00",
        "total_baggages": 0,
        "nonfree_baggages": 0,
        "insurance": "no",
    }
    user = {"membership": "gold", "payment_methods": {"card": {"source": "credit_card"}}, "reservations": ["R1"]}
    data = {
        "flights": {"F1": {"origin": "AAA", "destination": "BBB", "dates": dates}},
        "reservations": {"R1": reservation},
        "users": {"ada_1": user},
    }
    (folder / "airline").mkdir()
    (folder / "airline" / "db.json").write_text(json.dumps(data), encoding="utf-8")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("get_reservation_details", {"reservation_id": "R1"}),
        ("cancel_reservation", {"reservation_id": "R1"}),
        (
            "update_reservation_baggages",
            {"reservation_id": "R1", "total_baggages": 1, "nonfree_baggages": 0, "payment_id": "card"},
        ),
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "I am ada_1"}]
    for number in range(CALLS):
        tool, arguments = calls[number % len(calls)]
        function = {"name": tool, "arguments": json.dumps(arguments)}
        messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]})
        messages.append({"role": "tool", "content": "Error: not now" if tool == "cancel_reservation" else "{}"})
    lines = [json.dumps({"task_id": number, "trial": 0, "traj": messages}) for number in range(EPISODES)]
    file = folder / "episodes.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def measure(episodes: Path, policy: str, data: Path, rounds: int) -> dict[str, float]:
    """Decisions a second by the number of workers, and how many times as many two make as one."""
    rates: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    with ExitStack() as engines:
        started: list[Decider] = [engines.enter_context(Engine.start()) for _ in range(max(WORKERS))]
        for workers in WORKERS:  # the first time each is slower
            replay(episodes, policy, data, started[:workers], assume_consent=True)
        for _ in range(rounds):
            for workers in WORKERS:
                found = replay(episodes, policy, data, started[:workers], assume_consent=True)
                assert found.undecided == 0
                rates[workers].append(len(found.decisions) / found.seconds)
    figures = {f"decisions_per_second_{workers}": statistics.median(each) for workers, each in rates.items()}
    pairs = zip(rates[1], rates[2], strict=True)
    return {**figures, "two_over_one": statistics.median(two / one for one, two in pairs)}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("episodes", type=Path, nargs="?", help="recorded episodes; invented ones if left out")
    parser.add_argument("--policy", default="airline")
    parser.add_argument("--data", type=Path, help="the benchmark's database")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    if (options.episodes is None) != (options.data is None):
        parser.error("EPISODES and --data belong together")
    with tempfile.TemporaryDirectory() as folder:
        episodes, data = options.episodes, options.data
        if episodes is None:
            episodes, data = invented(Path(folder)), Path(folder)
        figures = measure(episodes, options.policy, data, options.rounds)
    machine = facts()
    print("; ".join(f"{name}: {value}" for name, value in machine.items()))
    for name, value in figures.items():
        print(f"{name:28} {value:10.2f}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "figures": figures}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
