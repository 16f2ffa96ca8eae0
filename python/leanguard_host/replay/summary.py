"""What a replay found: every call with its decision, and the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from leanguard_host.adapters.tau2 import DOMAINS
from leanguard_host.adapters.tau2.episodes import Episode, Unreadable

INVALID = "invalid invocation"
"""The category of a call that can't be read at all, beside those that do not fit their tool's contract."""

CONSENT = "consent not shown"
"""The category of what lacks the customer's consent where only a transcript is there, which can't show any."""

NOT_EVALUATED = "not evaluated"
"""The category of what was denied because a rule could not be evaluated."""

CATEGORIES = (
    INVALID,
    "state incompatibility",
    "temporal incompatibility",
    "authorization failure",
    "policy prohibition",
    "effect not modelled",
    NOT_EVALUATED,
    CONSENT,
)
"""The taxonomy, and beside it what could not be evaluated and what a transcript can't show. A denial's `category` is
the first of its own in this order."""


@dataclass(frozen=True)
class Decided:
    """A call of an episode and what was decided."""

    episode: str
    index: int
    """The step of the episode, counted from 0."""
    tool: str
    verdict: str
    rules: list[str]
    """Those that failed or could not be evaluated."""
    categories: list[str]
    arguments: Any = None
    errors: list[str] = field(default_factory=list)
    writes: bool = False
    executed: bool = False
    """Whether the recording's agent carried it out with success."""
    changed: bool = False
    """Whether that changed the database."""
    only_consent: bool = False
    """Nothing but the customer's consent is missing, which a transcript can't show."""
    only_stricter: bool = False
    """Denied by nothing but rules to which the benchmark does not hold its own solutions."""
    contradicts: bool = False
    """The recorded result is a failure and the database's is none, or the other way round."""
    undecided: bool = False
    """Lean did not answer: a denial, but no judgement on the call."""

    @property
    def denied(self) -> bool:
        """Whether it was denied."""
        return self.verdict == "deny"

    @property
    def category(self) -> str | None:
        """The category of a denial: the first of its own in the order of CATEGORIES; None if it was admitted."""
        known = [category for category in CATEGORIES if category in self.categories]
        return next(iter(known + self.categories), NOT_EVALUATED) if self.denied else None

    @property
    def forbidden_executed(self) -> bool:
        """Denied for a reason other than consent, and yet it changed the database."""
        return self.denied and self.changed and not self.only_consent

    def as_json(self) -> dict[str, Any]:
        """The decision as one JSON object."""
        return {**asdict(self), "category": self.category, "forbidden_executed": self.forbidden_executed}


@dataclass
class Summary:
    """All decisions of a replay."""

    policy: str
    assume_consent: bool
    policy_digest: str = ""
    """What decided, with or without its stricter rules."""
    decisions: list[Decided] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    replayed: list[Episode] = field(default_factory=list)
    by_episode: list[list[Decided]] = field(default_factory=list)
    """The decisions of each of the episodes `replayed`."""
    resumed: int = 0
    """How many of the episodes an earlier run had decided."""
    seconds: float = 0.0

    @property
    def episodes(self) -> int:
        """How many episodes there are."""
        return len(self.replayed)

    @property
    def undecided(self) -> int:
        """How many calls Lean gave no answer for."""
        return sum(d.undecided for d in self.decisions)

    def totals(self) -> dict[str, Any]:
        """The counts, without the decisions. A call counts once for each of its rules and each of its categories."""
        denied = [d for d in self.decisions if d.denied]
        forbidden = [d for d in denied if d.forbidden_executed]
        consent = DOMAINS[self.policy].confirmations  # told apart: it does not say why a call is forbidden
        return {
            "policy": self.policy,
            "policy_digest": self.policy_digest,
            "assume_consent": self.assume_consent,
            "episodes": self.episodes,
            "unreadable": [asdict(item) for item in self.unreadable],
            "calls": len(self.decisions),
            "admitted": len(self.decisions) - len(denied),
            "denied": len(denied),
            "consent_not_shown": sum(d.only_consent for d in denied),
            "stricter_only": sum(d.only_stricter for d in denied),
            "forbidden_executed": len(forbidden),
            "forbidden_executed_episodes": len({id(own) for own in self.by_episode if any_forbidden(own)}),
            "forbidden_executed_by_rule": count([r for r in d.rules if r not in consent] for d in forbidden),
            "forbidden_executed_by_category": count([c for c in d.categories if c != CONSENT] for d in forbidden),
            "by_rule": count(d.rules for d in denied),
            "by_category": count(d.categories for d in denied),
            "contradictions": sum(d.contradicts for d in self.decisions),
            "undecided": self.undecided,
            "resumed": self.resumed,
            "seconds": round(self.seconds, 3),
        }

    def as_json(self) -> dict[str, Any]:
        """The summary as one JSON object, with every decision."""
        return {**self.totals(), "decisions": [d.as_json() for d in self.decisions]}


def any_forbidden(decisions: Iterable[Decided]) -> bool:
    """Whether something that the policy forbids was carried out."""
    return any(d.forbidden_executed for d in decisions)


def count(lists: Iterable[list[str]]) -> dict[str, int]:
    """How many of the lists have each name, the most frequent first."""
    counts = Counter(name for names in lists for name in names)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def table(totals: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, int, int]]]]:
    """The summary's tables: a title, and rows of a name, the calls denied, and those of them that were carried out."""
    return [
        (
            title,
            [
                (name, number, totals[f"forbidden_executed_{part}"].get(name, 0))
                for name, number in totals[part].items()
            ],
        )
        for title, part in (("By rule", "by_rule"), ("By category", "by_category"))
    ]
