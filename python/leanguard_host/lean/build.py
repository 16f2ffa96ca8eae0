"""Building the Lean package, on either toolchain."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock

from leanguard_host.lean import compile as compiling
from leanguard_host.lean.compile import BuildProgress, Store, content_keys, fill_tree, silent, tree_key
from leanguard_host.lean.errors import BuildFailed, LeanUnavailable, Message
from leanguard_host.lean.modules import Module, default_targets, in_order, load
from leanguard_host.lean.paths import cache_dir, package_root
from leanguard_host.lean.portable.builder import Builder
from leanguard_host.lean.portable.standin import PATH_FILE, is_our_launcher, write_launcher
from leanguard_host.lean.toolchain import Toolchain

PROGRAM = "Repl"
REPL = Path(".lake", "build", "bin", "repl")  # where lean-interact looks for the program
_STAMP = "build.json"
_BUILDS_KEPT = 8
_STORE_BYTES = 1_000_000_000
_LAKE_SECONDS = 3600
_LAKE_OTHER = re.compile(r"^(?:[\u2714\u2716\u26a0\u2139]|trace: |error: |warning: |info: |Some required|- )")
_LAKE_MESSAGE = re.compile(r"^(error|warning|info): (?:\./)*([^\s:][^:\n]*\.lean):(\d+):(\d+): ?(.*)$")


@dataclass(frozen=True)
class BuildResult:
    """A built package.

    Attributes:
        root: the package.
        toolchain: what built it.
        repl_root: the folder to give to lean-interact as `local_repl_path`.
        lean_path: the folders with the compiled modules.
        keys: for each module a digest of its source and of all that it imports, the same on every toolchain.
        messages: the compiler's warnings and infos about the modules that were compiled just now.
        compiled: how many modules were compiled just now.
        cached: how many were there before.
        seconds: how long it took.
    """

    root: Path
    toolchain: Toolchain
    repl_root: Path
    lean_path: tuple[Path, ...]
    keys: Mapping[str, str]
    messages: Sequence[Message] = field(default=())
    compiled: int = 0
    cached: int = 0
    seconds: float = 0.0

    @property
    def launcher(self) -> Path:
        """The program: a native one, or on the portable toolchain a script."""
        return self.repl_root / REPL


def build(
    toolchain: Toolchain,
    *,
    root: Path | None = None,
    targets: Iterable[str] | None = None,
    progress: BuildProgress = silent,
) -> BuildResult:
    """Build the package, as far as it changed. Costs a few hundredths of a second when nothing did.

    Args:
        toolchain: what to build with.
        root: the package; the one that belongs to this code if None.
        targets: module names; the whole package if None.
        progress: told how it gets on.

    Raises:
        BuildFailed: it does not compile; tells every error as FILE:LINE:COLUMN.
        LeanUnavailable: the compiler does not run.
    """
    began = time.monotonic()
    root = root or package_root()
    wanted = default_targets(root) if targets is None else list(targets)
    modules = in_order(root, load(root, wanted))
    make = _build_portable if toolchain.kind == "portable" else _build_official
    result = make(toolchain, root, modules, targets is None, progress)
    seconds = time.monotonic() - began
    return replace(result, seconds=seconds)


# ---- portable ----


def _build_portable(
    toolchain: Toolchain, root: Path, modules: list[Module], whole: bool, progress: BuildProgress
) -> BuildResult:
    install, builder_folder = toolchain.install, toolchain.builder
    if install is None or builder_folder is None:
        raise LeanUnavailable("the portable toolchain is not installed")
    keys = content_keys(toolchain.key, modules)
    folder = cache_dir() / "builds" / tree_key(keys, [module.name for module in modules])
    outcome = compiling.Outcome(cached=len(modules))
    if not (folder / _STAMP).is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        mark = f".staging-{hashlib.sha256(str(root).encode()).hexdigest()[:16]}-"
        with FileLock(folder.parent / f"{mark}lock"):  # two builds of a package at once would compile everything twice
            if not (folder / _STAMP).is_file():
                for stale in folder.parent.glob(f"{mark}*/"):  # ours alone while we hold the lock
                    shutil.rmtree(stale, ignore_errors=True)
                staging = Path(tempfile.mkdtemp(prefix=mark, dir=folder.parent))
                try:
                    with Builder(install, builder_folder) as builder:
                        outcome = fill_tree(root, staging / "lib", modules, keys, Store(), builder, progress)
                    _finish_tree(root, staging, folder, keys)
                finally:
                    shutil.rmtree(staging, ignore_errors=True)
                _prune(folder)
    else:
        (folder / _STAMP).touch()  # recently used
    tree = folder / "lib"
    if any(module.name == PROGRAM for module in modules):
        write_launcher(folder / REPL, install, PROGRAM, [tree])
        _show_in_package(root, folder, tree)
    return BuildResult(
        root=root,
        toolchain=toolchain,
        repl_root=folder,
        lean_path=(tree,),
        keys=content_keys("", modules),
        messages=tuple(outcome.messages),
        compiled=len(outcome.compiled),
        cached=outcome.cached,
    )


def _finish_tree(root: Path, staging: Path, folder: Path, keys: Mapping[str, str]) -> None:
    """Turn a staging folder into the build; another package with the same content may have been faster."""
    shutil.copyfile(root / "lean-toolchain", staging / "lean-toolchain")  # lean-interact reads it
    stamp = {"root": str(root), "modules": dict(keys)}
    (staging / _STAMP).write_text(json.dumps(stamp, indent=1), encoding="utf-8")
    staging.chmod(0o755)
    if not (folder / _STAMP).is_file():
        shutil.rmtree(folder, ignore_errors=True)  # one that was being pruned
    try:
        staging.rename(folder)
    except OSError:
        if not (folder / _STAMP).is_file():
            raise


def _show_in_package(root: Path, folder: Path, tree: Path) -> None:
    """Make `lake env .lake/build/bin/repl` in the package's own folder work too; never in place of a native program."""
    program = root / REPL
    if program.exists() and not is_our_launcher(program):
        return
    try:
        (root / PATH_FILE).parent.mkdir(parents=True, exist_ok=True)
        (root / PATH_FILE).write_text(f"{tree}\n", encoding="utf-8")
        if not program.exists() or program.read_bytes() != (folder / REPL).read_bytes():
            program.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / REPL, program)
    except OSError:
        pass  # a read-only package: our own code does not need it


def _prune(current: Path) -> None:
    """Forget the builds and compiled modules that were used longest ago."""
    builds = sorted(current.parent.glob(f"*/{_STAMP}"), key=lambda stamp: stamp.stat().st_mtime, reverse=True)
    for stamp in builds[_BUILDS_KEPT:]:
        if stamp.parent != current and time.time() - stamp.stat().st_mtime > 86400:  # a program may be running from it
            stamp.unlink(missing_ok=True)  # first: half a build must not pass for a whole one
            shutil.rmtree(stamp.parent, ignore_errors=True)
    Store().prune(_STORE_BYTES)


# ---- official ----


def _build_official(
    toolchain: Toolchain, root: Path, modules: list[Module], whole: bool, progress: BuildProgress
) -> BuildResult:
    keys = content_keys("", modules)
    folder = _writable(root, keys)
    stamp = folder / ".lake" / "leanguard" / _STAMP
    fact = _official_fact(toolchain, folder, root, keys)
    messages: list[Message] = []
    done = whole and fact is not None and _read(stamp) == fact
    if not done:
        _drop_launcher(folder)
        progress("lake build", 0, 1)
        targets = [] if whole else [module.name for module in modules]
        messages = _run_lake(toolchain, folder, targets)
        progress("", 1, 1)
        if whole and not (folder / REPL).is_file():
            raise BuildFailed(
                [*messages, Message("error", "lakefile.lean", 1, 0, "`lake build` made no program `repl`")]
            )
        if whole:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.write_text(_official_fact(toolchain, folder, root, keys) or "", encoding="utf-8")
    return BuildResult(
        root=folder,
        toolchain=toolchain,
        repl_root=folder,
        lean_path=(folder / ".lake" / "build" / "lib" / "lean",),
        keys=keys,
        messages=tuple(messages),
        compiled=0 if done else len(modules),
        cached=len(modules) if done else 0,
    )


def _writable(root: Path, keys: Mapping[str, str]) -> Path:
    """The package itself if lake can write into it, else a copy in the cache."""
    try:
        (root / ".lake").mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=root / ".lake"):
            return root
    except OSError:
        folder = cache_dir() / "builds" / f"copy-{tree_key(keys, keys)}"
        shutil.copytree(root, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".lake"))
        return folder


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return None


def _official_fact(toolchain: Toolchain, folder: Path, root: Path, keys: Mapping[str, str]) -> str | None:
    """What must be the same for the built program to be up to date; None if there is no program."""
    program = folder / REPL
    if not program.is_file() or is_our_launcher(program):
        return None
    status = program.stat()
    lakefile = hashlib.sha256((root / "lakefile.lean").read_bytes()).hexdigest()
    return f"{toolchain.key} {tree_key(keys, keys)} {lakefile} {status.st_size} {status.st_mtime_ns}\n"


def _drop_launcher(folder: Path) -> None:
    """Remove the portable build's launcher, with what lake may remember about it, so that lake builds the program."""
    program = folder / REPL
    if is_our_launcher(program):
        for file in (program, *program.parent.glob("repl.*")):
            file.unlink(missing_ok=True)


def parse_lake_output(output: str) -> list[Message]:
    """The messages in what `lake build` printed."""
    messages: list[Message] = []
    text: list[str] = []
    for line in output.splitlines():
        if match := _LAKE_MESSAGE.match(line):
            severity, file, row, column, first = match.groups()
            messages.append(Message(severity, file, int(row), int(column), first))
            text = [first]
        elif messages and text and not _LAKE_OTHER.match(line):
            text.append(line)
            messages[-1] = replace(messages[-1], text="\n".join(text).rstrip())
        else:
            text = []
    return messages


def _run_lake(toolchain: Toolchain, folder: Path, targets: list[str]) -> list[Message]:
    command = [str(toolchain.lake), "build", *targets]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_LAKE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LeanUnavailable(f"`lake build` could not be run: {error}") from error
    messages = parse_lake_output(done.stdout)
    if done.returncode != 0:
        if not any(message.severity == "error" for message in messages):
            text = f"`lake build` failed: {done.stdout.strip()[-4000:]}"
            messages.append(Message("error", "lakefile.lean", 1, 0, text))
        raise BuildFailed(messages)
    return messages
