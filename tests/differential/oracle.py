"""Lean's answers, from the warm process."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any

from leanguard_host.lean.build import build
from leanguard_host.lean.process import LeanProcess
from leanguard_host.lean.toolchain import find_toolchain

SOURCE = Path(__file__).with_name("Oracle.lean")
# Every command leaves an environment behind in the process, which is replaced before that matters.
COMMANDS_A_PROCESS = 400


class Oracle:
    """Asks the definitions of Oracle.lean."""

    def __init__(self) -> None:
        toolchain = find_toolchain()
        # The program alone where that can be had: whether the proofs hold is not asked here.
        targets = ["Repl"] if toolchain.kind == "portable" else None
        self._process = LeanProcess(build(toolchain, targets=targets))
        self._env: int | None = None
        self._left = 0
        self._loaded()

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.close()

    def _loaded(self) -> int:
        if self._env is None or self._left == 0:
            if self._env is not None:
                self._process.close()
                self._process = LeanProcess(self._process.built)
            lines = SOURCE.read_text(encoding="utf-8").splitlines()
            # The process has imported everything already, and a command can't import.
            answer = self._process.command(
                "\n".join(line for line in lines if not line.startswith("import ")), timeout=180
            )
            assert "messages" not in answer, answer["messages"]
            self._env, self._left = int(answer["env"]), COMMANDS_A_PROCESS
        self._left -= 1
        return self._env

    def ask(self, **request: Any) -> list[list[str]]:
        """A row for each formula and policy: its verdicts on each history, its decisions in each situation."""
        text = json.dumps(request, separators=(",", ":"))
        answer = self._process.command(f"#eval oracle {json.dumps(text)}", env=self._loaded(), timeout=120)
        (message,) = answer["messages"]
        assert message["severity"] == "info", message
        rows = json.loads(message["data"])
        assert isinstance(rows, list), rows
        return rows
