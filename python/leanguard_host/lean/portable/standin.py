"""The stand-in for `lake`, and the launcher of a compiled program: small sh scripts that become the program."""

from __future__ import annotations

import hashlib
import shlex
import sys
import tempfile
from pathlib import Path

from leanguard_host.lean.portable.builder import BOOT, NODE_FLAGS
from leanguard_host.lean.portable.fetch import find_node
from leanguard_host.lean.portable.install import LEAN_VERSION, Install

LAKE_VERSION = f"Lake version 5.0.0-portable (Lean version {LEAN_VERSION})"
LAUNCHER_MARK = "# made by LeanGuard's portable build"
PATH_FILE = Path(".lake", "leanguard", "lean-path")  # in a package's folder: where its compiled modules are

_LAKE = """#!/bin/sh
{mark}: stands in for lake
case "$1" in
  --version | version)
    echo {version} ;;
  env)
    shift
    export LEANGUARD_PORTABLE={install}
    LEAN_SYSROOT={install}
    LEAN_PATH={library}
    if [ -r {path_file} ]; then LEAN_PATH="$LEAN_PATH:$(cat {path_file})"; fi
    export LEAN_SYSROOT LEAN_PATH
    if [ $# -eq 0 ]; then exec env; fi
    exec "$@" ;;
  *)
    exec {python} -c {program} "$@" ;;
esac
"""

# The folder goes last, so that it can't hide anything of Python's own.
_PROGRAM = """import sys
sys.path.append({source!r})
from leanguard_host.lean.portable.lake import main
sys.exit(main(sys.argv[1:]))"""

_LAUNCHER = """#!/bin/sh
{mark}
export LEANGUARD_PORTABLE={install}
export LEANGUARD_LEAN_PATH={lean_path}
exec {node} {flags} {boot} {module} "$@"
"""


def write_script(path: Path, text: str) -> None:
    """Write an executable script unless it is there; others see it whole or not at all."""
    try:
        if path.read_text(encoding="utf-8") == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".new-", delete=False, encoding="utf-8") as file:
        file.write(text)
    Path(file.name).chmod(0o755)
    Path(file.name).replace(path)


def write_lake(install: Install) -> Path:
    """Make the `lake` stand-in for this Python and this Node; returns its path."""
    text = _LAKE.format(
        mark=LAUNCHER_MARK,
        version=shlex.quote(LAKE_VERSION),
        install=shlex.quote(str(install.folder)),
        library=shlex.quote(str(install.library)),
        path_file=shlex.quote(str(PATH_FILE)),
        python=shlex.quote(sys.executable),
        program=shlex.quote(_PROGRAM.format(source=str(Path(__file__).parents[3]))),
    )
    lake = install.folder / f"bin-{hashlib.sha256(text.encode()).hexdigest()[:12]}" / "lake"
    write_script(lake, text)
    return lake


def write_launcher(path: Path, install: Install, module: str, lean_path: list[Path]) -> None:
    """Make a script that runs a compiled module's `main`."""
    write_script(
        path,
        _LAUNCHER.format(
            mark=LAUNCHER_MARK,
            install=shlex.quote(str(install.folder)),
            lean_path=shlex.quote(":".join(str(folder) for folder in lean_path)),
            node=shlex.quote(str(find_node())),
            flags=" ".join(NODE_FLAGS),
            boot=shlex.quote(str(BOOT)),
            module=shlex.quote(module),
        ),
    )


def is_our_launcher(path: Path) -> bool:
    """Whether a file is a launcher that we made, not a program that the official toolchain built."""
    try:
        with path.open("rb") as file:
            return LAUNCHER_MARK.encode() in file.read(200)
    except OSError:
        return False
