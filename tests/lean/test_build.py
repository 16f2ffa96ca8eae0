"""Building: what is compiled again and what is not, and how errors are told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from leanguard_host.lean import build as building
from leanguard_host.lean.build import build, parse_lake_output
from leanguard_host.lean.errors import BuildFailed, Message
from leanguard_host.lean.portable.builder import Compiled
from leanguard_host.lean.portable.install import Install
from leanguard_host.lean.portable.standin import write_lake
from leanguard_host.lean.toolchain import Toolchain

from .conftest import MakePackage, MakeProgram

FILES = {
    "Repl.lean": "import Policies",
    "LeanGuard.lean": "import LeanGuard.B",
    "LeanGuard/A.lean": "def a := 1",
    "LeanGuard/B.lean": "import LeanGuard.A",
    "LeanGuard/C.lean": "def c := 1",
    "policies/Policies.lean": "import LeanGuard.C",
}


class FakeBuilder:
    """Copies sources instead of compiling them; those with ERROR in them fail."""

    compiled: list[str]

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> FakeBuilder:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def compile(
        self,
        module: str,
        source: str,
        shown: str,
        path: list[Path],
        olean: Path,
        keep: str = "",
        *,
        initializers: bool = False,
    ) -> Compiled:
        """As the real one."""
        FakeBuilder.compiled.append(module)
        if "ERROR" in source:
            return Compiled(False, [Message("error", shown, 3, 5, "unknown identifier")], 0, 0)
        olean.write_text(source)
        return Compiled(True, [], 0, 0)


@pytest.fixture
def toolchain(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Toolchain:
    """A portable toolchain with the stand-in compiler."""
    FakeBuilder.compiled = []
    monkeypatch.setattr(building, "Builder", FakeBuilder)
    install = Install(tmp_path / "install")
    return Toolchain("portable", "4.28.0-pre", "", tmp_path / "lake", "key", "", install, tmp_path)


def compiled(toolchain: Toolchain, root: Path) -> list[str]:
    """What a build compiles."""
    FakeBuilder.compiled = []
    build(toolchain, root=root)
    return FakeBuilder.compiled


def test_compiles_only_what_changed_and_its_dependents(toolchain: Toolchain, make_package: MakePackage) -> None:
    root = make_package(FILES)
    assert compiled(toolchain, root) == ["LeanGuard.A", "LeanGuard.B", "LeanGuard", "LeanGuard.C", "Policies", "Repl"]
    assert compiled(toolchain, root) == []
    (root / "LeanGuard/A.lean").write_text("def a := 2")
    assert compiled(toolchain, root) == ["LeanGuard.A", "LeanGuard.B", "LeanGuard"]
    (root / "policies/Policies.lean").write_text("import LeanGuard.C\n-- more")
    assert compiled(toolchain, root) == ["Policies", "Repl"]
    (root / "LeanGuard/A.lean").write_text("def a := 1")
    assert compiled(toolchain, root) == []  # seen before
    (root / "LeanGuard/D.lean").write_text("ERROR, but nothing imports it yet")
    assert compiled(toolchain, root) == []


def test_targets(toolchain: Toolchain, make_package: MakePackage) -> None:
    root = make_package(FILES)
    result = build(toolchain, root=root, targets=["LeanGuard.B"])
    assert FakeBuilder.compiled == ["LeanGuard.A", "LeanGuard.B"] and set(result.keys) == {"LeanGuard.A", "LeanGuard.B"}


def test_a_fresh_clone_finds_the_compiled_modules(
    toolchain: Toolchain, make_package: MakePackage, tmp_path: Path
) -> None:
    root = make_package(FILES)
    compiled(toolchain, root)
    clone = root.rename(tmp_path / "clone")
    assert compiled(toolchain, clone) == []


def test_the_result(toolchain: Toolchain, make_package: MakePackage) -> None:
    root = make_package(FILES)
    first = build(toolchain, root=root)
    assert (first.compiled, first.cached) == (6, 0)
    assert (first.lean_path[0] / "LeanGuard" / "B.olean").read_text() == "import LeanGuard.A"
    assert os.access(first.launcher, os.X_OK) and str(first.lean_path[0]) in first.launcher.read_text()
    assert (root / ".lake/build/bin/repl").read_text() == first.launcher.read_text()
    second = build(toolchain, root=root)
    assert (second.compiled, second.cached, second.keys) == (0, 6, first.keys)
    assert second.seconds < 0.1
    (root / "LeanGuard/C.lean").write_text("def c := 2")
    third = build(toolchain, root=root)
    changed = {name for name in first.keys if first.keys[name] != third.keys[name]}
    assert changed == {"LeanGuard.C", "Policies", "Repl"}


def test_errors_are_told_with_their_place_and_nothing_old_is_served(
    toolchain: Toolchain, make_package: MakePackage
) -> None:
    root = make_package(FILES)
    build(toolchain, root=root)
    (root / "LeanGuard/A.lean").write_text("ERROR")
    (root / "policies/Policies.lean").write_text("ERROR")
    for _ in range(2):
        with pytest.raises(BuildFailed) as caught:
            build(toolchain, root=root)
        assert str(caught.value).splitlines() == [
            "LeanGuard/A.lean:3:5: error: unknown identifier",
            "policies/Policies.lean:3:5: error: unknown identifier",
        ]
    (root / "LeanGuard/A.lean").write_text("def a := 1")
    (root / "policies/Policies.lean").write_text("import LeanGuard.C")
    assert compiled(toolchain, root) == []


def test_an_interrupted_build_is_redone(
    toolchain: Toolchain, make_package: MakePackage, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    root = make_package(FILES)

    def interrupt(module: str, done: int, total: int) -> None:
        if module == "LeanGuard.C":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(toolchain, root=root, progress=interrupt)
    assert not list((cache / "builds").glob(".staging-*/"))
    assert compiled(toolchain, root) == ["LeanGuard.C", "Policies", "Repl"]


def test_a_native_program_is_not_overwritten(toolchain: Toolchain, make_package: MakePackage) -> None:
    root = make_package({**FILES, ".lake/build/bin/repl": "\x7fELF"})
    result = build(toolchain, root=root)
    assert (root / ".lake/build/bin/repl").read_text() == "\x7fELF"
    assert result.launcher.read_text().startswith("#!/bin/sh")


def test_a_read_only_package(toolchain: Toolchain, make_package: MakePackage, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_package(FILES)
    real = Path.mkdir

    def mkdir(path: Path, *arguments: Any, **options: Any) -> None:
        if path.is_relative_to(root):
            raise PermissionError(13, "Permission denied", str(path))
        real(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert build(toolchain, root=root).launcher.is_file()


LAKE = """#!/bin/sh
[ "$1" = build ] || exit 9
echo run >> "$LOG"
if grep -q ERROR LeanGuard/A.lean; then
  echo '✖ [2/3] Building LeanGuard.A'
  echo 'trace: .> LEAN_PATH=x lean LeanGuard/A.lean'
  echo 'error: LeanGuard/A.lean:1:4: unknown identifier'
  echo '  x'
  echo 'error: Lean exited with code 1'
  exit 1
fi
mkdir -p .lake/build/bin
[ -e .lake/build/bin/repl ] || printf 'native' > .lake/build/bin/repl
"""


def test_the_official_toolchain(
    cache: Path, make_package: MakePackage, make_program: MakeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("LOG", str(log))
    lake = make_program(tmp_path / "bin" / "lake", LAKE)
    official = Toolchain("official", "4.28.0", "", lake, "key", "")
    launcher = "#!/bin/sh\n# made by LeanGuard's portable build\n"
    root = make_package({**FILES, ".lake/build/bin/repl": launcher, ".lake/build/bin/repl.trace": "{}"})
    assert build(official, root=root).launcher.read_text() == "native"  # the portable build's launcher is replaced
    assert not (root / ".lake/build/bin/repl.trace").exists()
    assert build(official, root=root).compiled == 0
    assert len(log.read_text().splitlines()) == 1  # nothing changed: lake was not even called
    (root / "LeanGuard/A.lean").write_text("ERROR")
    with pytest.raises(BuildFailed) as caught:
        build(official, root=root)
    assert str(caught.value) == "LeanGuard/A.lean:1:4: error: unknown identifier\n  x"


def test_lake_output() -> None:
    output = (
        "⚠ [3/9] Replayed LeanGuard.A\n"
        "warning: ././././LeanGuard/A.lean:7:2: declaration uses 'sorry'\n"
        "ℹ [4/9] Built B\ninfo: policies/B.lean:1:0: 2\nmore\n\nlast\n✔ [5/9] Built C\nBuild completed successfully.\n"  # noqa: RUF001
    )
    assert parse_lake_output(output) == [
        Message("warning", "LeanGuard/A.lean", 7, 2, "declaration uses 'sorry'"),
        Message("info", "policies/B.lean", 1, 0, "2\nmore\n\nlast"),
    ]


REAL = {
    "Repl.lean": 'import Toy\ndef main (args : List String) : IO Unit :=\n  IO.println s!"\\x1e{Toy.total} {args}"\n',
    "Toy.lean": "import LeanGuard.List\ndef Toy.total : Nat := LeanGuard.sum [1, 2, 3]\n",
    "LeanGuard/List.lean": "namespace LeanGuard\ndef sum (l : List Nat) : Nat := l.foldl (· + ·) 0\n"
    "theorem sum_nil : sum [] = 0 := rfl\nend LeanGuard\n",
}


def test_real_lean(portable: Toolchain, make_package: MakePackage) -> None:
    root = make_package(REAL)
    assert portable.install
    lake = write_lake(portable.install)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)

    assert run(str(lake), "--version").stdout.startswith("Lake version 5.0.0-portable (Lean version 4.28.0")
    done = run(str(lake), "build")
    assert done.returncode == 0, done.stdout + done.stderr
    ran = run(str(lake), "env", ".lake/build/bin/repl", "a", "b c")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "6 [a, b c]\n\n", "")
    (root / "Toy.lean").write_text("import LeanGuard.List\n\ndef Toy.total : Nat := LeanGuard.sums [1]\n")
    with pytest.raises(BuildFailed) as caught:
        build(portable, root=root)
    assert str(caught.value).startswith("Toy.lean:3:23: error: Unknown identifier `LeanGuard.sums`")
    assert len(caught.value.messages) == 1
