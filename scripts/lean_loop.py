"""The fast inner loop for writing Lean on the portable toolchain: a warm builder, which answers within a second.

The first command starts a background process (about 5 s); later ones reuse it, until it has been idle for 30 minutes.

  lean_loop.py check LeanGuard/Spec/Rule.lean   elaborate one file; what it imports is built first, if need be
  lean_loop.py check Scratch.lean --as Scratch  any file, also outside the package
  lean_loop.py build                            compile what a build of the package makes
  lean_loop.py build LeanGuard.Spec.Rule        one module and what it needs
  lean_loop.py dependents LeanGuard.Spec.Rule   which modules a change would touch
  lean_loop.py stop                             end the background process

Messages are printed as FILE:LINE:COLUMN: SEVERITY: TEXT. Exit code 0: no errors; 1: errors; 2: the loop itself failed.
Requests to one background process are served one after another. Use --session NAME for a process of your own (1 to 2 GB
of memory each), so that nobody waits for anybody; compiled modules are shared all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
with contextlib.suppress(ImportError):
    sys.path.insert(0, str(HERE.parents[1] / "python"))

from leanguard_host.lean import modules  # noqa: E402
from leanguard_host.lean.compile import Store, content_keys, fill_tree, tree_key  # noqa: E402
from leanguard_host.lean.errors import BuildFailed, LeanUnavailable  # noqa: E402
from leanguard_host.lean.paths import cache_dir, package_root  # noqa: E402
from leanguard_host.lean.portable.bootstrap import ensure_builder, toolchain_key  # noqa: E402
from leanguard_host.lean.portable.builder import Builder  # noqa: E402

IDLE_SECONDS = 1800
Say = Callable[[str], None]


class Loop:
    """Serves requests with one warm builder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._install, folder = ensure_builder()
        self._builder = Builder(self._install, folder)
        self._store = Store()
        self._trees = tempfile.TemporaryDirectory(prefix="loop-", dir=cache_dir(), ignore_cleanup_errors=True)

    def close(self) -> None:
        """Stop the builder."""
        self._builder.close()
        self._trees.cleanup()

    def _tree(self, targets: list[str], say: Say) -> tuple[Path, bool]:
        """A tree with the targets and all they need, built; and whether importing them runs initializers."""
        ordered = modules.in_order(self._root, modules.load(self._root, targets))
        keys = content_keys(toolchain_key(self._install), ordered)
        tree = Path(self._trees.name, tree_key(keys, [module.name for module in ordered]))

        def progress(module: str, done: int, total: int) -> None:
            if module:
                say(f"[{done + 1}/{total}] {module}")

        outcome = fill_tree(self._root, tree, ordered, keys, self._store, self._builder, progress)
        for message in outcome.messages:
            say(str(message))
        initializers = modules.needing_initializers([*ordered, modules.Module("", self._root, b"", tuple(targets))])
        return tree, "" in initializers

    def build(self, targets: list[str], say: Say) -> bool:
        """Compile the targets and what they need."""
        began = time.monotonic()
        self._tree(targets or modules.default_targets(self._root), say)
        say(f"built in {time.monotonic() - began:.1f} s")
        return True

    def check(self, file: Path, name: str | None, say: Say) -> bool:
        """Elaborate one file."""
        inside = file.is_relative_to(self._root)
        module = name or (modules.module_name(self._root, file) if inside else file.stem)
        shown = file.relative_to(self._root).as_posix() if inside else str(file)
        source = file.read_text(encoding="utf-8")
        imports = modules.parse_imports(source)
        tree, initializers = self._tree([each for each in imports if not modules.is_core(each)], say)
        keep = hashlib.sha256("\n".join([tree.name, *imports]).encode()).hexdigest()
        answer = self._builder.compile(module, source, shown, [tree], None, keep, initializers=initializers)
        for message in answer.messages:
            say(str(message))
        verdict = "ok" if answer.ok else "failed"
        say(f"{verdict}: {shown} in {answer.ms / 1000:.2f} s (imports {answer.import_ms / 1000:.2f} s)")
        return answer.ok

    def answer(self, request: dict[str, Any], say: Say) -> int:
        """Serve one request; returns the exit code."""
        try:
            if request["command"] == "check":
                return 0 if self.check(Path(request["file"]), request["as"], say) else 1
            return 0 if self.build(request["modules"], say) else 1
        except BuildFailed as error:
            for message in error.messages:
                say(str(message))
            return 1
        except (LeanUnavailable, OSError, ValueError) as error:
            say(f"lean_loop: {type(error).__name__}: {error}")
            return 2


def socket_path(root: Path, session: str) -> Path:
    """Where the background process of a session listens: short, since socket paths may not be long."""
    name = hashlib.sha256(f"{root}\n{session}\n{code_key()}".encode()).hexdigest()[:16]
    return cache_dir() / f"loop-{name}.sock"


def code_key() -> str:
    """Changes when this program or the code it uses changes, so that an old background process is not used any more."""
    digest = hashlib.sha256(HERE.read_bytes())
    folder = HERE.parents[1] / "python" / "leanguard_host" / "lean"
    for file in (*sorted(folder.glob("*.py")), *sorted((folder / "portable").glob("*"))):
        if file.is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()


def serve(root: Path, path: Path) -> None:
    """Be the background process."""
    loop = Loop(root)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        path.chmod(0o600)
        server.listen(64)
        server.settimeout(15)
        key, used = code_key(), time.monotonic()
        try:
            while True:
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    if time.monotonic() - used > IDLE_SECONDS or code_key() != key:
                        return  # nobody needs it, or nobody can find it any more
                    continue
                with connection, connection.makefile("rw", encoding="utf-8", buffering=1) as stream:
                    connection.settimeout(None)
                    request = json.loads(stream.readline() or "null")
                    if request is None:
                        continue
                    if request["command"] == "stop":
                        return

                    def say(text: str, stream: Any = stream) -> None:
                        with contextlib.suppress(OSError):
                            stream.write(json.dumps({"say": text}) + "\n")

                    code = loop.answer(request, say)
                    with contextlib.suppress(OSError):
                        stream.write(json.dumps({"exit": code}) + "\n")
                used = time.monotonic()
        finally:
            path.unlink(missing_ok=True)
            loop.close()


def connect(path: Path) -> socket.socket | None:
    """A connection to the background process, if there is one."""
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(str(path))
    except OSError:
        client.close()
        return None
    return client


def start(root: Path, path: Path) -> socket.socket:
    """Start the background process and connect to it."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if client := connect(path):
            return client
        log = path.with_suffix(".log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, str(HERE), "serve", str(root), str(path)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        while process.poll() is None:
            if client := connect(path):
                return client
            time.sleep(0.1)
    sys.exit(f"lean_loop: the background process ended: {log.read_text(errors='replace')[-2000:]}")


def request_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What to send to the background process."""
    if arguments.command == "check":
        file = Path(os.path.abspath(arguments.file))  # noqa: PTH100 - links stay as they are
        if not file.is_file():
            sys.exit(f"lean_loop: {arguments.file} is not a file")
        return {"command": "check", "file": str(file), "as": arguments.name}
    return {"command": arguments.command, "modules": getattr(arguments, "modules", [])}


def show_dependents(root: Path, module: str) -> int:
    """Print the modules that depend on a module."""
    known = modules.load(root, modules.all_modules(root))
    if module not in known:
        print(f"there is no module {module}", file=sys.stderr)
        return 1
    print("\n".join(modules.dependents(known, module)))
    return 0


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--session", default="main", metavar="NAME", help="use a background process of that name")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser("check", parents=[common], help="elaborate one file and print its messages")
    check.add_argument("file")
    check.add_argument("--as", dest="name", metavar="MODULE", help="the module name to give it")
    build = commands.add_parser(
        "build", parents=[common], help="compile modules (if none is named, the package) and what they need"
    )
    build.add_argument("modules", nargs="*", metavar="MODULE")
    needing = commands.add_parser("dependents", parents=[common], help="list the modules that depend on one")
    needing.add_argument("module", metavar="MODULE")
    commands.add_parser("stop", parents=[common], help="end the background process")
    server = commands.add_parser("serve")
    server.add_argument("root", type=Path)
    server.add_argument("path", type=Path)
    arguments = parser.parse_args()

    if arguments.command == "serve":
        serve(arguments.root, arguments.path)
        return 0
    root = package_root()
    if arguments.command == "dependents":
        return show_dependents(root, arguments.module)
    path = socket_path(root, arguments.session)
    request = request_of(arguments)
    client = connect(path) if arguments.command == "stop" else connect(path) or start(root, path)
    if client is None:
        return 0
    with client, client.makefile("rw", encoding="utf-8", buffering=1) as stream:
        stream.write(json.dumps(request) + "\n")
        for line in stream:
            answer = json.loads(line)
            if "exit" in answer:
                return int(answer["exit"])
            print(answer["say"], flush=True)
    return 0 if arguments.command == "stop" else 2


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BuildFailed as error:
        sys.exit(f"{error}")
    except LeanUnavailable as error:
        print(f"lean_loop: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
