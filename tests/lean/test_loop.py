"""The developers' inner loop, as a command."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

from leanguard_host.lean.toolchain import Toolchain

from .conftest import MakePackage

SCRIPT = Path(__file__).parents[2] / "scripts" / "lean_loop.py"


def test_check_build_dependents_stop(portable: Toolchain, make_package: MakePackage) -> None:
    session = uuid.uuid4().hex
    root = make_package(
        {
            "LeanGuard.lean": "import LeanGuard.A",
            "LeanGuard/A.lean": f"def a := 1 -- {session}, so that no earlier run has compiled it",
            "LeanGuard/B.lean": "import LeanGuard.A\n#eval a + b",
        }
    )

    def run(command: str, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), command, "--session", session, *arguments],
            cwd=root,
            env={**os.environ, "LEANGUARD_PACKAGE": str(root)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    try:
        code, said = run("check", "LeanGuard/B.lean")
        assert code == 1 and "LeanGuard/B.lean:2:10: error: Unknown identifier `b`" in said
        assert "[1/1] LeanGuard.A" in said  # what it imports was compiled first
        (root / "LeanGuard/B.lean").write_text("import LeanGuard.A\n#eval a + 2")
        code, said = run("check", "LeanGuard/B.lean")
        assert code == 0 and "LeanGuard/B.lean:2:0: info: 3" in said
        (root / "LeanGuard/A.lean").write_text(f"def a := 2 -- {session}")
        code, said = run("check", "LeanGuard/B.lean")
        assert code == 0 and "info: 4" in said
        code, said = run("build", "LeanGuard.B")
        assert code == 0 and "[1/1] LeanGuard.B" in said
        assert run("dependents", "LeanGuard.A") == (0, "LeanGuard\nLeanGuard.B\n")
        assert run("check", "nope.lean") == (1, "lean_loop: nope.lean is not a file\n")
    finally:
        run("stop")
