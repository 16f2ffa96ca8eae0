"""LeanGuard: a checkpoint for tool calls of language models. Every decision is made by a policy written in Lean 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leanguard_host.guard import Guard, GuardUnavailable
    from leanguard_host.models import Call, Decision, Event, FailedRule, Resource, RuleError, Snapshot

__version__ = "0.1.0"

__all__ = [
    "Call",
    "Decision",
    "Event",
    "FailedRule",
    "Guard",
    "GuardUnavailable",
    "Resource",
    "RuleError",
    "Snapshot",
    "__version__",
]

_HOMES = {"Guard": "guard", "GuardUnavailable": "guard"}


def __getattr__(name: str) -> Any:
    # Imported on first use: the command line starts without pydantic.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'models')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
