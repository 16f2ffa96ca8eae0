"""Lean's answers, from a program of their own: Oracle.lean, run in the process that asks for nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from leanguard_host.lean.build import build
from leanguard_host.lean.compile import Store, content_keys, fill_tree
from leanguard_host.lean.modules import Module, in_order, load
from leanguard_host.lean.paths import package_root
from leanguard_host.lean.portable.builder import BOOT, NODE_FLAGS, Builder, environment
from leanguard_host.lean.portable.fetch import find_node
from leanguard_host.lean.toolchain import Toolchain, find_toolchain

SOURCE = Path(__file__).with_name("Oracle.lean")
USES = ("LeanGuard.Spec.Read", "LeanGuard.Eval.Monitor", "LeanGuard.Wire.Decode")


class Oracle:
    """Asks Oracle.lean, line by line. Use as a context manager."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        toolchain = find_toolchain()
        command, variables = self._portable(toolchain) if toolchain.kind == "portable" else self._official(toolchain)
        self._errors = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - it is entered right here
        self._process = subprocess.Popen(
            command,
            cwd=package_root(),
            env=os.environ | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
        )

    def _portable(self, toolchain: Toolchain) -> tuple[list[str], dict[str, str]]:
        """What it uses alone is compiled: whether the proofs hold is not asked here."""
        assert toolchain.install is not None
        root = package_root()
        used = in_order(root, load(root, USES))
        program = Module(SOURCE.stem, SOURCE, SOURCE.read_bytes(), (*USES,))
        modules = [*used, program]
        tree = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="oracle-")))
        with Builder(toolchain.install, toolchain.builder) as builder:
            fill_tree(Path("/"), tree, modules, content_keys(toolchain.key, modules), Store(), builder)
        return [str(find_node()), *NODE_FLAGS, str(BOOT), SOURCE.stem], environment(toolchain.install, [tree])

    @staticmethod
    def _official(toolchain: Toolchain) -> tuple[list[str], dict[str, str]]:
        build(toolchain)
        return [str(toolchain.lake), "env", "lean", "--run", str(SOURCE)], {}

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._stack.close()

    def ask(self, **request: Any) -> list[list[str]]:
        """A row for each formula and policy: its verdicts on each history, its decisions in each situation."""
        assert self._process.stdin and self._process.stdout
        print(json.dumps(request, separators=(",", ":")), file=self._process.stdin, flush=True)
        while not (line := self._process.stdout.readline().strip("\x1e\n")):
            if self._process.poll() is not None:
                self._errors.seek(0)
                raise RuntimeError(f"Oracle.lean ended: {self._errors.read()[-2000:].decode(errors='replace')}")
        rows = json.loads(line)
        assert isinstance(rows, list), rows
        return rows
