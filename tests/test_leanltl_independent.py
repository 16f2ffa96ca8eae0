"""The temporal logic stands on its own: nothing in LeanGuard/LeanLTL imports or names what the package evaluates.

The equivalence theorems mean something only if the semantics was not written in the evaluator's terms.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from leanguard_host.lean import modules
from leanguard_host.lean.paths import package_root

LOGIC = "LeanGuard.LeanLTL"
WORD = re.compile(r"[^\W\d][\w'!?]*")
COMMENT_OR_STRING = re.compile(r"--[^\n]*|/-|\"(?:[^\"\\]|\\.)*\"")
DECLARATION = re.compile(
    r"^[ \t]*(?:@\[[^\]]*\]\s*)*(?:(?:private|protected|public|noncomputable|partial|unsafe)\s+)*"
    r"(?:def|abbrev|structure|inductive|class|theorem|lemma|opaque|axiom|namespace)\s+([^\s(\[{:]+)",
    re.MULTILINE,
)


def is_logic(module: str) -> bool:
    return module == LOGIC or module.startswith(f"{LOGIC}.")


def code(source: str) -> str:
    """The source without comments and strings."""
    kept: list[str] = []
    at = 0
    while found := COMMENT_OR_STRING.search(source, at):
        kept.append(source[at : found.start()])
        at = found.end()
        if found.group() == "/-":
            depth = 1
            while depth and (mark := re.compile(r"/-|-/").search(source, at)):
                depth += 1 if mark.group() == "/-" else -1
                at = mark.end()
        kept.append(" ")
    return "".join([*kept, source[at:]])


def declared(source: str) -> set[str]:
    """Every part of the names that a file declares: of `Formula.eval` both `Formula` and `eval`."""
    return {part for name in DECLARATION.findall(code(source)) for part in name.split(".")}


def faults(root: Path) -> list[str]:
    """What in the temporal logic depends on the rest of the package."""
    everything = modules.load(root, modules.all_modules(root))
    logic = {name: module for name, module in everything.items() if is_logic(name)}
    found: list[str] = []

    # Imports, through whatever modules they go.
    waiting, reached = list(logic), set(logic)
    while waiting:
        importer = waiting.pop()
        for imported in everything[importer].imports:
            if not modules.is_core(imported) and not is_logic(imported):
                found.append(f"{importer} imports {imported}")
            if imported in everything and imported not in reached:
                reached.add(imported)
                waiting.append(imported)

    # Names, in code and where a comment quotes code. Without an import they can mean nothing, but they would be a sign
    # that the semantics follows the evaluator. What the logic declares itself is its own, whatever else is called so.
    own = set().union(*(declared(module.source.decode()) for module in logic.values())) | {"LeanGuard", "LeanLTL"}
    foreign: dict[str, str] = {}
    for name, module in everything.items():
        if name.startswith(("LeanGuard.Spec", "LeanGuard.Eval", "LeanGuard.Thm")):
            foreign |= {
                word: name
                for word in declared(module.source.decode())
                if word not in own and (word[:1].isupper() or word in EVALUATOR)
            }
    for name, module in logic.items():
        source = module.source.decode()
        for path in re.findall(r"LeanGuard[./](?:Spec|Eval|Thm)\b", source):
            found.append(f"{name} names {path}")
        for word in WORD.findall(f"{code(source)} {' '.join(re.findall(r'`[^`]+`', source))}"):
            if word in foreign:
                found.append(f"{name} names {word}, which is declared in {foreign[word]}")
    return sorted(set(found))


# Of the names that begin with a small letter, those that mean the evaluator: `learn` or `all` may be anybody's.
EVALUATOR = frozenset(("eval", "evalOnce", "evalSince", "recall", "conclude", "decideWith"))


def test_the_temporal_logic_is_independent() -> None:
    assert faults(package_root()) == []


def test_there_is_something_to_check() -> None:
    everything = modules.load(package_root(), modules.all_modules(package_root()))
    assert {f"{LOGIC}.Trace", f"{LOGIC}.TraceSet", f"{LOGIC}.Basic"} <= set(everything)
    sources = {name: module.source.decode() for name, module in everything.items()}
    assert {"Formula", "Window", "covers"} <= declared(sources["LeanGuard.Spec.Formula"])
    evaluator = [declared(text) for name, text in sources.items() if name.startswith("LeanGuard.Eval.")]
    assert EVALUATOR.issubset(set().union(*evaluator))


@pytest.mark.parametrize(
    ("file", "place", "text", "fault"),
    [
        ("Basic", r"\A", "import LeanGuard.Eval.Formula\n", "imports LeanGuard.Eval.Formula"),
        ("Basic", r"\A", "public import LeanGuard.Helper\n", "imports LeanGuard.Helper"),
        ("OfList", r"\Z", "\ntheorem odd (f : Formula) : f = f := rfl\n", "names Formula"),
        ("OfList", r"\Z", "\n/-! as `evalOnce` computes it -/\n", "names evalOnce"),
        ("OfList", r"\Z", "\n-- see LeanGuard/Eval/Formula.lean\n", "names LeanGuard/Eval"),
    ],
    ids=["import", "import-of-another", "name", "name-in-a-comment", "file-name"],
)
def test_the_check_can_fail(tmp_path: Path, file: str, place: str, text: str, fault: str) -> None:
    for folder in ("LeanGuard", "policies"):
        shutil.copytree(package_root() / folder, tmp_path / folder)
    for source in package_root().glob("*.lean"):
        shutil.copy(source, tmp_path)
    (tmp_path / "LeanGuard" / "Helper.lean").write_text("import LeanGuard.Spec.Formula\n", encoding="utf-8")
    assert faults(tmp_path) == []
    changed = tmp_path / "LeanGuard" / "LeanLTL" / f"{file}.lean"
    changed.write_text(re.sub(place, text, changed.read_text(encoding="utf-8")), encoding="utf-8")
    assert any(fault in each for each in faults(tmp_path)), faults(tmp_path)


def test_a_fault_in_an_imported_helper_is_found(tmp_path: Path) -> None:
    """A module outside the logic is already too much; what it imports is named as well."""
    (tmp_path / "LeanGuard" / "LeanLTL").mkdir(parents=True)
    for name, text in {
        "LeanGuard/LeanLTL/Basic.lean": "import LeanGuard.Helper\n",
        "LeanGuard/Helper.lean": "import LeanGuard.Eval\n",
        "LeanGuard/Eval.lean": "def eval := 1\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert faults(tmp_path) == [
        "LeanGuard.Helper imports LeanGuard.Eval",
        "LeanGuard.LeanLTL.Basic imports LeanGuard.Helper",
    ]
