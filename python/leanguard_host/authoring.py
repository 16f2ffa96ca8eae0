"""`leanguard policy new`: a policy file that a newcomer can fill, which builds and is decided at once."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from leanguard_host.jsonfiles import InputError
from leanguard_host.lean.modules import all_modules, is_core
from leanguard_host.lean.paths import is_package, package_root

SCAFFOLD = Path(__file__).with_name("scaffold")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_LONGEST = 40
_PARTS = ("lakefile.lean", "lean-toolchain", "LeanGuard.lean", "Repl.lean", "LeanGuard", "policies")
_EXAMPLE = Path("examples") / "retail_exchange"
_ROOTS = re.compile(r"(lean_lib\s+Policies\b[^#]*?roots\s*:=\s*#\[)([^\]]*)(\])", re.DOTALL)
_LISTS = (
    (
        re.compile(r"(def\s+domains\s*:\s*List\s+Domain\s*:=\s*\[)(.*?)(\])", re.DOTALL),
        "domain! {0}.policy Intent.fixed",
    ),
    (re.compile(r"(def\s+policies\s*:\s*List\s+Policy\s*:=\s*\[)(.*?)(\])", re.DOTALL), "{0}.policy"),
)
_DECLARED = re.compile(r"^(?:structure|inductive|namespace|abbrev|def)\s+(?:LeanGuard\.)?([A-Z]\w*)", re.MULTILINE)
_KEYWORDS = ("Type", "Prop", "Sort")
_IMPORT = re.compile(r"^import [^\n]*\n", re.MULTILINE)


@dataclass(frozen=True)
class Created:
    """What `new_policy` made.

    Attributes:
        name: the policy's name.
        package: the package that it is in.
        policy: the policy file.
        examples: the folder with a call, a snapshot and a journal.
        new_package: whether the package was made, too.
    """

    name: str
    package: Path
    policy: Path
    examples: Path
    new_package: bool


def module_of(name: str) -> str:
    """The Lean module of a policy: `order_desk` is in `OrderDesk`."""
    return "".join(part.capitalize() for part in name.split("_"))


def is_installed_copy(package: Path) -> bool:
    """Whether a package is the one that was installed with the Python code, which an upgrade replaces."""
    return package.name == "_package"


def new_policy(name: str, folder: Path | None = None) -> Created:
    """Write a policy to start from, and list it among the package's policies. Nothing is overwritten.

    Args:
        name: of the policy, in lower case, words joined by `_`.
        folder: the package; one that does not exist or is empty becomes a copy of LeanGuard's own. If None, the package
            that is used now, unless that was installed with the Python code.

    Raises:
        InputError: the name or the folder can't be used, or something is there already.
        OSError: a file can't be written.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        wanted = f"a name in lower case, words joined by _, at most {_LONGEST} characters, as in order_desk"
        raise InputError("NAME", wanted, json.dumps(name, ensure_ascii=False))
    package, fresh = _package(folder)
    source = package_root() if fresh else package
    module = module_of(name)
    if (taken := _taken(source).get(module.lower())) or is_core(module):
        raise InputError(
            "NAME", "a name that Lean's or LeanGuard's files do not use", f"{name!r}, and {taken or module}"
        )
    policy, examples = package / "policies" / f"{module}.lean", package / "examples" / name
    if examples.exists():
        raise InputError("NAME", "a name without examples", f"{examples} is there already")
    listed = _listed((source / "policies" / "Policies.lean").read_text(encoding="utf-8"), module)
    rooted = _rooted((source / "lakefile.lean").read_text(encoding="utf-8"), module)

    def filled(file: str) -> str:
        text = (SCAFFOLD / file).read_text(encoding="utf-8")
        return re.sub(r"\btemplate\b", name, re.sub(r"\bTemplate\b", module, text))

    texts = {file: filled(file) for file in ("Template.lean", "call.json", "snapshot.json", "journal.jsonl")}
    if fresh:
        _copy(source, package)
    with policy.open("x", encoding="utf-8") as file:
        file.write(texts.pop("Template.lean"))
    examples.mkdir(parents=True)
    for each, text in texts.items():
        (examples / each).write_text(text, encoding="utf-8")
    (package / "policies" / "Policies.lean").write_text(listed, encoding="utf-8")
    (package / "lakefile.lean").write_text(rooted, encoding="utf-8")
    return Created(name, package, policy, examples, fresh)


def _taken(package: Path) -> dict[str, str]:
    """The names of modules, types and namespaces in a package, by their lower case."""
    names = {*all_modules(package), *_KEYWORDS}
    for file in [*(package / "LeanGuard").rglob("*.lean"), *(package / "policies").rglob("*.lean")]:
        names |= set(_DECLARED.findall(file.read_text(encoding="utf-8")))
    return {name.lower(): name for name in names}


def _package(folder: Path | None) -> tuple[Path, bool]:
    """The package, and whether it is still to be made."""
    if folder is None:
        package = package_root()
        if is_installed_copy(package):
            raise InputError(
                "--dir", "a folder for your policies", "none: an upgrade would replace those of the installation"
            )
        return package, False
    folder = folder.expanduser().absolute()
    if is_package(folder):
        return folder, False
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("--dir", "a new or empty folder, or one that `leanguard policy new` made", str(folder))
    return folder, True


def _copy(source: Path, package: Path) -> None:
    package.mkdir(parents=True, exist_ok=True)
    for part in _PARTS:
        if (source / part).is_dir():
            shutil.copytree(source / part, package / part)
        else:
            shutil.copyfile(source / part, package / part)
    if (source / _EXAMPLE).is_dir():
        shutil.copytree(source / _EXAMPLE, package / _EXAMPLE)


def _listed(text: str, module: str) -> str:
    """Policies.lean with the policy in its list."""
    for pattern, item in _LISTS:
        if match := pattern.search(text):
            items = match[2].rstrip()
            separator = ", " if items.strip() else ""
            text = f"{text[: match.end(2)].rstrip()}{separator}{item.format(module)}{text[match.start(3) :]}"
            last = list(_IMPORT.finditer(text))[-1].end()
            return f"{text[:last]}import {module}\n{text[last:]}"
    raise InputError(
        "policies/Policies.lean", "a list `def policies : List Policy := [...]`", "none; add the policy by hand"
    )


def _rooted(text: str, module: str) -> str:
    """The lakefile with the module among the roots of the policies."""
    match = _ROOTS.search(text)
    if not match:
        raise InputError("lakefile.lean", "a library Policies with `roots := #[...]`", "none; add the module by hand")
    return f"{text[: match.end(2)]}, `{module}{text[match.start(3) :]}"
