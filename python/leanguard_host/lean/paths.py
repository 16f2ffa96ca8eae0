"""Where the Lean side lives: the package's sources, and the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

from leanguard_host.lean.errors import ToolchainUnavailable


def cache_dir() -> Path:
    """The folder for toolchains and build output: LEANGUARD_CACHE_DIR, else the user's cache folder for LeanGuard."""
    override = os.environ.get("LEANGUARD_CACHE_DIR")
    return Path(override).expanduser().absolute() if override else user_cache_path("leanguard")


def is_package(folder: Path) -> bool:
    """Whether a folder holds the LeanGuard Lake package."""
    return (folder / "lakefile.lean").is_file() and (folder / "LeanGuard").is_dir()


def package_root() -> Path:
    """The Lake package: LEANGUARD_PACKAGE, else the checkout that this file is in, else the copy installed with it.

    Raises:
        ToolchainUnavailable: there is none.
    """
    override = os.environ.get("LEANGUARD_PACKAGE")
    if override:
        root = Path(override).expanduser().absolute()
        if not (root / "lakefile.lean").is_file():
            raise ToolchainUnavailable(
                f"LEANGUARD_PACKAGE names {root}, which holds no lakefile.lean.",
                remedy="Set it to a checkout of LeanGuard, or unset it.",
            )
        return root
    here = Path(__file__).resolve()
    for folder in here.parents:
        if is_package(folder):
            return folder
    bundled = here.parents[1] / "_package"
    if is_package(bundled):
        return bundled
    raise ToolchainUnavailable(
        "The Lean sources of LeanGuard are not beside its Python code.",
        remedy="Install LeanGuard again, or set LEANGUARD_PACKAGE to a checkout.",
    )
