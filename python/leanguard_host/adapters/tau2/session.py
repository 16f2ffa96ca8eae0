"""One conversation on one backend: what happened in it, as the journal's events."""

from __future__ import annotations

from typing import Any

from leanguard_host.adapters.tau2.backend import Backend, Json, ToolError, digest
from leanguard_host.models import Call, Event, Resource, Snapshot


class Session:
    """Keeps the journal of one conversation; also an `Adapter` for a guard, which then keeps the journal itself.

    Only what the host itself sees becomes an event: the backend's results, and a confirmation given through `confirm`.
    Nothing that a model says is one.
    """

    def __init__(self, backend: Backend, conversation: str) -> None:
        self.backend = backend
        self.conversation = conversation
        self.principal: str | None = None
        self.journal: list[Event] = []
        self._before: tuple[Call, Json | None] | None = None

    def snapshot(self, call: Call) -> Snapshot:
        """What the policy is told for the call."""
        wire = call.model_dump()
        state = self.backend.state(wire, self.principal)
        self._before = call, self.backend.disruption(wire)
        return Snapshot(
            revision=digest(state),
            time=self.backend.now,
            principal=self.principal,
            conversation=self.conversation,
            state=state,
        )

    def facts(self, call: Call, result: object) -> list[Event]:
        """What a successful result shows: what was read, who the customer is, what was disrupted before the change."""
        wire = call.model_dump()
        if call.tool in self.backend.writes:
            before = self._before[1] if self._before and self._before[0] == call else None
            return [self._event("delayed_trip_changed", call, data=before)] if before else []
        things = [Resource.model_validate(thing) for thing in self.backend.seen(wire, result)]
        events = [self._event("observation", call, resource=thing) for thing in things]
        if (customer := self.backend.identified(wire, result)) is not None:
            events += self._authentication(customer, call)
        return events

    def customer_says(self, text: str) -> list[Event]:
        """The customer's own words, from the channel that is theirs.

        Returns the events that they are, for a guard that keeps the journal (`guard.record`).
        """
        customer = self.backend.claimed(text)
        events = [] if customer is None else self._authentication(customer, None)
        self.journal += events
        return events

    def confirm(self, call: Call) -> None:
        """The customer confirmed exactly this call in this state.

        Call it for a trusted signal alone, never for a model's text. A confirmation by no one in particular is none,
        and is not recorded.
        """
        if self.principal is None:
            return
        revision = self.snapshot(call).revision
        self.journal.append(self._event("consent", call, revision=revision, resource=self._resource(call)))

    def run(self, call: Call) -> Any:
        """Run the call and record what happened.

        Raises:
            ToolError: the backend refuses it; that is recorded too.
        """
        resource, writes = self._resource(call), call.tool in self.backend.writes
        if writes:
            revision = self.snapshot(call).revision
            self.journal.append(self._event("reservation", call, revision=revision, resource=resource))
        try:
            result = self.backend.run(call.model_dump())
        except ToolError:
            if writes:
                self.journal.append(self._event("outcome", call, resource=resource, status="failed"))
            raise
        if writes:
            self.journal.append(self._event("outcome", call, resource=resource, status="succeeded"))
        self.journal += self.facts(call, result)
        return result

    def _authentication(self, customer: str, call: Call | None) -> list[Event]:
        # One customer a conversation: who comes first stays.
        if self.principal is not None:
            return []
        self.principal = customer
        return [self._event("authentication", call)]

    def _resource(self, call: Call) -> Resource | None:
        found = self.backend.resource(call.model_dump())
        return Resource.model_validate(found) if found else None

    def _event(self, kind: str, call: Call | None, **fields: Any) -> Event:
        return Event(
            kind=kind,
            time=self.backend.now,
            principal=self.principal,
            conversation=self.conversation,
            call=call,
            **fields,
        )
