"""What a replay has decided so far, in a file of its own, so that an interrupted one goes on where it stopped.

JSON Lines: the first says what is replayed, each other has the decisions of one episode. Lines are only ever added. A
line that was cut, as a killed process leaves it, is dropped; any other that can't be read is an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from leanguard_host import __version__
from leanguard_host.adapters.tau2.episodes import episode_files
from leanguard_host.jsonfiles import InputError
from leanguard_host.replay.summary import Decided

_FORMAT = "leanguard replay 1"
_OTHER = {
    "leanguard": "another version of LeanGuard",
    "policy": "another policy",
    "policy_digest": "a policy that was changed since, or other rules of it",
    "episodes": "other episodes",
    "count": "other episodes",
    "data": "another database",
    "assume_consent": "the other answer to --assume-consent",
}


@dataclass(frozen=True)
class Run:
    """What is replayed; only the same may go on from a file."""

    policy: str
    policy_digest: str
    episodes: str
    """The digest of their files."""
    data: str
    """The digest of the database."""
    assume_consent: bool
    count: int
    """How many episodes there are."""

    def header(self) -> dict[str, Any]:
        """The first line of the file."""
        return {"format": _FORMAT, "leanguard": __version__, **asdict(self)}


def episodes_digest(path: Path) -> str:
    """A name for the content of an episode file, or of the files of a folder.

    Raises:
        OSError: they can't be read.
    """
    whole = hashlib.sha256()
    for file in episode_files(path):
        name = file.relative_to(path).as_posix() if path.is_dir() else ""
        whole.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{whole.hexdigest()}"


class Kept:
    """The file of one replay, held by one process at a time. To be used in a `with` statement.

    Attributes:
        decided: the decisions of each episode that the file had when it was opened, by the episode's number.

    Args:
        path: the file; made if there is none.
        run: what is replayed.
        strict: whether a file of another replay is an error; else it is begun anew.
    """

    def __init__(self, path: Path, run: Run, *, strict: bool = True) -> None:
        self.path, self.run, self.strict = path, run, strict
        self.decided: dict[int, list[Decided]] = {}

    def __enter__(self) -> Self:
        """Open the file and read what it has.

        Raises:
            InputError: it is another replay's, is damaged, or another process holds it.
            OSError: it can't be written.
        """
        import fcntl

        self._file = self.path.open("ab+", buffering=0)  # each line is one write
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self._wrong("a file that no other replay is writing", "one in use") from None
            self._read()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, number: int, decisions: list[Decided]) -> None:
        """Keep the decisions of an episode.

        Raises:
            OSError: the file can't be written.
        """
        content = [asdict(decided) for decided in decisions]
        self._write({"episode": number, "digest": _digest(content), "decisions": content})

    def _write(self, line: dict[str, Any]) -> None:
        data = _line(line)
        while data:
            data = data[self._file.write(data) :]

    def _wrong(self, expected: str, found: str, line: int | None = None) -> InputError:
        return InputError(str(self.path), expected, found, line=line)

    def _read(self) -> None:
        self._file.seek(0)
        *whole, cut = self._file.read().split(b"\n")
        header = self.run.header()
        if not whole:
            # Only a header that was cut may be overwritten: a file given by mistake is left alone.
            if not _line(header).startswith(cut):
                raise self._wrong("the file of a replay", "something else", 1)
            self._begin()
            return
        if difference := self._difference(whole[0]):
            if self.strict:
                raise self._wrong("the file of a replay of the same", difference)
            self._begin()
            return
        for number, line in enumerate(whole[1:], 2):
            if not self._take(line):
                if number == len(whole) and not cut:  # a machine that stopped may leave such an end as well
                    cut = line + b"\n"
                    break
                raise self._wrong("the decisions of an episode", "something else", number)
        if cut:
            self._file.truncate(self._file.seek(0, 2) - len(cut))

    def _begin(self) -> None:
        self._file.truncate(0)
        self._write(self.run.header())

    def _difference(self, line: bytes) -> str | None:
        """What the first line is of, if not of this replay.

        Raises:
            InputError: it is not the first line of a replay's file.
        """
        found: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(line)
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise self._wrong("the file of a replay", "something else", 1)
        ours = self.run.header()
        return next((words for name, words in _OTHER.items() if found.get(name) != ours[name]), None)

    def _take(self, line: bytes) -> bool:
        """Read the decisions of an episode; whether the line has them as they were written."""
        try:
            found = json.loads(line)
            number, content = found["episode"], found["decisions"]
            if type(number) is not int or not 0 <= number < self.run.count or found["digest"] != _digest(content):
                return False
            self.decided[number] = [Decided(**decided) for decided in content]
        except (ValueError, RecursionError, KeyError, TypeError):
            return False
        return True


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _digest(content: Iterable[Any]) -> str:
    names = [field.name for field in fields(Decided)]
    text = json.dumps([names, content], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
