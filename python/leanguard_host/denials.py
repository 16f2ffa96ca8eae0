"""Which calls were denied before, so that a model that tries the same again is told what would change the answer."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from leanguard_host.models import Call, Decision, Snapshot
from leanguard_host.store.canonical import canonical

KEPT = 512


class Denials:
    """The newest denials, at most KEPT of them; safe between threads. It changes no verdict."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: OrderedDict[bytes, frozenset[str]] = OrderedDict()

    def note(self, call: Call, snapshot: Snapshot, decision: Decision) -> Decision:
        """Remember a decision; returns it, marked if the same call was denied for the same reasons the time before.

        A call is the same with the same tool and arguments, by the same customer in the same conversation.
        """
        asked = {"call": call.wire(), "principal": snapshot.principal, "conversation": snapshot.conversation}
        key = hashlib.sha256(canonical(asked).encode()).digest()
        failed = [rule.id for rule in decision.failed_rules]
        reasons = frozenset(failed + [f"!{error.rule}" for error in decision.errors])
        with self._lock:
            before = self._reasons.pop(key, None)
            if decision.admitted:
                return decision
            self._reasons[key] = reasons
            if len(self._reasons) > KEPT:
                self._reasons.popitem(last=False)
        return decision.marked_again() if before == reasons else decision
