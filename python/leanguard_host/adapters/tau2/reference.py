"""What an honest agent does around the actions of a task's reference solution.

It identifies the customer, reads what it is about to change, and has the customer confirm each change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from leanguard_host.adapters.tau2.backend import Backend, Json
from leanguard_host.adapters.tau2.episodes import Episode, Step

_PHONE = re.compile(r"\b\d{3}-\d{3}-\d{4}\b")


def _call(tool: str, **arguments: Any) -> Step:
    return Step("call", "", tool, arguments)


def _retail_identity(backend: Backend, episode: Episode) -> Iterator[Step]:
    if any(str(step.tool).startswith("find_user_id_") for step in episode.steps):
        return
    for step in episode.steps:
        if step.kind == "call" and isinstance(step.arguments, dict):
            order = backend.row("orders", step.arguments.get("order_id")) or {}
            if user := backend.row("users", step.arguments.get("user_id") or order.get("user_id")):
                yield _call("find_user_id_by_email", email=user["email"])
                return


def _telecom_identity(backend: Backend, episode: Episode) -> Iterator[Step]:
    if found := _PHONE.search(episode.steps[0].text if episode.steps else ""):
        yield _call("get_customer_by_phone", phone_number=found.group())


def _airline_identity(backend: Backend, episode: Episode) -> Iterator[Step]:
    # The customer gives their user id; where the task doesn't spell it out, it is that of the reservation in question.
    if any(step.kind == "customer" and backend.claimed(step.text) for step in episode.steps):
        return
    for step in episode.steps:
        if step.kind == "call" and isinstance(step.arguments, dict):
            row = backend.row("reservations", step.arguments.get("reservation_id")) or {}
            if user := step.arguments.get("user_id") or row.get("user_id"):
                yield Step("customer", text=f"My user id is {user}.")
                return


_IDENTITY: dict[str, Callable[[Backend, Episode], Iterator[Step]]] = {
    "retail": _retail_identity,
    "airline": _airline_identity,
    "telecom": _telecom_identity,
}

_READS: dict[str, tuple[str, str]] = {
    "order": ("get_order_details", "order_id"),
    "reservation": ("get_reservation_details", "reservation_id"),
    "user": ("get_user_details", "user_id"),
    "line": ("get_details_by_id", "id"),
    "bill": ("get_details_by_id", "id"),
}


def honest(backend: Backend, episode: Episode) -> Iterator[Step]:
    """The reference actions with what belongs before them."""
    customers = [step for step in episode.steps if step.kind == "customer"]
    yield from customers
    yield from _IDENTITY[backend.name](backend, episode)
    read: set[tuple[str, str]] = set()
    for step in episode.steps:
        if step.kind == "customer":
            continue
        if step.kind == "call" and isinstance(step.arguments, dict):
            wire: Json = {"tool": step.tool, "arguments": step.arguments}
            thing = backend.resource(wire)
            if step.tool in backend.writes and thing:
                tool, argument = _READS[thing["type"]]
                if (thing["type"], thing["id"]) not in read:
                    yield _call(tool, **{argument: thing["id"]})
                    read.add((thing["type"], thing["id"]))
                yield Step("confirmed", "", step.tool, step.arguments)
            elif thing:
                read.add((thing["type"], thing["id"]))
        yield step
