"""Which Lean to use: the official toolchain where there is one, else the portable one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from leanguard_host.lean.errors import LeanUnavailable, ToolchainUnavailable
from leanguard_host.lean.paths import cache_dir, package_root
from leanguard_host.lean.portable.bootstrap import builder_ready, ensure_builder, toolchain_key
from leanguard_host.lean.portable.fetch import DISK_MB, DOWNLOAD_MB, find_node
from leanguard_host.lean.portable.install import (
    LEAN_COMMIT,
    LEAN_VERSION,
    Announce,
    Install,
    Progress,
    installed,
    quiet,
    silent,
)
from leanguard_host.lean.portable.standin import write_lake

Kind = Literal["official", "portable"]
_VERSION = re.compile(r"\(version ([^,\s)]+)(?:.*?commit ([0-9a-f]{7,40}))?")
_ELAN_SECONDS = 1800
_PORTABLE_LIMITS = (
    "The axiom audit takes theorems of Lean's core library as given: their proofs are not shipped with it.",
    "The program runs in Lean's interpreter; no native executable is made.",
)


@dataclass(frozen=True)
class Toolchain:
    """A usable Lean.

    Attributes:
        kind: where it comes from.
        version: Lean's version, such as "4.28.0".
        commit: the commit of Lean's sources; empty if it does not tell.
        lake: the program to call as `lake`.
        key: names its content, for caches.
        why: why this one was chosen, in a sentence.
        install: the portable toolchain's installation.
        builder: the folder with the portable toolchain's builder.
    """

    kind: Kind
    version: str
    commit: str
    lake: Path
    key: str
    why: str
    install: Install | None = None
    builder: Path | None = None

    @property
    def limits(self) -> tuple[str, ...]:
        """What it can't do, in sentences."""
        return _PORTABLE_LIMITS if self.kind == "portable" else ()


@dataclass(frozen=True)
class Finding:
    """What was found out about one possible toolchain: usable (`lake` is set) or not, and why."""

    reason: str
    lake: Path | None = None
    version: str = ""
    commit: str = ""
    remedy: str = ""


def wanted_toolchain(root: Path | None = None) -> str:
    """The official toolchain that the package's lean-toolchain file asks for, such as "leanprover/lean4:v4.28.0"."""
    return ((root or package_root()) / "lean-toolchain").read_text(encoding="utf-8").strip()


def _wanted_version(wanted: str) -> str:
    return wanted.rpartition(":")[2].removeprefix("v")


def _elan_home() -> Path:
    return Path(os.environ.get("ELAN_HOME") or Path.home() / ".elan")


def find_elan() -> Path | None:
    """The elan program, if there is one."""
    beside = _elan_home() / "bin" / "elan"
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("elan")
    return Path(found) if found else None


def _ask_version(lean: Path) -> tuple[str, str]:
    """Version and commit that a `lean` program tells; remembered as long as the file is the same.

    Raises:
        LeanUnavailable: it does not run, or tells no version.
    """
    status = lean.stat()
    fact = f"{lean} {status.st_size} {status.st_mtime_ns}"
    memory = cache_dir() / "versions.json"
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
        version, commit = known[fact]
        return str(version), str(commit)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    try:
        told = subprocess.run(
            [lean, "--version"], capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LeanUnavailable(f"{lean} does not run: {error}") from error
    match = _VERSION.search(told.stdout)
    if told.returncode != 0 or match is None:
        raise LeanUnavailable(f"{lean} tells no version: {(told.stdout + told.stderr).strip()[:300]!r}")
    version, commit = match.group(1), match.group(2) or ""
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text(json.dumps({fact: [version, commit]}), encoding="utf-8")
    except OSError:
        pass  # only slower
    return version, commit


def _examine(folder: Path, wanted: str | None) -> Finding:
    """Whether a folder holds a usable `lean` and `lake` (of the wanted version, unless None)."""
    lean, lake = folder / "lean", folder / "lake"
    for program in (lean, lake):
        if not os.access(program, os.X_OK) or program.is_dir():
            return Finding(f"{folder} holds no program `{program.name}`")
    try:
        version, commit = _ask_version(lean)
    except LeanUnavailable as error:
        return Finding(str(error))
    if wanted is not None and version != wanted:
        return Finding(f"{lean} is Lean {version}, the package asks for {wanted}")
    return Finding(f"Lean {version} in {folder}", lake=lake, version=version, commit=commit)


def look_for_official(root: Path | None = None) -> Finding:
    """Look for the official toolchain that the package asks for: in elan's folder, then on PATH. Installs nothing."""
    wanted = wanted_toolchain(root)
    version = _wanted_version(wanted)
    tried: list[str] = []
    in_elan = _elan_home() / "toolchains" / wanted.replace("/", "--").replace(":", "---") / "bin"
    if in_elan.is_dir():
        finding = _examine(in_elan, version)
        if finding.lake:
            return finding
        tried.append(finding.reason)
    on_path = shutil.which("lean")
    # Not elan's own `lean`, which would download something when it is called.
    if on_path and not (Path(on_path).parent / "elan").exists():
        finding = _examine(Path(on_path).parent, version)
        if finding.lake:
            return finding
        tried.append(finding.reason)
    elan = find_elan()
    if elan:
        tried.append(f"elan ({elan}) has no {wanted}")
        return Finding("; ".join(tried), remedy=f"Run `elan toolchain install {wanted}`.")
    tried.append("neither elan nor a `lean` program of that version is here")
    remedy = f"Install elan (https://lean-lang.org/install), then run `elan toolchain install {wanted}`."
    return Finding("; ".join(tried), remedy=remedy)


def _elan_install(root: Path | None, announce: Announce) -> Finding:
    """Let elan install the wanted toolchain."""
    elan, wanted = find_elan(), wanted_toolchain(root)
    if elan is None:
        return look_for_official(root)
    announce(f"Running `elan toolchain install {wanted}`.")
    remedy = f"Run `elan toolchain install {wanted}` yourself."
    try:
        done = subprocess.run(
            [elan, "toolchain", "install", wanted],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ELAN_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(f"elan could not install {wanted}: {error}", remedy=remedy)
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())[-400:]
        return Finding(f"elan could not install {wanted}: {said}", remedy=remedy)
    return look_for_official(root)


def _official(finding: Finding, why: str) -> Toolchain:
    if finding.lake is None:
        raise ToolchainUnavailable(
            f"The official Lean toolchain is not usable: {finding.reason}.", remedy=finding.remedy
        )
    status = finding.lake.with_name("lean").stat()
    key = f"official-{finding.version}-{finding.commit or f'{status.st_size}-{status.st_mtime_ns}'}"
    return Toolchain("official", finding.version, finding.commit, finding.lake, key, why)


def portable_toolchain(
    why: str = "It was asked for.", progress: Progress = silent, announce: Announce = quiet, *, may_install: bool = True
) -> Toolchain:
    """The portable toolchain, installed first if need be.

    Raises:
        ToolchainUnavailable: it can't be installed or does not run here.
    """
    if os.name == "nt":
        raise ToolchainUnavailable(
            "The portable toolchain does not run on Windows.", remedy="Use WSL, or install the official toolchain."
        )
    find_node()
    here = installed()
    if not may_install and not (here and builder_ready(here)):
        raise ToolchainUnavailable(
            "The portable toolchain is not installed.",
            remedy=f"Run `leanguard toolchain install` ({DOWNLOAD_MB} MB to download, about {DISK_MB} MB on disk).",
        )
    try:
        found, builder = ensure_builder(progress, announce)
    except ToolchainUnavailable:
        raise
    except LeanUnavailable as error:
        raise ToolchainUnavailable(f"The portable toolchain does not run on this machine: {error}") from error
    lake = write_lake(found)
    return Toolchain("portable", LEAN_VERSION, LEAN_COMMIT, lake, toolchain_key(found), why, found, builder)


def find_toolchain(
    *, root: Path | None = None, may_install: bool = True, progress: Progress = silent, announce: Announce = quiet
) -> Toolchain:
    """Choose the toolchain.

    LEANGUARD_TOOLCHAIN=official|portable|PATH decides; without it the official one where it is usable, else the
    portable one.

    Args:
        root: the package whose lean-toolchain counts.
        may_install: whether a missing toolchain may be installed (by elan where it is there, else the portable one).
        progress: told how an installation gets on.
        announce: told beforehand what is going to be installed.

    Raises:
        ToolchainUnavailable: there is none; says what to do.
    """
    asked = os.environ.get("LEANGUARD_TOOLCHAIN", "").strip()
    if asked == "portable":
        return portable_toolchain(
            "LEANGUARD_TOOLCHAIN=portable asks for it.", progress, announce, may_install=may_install
        )
    if asked not in ("", "official"):
        return _at_path(asked)
    finding = look_for_official(root)
    if finding.lake is None and may_install and find_elan():
        finding = _elan_install(root, announce)
    if asked == "official":
        return _official(finding, f"LEANGUARD_TOOLCHAIN=official asks for it: {finding.reason}.")
    if finding.lake:
        return _official(finding, f"The official toolchain is here: {finding.reason}.")
    why = f"The official toolchain is not usable: {finding.reason}."
    return portable_toolchain(why, progress, announce, may_install=may_install)


def _at_path(asked: str) -> Toolchain:
    folder = Path(asked).expanduser()
    if not folder.is_dir():
        raise ToolchainUnavailable(
            f"LEANGUARD_TOOLCHAIN is {asked!r}, which is neither `official` nor `portable` nor a folder.",
            remedy="Set it to one of these (a folder: the one that holds bin/lean and bin/lake), or unset it.",
        )
    finding = _examine(folder.absolute() / "bin", None)
    if finding.lake is None:
        raise ToolchainUnavailable(
            f"LEANGUARD_TOOLCHAIN names {asked}, which is not usable: {finding.reason}.",
            remedy="Name a folder that holds bin/lean and bin/lake, or unset it.",
        )
    return _official(finding, f"LEANGUARD_TOOLCHAIN names {asked}.")
