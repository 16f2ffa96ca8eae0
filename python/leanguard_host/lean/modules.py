"""Which Lean modules a package has, and what each imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leanguard_host.lean.errors import BuildFailed, Message

_CORE = frozenset({"Init", "Std", "Lean", "Lake"})
_IMPORT = re.compile(r"(?:public\s+)?(?:meta\s+)?import\s+(?:all\s+)?([^\s]+)")
_SKIP = re.compile(r"\s+|--[^\n]*")


@dataclass(frozen=True)
class Module:
    """One source file."""

    name: str
    file: Path
    source: bytes
    imports: tuple[str, ...]


def is_core(module: str) -> bool:
    """Whether a module comes with Lean."""
    return module.partition(".")[0] in _CORE


def _skip_blank(text: str, at: int) -> int:
    """The place after white space and comments (block comments nest)."""
    while True:
        if blank := _SKIP.match(text, at):
            at = blank.end()
        elif text.startswith("/-", at):
            depth, at = 1, at + 2
            while depth:
                mark = re.compile(r"/-|-/").search(text, at)
                if mark is None:
                    return len(text)
                depth += 1 if mark.group() == "/-" else -1
                at = mark.end()
        else:
            return at


def parse_imports(source: str) -> tuple[str, ...]:
    """The modules that a source file imports, in order, each once. Imports stand before everything else in a file."""
    found: dict[str, None] = {}
    at = _skip_blank(source, 1 if source.startswith("\ufeff") else 0)
    for keyword in ("module", "prelude"):
        if re.compile(rf"{keyword}(?![\w.])").match(source, at):
            at = _skip_blank(source, at + len(keyword))
    while match := _IMPORT.match(source, at):
        found[match.group(1).replace("«", "").replace("»", "")] = None
        at = _skip_blank(source, match.end())
    return tuple(found)


def locate(root: Path, module: str) -> Path | None:
    """The source file of a module, under the package's root or its `policies` folder; None if there is none."""
    relative = Path(*module.split(".")).with_suffix(".lean")
    for folder in (root, root / "policies"):
        if (folder / relative).is_file():
            return folder / relative
    return None


def module_name(root: Path, file: Path) -> str:
    """The module name of a source file under the package's root."""
    relative = file.relative_to(root).with_suffix("")
    parts = relative.parts[1:] if relative.parts[0] == "policies" else relative.parts
    return ".".join(parts)


ROOTS = ("Repl", "LeanGuard", "Policies")


def default_targets(root: Path) -> list[str]:
    """What a build of the package makes, with all that they import: the program, the library and the policies."""
    return [name for name in ROOTS if locate(root, name)]


def all_modules(root: Path) -> list[str]:
    """Every module that the package has a file of, whether the build reaches it or not."""
    files = [root / "Repl.lean", root / "LeanGuard.lean"]
    files += sorted((root / "LeanGuard").rglob("*.lean"))
    files += sorted((root / "policies").rglob("*.lean"))
    return [module_name(root, file) for file in files if file.is_file()]


def load(root: Path, targets: Iterable[str]) -> dict[str, Module]:
    """Read the targets and everything of the package that they import.

    Raises:
        BuildFailed: a target or an import has no source file, or a file is not UTF-8.
    """
    modules: dict[str, Module] = {}
    problems: list[Message] = []
    waiting: list[tuple[str, Path | None]] = [(target, None) for target in targets]
    while waiting:
        name, importer = waiting.pop()
        if name in modules or is_core(name):
            continue
        file = locate(root, name)
        if file is None:
            problems.append(_missing(root, name, importer, modules))
            continue
        source = file.read_bytes()
        try:
            imports = parse_imports(source.decode())
        except UnicodeDecodeError as error:
            line = source.count(b"\n", 0, error.start) + 1
            problems.append(Message("error", _shown(root, file), line, 0, "this file is not UTF-8 text"))
            imports = ()
        modules[name] = Module(name, file, source, imports)
        waiting += [(imported, file) for imported in imports]
    if problems:
        raise BuildFailed(problems)
    return modules


def _shown(root: Path, file: Path) -> str:
    return file.relative_to(root).as_posix()


def _missing(root: Path, name: str, importer: Path | None, modules: Mapping[str, Module]) -> Message:
    if importer is None:
        return Message("error", name, 1, 0, f"there is no module {name} in {root}")
    source = next(module.source for module in modules.values() if module.file == importer).decode()
    at = re.search(rf"import\s+(?:all\s+)?«?{re.escape(name)}", source)
    line = source.count("\n", 0, at.start()) + 1 if at else 1
    return Message("error", _shown(root, importer), line, 0, f"unknown module {name}: no such file in this package")


def in_order(root: Path, modules: Mapping[str, Module]) -> list[Module]:
    """The modules, each after what it imports; otherwise by name, so that the order is always the same.

    Raises:
        BuildFailed: modules import each other in a circle.
    """
    ordered: list[Module] = []
    done: set[str] = set()

    def visit(name: str, path: Sequence[str]) -> None:
        if name in done or name not in modules:
            return
        if name in path:
            circle = [*path[path.index(name) :], name]
            files = " -> ".join(_shown(root, modules[each].file) for each in circle)
            raise BuildFailed([Message("error", _shown(root, modules[name].file), 1, 0, f"import cycle: {files}")])
        for imported in sorted(modules[name].imports):
            visit(imported, [*path, name])
        done.add(name)
        ordered.append(modules[name])

    for name in sorted(modules):
        visit(name, [])
    return ordered


_INITIALIZER = re.compile(rb"^[ \t]*(?:[\w@\[\] ]* )?(?:initialize|register_\w+)(?!\w)", re.MULTILINE)


def needing_initializers(ordered: Sequence[Module]) -> set[str]:
    """The modules during whose import code of the package runs: they import one that extends Lean with `initialize`.

    Args:
        ordered: the modules, each after what it imports.
    """
    found: set[str] = set()
    initializing: set[str] = set()
    for module in ordered:
        if any(name in found or name in initializing for name in module.imports):
            found.add(module.name)
        if _INITIALIZER.search(module.source):
            initializing.add(module.name)
    return found


def dependents(modules: Mapping[str, Module], name: str) -> list[str]:
    """The modules that import a module, directly or through others."""
    found: set[str] = set()
    frontier = {name}
    while frontier:
        frontier = {m.name for m in modules.values() if frontier.intersection(m.imports)} - found
        found |= frontier
    return sorted(found)
