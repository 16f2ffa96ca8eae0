"""Lean, ready to decide: a toolchain, a built package, a warm process and the policies that it knows."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from leanguard_host.feedback import printable
from leanguard_host.jsonfiles import InputError
from leanguard_host.lean.errors import LeanUnavailable
from leanguard_host.models import Call, Decision, Event, Proof, Snapshot
from leanguard_host.naming import WITHOUT_STRICTER, base_name, policy_name
from leanguard_host.proving import (
    DEFAULT_BUDGET,
    OPERATIONS,
    SearchBudget,
    proof_question,
    read_proof,
    read_repair,
    repair_question,
    unproved,
    without_repair,
)
from leanguard_host.wire import (
    BAD_INPUT,
    REFUSED,
    UNAVAILABLE,
    WRONG_ANSWER,
    RefusedError,
    WrongAnswerError,
    admission,
    denial,
    good_answer,
    read_decision,
)

if TYPE_CHECKING:
    from leanguard_host.lean.build import BuildResult
    from leanguard_host.lean.toolchain import Toolchain

_NO_DECISION = (BAD_INPUT, REFUSED, UNAVAILABLE, WRONG_ANSWER)

START_SECONDS = 120.0
"""How long the warm process may take to answer for the first time."""


class Reporter(Protocol):
    """Told how preparing Lean gets on."""

    def announce(self, text: str) -> None:
        """Something large is going to happen."""

    def progress(self, what: str, done: int, total: int) -> None:
        """`what` is being done; `done` of `total` (0: unknown) are through."""

    def build(self, module: str, done: int, total: int) -> None:
        """`module` is being built ("": the build has ended); `done` of `total` are built."""


class Silent:
    """A Reporter that says nothing."""

    def announce(self, text: str) -> None:
        """Nothing."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Nothing."""

    def build(self, module: str, done: int, total: int) -> None:
        """Nothing."""


class UnknownPolicyError(Exception):
    """There is no policy of that name.

    Attributes:
        names: those there are.
        nearest: the one that was probably meant, if any.
    """

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self.name, self.names = (name := base_name(name)), tuple(names)
        close = difflib.get_close_matches(name.lower(), self.names, n=1, cutoff=0.5)
        self.nearest = close[0] if close else None
        hint = f" Did you mean {self.nearest}?" if self.nearest else ""
        super().__init__(f"There is no policy named {printable(name)!r}; there are: {', '.join(self.names)}.{hint}")


def policy_problem(unknown: UnknownPolicyError) -> InputError:
    """An unknown policy as a problem of the command line's."""
    hint = f" (did you mean {unknown.nearest}?)" if unknown.nearest else ""
    return InputError(
        "--policy", f"one of {', '.join(unknown.names)}", json.dumps(unknown.name, ensure_ascii=False) + hint
    )


class LeanLink(Protocol):
    """What an Engine needs of the warm process."""

    @property
    def pid(self) -> int | None:
        """The process, if it runs."""

    def start(self) -> None:
        """Start the process unless it runs; raises LeanUnavailable."""

    def guard(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Put a question; raises LeanUnavailable."""

    def close(self) -> None:
        """End the process."""


def prepare(reporter: Reporter | None = None, *, toolchain: Toolchain | None = None) -> BuildResult:
    """Install a toolchain and build the package, as far as they are missing.

    Raises:
        ToolchainUnavailable: there is no toolchain, and none can be installed.
        BuildFailed: the package does not compile.
        LeanUnavailable: Lean does not run here.
    """
    from leanguard_host.lean.build import build
    from leanguard_host.lean.toolchain import find_toolchain

    reporter = reporter or Silent()

    reporter.progress("preparing Lean", 0, 0)
    found = toolchain or find_toolchain(progress=reporter.progress, announce=reporter.announce)
    return build(found, progress=reporter.build)


def toolchain_text(toolchain: Toolchain) -> str:
    """A toolchain in a few words."""
    commit = f" ({toolchain.commit[:12]})" if toolchain.commit else ""
    return f"{toolchain.kind} Lean {toolchain.version}{commit}"


def policy_digest(policy: str, keys: Mapping[str, str]) -> str:
    """Names the content of a policy: its module and all that it imports, or the whole package if it has no module.

    A policy without its stricter rules has another digest than the policy with them.
    """

    def plain(name: str) -> str:
        return name.rpartition(".")[2].replace("_", "").replace("-", "").lower()

    def hashed(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    modules = [module for module in keys if plain(module) == plain(base_name(policy))]
    if len(modules) == 1:
        key = keys[modules[0]]
    else:
        key = hashed("\n".join(f"{module} {key}" for module, key in sorted(keys.items())))
    return f"sha256:{hashed(key + WITHOUT_STRICTER) if policy.endswith(WITHOUT_STRICTER) else key}"


PROOF_SECONDS = 20.0
"""How long a proof, or a search beyond its budget, may take; the first one also gets the time of a start."""

EVENT_SECONDS = 0.005
"""What a journal's event may take beyond the time for the decision: a long journal is no reason to deny."""


class Engine:
    """Lean, ready to decide. Use as a context manager, or call `close`."""

    def __init__(
        self, process: LeanLink, *, toolchain: str, keys: Mapping[str, str], prover: LeanLink | None = None
    ) -> None:
        """Ask the process for its policies.

        Args:
            process: the warm process.
            prover: the process that searches repairs and proves, started when it is first asked, so that decisions
                need not wait for proofs; None for the same one.
            toolchain: what runs it, in words.
            keys: the content keys of the modules.

        Raises:
            LeanUnavailable: it does not tell them.
        """
        self.process = process
        self.prover = prover or process
        self._warm_prover: int | None = None
        self.toolchain = toolchain
        self.restarts = True
        self.policies = self._ask_policies()
        names = [policy_name(p["name"], stricter=stricter) for p in self.policies for stricter in (True, False)]
        self.digests = {name: policy_digest(name, keys) for name in names}

    @classmethod
    def start(cls, reporter: Reporter | None = None, *, toolchain: Toolchain | None = None) -> Self:
        """Prepare what is missing and start the process.

        Raises:
            LeanUnavailable: there is no usable Lean; says why.
        """
        reporter = reporter or Silent()
        built = prepare(reporter, toolchain=toolchain)
        reporter.progress("starting Lean", 0, 0)
        process = start_process(built)
        try:
            prover = start_process(built)
            return cls(process, toolchain=toolchain_text(built.toolchain), keys=built.keys, prover=prover)
        except BaseException:
            process.close()
            raise

    def _ask_policies(self) -> list[dict[str, Any]]:
        try:
            policies = good_answer(self.process.guard({"op": "policies"}, START_SECONDS)).get("policies")
        except (WrongAnswerError, RefusedError) as error:
            raise LeanUnavailable(f"Lean does not tell its policies: {error}") from error
        if not isinstance(policies, list) or not policies:
            raise LeanUnavailable("Lean knows no policies.")
        for policy in policies:
            if not isinstance(policy, dict) or not isinstance(policy.get("name"), str):
                raise LeanUnavailable("Lean tells a policy that has no name.")
        return policies

    def require_policy(self, name: str) -> None:
        """Check that there is such a policy.

        Raises:
            UnknownPolicyError: there is not.
        """
        if name not in self.digests:
            raise UnknownPolicyError(name, sorted(policy["name"] for policy in self.policies))

    def decide(self, policy: str, call: Call, snapshot: Snapshot, journal: Sequence[Event], timeout: float) -> Decision:
        """Decide a call. Whatever goes wrong is a denial with the reason; the process is restarted for the next call.

        Raises:
            UnknownPolicyError: there is no such policy.
        """
        self.require_policy(policy)
        began = time.monotonic()
        try:
            question = admission(policy, call, snapshot, journal)
            answer = self.process.guard(question, timeout + len(journal) * EVENT_SECONDS)
            return read_decision(question, answer, policy_digest=self.digests[policy], toolchain=self.toolchain)
        except LeanUnavailable as error:
            reason = str(error)
            self._revive()
        except Exception as error:  # a fault of ours must not look like an admission either
            reason = f"{type(error).__name__}: {error}"
        return denial(
            UNAVAILABLE,
            f"The call could not be checked: {printable(reason)[:400]}",
            policy=policy,
            revision=snapshot.revision,
            policy_digest=self.digests[policy],
            toolchain=self.toolchain,
            elapsed_ms=round((time.monotonic() - began) * 1000, 3),
        )

    def repair(
        self,
        decision: Decision,
        policy: str,
        call: Call,
        snapshot: Snapshot,
        journal: Sequence[Event],
        budget: SearchBudget = DEFAULT_BUDGET,
    ) -> Decision:
        """The decision with a proved repair, if it is a denial and a candidate is one; else with the reason why none.

        Args:
            decision: what was decided of the call.
            policy: the policy's name.
            call: the denied call.
            snapshot: the state that it was decided in.
            journal: all events, oldest first.
            budget: what the search may take.
        """
        if decision.admitted:
            return decision
        if decision.errors and not decision.failed_rules and all(e.rule in _NO_DECISION for e in decision.errors):
            return without_repair(decision, "The call was not decided.")
        question = repair_question(policy, call, snapshot, journal, budget)
        try:
            return read_repair(question, self._prove(question, budget.seconds, len(journal)), decision)
        except Exception as error:
            return without_repair(decision, f"No repair could be looked for: {error}")

    def prove(self, policy: str, call: Call, snapshot: Snapshot, journal: Sequence[Event]) -> Proof:
        """Decide a call and prove the decision. What goes wrong is no proof, with the reason."""
        question = proof_question(policy, call, snapshot, journal)
        try:
            return read_proof(question, self._prove(question, 0.0, len(journal)))
        except Exception as error:
            return unproved(f"The decision could not be proved: {error}")

    def _prove(self, question: Mapping[str, Any], seconds: float, events: int) -> dict[str, Any]:
        timeout = seconds + PROOF_SECONDS + events * EVENT_SECONDS
        known = self._warm_prover is not None and self._warm_prover == self.prover.pid
        answer = self.prover.guard(question, timeout if known else timeout + START_SECONDS)
        self._warm_prover = self.prover.pid
        return answer

    def ask(self, question: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Put any question of the protocol; the process is restarted for the next one if it fails.

        Raises:
            LeanUnavailable: there is no answer.
            RefusedError: Lean could not read the question.
            WrongAnswerError: what came is no answer.
        """
        if question.get("op") in OPERATIONS:
            return good_answer(self.prover.guard(question, timeout))
        try:
            return good_answer(self.process.guard(question, timeout))
        except LeanUnavailable:
            self._revive()
            raise

    def contract(self, policy: str, tool: str) -> dict[str, Any] | None:
        """A policy's contract of a tool, as Lean told it; None if it has none.

        Raises:
            UnknownPolicyError: there is no such policy.
        """
        self.require_policy(policy)
        contracts = next(known.get("contracts") for known in self.policies if known["name"] == base_name(policy))
        return next((found for found in contracts or [] if found.get("tool") == tool), None)

    def _revive(self) -> None:
        """Start the process again behind the caller's back, so that the next call need not wait for it."""

        def start() -> None:
            with contextlib.suppress(LeanUnavailable):  # the next call will tell
                self.process.start()

        if self.restarts:
            threading.Thread(target=start, name="lean-restart", daemon=True).start()

    def close(self) -> None:
        """End the process."""
        self.restarts = False
        try:
            self.process.close()
        finally:
            self.prover.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class WithoutStricter:
    """Decides as an engine does, by the policies without their stricter rules."""

    def __init__(self, engine: Engine) -> None:
        """Over an engine, which it does not end."""
        self.engine = engine

    @property
    def digests(self) -> Mapping[str, str]:
        """Of each policy the digest of what decides, under the policy's own name."""
        names = [policy["name"] for policy in self.engine.policies]
        return {name: self.engine.digests[policy_name(name, stricter=False)] for name in names}

    def decide(self, policy: str, call: Call, snapshot: Snapshot, journal: Sequence[Event], timeout: float) -> Decision:
        """As `Engine.decide`."""
        return self.engine.decide(policy_name(policy, stricter=False), call, snapshot, journal, timeout)


def start_process(built: BuildResult) -> LeanLink:
    """Start the warm process of a built package.

    Raises:
        LeanUnavailable: it does not start.
    """
    from leanguard_host.lean.process import LeanProcess

    return LeanProcess(built)
