"""The command line's way to the background process. Imports little: this is most of what `leanguard check` does.

The process listens on a Unix socket in a folder that only its user may enter. The socket's name is made of everything
that the decisions depend on, so a changed policy, toolchain or LeanGuard gets another process, and the old one ends by
itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from leanguard_host import __version__
from leanguard_host.lean.paths import cache_dir, package_root

if TYPE_CHECKING:
    from leanguard_host.engine import Reporter

PROTOCOL = 1
LONGEST_PATH = 100
"""Most bytes of a socket's path. The limit is 108 on Linux and 104 on macOS."""

_DECIDING = (
    "client",
    "daemon",
    "engine",
    "feedback",
    "inputs",
    "jsonfiles",
    "models",
    "proving",
    "wire",
)  # what the process runs

START_SECONDS = 180.0
_ANSWER_SECONDS = 150.0
_GREETING_SECONDS = 5.0
_FORGOTTEN_SECONDS = 7 * 86400


class DaemonError(Exception):
    """The background process could not be started, or is not in order. Nothing was asked."""


class DaemonLostError(Exception):
    """The background process went away or kept silent after it was asked."""


def run_dir() -> Path:
    """The folder of the sockets, made if need be: in the cache, or if that path is too long in the temporary folder.

    Raises:
        DaemonError: it can't be made, or others may enter it.
    """
    folder = cache_dir() / "run"
    if len(os.fsencode(folder)) + 25 > LONGEST_PATH:
        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"leanguard-{os.getuid()}-{name}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise DaemonError(f"{folder} is not a folder of this user's")
        if status.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise DaemonError(f"the folder {folder} can't be made: {error}") from error
    return folder


def family() -> str:
    """Names the package and the settings: of the processes with the same family only the newest is of use."""
    settings = [str(package_root()), _wanted_toolchain(), os.environ.get("LEANGUARD_IDLE_SECONDS", "")]
    return hashlib.sha256("\0".join(settings).encode(errors="surrogateescape")).hexdigest()[:16]


def fingerprint() -> str:
    """Names everything that a decision depends on: sources, toolchain, LeanGuard itself, settings."""
    root = package_root()
    digest = hashlib.sha256()
    facts = [__version__, family(), str(cache_dir()), os.environ.get("ELAN_HOME", "")]
    facts += [str(shutil.which("lean")), str(shutil.which("elan"))]
    here = Path(__file__).parent
    for python in sorted([*(here / f"{name}.py" for name in _DECIDING), *(here / "lean").rglob("*.py")]):
        status = python.stat()
        facts.append(f"{python} {status.st_size} {status.st_mtime_ns}")
    for fact in facts:
        digest.update(fact.encode(errors="surrogateescape") + b"\0")
    sources = [root / name for name in ("Repl.lean", "LeanGuard.lean", "lakefile.lean", "lean-toolchain")]
    sources += [*sorted((root / "LeanGuard").rglob("*.lean")), *sorted((root / "policies").rglob("*.lean"))]
    for source in sources:
        with contextlib.suppress(FileNotFoundError):
            digest.update(f"{source}\0".encode(errors="surrogateescape") + hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()[:16]


def socket_path() -> Path:
    """Where the process for the present sources and settings listens."""
    return run_dir() / f"{fingerprint()}.sock"


class Connection:
    """A connection to the background process, greeted by it."""

    def __init__(self, path: Path) -> None:
        """Connect.

        Raises:
            OSError: nothing listens there.
            DaemonError: what listens does not greet as it should.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(_GREETING_SECONDS)
            self._socket.connect(str(path))
            self._file = self._socket.makefile("rb")
            line = self._file.readline()
            if not line:
                raise ConnectionResetError("it is about to end")
            try:
                self.greeting: dict[str, Any] = json.loads(line)
                if self.greeting["protocol"] != PROTOCOL:
                    raise ValueError("another protocol")
            except (ValueError, KeyError, TypeError) as error:
                raise DaemonError(f"what listens at {path} is no background process of this version") from error
        except BaseException:
            self._socket.close()
            raise

    def ask(self, request: Mapping[str, Any], timeout: float = 0.0) -> dict[str, Any]:
        """Put a request; returns its answer.

        Args:
            request: `op` and what it needs.
            timeout: how long Lean may take, in seconds. The process keeps to it; here it counts only if it hangs.

        Raises:
            DaemonLostError: there was no answer, or another one than asked for.
        """
        identity = os.urandom(8).hex()
        try:
            self._socket.settimeout(timeout + _ANSWER_SECONDS)
            self._socket.sendall(json.dumps({**request, "id": identity}).encode() + b"\n")
            line = self._file.readline()
            answer = json.loads(line) if line.endswith(b"\n") else None
        except OSError as error:
            raise DaemonLostError(f"the background process was lost: {error or type(error).__name__}") from error
        except ValueError as error:
            raise DaemonLostError("the background process answered something that is not JSON") from error
        if answer is None:
            raise DaemonLostError("the background process ended before it answered")
        if not isinstance(answer, dict) or answer.get("id") != identity:
            raise DaemonLostError("the background process answered another request")
        return answer

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def connect(path: Path | None = None) -> Connection | None:
    """A connection to the running process; None if none runs.

    Raises:
        DaemonError: something else listens there, or the folder is not ours.
    """
    try:
        return Connection(path or socket_path())
    except OSError:
        return None


@contextlib.contextmanager
def lock(file: Path, seconds: float) -> Iterator[bool]:
    """Hold a lock file; yields whether it was had in time. It is released when the process ends, however it ends."""
    import fcntl

    deadline = time.monotonic() + seconds
    with file.open("a") as held:
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    yield False
                    return
                time.sleep(0.05)
        yield True


def connect_or_start(reporter: Reporter) -> Connection:
    """A connection to the background process, started first if none runs. Lean must be installed, the package built.

    Raises:
        DaemonError: it can't be started; says why.
    """
    path = socket_path()
    if found := connect(path):
        return found
    try:
        with lock(path.with_suffix(".start"), START_SECONDS) as had:
            if found := connect(path):  # another command was faster
                return found
            if not had:
                raise DaemonError("another command has been starting the background process for too long")
            reporter.progress("starting Lean in the background", 0, 0)
            _clear_up()
            _start(path)
    except OSError as error:
        raise DaemonError(f"the background process can't be started: {error}") from error
    found = connect(path)
    if found is None:
        raise DaemonError("the background process ended right after its start")
    return found


def _environment() -> dict[str, str]:
    """Ours, with paths made absolute: the background process stands in another folder."""
    environment = {**os.environ, "LEANGUARD_CACHE_DIR": str(cache_dir()), "LEANGUARD_PACKAGE": str(package_root())}
    return {**environment, "LEANGUARD_TOOLCHAIN": _wanted_toolchain()}


def _wanted_toolchain() -> str:
    """The toolchain setting, a path made absolute."""
    setting = os.environ.get("LEANGUARD_TOOLCHAIN", "").strip()
    return setting if setting in ("", "official", "portable") else str(Path(setting).expanduser().absolute())


def _clear_up() -> None:
    """Ask the processes that ours takes the place of to end, and remove what ended ones left behind."""
    for path in running():
        try:
            connection = connect(path)
        except DaemonError:
            continue
        if connection is None:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _FORGOTTEN_SECONDS:
                    for file in path.parent.glob(f"{path.stem}.*"):
                        file.unlink(missing_ok=True)
            continue
        with connection, contextlib.suppress(DaemonLostError):
            if connection.greeting.get("family") == family():
                connection.ask({"op": "stop"})


def _start(path: Path) -> None:
    """Start the process and wait until it says that it is ready."""
    receiving, sending = os.pipe()
    try:
        with path.with_suffix(".log").open("wb") as log:
            subprocess.Popen(
                [sys.executable, "-m", "leanguard_host.daemon", str(path), str(sending)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=Path(__file__).parents[1],  # so that `-m` finds this code, however it was found here
                env=_environment(),
                pass_fds=[sending],
                start_new_session=True,
            )
        os.close(sending)
        sending = -1
        text = _read_until_closed(receiving)
    finally:
        os.close(receiving)
        if sending >= 0:
            os.close(sending)
    if text != "ready":
        end = path.with_suffix(".log").read_text(errors="replace").strip().splitlines()[-1:]
        raise DaemonError(text or f"the background process ended at once{': ' if end else ''}{''.join(end)[:400]}")


def _read_until_closed(descriptor: int) -> str:
    data, deadline = b"", time.monotonic() + START_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        if select.select([descriptor], [], [], left)[0]:
            more = os.read(descriptor, 4096)
            if not more:
                return data.decode(errors="replace").strip()
            data += more
    return f"the background process was not ready within {START_SECONDS:g} s"


def running() -> list[Path]:
    """The sockets in the folder, of processes that run or once ran."""
    return sorted(run_dir().glob("*.sock"))
