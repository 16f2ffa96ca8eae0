"""The audit's parts that need no Lean: reading sources, judging facts, writing reports."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leanguard_host import verify
from leanguard_host.lean.errors import LeanUnavailable
from leanguard_host.lean.modules import parse_imports

SCRIPT = verify.own_root() / "scripts" / "verify_axioms.py"


def package(root: Path, files: dict[str, str], lakefile: str = "lean_lib LeanGuard\nlean_lib Policies\n") -> Path:
    """A package with those files."""
    for name, text in {"lakefile.lean": lakefile, "LeanGuard.lean": "", **files}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (root / "LeanGuard").mkdir(exist_ok=True)
    return root


def found(report: verify.Report, rule: str) -> list[str]:
    """The findings of a rule as `FILE:LINE: MESSAGE`."""
    return [f"{f.place}: {f.message}" for f in report.findings if f.rule == rule]


def test_words_leave_out_comments_and_strings() -> None:
    source = """-- sorry
/- sorry /- sorry -/ sorry -/ def a := "sorry \\" sorry" ++ r#"a "sorry" b"# ++ s!"{x}"
def b := '"' def c' := «sorry» #eval sorry"""
    assert [word for word, _ in verify.words(source)] == ["def", "a", "s!", "def", "b", "def", "c'", "#eval", "sorry"]


def test_entered_namespaces_follow_sections() -> None:
    source = "namespace A.B\nsection\nnamespace C\nend C\nend\nend A.B\nnamespace D\nend D"
    assert verify.entered_namespaces(source) == {"A.B", "A.B.C", "D"}


def test_lakefile_roots() -> None:
    lakefile = (verify.own_root() / "lakefile.lean").read_text(encoding="utf-8")
    assert {"LeanGuard", "Policies", "Retail", "Repl"} <= set(verify.lakefile_roots(lakefile))
    assert verify.lakefile_roots("-- lean_lib No\nlean_lib Yes\nlean_exe p where\n  root := `Main") == ["Yes", "Main"]


def test_a_module_that_the_build_does_not_reach(tmp_path: Path) -> None:
    report = verify.Report("")
    root = package(
        tmp_path,
        {"LeanGuard.lean": "import LeanGuard.A", "LeanGuard/A.lean": "", "LeanGuard/B.lean": "", "policies/C.lean": ""},
    )
    verify.read_package(root, report)
    assert [f.place.file for f in report.findings] == ["LeanGuard/B.lean", "policies/C.lean"]
    assert all(f.rule == "module" and "does not reach" in f.message for f in report.findings)


def test_a_file_that_stands_where_another_module_is_meant(tmp_path: Path) -> None:
    report = verify.Report("")
    root = package(tmp_path, {"LeanGuard/A.lean": "", "policies/LeanGuard/A.lean": "", "policies/Init/Core.lean": ""})
    verify.read_package(root, report)
    messages = found(report, "module")
    assert "policies/Init/Core.lean:1: this file takes the name of Lean's own module Init.Core" in messages
    assert (
        "policies/LeanGuard/A.lean:1: module LeanGuard.A is LeanGuard/A.lean: this file is never compiled" in messages
    )


def test_an_import_that_is_not_there(tmp_path: Path) -> None:
    report = verify.Report("")
    root = package(tmp_path, {"policies/Policies.lean": "import LeanGuard\nimport Gone\n"})
    left = verify.read_package(root, report)
    assert found(report, "build") == ["policies/Policies.lean:2: unknown module Gone: no such file in this package"]
    assert [module.name for module in left.modules] == ["LeanGuard"]


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        ("import Lean.Elab\n", "metaprogramming", 1),
        ("import Repl\n", "metaprogramming", 1),
        ("\nrun_cmd pure ()\n", "metaprogramming", 2),
        ("\n\n#eval IO.FS.removeFile x\n", "metaprogramming", 3),
        ("set_option debug.skipKernelTC true\n", "metaprogramming", 1),
        ("initialize x : Nat ← pure 1", "metaprogramming", 1),
        ("example : False := by\n  sorry", "axiom", 2),
    ],
)
def test_what_a_policy_may_not_say(text: str, rule: str, line: int) -> None:
    report = verify.Report("")
    verify.check_policy_text(report, "policies/P.lean", text, parse_imports(text))
    assert [(f.rule, f.place.file, f.place.line) for f in report.findings] == [(rule, "policies/P.lean", line)]


# ---- facts ----

Declaration = dict[str, Any]


def declare(
    name: str,
    kind: str = "theorem",
    uses: str = "",
    value: str = "",
    marks: str = "",
    line: int = 1,
) -> Declaration:
    """One declaration, with the names it uses as words."""
    place = [line, 0] if line else []
    return {
        "name": name, "kind": kind, "type": uses.split(), "value": value.split(), "place": place, "marks": marks.split()
    }  # fmt: skip


def facts(tmp_path: Path, constants: list[Declaration], **module: Any) -> tuple[verify.Report, verify.Facts]:
    """Facts about a package of one policy."""
    root = package(tmp_path, {"policies/Policies.lean": "theorem t\n" * 20})
    report = verify.Report(str(root))
    read = verify.read_package(root, report)
    names = sorted({n for c in constants for n in (c["name"], *c["type"], *c["value"])})
    listed = [
        c | {"name": names.index(c["name"]), "type": [names.index(n) for n in c["type"]],
             "value": [names.index(n) for n in c["value"]]}
        for c in constants
    ]  # fmt: skip
    lists = ("shadows", "syntaxes", "macros", "instances", "elaborators", "initializers", "exports")
    empty: dict[str, Any] = {name: [] for name in lists}
    policy = {
        "name": "Policies", "imports": ["Init"], "constants": listed, "rejected": [], "misnamed": [],
        "implemented_by": [], "extern": [], "policy": empty, **module,
    }  # fmt: skip
    answer = {
        "names": names,
        "core": {"axioms": ["propext"], "paths": [["Core.lemma", "sorryAx"]]},
        "modules": [policy],
    }
    return report, verify.Facts(read, answer)


def test_the_way_from_a_theorem_to_an_axiom(tmp_path: Path) -> None:
    report, all_facts = facts(
        tmp_path,
        [
            declare("A.top", value="A.middle", line=2),
            declare("A.middle", "def", value="A.middle._proof_1", line=3),
            declare("A.middle._proof_1", value="Core.lemma", marks="internal", line=0),
            declare("A.clean", value="propext", line=4),
        ],
    )
    verify.judge(report, all_facts)
    messages = {f.message: [str(step) for step in f.path] for f in report.findings}
    assert messages["theorem A.top rests on the axiom sorryAx (a `sorry`)"] == [
        "A.top (policies/Policies.lean:2)",
        "A.middle (policies/Policies.lean:3)",
        "A.middle._proof_1 (policies/Policies.lean:3)",
        "Core.lemma",
        "sorryAx",
    ]
    assert {(f.place.line, f.message) for f in report.findings} == {
        (2, "theorem A.top rests on the axiom sorryAx (a `sorry`)"),
        (3, "definition A.middle rests on the axiom sorryAx (a `sorry`)"),
    }


def test_an_axiom_that_nothing_uses_is_a_finding(tmp_path: Path) -> None:
    report, all_facts = facts(tmp_path, [declare("A.given", "axiom", line=5)])
    verify.judge(report, all_facts)
    assert found(report, "new-axiom") == ["policies/Policies.lean:5: a new axiom: A.given"]


def test_replaced_definitions_are_those_that_statements_speak_of(tmp_path: Path) -> None:
    report, all_facts = facts(
        tmp_path,
        [
            declare("A.t", uses="A.rule", value="A.helper", line=2),
            declare("A.rule", "def", value="A.deep", line=3),
            declare("A.deep", "def", line=4),
            declare("A.helper", "def", line=5),
            declare("A.fast", "def", line=6),
        ],
        implemented_by=[["A.deep", "A.fast"], ["A.helper", "A.fast"]],
        policy=None,
    )
    verify.judge(report, all_facts)
    assert found(report, "replaced") == [
        "policies/Policies.lean:4: A.deep runs as A.fast (implemented_by), and A.t speaks of it"
    ]


def test_a_changed_a_missing_and_an_unreviewed_statement(tmp_path: Path) -> None:
    report, all_facts = facts(tmp_path, [declare("A.t")])
    file = tmp_path / "statements.txt"
    reviewed = {name: (f"{name} : True", "0123") for name in ("A.same", "A.changed", "A.hidden", "A.gone")}
    file.write_text(verify.format_statements(reviewed), encoding="utf-8")
    report.statements = {
        "A.same": reviewed["A.same"],
        "A.changed": ("A.changed : 1 = 1", "4567"),
        "A.hidden": ("A.hidden : True", "89ab"),
        "A.new": ("A.new : True", "cdef"),
    }
    verify.judge_statements(report, all_facts, file)
    assert {f.theorem: f.message.partition("; ")[2] for f in report.findings} == {
        "A.gone": "",
        "A.changed": "it says now:\nA.changed : 1 = 1",
        "A.hidden": "only implicit arguments or instances differ",
        "A.new": "",
    }
    assert {f.place.file for f in report.findings if f.theorem == "A.gone"} == {"statements.txt"}


def test_statements_are_read_as_written() -> None:
    statements = {"A.b": ("A.b (n : Nat) :\n  n = n", "0f"), "A.a": ("A.a : True", "1e")}
    read = verify.parse_statements(verify.format_statements(statements))
    assert {name: (text, exact) for name, (text, exact, _) in read.items()} == statements
    for bad in ("", "theorem a : True\n", "exact a 1\n", "theorem a : True\nexact b 1\n", "nonsense\n"):
        with pytest.raises(ValueError, match=r"line|statement"):
            verify.parse_statements(bad)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "not JSON",
        "[]",
        '{"leanguard_audit": 1, "error": "boom"}',
        '{"leanguard_audit": 1, "nonce": "other", "modules": [{"name": "A"}]}',
        '{"leanguard_audit": 1, "nonce": "n", "modules": []}',
    ],
)
def test_a_report_about_something_else_is_refused(answer: str) -> None:
    with pytest.raises(LeanUnavailable):
        verify._checked(f"\x1e{answer}\n".encode(), b"", {"modules": [{"name": "A"}]}, "n")


def test_sarif_has_what_code_scanning_asks_for(tmp_path: Path) -> None:
    step = verify.Step("A.t", verify.Place("policies/P.lean", 3))
    finding = verify.Finding(
        "axiom", verify.Place("policies/P.lean", 3, 8), "bad", "A.t", "x", (step, verify.Step("x", None))
    )
    log = json.loads(verify.as_sarif(verify.Report(str(tmp_path), findings=[finding], notes=["seen less"])))
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    run = log["runs"][0]
    result = run["results"][0]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "axiom"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 9}
    assert len(result["codeFlows"][0]["threadFlows"][0]["locations"]) == 2


def test_unusable_input_is_exit_2(tmp_path: Path) -> None:
    errors = io.StringIO()
    assert verify.run_verify(package=tmp_path, out=io.StringIO(), err=errors) == 2
    assert str(tmp_path) in errors.getvalue()
    package(tmp_path, {})
    assert verify.run_verify(package=tmp_path, out=io.StringIO(), err=errors) == 2
    assert "statements.txt" in errors.getvalue()


def test_the_script_says_what_is_missing(tmp_path: Path) -> None:
    # Without site-packages and without Lean.
    done = subprocess.run(
        [sys.executable, "-S", "-E", str(SCRIPT)], env=os.environ | {"PATH": str(tmp_path), "LEANGUARD_TOOLCHAIN": ""},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "is missing" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_build_that_fails_and_a_program_that_says_nothing_are_findings(tmp_path: Path) -> None:
    root = package(
        tmp_path / "package", {"LeanGuard/statements.txt": "", "policies/Policies.lean": "def a : Nat := x\n"}
    )
    programs = {
        "lake": 'echo "error: policies/Policies.lean:1:15: unknown identifier"; exit 1',
        "lean": '[ "$1" = --print-prefix ] && echo /nowhere; exit 0',
    }
    for name, text in programs.items():
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        file.chmod(0o755)
    environment = os.environ | {"PATH": str(tmp_path / "bin"), "LEANGUARD_TOOLCHAIN": "official"}
    # Without site-packages, so that the programs on PATH are used.
    done = subprocess.run(
        [sys.executable, "-S", "-E", str(SCRIPT), "--package", str(root)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "policies/Policies.lean:1:15: error: unknown identifier [build]" in done.stdout
    assert "the audit program gave no report" in done.stdout
    assert "[incomplete]" in done.stdout
