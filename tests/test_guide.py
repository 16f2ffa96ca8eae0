"""docs/authoring.md: every command of it runs, and every piece of Lean compiles, in the order of the guide."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from helpers import ROOT, environment

GUIDE = (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCK.findall(GUIDE) if name == kind]


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert GUIDE.count("```") == 2 * len(BLOCK.findall(GUIDE))
    assert {name for name, _ in BLOCK.findall(GUIDE)} == {"markdown", "sh", "text", "lean"}
    assert len(blocks("markdown")) == 1


def run(commands: str, folder: Path, exported: dict[str, str]) -> str:
    """Run the commands as they stand in the guide; returns what they print."""
    program = folder / "bin" / "leanguard"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m leanguard_host "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", commands],
        cwd=folder,
        env=environment(PATH=path, **exported),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert "error" not in done.stderr, done.stderr
    return done.stdout


def appear(wanted: str, printed: str) -> None:
    """The lines are printed in that order; `...` stands for others."""
    at = 0
    for line in wanted.splitlines():
        if line != "...":
            found = f"\n{printed}".find(f"\n{line}\n", at)
            assert found >= 0, (line, printed)
            at = found + len(line)


def test_the_guide_works(lean: None, tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text(blocks("markdown")[0], encoding="utf-8")
    exported: dict[str, str] = {}
    policy = tmp_path / "policies" / "policies" / "Library.lean"
    pieces = 0
    printed = ""
    ran = 0
    try:
        for kind, text in BLOCK.findall(GUIDE):
            if kind == "lean":
                if not pieces:
                    policy.write_text("", encoding="utf-8")
                with policy.open("a", encoding="utf-8") as file:
                    file.write(f"{text}\n")
                pieces += 1
            elif kind == "sh":
                printed = run(text, tmp_path, exported)
                ran += 1
                if "LEANGUARD_PACKAGE" in text:
                    exported["LEANGUARD_PACKAGE"] = str(tmp_path / "policies")
            elif kind == "text":
                appear(text, printed)
        assert (pieces, ran) == (len(blocks("lean")), len(blocks("sh")))
    finally:
        run("leanguard daemon stop", tmp_path, exported)
