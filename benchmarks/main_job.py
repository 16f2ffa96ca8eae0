"""The main job's figures: start to first decision, `leanguard check` with the background process, clean build, memory.

Usage: python benchmarks/main_job.py [--json FILE] [--skip-build]

The figures are of one run on one machine, whose facts are printed with them. Targets are the project's own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from machine import facts

from leanguard_host.inputs import read_inputs
from leanguard_host.jsonfiles import read
from leanguard_host.lean.build import build
from leanguard_host.lean.paths import cache_dir
from leanguard_host.lean.process import LeanProcess
from leanguard_host.lean.toolchain import find_toolchain
from leanguard_host.wire import admission

EXAMPLE = Path(__file__).parent.parent / "examples" / "retail_exchange"
CHECKS = 15
DECISIONS = 500


def request() -> dict[str, Any]:
    """An admission of the example's confirmed exchange."""
    names = ("call.json", "snapshot.json", "journal_confirmed.jsonl")
    inputs = read_inputs(*(read(str(EXAMPLE / name), 2**20) for name in names))
    return admission("retail", inputs.call, inputs.snapshot, inputs.journal)


def first_decision() -> dict[str, float]:
    """Seconds from nothing to the first decision, and what a decision costs once warm (milliseconds)."""
    question = request()
    began = time.perf_counter()
    built = build(find_toolchain())
    with LeanProcess(built) as process:
        answer = process.guard(question, timeout=60)
        first = time.perf_counter() - began
        assert answer["verdict"] == "admit", answer
        for _ in range(DECISIONS):
            process.guard(question, timeout=10)
        inside, whole = [], []
        for _ in range(DECISIONS):
            start = time.perf_counter()
            answer = process.guard(question, timeout=10)
            whole.append((time.perf_counter() - start) * 1000)
            inside.append(answer["elapsed_us"] / 1000)
        memory = process.memory / 2**20
    return {
        "first_decision_s": first,
        "decision_median_ms": statistics.median(inside),
        "decision_p99_ms": statistics.quantiles(inside, n=100)[98],
        "round_trip_median_ms": statistics.median(whole),
        "memory_mib": memory,
    }


def checks() -> dict[str, float]:
    """Seconds of the whole `leanguard check` command with the background process up, and the decision in it."""
    command = [
        *(sys.executable, "-m", "leanguard_host", "check", "--policy", "retail", "--json"),
        *("--snapshot", str(EXAMPLE / "snapshot.json"), "--journal", str(EXAMPLE / "journal_confirmed.jsonl")),
        *("--call", str(EXAMPLE / "call.json")),
    ]
    subprocess.run(command, check=True, capture_output=True)  # starts the background process
    seconds, decisions = [], []
    for _ in range(CHECKS):
        start = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
        decisions.append(float(json.loads(done.stdout)["elapsed_ms"]))
    bare = []
    for _ in range(CHECKS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bare.append(time.perf_counter() - start)
    return {
        "check_median_s": statistics.median(seconds),
        "check_max_s": max(seconds),
        "check_decision_median_ms": statistics.median(decisions),
        "bare_python_median_s": statistics.median(bare),
        "check_over_bare_python": statistics.median(seconds) / statistics.median(bare),
    }


def clean_build() -> dict[str, float]:
    """Seconds of a build from no compiled module, with the toolchain installed."""
    with tempfile.TemporaryDirectory() as folder:
        for entry in cache_dir().iterdir():
            if entry.name not in {"oleans", "builds"}:
                (Path(folder) / entry.name).symlink_to(entry)
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "leanguard_host", "build"],
            check=True,
            capture_output=True,
            env={**os.environ, "LEANGUARD_CACHE_DIR": folder},
        )
        return {"clean_build_s": time.perf_counter() - start}


TARGETS = {
    "first_decision_s": 15.0,
    "check_median_s": 0.4,
    "check_decision_median_ms": 3.0,
    "clean_build_s": 300.0,
    "memory_mib": 2048.0,
}


def main() -> int:
    """Measure and print; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--skip-build", action="store_true", help="leave out the clean build")
    options = parser.parse_args()
    toolchain = find_toolchain()
    figures: dict[str, float] = {**first_decision(), **checks()}
    if not options.skip_build:
        figures |= clean_build()
    machine = facts()
    print(f"toolchain: {toolchain.kind} {toolchain.version}; " + "; ".join(f"{k}: {v}" for k, v in machine.items()))
    for name, value in figures.items():
        target = TARGETS.get(name)
        verdict = "" if target is None else f"   target {target:g}: {'met' if value <= target else 'MISSED'}"
        print(f"{name:28} {value:10.3f}{verdict}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "figures": figures}, indent=1) + "\n", encoding="utf-8")
    return int(any(figures.get(name, 0) > target for name, target in TARGETS.items()))


if __name__ == "__main__":
    raise SystemExit(main())
