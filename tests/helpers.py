"""Running the real command, and the example files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "retail_exchange"
SETTINGS = {"LEANGUARD_IDLE_SECONDS": "600"}  # other settings, another background process: the user's own is left alone


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


def command(*arguments: str | Path) -> list[str]:
    """The command line of the real program."""
    return [sys.executable, "-m", "leanguard_host", *map(str, arguments)]


def environment(**changes: str | None) -> dict[str, str]:
    """The environment of the tests' commands."""
    merged = {**os.environ, **SETTINGS, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def leanguard(*arguments: str | Path, stdin: str | None = None, env: dict[str, str] | None = None) -> Ran:
    """Run the real program."""
    done = subprocess.run(
        command(*arguments),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        env=env or environment(),
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def options(**files: str | Path) -> list[str]:
    """The options of `check`: the examples, but for the given files."""
    given = {
        "policy": "retail",
        "snapshot": EXAMPLES / "snapshot.json",
        "journal": EXAMPLES / "journal_confirmed.jsonl",
        "call": EXAMPLES / "call.json",
        **files,
    }
    return [text for name, value in given.items() for text in (f"--{name}", str(value))]


def load(name: str) -> Any:
    """One of the example files."""
    return json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
