"""Compiling modules on the portable toolchain, incrementally: only what changed, by content, and what depends on it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from leanguard_host.lean.errors import BuildFailed, Message
from leanguard_host.lean.modules import Module, needing_initializers
from leanguard_host.lean.paths import cache_dir
from leanguard_host.lean.portable.builder import Builder


class BuildProgress(Protocol):
    """Told before each module that is compiled, and once at the end."""

    def __call__(self, module: str, done: int, total: int) -> None:
        """`done` of `total` modules are built, `module` is next ("" at the end)."""


def silent(module: str, done: int, total: int) -> None:
    """A BuildProgress that says nothing."""


def content_keys(toolchain: str, ordered: Sequence[Module]) -> dict[str, str]:
    """For each module a key of everything that its compiled form depends on: toolchain, name, source, imports' keys."""
    keys: dict[str, str] = {}
    for module in ordered:
        digest = hashlib.sha256()
        for part in (toolchain.encode(), module.name.encode(), module.source):
            digest.update(len(part).to_bytes(8, "big") + part)
        for imported in module.imports:
            digest.update(keys.get(imported, f"core {imported}").encode() + b"\0")
        keys[module.name] = digest.hexdigest()
    return keys


@dataclass
class Store:
    """Compiled modules by content key."""

    folder: Path = field(default_factory=lambda: cache_dir() / "oleans")

    def path(self, key: str) -> Path:
        """Where the module with this key is or will be."""
        return self.folder / key[:2] / f"{key}.olean"

    def link(self, key: str, target: Path) -> bool:
        """Put a module at a place, by a hard link where possible. False if the store lacks it."""
        source = self.path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except FileExistsError:
            pass
        except FileNotFoundError:
            return False
        except OSError:  # no hard links here, or another file system
            shutil.copyfile(source, target)
        with contextlib.suppress(OSError):
            os.utime(source)  # recently used
        return True

    def add(self, key: str, file: Path) -> None:
        """Take a module in. Other processes see it whole or not at all."""
        target = self.path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".new-")
        os.close(handle)
        try:
            shutil.copyfile(file, name)
            Path(name).chmod(0o644)
            Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)

    def prune(self, limit: int) -> None:
        """Delete the modules that were used longest ago until the rest takes no more than `limit` bytes."""
        files = []
        for file in self.folder.glob("*/*"):
            with contextlib.suppress(OSError):
                status = file.stat()
                files.append((status.st_mtime, status.st_size, file))
        total = 0
        for _, size, file in sorted(files, reverse=True, key=lambda each: each[0]):
            total += size
            if total > limit:
                file.unlink(missing_ok=True)


def olean_path(tree: Path, module: str) -> Path:
    """The place of a compiled module in a tree that Lean searches."""
    return tree.joinpath(*module.split(".")).with_suffix(".olean")


@dataclass
class Outcome:
    """What compiling did."""

    compiled: list[str] = field(default_factory=list)
    cached: int = 0
    messages: list[Message] = field(default_factory=list)


def fill_tree(
    root: Path,
    tree: Path,
    ordered: Sequence[Module],
    keys: Mapping[str, str],
    store: Store,
    builder: Builder,
    progress: BuildProgress = silent,
) -> Outcome:
    """Lay out the compiled modules in a tree, compiling those that the store lacks.

    A module whose imports failed is left out, every other one is tried, so that one run shows all errors.

    Raises:
        BuildFailed: some did not compile.
    """
    outcome = Outcome()
    failed: set[str] = set()
    missing = [module for module in ordered if not store.link(keys[module.name], olean_path(tree, module.name))]
    outcome.cached = len(ordered) - len(missing)
    initialized = needing_initializers(ordered)
    for done, module in enumerate(missing):
        if failed.intersection(module.imports):
            failed.add(module.name)
            continue
        progress(module.name, done, len(missing))
        target = olean_path(tree, module.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shown = module.file.relative_to(root).as_posix()
        answer = builder.compile(
            module.name, module.source.decode(), shown, [tree], target, initializers=module.name in initialized
        )
        outcome.messages += answer.messages
        if not answer.ok:
            failed.add(module.name)
        else:
            store.add(keys[module.name], target)
            outcome.compiled.append(module.name)
    progress("", len(missing), len(missing))
    if failed:
        raise BuildFailed(outcome.messages)
    return outcome


def tree_key(keys: Mapping[str, str], names: Iterable[str]) -> str:
    """Names a tree by what it holds."""
    text = "\n".join(f"{name} {keys[name]}" for name in sorted(names))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
