"""Fixtures for the Lean side. Tests that run real Lean share the toolchain in the user's cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from leanguard_host.lean.toolchain import Toolchain, portable_toolchain

MakePackage = Callable[[dict[str, str]], Path]
MakeProgram = Callable[[Path, str], Path]


@pytest.fixture(scope="session")
def portable() -> Toolchain:
    """The portable toolchain."""
    return portable_toolchain()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, empty."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("LEANGUARD_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def make_package(tmp_path: Path) -> MakePackage:
    """Makes a Lake package from its files' texts."""

    def make(files: dict[str, str]) -> Path:
        root = tmp_path / "package"
        standard = {"lakefile.lean": "import Lake\n", "lean-toolchain": "leanprover/lean4:v4.28.0\n"}
        for name, text in {**standard, **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        return root

    return make


@pytest.fixture
def make_program() -> MakeProgram:
    """Makes an executable script."""

    def make(path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """A machine without any Lean; returns a folder that is on its PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), "/usr/bin", "/bin"]))
    monkeypatch.setenv("ELAN_HOME", str(tmp_path / "elan"))
    monkeypatch.delenv("LEANGUARD_TOOLCHAIN", raising=False)
    return folder
