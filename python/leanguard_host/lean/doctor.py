"""What there is on this machine, and what is missing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leanguard_host.lean.errors import ToolchainUnavailable
from leanguard_host.lean.paths import cache_dir, package_root
from leanguard_host.lean.portable.install import portable_dir
from leanguard_host.lean.toolchain import (
    Toolchain,
    find_toolchain,
    look_for_official,
    portable_toolchain,
    wanted_toolchain,
)


def _size(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                status = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - quick, over thousands of files
            except OSError:
                continue
            total += status.st_size // max(1, status.st_nlink)
    return total


def _attempt(make: Callable[[], Toolchain]) -> Toolchain | ToolchainUnavailable:
    try:
        return make()
    except ToolchainUnavailable as error:
        return error


def doctor(root: Path | None = None) -> dict[str, Any]:
    """Facts about the toolchains and caches of this machine, ready for JSON. Installs nothing.

    Returns:
        `chosen` (None, or kind, version, commit, why, lake, limits), `problem` and `remedy` (where nothing is usable),
        `wanted`, `override`, `official` and `portable` (usable, reason, remedy), `package`,
        `caches` (what, path, bytes).
    """
    package = root or package_root()
    chosen = _attempt(lambda: find_toolchain(root=package, may_install=False))
    official = look_for_official(package)
    portable = _attempt(lambda: portable_toolchain(may_install=False))
    facts: dict[str, Any] = {
        "wanted": wanted_toolchain(package),
        "override": os.environ.get("LEANGUARD_TOOLCHAIN") or None,
    }
    if isinstance(chosen, Toolchain):
        facts |= {"chosen": _described(chosen), "problem": None, "remedy": None}
    else:
        facts |= {"chosen": None, "problem": chosen.problem, "remedy": chosen.remedy or None}
    facts["official"] = {
        "usable": official.lake is not None,
        "reason": official.reason,
        "remedy": official.remedy or None,
    }
    if isinstance(portable, Toolchain):
        facts["portable"] = {"usable": True, "reason": f"installed in {portable.lake.parent.parent}", "remedy": None}
    else:
        facts["portable"] = {"usable": False, "reason": portable.problem, "remedy": portable.remedy or None}
    facts["package"] = str(package)
    places = {
        "portable toolchain": portable_dir(),
        "compiled modules": cache_dir() / "oleans",
        "builds": cache_dir() / "builds",
    }
    facts["caches"] = [
        {"what": what, "path": str(path), "bytes": _size(path)} for what, path in places.items() if path.is_dir()
    ]
    return facts


def _described(toolchain: Toolchain) -> dict[str, Any]:
    return {
        "kind": toolchain.kind,
        "version": toolchain.version,
        "commit": toolchain.commit,
        "why": toolchain.why,
        "lake": str(toolchain.lake),
        "limits": list(toolchain.limits),
    }
