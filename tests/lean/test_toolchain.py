"""Which toolchain is chosen, and what is said where none is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leanguard_host.lean import toolchain
from leanguard_host.lean.doctor import doctor
from leanguard_host.lean.errors import ToolchainUnavailable
from leanguard_host.lean.toolchain import Toolchain, find_toolchain

from .conftest import MakePackage, MakeProgram

WANTED = "leanprover/lean4:v4.28.0"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def official(make: MakeProgram, folder: Path, version: str = "4.28.0") -> Path:
    """A folder with programs that answer as the official ones do."""
    make(folder / "lean", f"#!/bin/sh\necho 'Lean (version {version}, x86_64-linux, commit {COMMIT}, Release)'\n")
    return make(folder / "lake", "#!/bin/sh\nexit 0\n")


def in_elan(home: Path) -> Path:
    """Where elan keeps the wanted toolchain."""
    return home / "toolchains" / "leanprover--lean4---v4.28.0" / "bin"


@pytest.fixture
def root(make_package: MakePackage) -> Path:
    return make_package({"LeanGuard/A.lean": ""})


@pytest.fixture
def fake_portable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A portable toolchain that is there at once."""

    def choose(why: str = "", *_: object, **__: object) -> Toolchain:
        return Toolchain("portable", "4.28.0-pre", "", Path("/lake"), "key", why)

    monkeypatch.setattr(toolchain, "portable_toolchain", choose)


def test_official_on_path(bare_machine: Path, root: Path, make_program: MakeProgram, fake_portable: None) -> None:
    lake = official(make_program, bare_machine)
    found = find_toolchain(root=root)
    assert (found.kind, found.version, found.commit, found.lake) == ("official", "4.28.0", COMMIT, lake)
    assert found.limits == ()


def test_official_in_elan(
    bare_machine: Path, root: Path, make_program: MakeProgram, fake_portable: None, tmp_path: Path
) -> None:
    lake = official(make_program, in_elan(tmp_path / "elan"))
    official(make_program, bare_machine, "4.20.0")
    assert find_toolchain(root=root).lake == lake


def test_another_version_is_not_used(
    bare_machine: Path, root: Path, make_program: MakeProgram, fake_portable: None
) -> None:
    official(make_program, bare_machine, "4.20.0")
    found = find_toolchain(root=root)
    assert found.kind == "portable" and "is Lean 4.20.0, the package asks for 4.28.0" in found.why
    assert any("axiom" in limit for limit in found.limits)


def test_nothing_there(bare_machine: Path, root: Path, fake_portable: None) -> None:
    assert "neither elan nor" in find_toolchain(root=root).why


def test_elan_without_the_toolchain_installs_it(
    bare_machine: Path, root: Path, make_program: MakeProgram, tmp_path: Path
) -> None:
    folder = in_elan(tmp_path / "elan")
    condition = f"[ \"$*\" = 'toolchain install {WANTED}' ] || exit 9"
    script = f"#!/bin/sh\n{condition}\nmkdir -p {folder.parent}\nmv {tmp_path}/new {folder}\n"
    make_program(tmp_path / "elan" / "bin" / "elan", script)
    official(make_program, tmp_path / "new")
    said: list[str] = []
    found = find_toolchain(root=root, announce=said.append)
    assert found.kind == "official"
    assert said == [f"Running `elan toolchain install {WANTED}`."]


def test_elan_that_fails(
    bare_machine: Path, root: Path, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_program(bare_machine / "elan", "#!/bin/sh\necho 'no route to host' >&2\nexit 1\n")
    monkeypatch.setenv("LEANGUARD_TOOLCHAIN", "official")
    with pytest.raises(ToolchainUnavailable, match="no route to host") as caught:
        find_toolchain(root=root)
    assert f"elan toolchain install {WANTED}" in caught.value.remedy


def test_elan_is_not_run_unless_asked(
    bare_machine: Path, root: Path, make_program: MakeProgram, fake_portable: None, tmp_path: Path
) -> None:
    make_program(bare_machine / "elan", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    make_program(bare_machine / "lean", f"#!/bin/sh\ntouch {tmp_path}/ran\n")  # elan's own
    found = find_toolchain(root=root, may_install=False)
    assert found.kind == "portable" and "elan" in found.why
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("broken", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho hello\n", "no script"])
def test_a_broken_lean_is_not_used(
    broken: str, bare_machine: Path, root: Path, make_program: MakeProgram, fake_portable: None
) -> None:
    official(make_program, bare_machine)
    make_program(bare_machine / "lean", broken)
    assert find_toolchain(root=root).kind == "portable"


def test_override_official_without_one(bare_machine: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEANGUARD_TOOLCHAIN", "official")
    with pytest.raises(ToolchainUnavailable) as caught:
        find_toolchain(root=root)
    assert "Install elan" in caught.value.remedy


def test_override_portable_wins(
    bare_machine: Path, root: Path, make_program: MakeProgram, fake_portable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    official(make_program, bare_machine)
    monkeypatch.setenv("LEANGUARD_TOOLCHAIN", "portable")
    assert find_toolchain(root=root).kind == "portable"


def test_override_folder(
    bare_machine: Path, root: Path, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lake = official(make_program, tmp_path / "mine" / "bin", "4.30.0")
    monkeypatch.setenv("LEANGUARD_TOOLCHAIN", str(tmp_path / "mine"))
    found = find_toolchain(root=root)
    assert (found.kind, found.version, found.lake) == ("official", "4.30.0", lake)


@pytest.mark.parametrize(
    ("value", "problem"), [("offical", "neither `official` nor"), (".", "holds no program `lean`")]
)
def test_override_that_is_wrong(
    value: str, problem: str, bare_machine: Path, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEANGUARD_TOOLCHAIN", value)
    with pytest.raises(ToolchainUnavailable, match=problem) as caught:
        find_toolchain(root=root)
    assert "unset it" in caught.value.remedy


def test_doctor_on_a_bare_machine(bare_machine: Path, root: Path, cache: Path) -> None:
    facts = doctor(root)
    assert facts["chosen"] is None
    assert facts["wanted"] == WANTED
    assert "not installed" in facts["problem"] and "121 MB" in facts["remedy"]
    assert facts["official"] == {
        "usable": False,
        "reason": "neither elan nor a `lean` program of that version is here",
        "remedy": f"Install elan (https://lean-lang.org/install), then run `elan toolchain install {WANTED}`.",
    }
    assert facts["portable"]["usable"] is False
    assert not cache.exists() or not list((cache / "portable").glob("*"))


def test_doctor_tells_what_was_chosen(bare_machine: Path, root: Path, make_program: MakeProgram) -> None:
    lake = official(make_program, bare_machine)
    chosen = doctor(root)["chosen"]
    assert (chosen["kind"], chosen["version"], chosen["commit"]) == ("official", "4.28.0", COMMIT)
    assert chosen["lake"] == os.fspath(lake) and chosen["limits"] == []
