"""Which modules there are, what they import, and in which order they are compiled."""

from __future__ import annotations

import pytest

from leanguard_host.lean import modules
from leanguard_host.lean.errors import BuildFailed

from .conftest import MakePackage


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", ()),
        ("def x := 1", ()),
        ("import A\nimport B.C\n\ndef x := 1\nimport D", ("A", "B.C")),
        ("module\npublic import A\nmeta import B\npublic meta import C\nimport all D", ("A", "B", "C", "D")),
        ("/- import X /- nested import Y -/ import Z -/\n-- import W\nimport A -- import V\nimport B", ("A", "B")),
        ("/-! doc -/ module /- -/ prelude import A", ("A",)),
        ("import A\nimport A", ("A",)),
        ("import «A».«B»", ("A.B",)),
        ("\ufeffimport A", ("A",)),
        ("importA\nimport B", ()),
        ("moduleX\nimport B", ()),
        ("/- never closed\nimport A", ()),
        ("import A\r\nimport B\r\n", ("A", "B")),
    ],
)
def test_parse_imports(source: str, expected: tuple[str, ...]) -> None:
    assert modules.parse_imports(source) == expected


def test_order_puts_imports_first_and_is_stable(make_package: MakePackage) -> None:
    root = make_package(
        {
            "Repl.lean": "import Policies\nimport Lean",
            "LeanGuard.lean": "import LeanGuard.B",
            "LeanGuard/A.lean": "import Std.Data.HashMap",
            "LeanGuard/B.lean": "import LeanGuard.A",
            "policies/Policies.lean": "import Retail",
            "policies/Retail.lean": "import LeanGuard",
            "policies/Extra.lean": "",
        }
    )
    assert modules.default_targets(root) == ["Repl", "LeanGuard", "Policies"]
    targets = modules.all_modules(root)
    assert sorted(targets) == ["Extra", "LeanGuard", "LeanGuard.A", "LeanGuard.B", "Policies", "Repl", "Retail"]
    known = modules.load(root, targets)
    names = [module.name for module in modules.in_order(root, known)]
    assert names == ["Extra", "LeanGuard.A", "LeanGuard.B", "LeanGuard", "Retail", "Policies", "Repl"]
    assert modules.dependents(known, "LeanGuard.B") == ["LeanGuard", "Policies", "Repl", "Retail"]


def test_a_cycle_names_the_files(make_package: MakePackage) -> None:
    root = make_package({"LeanGuard/A.lean": "import LeanGuard.B", "LeanGuard/B.lean": "import LeanGuard.A"})
    with pytest.raises(BuildFailed, match=r"LeanGuard/A\.lean -> LeanGuard/B\.lean -> LeanGuard/A\.lean"):
        modules.in_order(root, modules.load(root, ["LeanGuard.A"]))


def test_a_missing_import_is_reported_where_it_stands(make_package: MakePackage) -> None:
    root = make_package({"LeanGuard/A.lean": "/- a -/\nimport LeanGuard.Nope"})
    with pytest.raises(BuildFailed) as caught:
        modules.load(root, ["LeanGuard.A", "Other"])
    texts = sorted(str(message) for message in caught.value.messages)
    assert texts[0] == "LeanGuard/A.lean:2:0: error: unknown module LeanGuard.Nope: no such file in this package"
    assert "there is no module Other" in texts[1]


def test_a_file_that_is_not_text(make_package: MakePackage) -> None:
    root = make_package({})
    (root / "Repl.lean").write_bytes(b"import Lean\n\n\xff")
    with pytest.raises(BuildFailed, match=r"Repl\.lean:3:0: error: this file is not UTF-8"):
        modules.load(root, ["Repl"])


def test_which_modules_need_initializers(make_package: MakePackage) -> None:
    files = {
        "LeanGuard/Rules.lean": "import Lean\ninitialize counter : IO.Ref Nat ← IO.mkRef 0\n",
        "LeanGuard/Option.lean": "import Lean\nregister_option guard.most : Nat := { defValue := 1 }\n",
        "LeanGuard/Plain.lean": "/- to initialize a thing -/ def initialized := 1\n",
        "LeanGuard/Direct.lean": "import LeanGuard.Rules",
        "LeanGuard/Optional.lean": "import LeanGuard.Option",
        "LeanGuard/Far.lean": "import LeanGuard.Plain\nimport LeanGuard.Direct",
        "LeanGuard.lean": "import LeanGuard.Plain",
    }
    root = make_package(files)
    ordered = modules.in_order(root, modules.load(root, modules.all_modules(root)))
    assert modules.needing_initializers(ordered) == {"LeanGuard.Direct", "LeanGuard.Optional", "LeanGuard.Far"}
