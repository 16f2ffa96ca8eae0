"""LeanGuard: a checkpoint for tool calls of language models. Every decision is made by a policy written in Lean 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leanguard_host.adapter import Adapter, DefiniteFailure, Reservation
    from leanguard_host.asyncguard import AsyncGuard
    from leanguard_host.execution import (
        Confirmation,
        Denied,
        Execution,
        Settlement,
        ToolDenied,
        ToolTimeout,
        TurnEnded,
    )
    from leanguard_host.guard import Guard, GuardUnavailable
    from leanguard_host.models import (
        Call,
        Decision,
        Edit,
        Event,
        FailedRule,
        Proof,
        Rejected,
        Repair,
        RepairSearch,
        Resource,
        RuleError,
        Snapshot,
    )

__version__ = "0.1.0"

__all__ = [
    "Adapter",
    "AsyncGuard",
    "Call",
    "Confirmation",
    "Decision",
    "DefiniteFailure",
    "Denied",
    "Edit",
    "Event",
    "Execution",
    "FailedRule",
    "Guard",
    "GuardUnavailable",
    "Proof",
    "Rejected",
    "Repair",
    "RepairSearch",
    "Reservation",
    "Resource",
    "RuleError",
    "Settlement",
    "Snapshot",
    "ToolDenied",
    "ToolTimeout",
    "TurnEnded",
    "__version__",
]

_HOMES = {
    "Adapter": "adapter",
    "AsyncGuard": "asyncguard",
    "Confirmation": "execution",
    "DefiniteFailure": "adapter",
    "Denied": "execution",
    "Execution": "execution",
    "Guard": "guard",
    "GuardUnavailable": "guard",
    "Reservation": "adapter",
    "Settlement": "execution",
    "ToolDenied": "execution",
    "ToolTimeout": "execution",
    "TurnEnded": "execution",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: the command line starts without pydantic.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'models')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
