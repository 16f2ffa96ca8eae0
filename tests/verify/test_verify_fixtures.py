"""The audit over the repository (nothing found) and over files that must make it fail, each with file and line."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from leanguard_host import verify

FIXTURES = Path(__file__).with_name("fixtures")
ROOT = verify.own_root()
GONE = "LeanGuard.Theorems.never_stated"


@dataclass
class Audited:
    """An audit of a copy of the package with all fixtures in it: one run, so that Lean starts once."""

    code: int
    report: dict[str, Any]
    sarif: dict[str, Any]

    def findings(self, file: str) -> list[tuple[str, int, str]]:
        """Rule, line and message of the findings in a file."""
        return [
            (f["rule"], f["place"]["line"], f["message"]) for f in self.report["findings"] if f["place"]["file"] == file
        ]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """The audit of all fixtures."""
    root = tmp_path_factory.mktemp("package")
    for name in ("LeanGuard", "policies"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("LeanGuard.lean", "Repl.lean", "lakefile.lean", "lean-toolchain"):
        shutil.copyfile(ROOT / name, root / name)
    names = []
    for file in sorted(FIXTURES.glob("*.lean")):
        shutil.copyfile(file, root / "policies" / file.name)
        if file.stem != "FxUnlisted":
            names.append(f"`{file.stem}")
    lakefile = root / "lakefile.lean"
    text = lakefile.read_text(encoding="utf-8")
    assert "#[`Policies" in text
    lakefile.write_text(text.replace("#[`Policies", f"#[{', '.join(names)}, `Policies"), encoding="utf-8")
    statements = root / verify.STATEMENTS
    reviewed = {n: (t, e) for n, (t, e, _) in verify.parse_statements(statements.read_text(encoding="utf-8")).items()}
    reviewed["LeanGuard.Theorems.admit_iff"] = ("LeanGuard.Theorems.admit_iff : True", "0" * 16)
    reviewed[GONE] = (f"{GONE} : True", "0" * 16)
    del reviewed["LeanGuard.Theorems.default_deny"]
    statements.write_text(verify.format_statements(reviewed), encoding="utf-8")
    output, sarif = io.StringIO(), root / "out" / "verify.sarif"
    code = verify.run_verify("json", package=root, sarif=sarif, out=output, err=io.StringIO())
    return Audited(code, json.loads(output.getvalue()), json.loads(sarif.read_text(encoding="utf-8")))


def test_findings_are_exit_1(audited: Audited) -> None:
    assert audited.code == 1
    assert audited.report["ok"] is False
    assert len(audited.sarif["runs"][0]["results"]) == len(audited.report["findings"])


def test_nothing_else_is_found(audited: Audited) -> None:
    allowed = {f"policies/{file.name}" for file in FIXTURES.glob("*.lean")} | {
        "LeanGuard/statements.txt",
        "LeanGuard/Theorems.lean",
    }
    assert {f["place"]["file"] for f in audited.report["findings"]} <= allowed


@pytest.mark.parametrize(
    ("file", "rule", "line", "message"),
    [
        ("FxSorry", "axiom", 7, "theorem LeanGuard.FxSorry.everyWindow rests on the axiom sorryAx"),
        ("FxSorry", "axiom", 10, "theorem LeanGuard.FxSorry.allowed rests on the axiom sorryAx"),
        ("FxSorry", "axiom", 12, "definition LeanGuard.FxSorry.limit rests on the axiom sorryAx"),
        ("FxSorry", "axiom", 8, "`sorry` in a policy"),
        ("FxAxiom", "new-axiom", 7, "a new axiom: LeanGuard.FxAxiom.honest"),
        ("FxAxiom", "axiom", 9, "theorem LeanGuard.FxAxiom.same rests on the axiom LeanGuard.FxAxiom.honest"),
        ("FxBroken", "build", 7, "OfNat String 5"),
        ("FxShadow", "shadow", 7, "LeanGuard.FxShadow.not shadows Lean's core name not"),
        ("FxShadow", "shadow", 9, "LeanGuard.FxShadow.List.all shadows Lean's core name List.all"),
        ("FxShadow", "shadow", 11, "another meaning to core syntax: !="),
        ("FxShadow", "shadow", 13, "changes what BEq means"),
        ("FxShadow", "shadow", 39, "changes what existing syntax means"),
        ("FxShadow", "shadow", 33, "LeanGuard.FxShadow.Cart.min shadows Lean's core name min"),
        ("FxFake", "metaprogramming", 2, "imports Lean"),
        ("FxFake", "metaprogramming", 8, "run_cmd"),
        ("FxFake", "kernel", 10, "does not accept LeanGuard.FxFake.impossible"),
        ("FxFake", "kernel", 17, "theorem LeanGuard.FxFake.everything rests on LeanGuard.FxFake.impossible"),
        ("FxNative", "axiom", 7, "theorem LeanGuard.FxNative.power rests on the axiom"),
        ("FxReplaced", "replaced", 10, "mayRefund runs as LeanGuard.FxReplaced.always (implemented_by)"),
        ("FxReplaced", "replaced", 17, "search is partial"),
        ("FxReplaced", "replaced", 20, "plus runs as foreign code"),
        ("FxReplaced", "replaced", 22, "asText is unsafe"),
        ("FxUnlisted", "module", 1, "the build does not reach module FxUnlisted"),
    ],
)
def test_each_fault_is_named_with_its_place(audited: Audited, file: str, rule: str, line: int, message: str) -> None:
    found = audited.findings(f"policies/{file}.lean")
    assert any(r == rule and at == line and message in text for r, at, text in found), found


def test_a_field_a_method_and_a_notation_of_its_own_are_no_shadows(audited: Audited) -> None:
    lines = {line for _, line, _ in audited.findings("policies/FxShadow.lean")}
    assert lines == {7, 9, 11, 13, 33, 39}


def test_the_way_to_the_axiom_is_told(audited: Audited) -> None:
    finding = next(
        f for f in audited.report["findings"] if f["theorem"] == "LeanGuard.FxSorry.allowed" and f["rule"] == "axiom"
    )
    assert [step["name"] for step in finding["path"]] == [
        "LeanGuard.FxSorry.allowed",
        "LeanGuard.FxSorry.everyWindow",
        "sorryAx",
    ]


def test_statements_are_held_against_the_reviewed_ones(audited: Audited) -> None:
    missing = audited.findings("LeanGuard/statements.txt")
    assert [(rule, GONE in text) for rule, _, text in missing] == [("statement", True)]
    page = {(rule, text.partition(";")[0]) for rule, _, text in audited.findings("LeanGuard/Theorems.lean")}
    assert any("the statement of LeanGuard.Theorems.admit_iff is not the reviewed one" in text for _, text in page)
    assert any("LeanGuard.Theorems.default_deny is not in LeanGuard/statements.txt" in text for _, text in page)
    assert len(page) == 2


def test_the_repository_is_clean() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "verify_axioms.py"), "--json"],
        capture_output=True, text=True, timeout=580, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["findings"] == []
    assert {"LeanGuard.Theorems.Temporal.eval_iff_sat", "LeanGuard.Theorems.monitor_eq_eval"} <= set(
        report["statements"]
    )
    assert set(report["core_axioms"]) <= verify.ALLOWED_AXIOMS
    assert report["core_proofs"] or report["notes"]
