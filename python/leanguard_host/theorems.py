"""The page of what is proved, read from `LeanGuard/Theorems.lean`."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path

from leanguard_host.lean.paths import package_root

_THEOREM = re.compile(
    r"^/-- (?P<says>.*?) -/\ntheorem (?P<name>\S+)(?P<statement>.*?) :=(?=\s)", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Theorem:
    """A public theorem: its name, a plain sentence, and the statement in Lean."""

    name: str
    says: str
    statement: str

    def as_json(self) -> dict[str, str]:
        """The theorem as an object."""
        return asdict(self)


def theorems(root: Path | None = None) -> list[Theorem]:
    """The public theorems, in the page's order.

    Raises:
        FileNotFoundError: the package has no such page.
    """
    page = (root or package_root()) / "LeanGuard" / "Theorems.lean"
    return [
        Theorem(match["name"], " ".join(match["says"].split()), match["statement"].strip())
        for match in _THEOREM.finditer(page.read_text(encoding="utf-8"))
    ]
