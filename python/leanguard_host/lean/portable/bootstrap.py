"""Compiling the builder itself, once for an installation."""

from __future__ import annotations

import hashlib
from pathlib import Path

from leanguard_host.lean.portable.builder import SOURCE, builder_folder
from leanguard_host.lean.portable.install import Install, install


def toolchain_key(install: Install) -> str:
    """Names the toolchain and the builder: a part of every compiled module's key."""
    return f"{install.key}-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}"


def ensure_builder() -> tuple[Install, Path]:
    """The installed toolchain and the folder with the compiled builder."""
    found = install()
    return found, builder_folder(found)
