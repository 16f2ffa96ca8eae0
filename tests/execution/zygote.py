"""Forks executions that get killed. Reads commands, one JSON object a line; answers with how each child ended.

It has loaded everything and holds no connection, so that a child is ready at once and shares nothing with another.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import Any

from relay import connect
from shop import Shop, confirm, exchange, prepare

from leanguard_host import Guard, execution


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def child(command: dict[str, Any]) -> None:
    """One execution, which is killed at a point of it."""
    shop = Shop(Path(command["ledger"]))
    point, order = command["point"], command["order"]
    guard = Guard("retail", command["journal"], engine=connect(command["address"]), timeout=20.0)
    prepare(guard, shop, order)
    confirm(guard, shop, exchange(order))
    if point in ("before", "after"):
        shop.hooks[point] = die
    else:
        execution.reached = lambda name: die() if name == point else None
    guard.execute(exchange(order), shop.exchange, adapter=shop)


def racer(command: dict[str, Any], barrier: Any) -> None:
    """One of several processes that all execute the same calls, one after the other, each at the same time."""
    shop = Shop(Path(command["ledger"]))
    guard = Guard("retail", command["journal"], engine=connect(command["address"]), timeout=20.0)
    told = {}
    for order in command["orders"]:
        barrier.wait()
        done = guard.execute(exchange(order), shop.exchange, adapter=shop)
        rules = [rule.id for rule in done.decision.failed_rules] + [error.rule for error in done.decision.errors]
        told[order] = [done.status, rules]
    Path(f"{command['out']}.{os.getpid()}").write_text(json.dumps(told), encoding="utf-8")


def main() -> None:
    for line in sys.stdin:
        command = json.loads(line)
        pids, count = [], command.get("count", 1)
        barrier = multiprocessing.get_context("fork").Barrier(count)
        for _ in range(count):
            pid = os.fork()
            if pid == 0:
                try:
                    racer(command, barrier) if "orders" in command else child(command)
                    os._exit(0)
                except BaseException as error:
                    print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                    os._exit(9)
            pids.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        print(json.dumps(codes), flush=True)


if __name__ == "__main__":
    main()
