"""The axiom audit: `leanguard verify` and scripts/verify_axioms.py.

Builds a package, has Lean's kernel check every declaration of it again (LeanGuard/Audit.lean, which reads the compiled
modules as data), and looks for whatever would make a theorem say less than it seems to say. Needs nothing but the
standard library where the official toolchain is on PATH.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

from leanguard_host.lean.errors import BuildFailed, LeanUnavailable, Message, ToolchainUnavailable
from leanguard_host.lean.modules import Module, all_modules, in_order, is_core, load, locate, module_name

ALLOWED_AXIOMS = frozenset({"propext", "Quot.sound", "Classical.choice"})
STATEMENTS = Path("LeanGuard", "statements.txt")
PROGRAM = "LeanGuard.Audit"
PUBLIC_PAGE = "LeanGuard.Theorems"
AUDIT_SECONDS = 600
LAKE_SECONDS = 3600
PORTABLE_NOTE = (
    "This toolchain does not ship the proofs of Lean's core library: core theorems count as given, and an axiom that "
    "one of them rests on can't be seen. An audit down to the core needs the official toolchain."
)

RULES: dict[str, str] = {
    "build": "A file does not compile.",
    "module": "A module that the build does not reach, or a file that stands where another module is meant.",
    "kernel": "A declaration that Lean's kernel does not accept when it is checked again.",
    "axiom": "A theorem or definition that rests on an axiom other than propext, Quot.sound and Classical.choice.",
    "new-axiom": "A declaration of a new axiom.",
    "replaced": "A definition that theorems speak of but that runs as something else (implemented_by, extern, ...).",
    "statement": "A public theorem that is missing, was not reviewed, or does not say what was reviewed.",
    "shadow": "A policy that gives another meaning to a name or notation of Lean or LeanGuard.",
    "metaprogramming": "A policy that runs code of its own while it is compiled.",
    "incomplete": "The audit did not get to see everything that it asked for.",
}

_AXIOM_WORDS = {
    "sorryAx": "a `sorry`",
    "Lean.ofReduceBool": "`native_decide`: the compiler is trusted, not the kernel",
    "Lean.ofReduceNat": "the compiler is trusted, not the kernel",
    "Lean.trustCompiler": "`native_decide`: the compiler is trusted, not the kernel",
}
# Commands with which a policy could run code at compile time, or change what other code means without being seen.
_FORBIDDEN = {
    **dict.fromkeys(["run_cmd", "run_elab", "run_meta", "by_elab", "#eval", "#eval!"], "runs code as it is compiled"),
    **dict.fromkeys(["initialize", "builtin_initialize"], "runs code when it is loaded"),
    **dict.fromkeys(["elab", "elab_rules", "macro_rules"], "changes what syntax means"),
    "debug.skipKernelTC": "switches the kernel's check off",
    "sorry": "leaves something unproved",
}


@dataclass(frozen=True)
class Place:
    """A place in a source file. Lines count from 1, columns from 0."""

    file: str
    line: int = 1
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Step:
    """One name on the way from a theorem to what it rests on."""

    name: str
    place: Place | None

    def __str__(self) -> str:
        return f"{self.name} ({self.place})" if self.place else self.name


@dataclass(frozen=True)
class Finding:
    """One fault."""

    rule: str
    place: Place
    message: str
    theorem: str = ""
    axiom: str = ""
    path: tuple[Step, ...] = ()

    def __str__(self) -> str:
        way = f"\n    {' -> '.join(str(step) for step in self.path)}" if len(self.path) > 1 else ""
        place = f"{self.place.file}:{self.place.line}:{self.place.column}"
        return f"{place}: error: {self.message} [{self.rule}]{way}"


@dataclass
class Report:
    """What an audit found."""

    package: str
    toolchain: str = ""
    core_proofs: bool = False
    modules: int = 0
    declarations: int = 0
    theorems: list[str] = field(default_factory=list)
    statements: dict[str, tuple[str, str]] = field(default_factory=dict)
    axioms: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, rule: str, place: Place, message: str, **details: Any) -> None:
        """Note a fault, once."""
        finding = Finding(rule, place, message, **details)
        if finding not in self.findings:
            self.findings.append(finding)


class UnusableInput(Exception):  # noqa: N818 - says what is the case
    """What was given to audit can't be used."""


Say = Callable[[str], None]


# ---- the package as text ----


def own_root() -> Path:
    """The package that this code belongs to: its audit program is used, whatever package is audited."""
    here = Path(__file__).resolve()
    for folder in (*here.parents, here.parent / "_package"):
        if (folder / "lakefile.lean").is_file() and (folder / "LeanGuard" / "Audit.lean").is_file():
            return folder
    raise ToolchainUnavailable(
        "LeanGuard/Audit.lean is not beside the Python code.", remedy="Install LeanGuard again, or run from a checkout."
    )


def is_policy(root: Path, module: Module) -> bool:
    """Whether a module is held to what policies are held to: all but LeanGuard's own and the program."""
    inside = module.file.relative_to(root).parts[0] != "policies"
    return not (inside and (module.name == "Repl" or module.name.split(".")[0] == "LeanGuard"))


_WORD = re.compile(
    r"(?P<skip>\s+|--[^\n]*)|(?P<block>/-)"
    r'|(?P<raw>r(?P<hashes>#*)".*?"(?P=hashes))|(?P<string>"(?:\\.|[^"\\])*")'
    r"|(?P<char>'(?:\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)|[^\\'])')"
    r"|(?P<quoted>«[^»]*»)|(?P<word>#?[^\W\d][\w.!?']*)|(?P<other>.)",
    re.DOTALL,
)
_BLOCK = re.compile(r"/-|-/")


def words(source: str) -> Iterator[tuple[str, int]]:
    """The words of a Lean file with their offsets, without those in comments and strings."""
    at = 0
    while match := _WORD.match(source, at):
        at = match.end()
        if match["word"]:
            yield match["word"], match.start()
        elif match["block"]:
            depth = 1
            while depth and (mark := _BLOCK.search(source, at)):
                depth += 1 if mark.group() == "/-" else -1
                at = mark.end()
            if depth:
                return


def _place(file: str, source: str, offset: int) -> Place:
    return Place(file, source.count("\n", 0, offset) + 1, offset - (source.rfind("\n", 0, offset) + 1))


def entered_namespaces(source: str) -> set[str]:
    """Every namespace that some part of a file stands in."""
    found: set[str] = set()
    stack: list[str] = []
    tokens = [word for word, _ in words(source)]
    for word, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if word == "namespace":
            stack.append(f"{stack[-1]}.{following}" if stack and stack[-1] else following)
            found.add(stack[-1])
        elif word in ("section", "mutual"):
            stack.append(stack[-1] if stack else "")
        elif word == "end" and stack:
            stack.pop()
    return found


def check_policy_text(report: Report, shown: str, source: str, imports: Sequence[str]) -> None:
    """What a policy may not say, whatever it compiles to."""
    for name in imports:
        if name.split(".")[0] in ("Lean", "Lake") or name in ("Repl", PROGRAM):
            at = re.search(rf"import\s+(?:all\s+)?{re.escape(name)}\b", source)
            why = "a policy may not use Lean's metaprogramming" if is_core(name) else "this is a program, not a library"
            report.add("metaprogramming", _place(shown, source, at.start() if at else 0), f"imports {name}: {why}")
    for word, offset in words(source):
        if word in _FORBIDDEN:
            rule = "axiom" if word == "sorry" else "metaprogramming"
            report.add(rule, _place(shown, source, offset), f"`{word}` in a policy: it {_FORBIDDEN[word]}")


_LAKEFILE = re.compile(r"\b(?:lean_lib|lean_exe)\s+(\S+)(.*?)(?=\b(?:lean_lib|lean_exe)\b|\Z)", re.DOTALL)


def lakefile_roots(text: str) -> list[str]:
    """The root modules of the libraries and programs in a lakefile of the form that `lake new` writes."""
    text = re.sub(r"/-.*?-/|--[^\n]*", " ", text, flags=re.DOTALL)
    roots: list[str] = []
    for name, body in _LAKEFILE.findall(text):
        given = re.search(r"\broots?\s*:=\s*(#\[[^\]]*\]|`\S+)", body)
        roots += re.findall(r"`([^\s,\]]+)", given.group(1)) if given else [name]
    return [root.replace("«", "").replace("»", "") for root in roots]


@dataclass
class Package:
    """The source files of a package, in import order, as far as they can be read."""

    root: Path
    modules: list[Module]
    reached: set[str]

    def shown(self, name: str) -> str:
        """The file of a module, as messages show it."""
        return next((m.file.relative_to(self.root).as_posix() for m in self.modules if m.name == name), name)

    def without(self, names: Iterable[str]) -> list[Module]:
        """The modules except some and those that import them."""
        gone = set(names)
        left = []
        for module in self.modules:
            if module.name in gone or gone.intersection(module.imports):
                gone.add(module.name)
            else:
                left.append(module)
        return left


def _files(root: Path) -> list[Path]:
    found = [root / "Repl.lean", root / "LeanGuard.lean", *(root / "LeanGuard").rglob("*.lean")]
    return sorted(file for file in (*found, *(root / "policies").rglob("*.lean")) if file.is_file())


def read_package(root: Path, report: Report) -> Package:
    """Read the sources; what can't be read or reached is noted."""
    modules: dict[str, Module] = {}
    for target in all_modules(root):
        if is_core(target):
            continue
        try:
            modules |= load(root, [target])
        except BuildFailed as error:
            _add_messages(report, error.messages)
    try:
        ordered = in_order(root, modules)
    except BuildFailed as error:
        _add_messages(report, error.messages)
        return Package(root, [], set())
    reached: set[str] = set()
    waiting = ["Repl", PROGRAM, *lakefile_roots((root / "lakefile.lean").read_text(encoding="utf-8"))]
    while waiting:
        name = waiting.pop()
        if name in modules and name not in reached:
            reached.add(name)
            waiting += modules[name].imports
    for file in _files(root):
        name, shown = module_name(root, file), file.relative_to(root).as_posix()
        if is_core(name):
            report.add("module", Place(shown), f"this file takes the name of Lean's own module {name}")
        elif (other := locate(root, name)) != file:
            where = other.relative_to(root).as_posix() if other else "nothing"
            report.add("module", Place(shown), f"module {name} is {where}: this file is never compiled")
        elif name in modules and name not in reached:
            message = f"the build does not reach module {name}: import it, or list it in lakefile.lean"
            report.add("module", Place(shown), message)
    return Package(root, ordered, reached)


def _add_messages(report: Report, messages: Iterable[Message]) -> None:
    for message in messages:
        if message.severity == "error":
            report.add("build", Place(message.file, message.line, message.column), message.text)


# ---- building, and running the audit program ----


@dataclass
class Compiled:
    """A built package: which modules, where their compiled files are, and how to run the audit program."""

    toolchain: str
    modules: list[Module]
    parts: Callable[[str], list[Path]]
    command: list[str]
    core: list[str]
    environment: dict[str, str]


_LAKE_ERROR = re.compile(r"^error: (?:\./)*([^\s:][^:\n]*\.lean):(\d+):(\d+): ?(.*)$", re.MULTILINE)


def _build_official(package: Package, lake: Path, lean: Path, report: Report, say: Say) -> Compiled:
    say(f"lake build in {package.root}")
    try:
        done = subprocess.run(
            [lake, "build"],
            cwd=package.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LAKE_SECONDS,
            check=False,
        )
        prefix = subprocess.run(
            [lean, "--print-prefix"], cwd=package.root, capture_output=True, text=True, timeout=60, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainUnavailable(f"The official toolchain does not run: {error}") from error
    failed: set[str] = set()
    if done.returncode != 0:
        found = [Message("error", m[0], int(m[1]), int(m[2]), m[3]) for m in _LAKE_ERROR.findall(done.stdout)]
        if not found:
            found = [Message("error", "lakefile.lean", 1, 0, f"`lake build` failed: {done.stdout.strip()[-2000:]}")]
        _add_messages(report, found)
        files = {message.file for message in found}
        failed = {m.name for m in package.modules if m.file.relative_to(package.root).as_posix() in files}
    library = package.root / ".lake" / "build" / "lib" / "lean"

    def parts(name: str) -> list[Path]:
        first = library.joinpath(*name.split(".")).with_suffix(".olean")
        more = (first.with_suffix(".olean.server"), first.with_suffix(".olean.private"))
        return [first, *(part for part in more if part.is_file())]

    # What lake does not reach, it may have compiled long ago.
    unreached = {m.name for m in package.modules if m.name not in package.reached} | {PROGRAM}
    modules = package.without(failed | unreached)
    audit = own_root() / "LeanGuard" / "Audit.lean"
    return Compiled(
        f"official {lean}", modules, parts, [str(lean), "--run", str(audit)], [str(Path(prefix, "lib", "lean"))], {}
    )


@contextlib.contextmanager
def compiled(package: Package, report: Report, say: Say) -> Iterator[Compiled]:
    """Build the package, as far as it compiles."""
    try:
        from leanguard_host.lean.toolchain import find_toolchain
    except ImportError as error:
        lake, lean = shutil.which("lake"), shutil.which("lean")
        if os.environ.get("LEANGUARD_TOOLCHAIN", "official") == "official" and lake and lean:
            yield _build_official(package, Path(lake), Path(lean), report, say)
            return
        raise ToolchainUnavailable(
            f"The Python package {error.name} is missing, which the portable Lean toolchain needs, "
            "and there is no official `lake` on PATH.",
            remedy="Run `pip install -e .` in the checkout, or install elan (https://lean-lang.org/install).",
        ) from error
    toolchain = find_toolchain(root=package.root, announce=say)
    if toolchain.kind == "official":
        yield _build_official(package, toolchain.lake, toolchain.lake.with_name("lean"), report, say)
        return
    with tempfile.TemporaryDirectory(prefix="leanguard-verify-") as folder:
        yield _build_portable(package, toolchain, Path(folder), report, say)


def _build_portable(package: Package, toolchain: Any, folder: Path, report: Report, say: Say) -> Compiled:
    from leanguard_host.lean.compile import Store, content_keys, fill_tree, olean_path
    from leanguard_host.lean.portable import builder as portable
    from leanguard_host.lean.portable.fetch import find_node

    ours = own_root()
    source = (ours / "LeanGuard" / "Audit.lean").read_bytes()
    program = Module(PROGRAM, ours / "LeanGuard" / "Audit.lean", source, ("Lean",))

    def progress(module: str, done: int, total: int) -> None:
        if module:
            say(f"compiling {module} ({done + 1} of {total})")

    tree, tool = folder / "modules", folder / "audit"
    with portable.Builder(toolchain.install, toolchain.builder) as builder:
        keys = content_keys(toolchain.key, package.modules)
        try:
            fill_tree(package.root, tree, package.modules, keys, Store(), builder, progress)
        except BuildFailed as error:
            _add_messages(report, error.messages)
        # Last: it is ours, and whatever compiling a policy did must not come between it and its use.
        fill_tree(ours, tool, [program], content_keys(toolchain.key, [program]), Store(), builder, progress)
    modules = [module for module in package.modules if olean_path(tree, module.name).is_file()]
    flags = list(getattr(portable, "NODE_FLAGS", ()))
    return Compiled(
        f"portable {toolchain.version}",
        modules,
        lambda name: [olean_path(tree, name)],
        [str(find_node()), *flags, str(portable.BOOT), PROGRAM],
        ["/lib/lean"],
        portable.environment(toolchain.install, [tool]),
    )


def ask(package: Package, built: Compiled) -> dict[str, Any]:
    """Run the audit program over a built package.

    Raises:
        LeanUnavailable: it did not answer, or answered something else than what was asked for.
    """
    nonce = secrets.token_hex(16)
    request = {
        "nonce": nonce,
        "core": built.core,
        "statements": [PUBLIC_PAGE],
        "modules": [
            {"name": m.name, "parts": [str(part) for part in built.parts(m.name)], "policy": is_policy(package.root, m)}
            for m in built.modules
        ],
    }
    with tempfile.TemporaryDirectory(prefix="leanguard-verify-") as folder:
        file = Path(folder, "request.json")
        file.write_text(json.dumps(request), encoding="utf-8")
        try:
            done = subprocess.run(
                [*built.command, str(file)],
                cwd=package.root,
                env=os.environ | built.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=AUDIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LeanUnavailable(f"the audit program took more than {AUDIT_SECONDS} s and was stopped") from error
        except OSError as error:
            raise ToolchainUnavailable(f"The audit program could not be started: {error}") from error
    return _checked(done.stdout, done.stderr, request, nonce)


def _checked(stdout: bytes, stderr: bytes, request: Mapping[str, Any], nonce: str) -> dict[str, Any]:
    lines = [line for line in stdout.decode(errors="replace").replace("\x1e", "\n").splitlines() if line.strip()]
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("leanguard_audit") != 1:
        words_ = stderr.decode(errors="replace").strip()[-1000:]
        raise LeanUnavailable(f"the audit program gave no report: {words_ or lines[-1:]}")
    if "error" in answer:
        raise LeanUnavailable(f"the audit program stopped: {answer['error']}")
    got = [module["name"] for module in answer["modules"]]
    wanted = [module["name"] for module in request["modules"]]
    if answer["nonce"] != nonce or got != wanted:
        missing = ", ".join(sorted(set(wanted).difference(got))) or "none"
        raise LeanUnavailable(f"the report is not about what was asked for (modules missing: {missing})")
    return answer


# ---- judging the facts ----

Node = tuple[str, str]  # module, constant


def _plain(name: str) -> str:
    """A name as a person wrote it, without the mark of a private declaration."""
    return re.sub(r"^_private\..*?\.\d+\.", "", name)


@dataclass(frozen=True)
class Constant:
    """One declaration."""

    module: str
    name: str
    kind: str
    type: tuple[str, ...]
    value: tuple[str, ...]
    place: Place | None
    marks: frozenset[str]

    @property
    def node(self) -> Node:
        """How graphs call it."""
        return (self.module, self.name)

    @property
    def shown(self) -> str:
        """Its name as a person wrote it."""
        return _plain(self.name)

    @property
    def hidden(self) -> bool:
        """Whether Lean made it for its own use."""
        return "internal" in self.marks


class Facts:
    """The audit program's report, indexed."""

    def __init__(self, package: Package, answer: Mapping[str, Any]) -> None:
        self.package = package
        self.answer = answer
        self.sources = {m.name: m.source.decode() for m in package.modules}
        self.files = {m.name: m.file.relative_to(package.root).as_posix() for m in package.modules}
        names: list[str] = answer["names"]
        self.constants: dict[Node, Constant] = {}
        self._where: dict[str, list[str]] = {}
        self._closures: dict[str, set[str]] = {}
        for module in answer["modules"]:
            name = module["name"]
            self._closures[name] = {name}.union(*(self._closures.get(i, set()) for i in module["imports"]))
            for each in module["constants"]:
                place = Place(self.files[name], *each["place"]) if each["place"] else None
                constant = Constant(
                    name,
                    names[each["name"]],
                    each["kind"],
                    tuple(names[i] for i in each["type"]),
                    tuple(names[i] for i in each["value"]),
                    place,
                    frozenset(each["marks"]),
                )
                self.constants[constant.node] = constant
                self._where.setdefault(constant.name, []).append(name)

    def resolve(self, module: str, name: str) -> list[Node]:
        """The declarations of the package that a name means in a module; none if it is a core name."""
        where = self._where.get(name, [])
        return [(m, name) for m in where if len(where) == 1 or m in self._closures[module]]

    def owner(self, constant: Constant) -> Constant:
        """The declaration in a source file that a constant belongs to."""
        name = constant.name
        while name:
            found = self.constants.get((constant.module, name))
            if found and found.place and not found.hidden:
                return found
            name = name.rpartition(".")[0]
        return constant

    def place(self, constant: Constant) -> Place:
        """Where a constant is declared; as near as can be said for one that no source declares."""
        owner = self.owner(constant)
        if owner.place:
            return owner.place
        source, last = self.sources[constant.module], constant.shown.rpartition(".")[2]
        at = re.search(rf"(?<!\w){re.escape(last)}(?!\w)", source)
        return _place(self.files[constant.module], source, at.start() if at else 0)

    def step(self, node: Node) -> Step:
        """A constant as a step of a path."""
        constant = self.constants[node]
        return Step(constant.shown, self.place(constant))

    def public(self, constant: Constant) -> bool:
        """Whether it is a theorem that a reader may rely on."""
        return constant.kind == "theorem" and not constant.hidden and "private" not in constant.marks


def judge(report: Report, facts: Facts) -> None:
    """Find what is wrong with a built package."""
    for module in facts.answer["modules"]:
        _judge_module(report, facts, module)
    _judge_axioms(report, facts)
    _judge_replaced(report, facts)
    for constant in facts.constants.values():
        if facts.public(constant) and constant.place:
            report.theorems.append(constant.shown)


def _judge_module(report: Report, facts: Facts, module: Mapping[str, Any]) -> None:
    name = module["name"]
    file = facts.files[name]

    def place(constant: str) -> Place:
        found = facts.constants.get((name, constant))
        return facts.place(found) if found else Place(file)

    for each in module["rejected"]:
        why = " ".join(each["why"].split())[:600]
        shown = _plain(each["name"])
        report.add("kernel", place(each["name"]), f"Lean's kernel does not accept {shown}: {why}", theorem=shown)
    for each in module["misnamed"]:
        report.add("kernel", Place(file), f"the compiled module lists another declaration under the name {each}")
    policy = module["policy"]
    if policy is None:
        return
    namespaces = entered_namespaces(facts.sources[name])
    for each in policy["shadows"]:
        # A method of a type, such as `Cart.length`, takes no name away, unless the file goes into that namespace.
        if each["namespace"] and each["type"] and each["namespace"] not in namespaces:
            continue
        whose = "Lean's core name" if not facts.resolve(name, f"LeanGuard.{each['taken']}") else "LeanGuard's name"
        report.add("shadow", place(each["name"]), f"{_plain(each['name'])} shadows {whose} {each['taken']}")
    for each in policy["syntaxes"]:
        atoms = " ".join(each["atoms"]) or "no word or sign of its own"
        report.add("shadow", place(each["name"]), f"this notation gives another meaning to core syntax: {atoms}")
    for each in policy["macros"]:
        report.add("shadow", place(each["name"]), f"this macro changes what existing syntax means: {each['kind']}")
    for each in policy["instances"]:
        text = f"{_plain(each['name'])} changes what {each['class']} means for types that the policies do not declare"
        report.add("shadow", place(each["name"]), text)
    for each in policy["elaborators"]:
        report.add("metaprogramming", place(each), f"{each} is an elaborator: a policy may not extend Lean")
    for each in policy["initializers"]:
        report.add("metaprogramming", place(each), f"{each} runs code when the policy is loaded")
    for each in policy["exports"]:
        report.add("replaced", place(each), f"{each} is exported under a name that other code may call")


def _judge_axioms(report: Report, facts: Facts) -> None:
    users: dict[Node, list[Node]] = {}
    core_users: dict[str, list[Node]] = {}
    for node, constant in facts.constants.items():
        for used in {*constant.type, *constant.value}:
            own = facts.resolve(node[0], used)
            for target in own:
                users.setdefault(target, []).append(node)
            if not own:
                core_users.setdefault(used, []).append(node)
    report.axioms = sorted(facts.answer["core"]["axioms"])
    # For each axiom: the ways by which constants of the package come to it at once.
    ends: dict[str, dict[Node, tuple[Step, ...]]] = {}
    for path in facts.answer["core"]["paths"]:
        tail = tuple(Step(each, None) for each in path)
        for node in core_users.get(path[0], []):
            ends.setdefault(path[-1], {}).setdefault(node, tail)
    for node, constant in facts.constants.items():
        if constant.kind == "axiom":
            ends.setdefault(constant.shown, {})[node] = ()
            report.add("new-axiom", facts.place(constant), f"a new axiom: {constant.shown}", axiom=constant.shown)
    for axiom, starts in sorted(ends.items()):
        following = _resting_on(users, starts)
        for node in following:
            constant = facts.constants[node]
            # Theorems, and whatever else comes to the axiom at once.
            named = facts.public(constant) or (node in starts and not _stands_for_theorem(facts, constant))
            if named and constant.kind != "axiom":
                _add_axiom(report, facts, axiom, node, following, starts)

    for module in facts.answer["modules"]:
        for each in module["rejected"]:
            bad = (module["name"], each["name"])
            following = _resting_on(users, [bad])
            for node in following:
                if node != bad and facts.public(facts.constants[node]):
                    shown = facts.constants[node].shown
                    message = f"theorem {shown} rests on {facts.constants[bad].shown}, which the kernel does not accept"
                    path = tuple(facts.step(at) for at in _way(following, node))
                    report.add("kernel", facts.place(facts.constants[node]), message, theorem=shown, path=path)


def _resting_on(users: Mapping[Node, Sequence[Node]], ends: Iterable[Node]) -> dict[Node, Node | None]:
    """Everything that rests on some of `ends`, with the next step of a shortest way there."""
    following: dict[Node, Node | None] = dict.fromkeys(ends)
    front = deque(following)
    while front:
        node = front.popleft()
        for user in users.get(node, []):
            if user not in following:
                following[user] = node
                front.append(user)
    return following


def _way(following: Mapping[Node, Node | None], node: Node) -> list[Node]:
    """The way from a node to where it ends."""
    way = [node]
    while (after := following[way[-1]]) is not None:
        way.append(after)
    return way


def _stands_for_theorem(facts: Facts, constant: Constant) -> bool:
    """Whether it is a part of a public theorem that Lean made, so that the theorem is the one to name."""
    return constant.hidden and facts.public(facts.owner(constant))


def _add_axiom(
    report: Report,
    facts: Facts,
    axiom: str,
    node: Node,
    following: Mapping[Node, Node | None],
    starts: Mapping[Node, tuple[Step, ...]],
) -> None:
    way = _way(following, node)
    path = (*(facts.step(at) for at in way), *starts[way[-1]])
    constant = facts.owner(facts.constants[node])
    what = "theorem" if constant.kind == "theorem" else "definition" if constant.kind == "def" else constant.kind
    word = f" ({_AXIOM_WORDS[axiom]})" if axiom in _AXIOM_WORDS else ""
    message = f"{what} {constant.shown} rests on the axiom {axiom}{word}"
    place = facts.place(facts.constants[node])
    if all((f.place, f.message) != (place, message) for f in report.findings):
        report.add("axiom", place, message, theorem=constant.shown, axiom=axiom, path=path)


def _judge_replaced(report: Report, facts: Facts) -> None:
    replaced: dict[Node, str] = {}
    for module in facts.answer["modules"]:
        for name, other in module["implemented_by"]:
            for node in facts.resolve(module["name"], name):
                replaced[node] = f"runs as {_plain(other)} (implemented_by)"
        for name in module["extern"]:
            for node in facts.resolve(module["name"], name):
                replaced[node] = "runs as foreign code (extern)"
    for node, constant in facts.constants.items():
        if "unsafe" in constant.marks:
            replaced.setdefault(node, "is unsafe, unchecked by the kernel")
        elif constant.kind == "opaque" and (node[0], f"{node[1]}._unsafe_rec") in facts.constants:
            replaced.setdefault(node, "is partial, so that nothing can be proved about what it does")
    # From the statements of public theorems, through the bodies of definitions.
    before: dict[Node, Node | None] = {}
    front: deque[Node] = deque()
    for node, constant in facts.constants.items():
        if facts.public(constant) and constant.place:
            before[node] = None
            front.append(node)
    theorems = set(before)
    while front:
        node = front.popleft()
        constant = facts.constants[node]
        uses = constant.type if constant.kind == "theorem" else (*constant.type, *constant.value)
        for used in uses:
            for target in facts.resolve(node[0], used):
                if target not in before:
                    before[target] = node
                    front.append(target)
    policies = {module["name"] for module in facts.answer["modules"] if module["policy"] is not None}
    for node, why in replaced.items():
        constant = facts.constants[node]
        if node in before and node not in theorems:
            steps = [facts.step(at) for at in reversed(_way(before, node))]
            message = f"{constant.shown} {why}, and {steps[0].name} speaks of it"
            report.add("replaced", facts.place(constant), message, theorem=steps[0].name, path=tuple(steps))
        elif node[0] in policies and not constant.hidden:
            message = f"{constant.shown} {why}; what is proved of every policy is not proved of it"
            report.add("replaced", facts.place(constant), message)


# ---- statements ----

_HEADER = """\
# The public theorems and what they say, as Lean prints them. Reviewed by people: a change here changes what is claimed.
# `exact` is a digest of the whole statement, with the implicit arguments and instances that the text leaves out.
# Written by `scripts/verify_axioms.py --update-statements`.
"""


def digest(explicit: str) -> str:
    """Names a statement."""
    return hashlib.sha256(explicit.encode()).hexdigest()[:16]


def format_statements(statements: Mapping[str, tuple[str, str]]) -> str:
    """The text of a statements file."""
    parts = [_HEADER]
    for name, (text, exact) in sorted(statements.items()):
        parts.append(f"\ntheorem {text.rstrip()}\nexact {name} {exact}\n")
    return "".join(parts)


def parse_statements(text: str) -> dict[str, tuple[str, str, int]]:
    """Name to text, digest and line.

    Raises:
        ValueError: it is not such a file.
    """
    found: dict[str, tuple[str, str, int]] = {}
    lines: list[str] = []
    start = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("theorem "):
            lines, start = [line.removeprefix("theorem ")], number
        elif line.startswith("exact "):
            _, name, exact = (line + "  ").split(" ")[:3]
            if not lines or not exact or lines[0].split()[0] != name:
                raise ValueError(f"line {number}: expected `exact NAME DIGEST` after the theorem of that name")
            found[name] = ("\n".join(lines), exact, start)
            lines = []
        elif lines:
            lines.append(line)
        else:
            raise ValueError(f"line {number}: expected `theorem NAME ...`")
    if lines or not found:
        raise ValueError("it ends in the middle of a statement" if lines else "it holds no statement")
    return found


def judge_statements(report: Report, facts: Facts, file: Path) -> None:
    """Hold the public theorems against the reviewed statements."""
    try:
        shown = file.relative_to(facts.package.root).as_posix()
    except ValueError:
        shown = str(file)
    try:
        reviewed = parse_statements(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UnusableInput(f"{file}: the reviewed statements can't be read: {error}") from error
    page = f"{PUBLIC_PAGE.replace('.', '/')}.lean"

    def place(name: str) -> Place:
        found = facts.constants.get((PUBLIC_PAGE, name))
        return facts.place(found) if found else Place(page)

    for name, (text, exact, line) in reviewed.items():
        if name not in report.statements:
            message = f"the public theorem {name} is missing from {page}"
            report.add("statement", Place(shown, line), message, theorem=name)
            continue
        now, now_exact = report.statements[name]
        if (now, now_exact) == (text, exact):
            continue
        detail = "only implicit arguments or instances differ" if now == text else f"it says now:\n{now}"
        message = f"the statement of {name} is not the reviewed one ({shown}:{line}); {detail}"
        report.add("statement", place(name), message, theorem=name)
    for name in sorted(set(report.statements) - set(reviewed)):
        message = f"the public theorem {name} is not in {shown}: review it, then run with --update-statements"
        report.add("statement", place(name), message, theorem=name)


# ---- the audit ----


def audit(
    root: Path, *, statements: Path | None = None, check_statements: bool = True, say: Say = lambda text: None
) -> Report:
    """Audit a package.

    Args:
        root: the package's folder.
        statements: the reviewed statements; the package's own file if None.
        check_statements: whether to hold the public theorems against them.
        say: told what is being done.

    Raises:
        UnusableInput: the folder is no package, or there are no reviewed statements to compare with.
        ToolchainUnavailable: there is no usable Lean.
    """
    began = time.monotonic()
    root = root.absolute()
    if not (root / "lakefile.lean").is_file() or not (root / "LeanGuard").is_dir():
        raise UnusableInput(f"{root}: expected a LeanGuard package, with lakefile.lean and a folder LeanGuard")
    file = statements or root / STATEMENTS
    if check_statements and not file.is_file():
        raise UnusableInput(f"{file}: there is no such file; it holds the reviewed statements of the public theorems")
    report = Report(str(root))
    package = read_package(root, report)
    for module in package.modules:
        if is_policy(root, module):
            check_policy_text(report, package.shown(module.name), module.source.decode(), module.imports)
    try:
        with compiled(package, report, say) as built:
            report.toolchain = built.toolchain
            report.modules = len(built.modules)
            say(f"checking {len(built.modules)} modules again with the kernel")
            answer = ask(package, built)
        facts = Facts(package, answer)
        report.core_proofs = bool(answer["core_proofs"])
        report.declarations = len(facts.constants)
        report.statements = {s["name"]: (s["text"], digest(s["explicit"])) for s in answer["statements"]}
        if not report.core_proofs:
            report.notes.append(PORTABLE_NOTE)
        judge(report, facts)
        if check_statements:
            judge_statements(report, facts, file)
    except ToolchainUnavailable:
        raise
    except LeanUnavailable as error:
        report.add("incomplete", Place("lakefile.lean"), str(error))
    except (KeyError, TypeError, IndexError, ValueError) as error:
        report.add("incomplete", Place("lakefile.lean"), f"the report is malformed: {type(error).__name__}: {error}")
    report.theorems.sort()
    report.findings.sort(key=lambda f: (f.place.file, f.place.line, f.place.column, f.rule, f.message))
    report.seconds = time.monotonic() - began
    return report


# ---- output ----


def as_text(report: Report) -> str:
    """The report for people."""
    lines = [str(finding) for finding in report.findings]
    lines += [f"note: {note}" for note in report.notes]
    number = len(report.findings)
    count = "nothing found" if not number else f"{number} finding{'' if number == 1 else 's'}"
    lines.append(
        f"{count}: {report.modules} modules, {report.declarations} declarations, {len(report.theorems)} theorems "
        f"({len(report.statements)} public statements); core axioms seen: {', '.join(report.axioms) or 'none'}; "
        f"{report.toolchain}; {report.seconds:.0f} s"
    )
    return "\n".join(lines)


def as_json(report: Report) -> str:
    """The report as one JSON object."""
    return json.dumps(
        {
            "ok": not report.findings,
            "package": report.package,
            "toolchain": report.toolchain,
            "core_proofs": report.core_proofs,
            "modules": report.modules,
            "declarations": report.declarations,
            "theorems": report.theorems,
            "statements": {name: text for name, (text, _) in sorted(report.statements.items())},
            "core_axioms": report.axioms,
            "notes": report.notes,
            "findings": [asdict(finding) for finding in report.findings],
            "seconds": round(report.seconds, 1),
        },
        indent=1,
        ensure_ascii=False,
    )


def as_sarif(report: Report) -> str:
    """The report in the Static Analysis Results Interchange Format, version 2.1.0."""

    def location(place: Place) -> dict[str, Any]:
        return {
            "physicalLocation": {
                "artifactLocation": {"uri": place.file, "uriBaseId": "PACKAGE"},
                "region": {"startLine": place.line, "startColumn": place.column + 1},
            }
        }

    def result(finding: Finding) -> dict[str, Any]:
        found: dict[str, Any] = {
            "ruleId": finding.rule,
            "ruleIndex": list(RULES).index(finding.rule),
            "level": "error",
            "message": {"text": finding.message},
            "locations": [location(finding.place)],
        }
        if len(finding.path) > 1:
            steps = [
                {"location": location(s.place or finding.place) | {"message": {"text": s.name}}} for s in finding.path
            ]
            found["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
        return found

    driver = {
        "name": "leanguard verify",
        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in RULES.items()],
    }
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {"PACKAGE": {"uri": Path(report.package).as_uri() + "/"}},
        "columnKind": "unicodeCodePoints",
        "results": [result(finding) for finding in report.findings],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [{"level": "note", "message": {"text": note}} for note in report.notes],
            }
        ],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False)


def run_verify(
    format: Literal["text", "json"] = "text",  # noqa: A002 - the option's name
    *,
    package: Path | None = None,
    sarif: Path | None = None,
    statements: Path | None = None,
    update_statements: bool = False,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> int:
    """Audit a package and print the report.

    Args:
        format: what to print on `out`.
        package: the package; the one that this code belongs to if None.
        sarif: a file to write the report to in SARIF, besides.
        statements: the reviewed statements; the package's own file if None.
        update_statements: write the statements as they are now, in place of comparing them.
        out: where the report goes; standard output if None.
        err: where progress and problems go; standard error if None.

    Returns:
        0 nothing found, 1 findings, 2 unusable input, 3 no usable Lean.
    """
    output, errors = out or sys.stdout, err or sys.stderr
    terminal = errors.isatty()

    def say(text: str) -> None:
        if terminal:
            print(f"verify: {text}", file=errors, flush=True)

    try:
        root = package if package is not None else own_root()
        report = audit(root, statements=statements, check_statements=not update_statements, say=say)
        if update_statements:
            file = statements or root / STATEMENTS
            if not report.statements:
                print(as_text(report), file=output)
                raise UnusableInput(f"{file}: not written, since there are no public theorems to write")
            file.write_text(format_statements(report.statements), encoding="utf-8")
            print(f"{file}: {len(report.statements)} statements written", file=errors)
        if sarif is not None:
            sarif.parent.mkdir(parents=True, exist_ok=True)
            sarif.write_text(as_sarif(report), encoding="utf-8")
    except ToolchainUnavailable as error:
        print(f"verify: {error}", file=errors)
        return 3
    except (UnusableInput, OSError) as error:
        print(f"verify: {error}", file=errors)
        return 2
    print(as_json(report) if format == "json" else as_text(report), file=output)
    return 1 if report.findings else 0
