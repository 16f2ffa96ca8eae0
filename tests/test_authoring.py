"""A policy of one's own: `leanguard policy new`, in a folder of one's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers import ROOT, Ran, environment, leanguard

from leanguard_host.authoring import _listed, is_installed_copy, module_of, new_policy
from leanguard_host.jsonfiles import InputError

MAPPED = "def policies : List Policy := domains.map (·.policy)\n"


def tree(folder: Path) -> dict[str, bytes]:
    """The files of a folder and what is in them."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_new_policy_builds_and_is_decided(lean: None, tmp_path: Path) -> None:
    package = tmp_path / "my policies"
    made = leanguard("policy", "new", "order_desk", "--dir", package, "--json")
    assert made.code == 0, made
    assert made.json["new_package"]
    examples = Path(made.json["examples"])
    with_package = environment(LEANGUARD_PACKAGE=str(package))

    def run(*arguments: str | Path) -> Ran:
        return leanguard(*arguments, env=with_package)

    def check(journal: Path, *more: str) -> Ran:
        files = ["--snapshot", examples / "snapshot.json", "--journal", journal, "--call", examples / "call.json"]
        return run("check", "--policy", "order_desk", *files, *more)

    try:
        built = run("build", "--json")
        assert built.code == 0, built
        admitted = check(examples / "journal.jsonl", "--json")
        assert admitted.json["verdict"] == "admit"
        assert admitted.json["policy"] == "order_desk"
        denied = check(Path("/dev/null"), "--json")
        assert [rule["id"] for rule in denied.json["failed_rules"]] == [
            "order_desk.identity",
            "order_desk.confirmation",
        ]
        explained = run("explain", "order_desk.reserved", "--json").json
        assert explained["source"]["file"] == "policies/OrderDesk.lean"
        assert run("policy", "review", "order_desk").code == 0
        assert "retail" in run("policies").out
        # An example that is not decided as it says fails the build, with its place.
        file = package / "policies" / "OrderDesk.lean"
        file.write_text(file.read_text(encoding="utf-8").replace("n ≤ 14", "n ≤ 15"), encoding="utf-8")
        broken = run("build")
        assert broken.code == 3
        assert "policies/OrderDesk.lean:" in broken.err and "did not evaluate to `true`" in broken.err
    finally:
        run("daemon", "stop")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    package = tmp_path / "package"
    first = new_policy("desk", package)
    assert first.new_package
    before = tree(package)
    for name in ("desk", "retail", "shared", "policies", "repl", "lean", "std", "type", "policy", "rule"):
        with pytest.raises(InputError):
            new_policy(name, package)
    assert tree(package) == before
    second = new_policy("front_desk", package)
    assert not second.new_package
    after = tree(package)
    changed = {file for file in after if before.get(file) != after[file]}
    assert changed == {"lakefile.lean", "policies/Policies.lean", "policies/FrontDesk.lean"} | {
        f"examples/front_desk/{file}" for file in ("call.json", "snapshot.json", "journal.jsonl")
    }
    listed = (package / "policies" / "Policies.lean").read_text(encoding="utf-8")
    assert "import Desk\n" in listed and "import FrontDesk\n" in listed
    assert "FrontDesk.policy" in listed
    text = second.policy.read_text(encoding="utf-8")
    assert "emplate" not in text
    assert 'id := "front_desk.owner"' in text and "namespace LeanGuard.FrontDesk" in text
    shutil.rmtree(package / "policies" / "FrontDesk.lean", ignore_errors=True)
    (package / "policies" / "FrontDesk.lean").unlink()
    with pytest.raises(InputError, match="is there already"):  # its examples are
        new_policy("front_desk", package)


@pytest.mark.parametrize(
    "name",
    ["", "Desk", "9desk", "desk-1", "desk_", "_desk", "a__b", "../x", "désk", "a b", "x" * 41, "desk\n", "de:sk"],
)
def test_names_that_can_not_be_used(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="NAME: expected a name in lower case"):
        new_policy(name, tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_folders_that_can_not_be_used(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for folder in ("full", "file"):
        ran = leanguard("policy", "new", "desk", "--dir", tmp_path / folder)
        assert (ran.code, ran.out) == (2, "")
        assert "--dir: expected a new or empty folder" in ran.err
    assert tree(tmp_path / "full") == {"notes.txt": b"mine"}
    beneath = leanguard("policy", "new", "desk", "--dir", tmp_path / "file" / "below")
    assert beneath.code == 2
    assert len(beneath.err.splitlines()) == 1


def test_the_installed_copy_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "_package"
    for part in ("lakefile.lean", "lean-toolchain", "LeanGuard.lean", "Repl.lean"):
        installed.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / part, installed / part)
    for part in ("LeanGuard", "policies"):
        shutil.copytree(ROOT / part, installed / part)
    monkeypatch.setenv("LEANGUARD_PACKAGE", str(installed))
    assert is_installed_copy(installed)
    with pytest.raises(InputError, match="a folder for your policies"):
        new_policy("desk")
    made = new_policy("desk", tmp_path / "mine")
    assert made.policy.is_file()
    monkeypatch.setenv("LEANGUARD_PACKAGE", str(made.package))
    assert new_policy("other").package == made.package


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "import A\n\ndef policies : List Policy := [A.policy]\n",
            "def policies : List Policy := [A.policy, Desk.policy]\n",
        ),
        ("import A\n\ndef policies : List Policy := [\n  A.policy ]\n", "[\n  A.policy, Desk.policy]\n"),
        ("import A\n\ndef policies : List Policy := []\n", "def policies : List Policy := [Desk.policy]\n"),
        (
            "import A\n\ndef domains : List Domain := [\n  domain! A.policy A.intent]\n\n" + MAPPED,
            "  domain! A.policy A.intent, domain! Desk.policy Intent.fixed]\n\n" + MAPPED,
        ),
    ],
)
def test_the_list_of_policies(text: str, wanted: str) -> None:
    found = _listed(text, "Desk")
    assert found.startswith("import A\nimport Desk\n\n")
    assert found.endswith(wanted)
    with pytest.raises(InputError, match="by hand"):
        _listed("import A\n", "Desk")


def test_module_names() -> None:
    assert [module_of(name) for name in ("desk", "front_desk", "a1_b2")] == ["Desk", "FrontDesk", "A1B2"]
