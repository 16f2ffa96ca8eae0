"""What can go wrong with a journal. Each error says where, what, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class JournalError(Exception):
    """The journal can't be used.

    Where it comes from `append` or a transaction, nothing may be dispatched on its account.

    Attributes:
        where: the file or address of the journal, without passwords.
        problem: what is wrong.
        remedy: what the user can do about it.
    """

    def __init__(self, where: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"The journal {where} {problem}.{' ' + remedy if remedy else ''}")
        self.where, self.problem, self.remedy = where, problem, remedy


class JournalBusyError(JournalError):
    """Another process or thread held the journal for longer than the timeout. Nothing was recorded."""


class JournalVersionError(JournalError):
    """The journal is of a version that this LeanGuard does not read or write.

    Attributes:
        version: the journal's.
    """

    def __init__(self, where: str, version: int, problem: str, remedy: str) -> None:
        super().__init__(where, problem, remedy)
        self.version = version


class JournalCorruptError(JournalError):
    """The file is damaged: the database can't read it."""


class JournalConflictError(JournalError):
    """The journal is longer than the decision knew. Nothing was recorded; read what is new and decide again.

    Attributes:
        expected: the length that the decision was made on.
        actual: the length that the journal has.
    """

    def __init__(self, where: str, expected: int, actual: int) -> None:
        super().__init__(
            where, f"has {actual} events, not {expected} as expected", "Read what is new and decide again."
        )
        self.expected, self.actual = expected, actual


Difference = Literal["changed", "dropped", "reordered", "inserted", "unreadable", "foreign"]


@dataclass(frozen=True)
class Finding:
    """The first event that is not as it was recorded.

    Attributes:
        position: which, counted from 0.
        difference: what happened to it.
        detail: how that shows.
    """

    position: int
    difference: Difference
    detail: str

    def __str__(self) -> str:
        return f"event {self.position} was {_WORDS[self.difference]}: {self.detail}"


_WORDS: dict[Difference, str] = {
    "changed": "changed",
    "dropped": "dropped",
    "reordered": "moved",
    "inserted": "inserted",
    "unreadable": "made unreadable",
    "foreign": "recorded for another journal",
}


class JournalTamperedError(JournalError):
    """The journal is not what was recorded.

    Attributes:
        finding: the first event that differs.
    """

    def __init__(self, where: str, finding: Finding) -> None:
        super().__init__(
            where,
            f"is not what was recorded: {finding}",
            "Keep the file as evidence and restore the journal from an export that verifies.",
        )
        self.finding = finding
