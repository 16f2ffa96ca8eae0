"""Compiling the builder itself: once for an installation, and after every change to Build.lean."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from filelock import FileLock

from leanguard_host.lean.errors import BuildFailed
from leanguard_host.lean.portable.builder import SOURCE, Builder
from leanguard_host.lean.portable.install import Announce, Install, Progress, install, quiet, silent

_STAGING = "builder-staging-"
_STAGING_SECONDS, _UNUSED_SECONDS = 24 * 3600.0, 30 * 24 * 3600.0


def builder_digest() -> str:
    """Names the builder's source."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]


def toolchain_key(found: Install) -> str:
    """Names the toolchain and the builder: a part of every compiled module's key."""
    return f"{found.key}-{builder_digest()}"


def builder_ready(found: Install) -> Path | None:
    """The folder with the compiled builder, if there is one."""
    folder = found.folder / f"builder-{builder_digest()}"
    if not (folder / "Build.olean").is_file():
        return None
    with contextlib.suppress(OSError):
        os.utime(folder)  # recently used
    return folder


def _prune(folder: Path) -> None:
    """Delete builders that no version on this machine has used for a month, and what was interrupted."""
    for builder in folder.glob("builder-*/"):
        kept = _STAGING_SECONDS if builder.name.startswith(_STAGING) else _UNUSED_SECONDS
        with contextlib.suppress(OSError):
            if time.time() - builder.stat().st_mtime > kept:
                shutil.rmtree(builder, ignore_errors=True)


def ensure_builder(progress: Progress = silent, announce: Announce = quiet) -> tuple[Install, Path]:
    """The portable toolchain and the folder with the compiled builder; both are made first where they are missing.

    Raises:
        ToolchainUnavailable: the toolchain can't be installed.
        BuildFailed: the builder does not compile.
        LeanCrashed, LeanTimeout: Lean does not run on this machine.
    """
    found = install(progress, announce)
    if ready := builder_ready(found):
        return found, ready
    with FileLock(found.folder / "builder.lock"):
        if ready := builder_ready(found):  # another process was faster
            return found, ready
        _prune(found.folder)
        progress("compiling the builder", 0, 0)
        folder = found.folder / f"builder-{builder_digest()}"
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=found.folder))
        try:
            with Builder(found, None) as builder:
                source = SOURCE.read_text(encoding="utf-8")
                answer = builder.compile("Build", source, SOURCE.name, [], staging / "Build.olean")
            if not answer.ok:
                raise BuildFailed(answer.messages)
            staging.chmod(0o755)
            staging.rename(folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return found, folder
