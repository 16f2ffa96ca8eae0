"""What the `lake` stand-in does besides `--version` and `env`: `lake build` and `lake exe repl`."""

from __future__ import annotations

import sys
from pathlib import Path

from leanguard_host.lean.build import BuildResult, build
from leanguard_host.lean.errors import BuildFailed, LeanUnavailable
from leanguard_host.lean.toolchain import portable_toolchain

_TARGETS = {"repl": "Repl"}
_USAGE = """This is LeanGuard's stand-in for lake on the portable toolchain. It knows:
  lake --version
  lake build [MODULE...]   compile the package of this folder, or some of its modules
  lake env PROGRAM ...     run a program of this package
  lake exe repl            run the package's repl"""


def _progress(module: str, done: int, total: int) -> None:
    if module:
        print(f"[{done + 1}/{total}] Building {module}", flush=True)


def _build(targets: list[str]) -> BuildResult:
    root = Path.cwd()
    if not (root / "lakefile.lean").is_file():
        raise LeanUnavailable(f"{root} holds no lakefile.lean")
    names = [_TARGETS.get(target, target).removeprefix("+") for target in targets]
    result = build(portable_toolchain(), root=root, targets=names or None, progress=_progress)
    for message in result.messages:
        print(message)
    return result


def main(arguments: list[str]) -> int:
    """Run one command; returns the exit code."""
    try:
        match arguments:
            case ["build", *targets]:
                result = _build(targets)
                print(f"Build completed successfully ({result.compiled + result.cached} modules).")
                return 0
            case ["exe", "repl", *rest]:
                import os

                launcher = _build([]).launcher
                os.execv(launcher, [str(launcher), *rest])  # noqa: S606
            case ["help" | "--help" | "-h"]:
                print(_USAGE)
                return 0
            case _:
                print(f"error: `lake {' '.join(arguments)}` is not supported here.\n{_USAGE}", file=sys.stderr)
                return 1
    except BuildFailed as error:
        print(error)
        print("error: build failed", file=sys.stderr)
        return 1
    except LeanUnavailable as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
