"""What connects a guard to one backend: an adapter reads the state, and tells the facts that a result shows.

```python
class Shop:
    def snapshot(self, call: Call) -> dict[str, Any]:
        order = database.order(call.arguments.get("order_id"))
        return {"revision": order.version, "principal": session.user, "conversation": session.id,
                "state": {"orders": {order.id: order.as_json()}}}

    def facts(self, call: Call, result: object) -> list[dict[str, Any]]:
        return []                                        # or an authentication, for the tool that looks a customer up

    def reconcile(self, reservation: Reservation) -> Settled | None:
        return "succeeded" if database.has_payment(reservation.id) else "failed"
```

Only `snapshot` is needed. The other methods may be left out; `AsyncGuard` also takes coroutine functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from leanguard_host.models import Call, Event, Resource, Snapshot

Settled = Literal["succeeded", "failed"]
"""How a call of unknown outcome ended, as the backend tells it."""

Phase = Literal["reserved", "dispatched", "unknown"]


class DefiniteFailure(Exception):  # noqa: N818 - names what is known: the call had no effect
    """Raised by a tool that knows that it had no effect: the call may be proposed again at once.

    Any other exception leaves the outcome unknown: a lost connection says nothing about the payment at its other end.
    """


@dataclass(frozen=True)
class Reservation:
    """A single-use call that is about to run, runs, or of which nobody knows how it ended.

    Attributes:
        id: the reservation's id; hand it to the backend as an idempotency key where it takes one.
        proposal_id: the proposal that it is for.
        phase: `reserved` (not sent), `dispatched` (sent, and running as far as is known) or `unknown`.
        call: the call.
        resource: what the call changes, if its contract names that.
        revision: the state of the backend that the call was admitted in.
    """

    id: str
    proposal_id: str
    phase: Phase
    call: Call
    resource: Resource | None
    revision: str


@runtime_checkable
class Adapter(Protocol):
    """Reads one backend. Beside `snapshot`, a guard uses these methods where an adapter has them:

    - `facts(call, result) -> Iterable[Event | Mapping]`: what a successful result shows, such as an authentication.
      A field `time` may be left out. (That a resource was read is recorded without it.)
    - `reconcile(reservation) -> "succeeded" | "failed" | None`: how a call of unknown outcome ended; None while the
      backend can't tell. It must answer "failed" only when the call can't take effect any more.
    - `failed_definitely(error) -> bool`: whether a tool's exception means that the call had no effect.
    """

    def snapshot(self, call: Call) -> Snapshot | Mapping[str, Any]:
        """The state of the backend that decides this call, from authoritative data, with its revision.

        Of a mapping, `time` may be left out: the guard's clock is used. What this raises denies the call.
        """


Facts = Iterable[Event | Mapping[str, Any]]


def method(adapter: object, name: str) -> Any:
    """An adapter's optional method, or None."""
    found = getattr(adapter, name, None)
    return found if callable(found) else None
