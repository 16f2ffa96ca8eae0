"""What can go wrong between Python and Lean."""

from __future__ import annotations

from dataclasses import dataclass


class LeanUnavailable(Exception):  # noqa: N818 - says what is the case, as the public GuardUnavailable does
    """Lean could not answer. Nothing is admitted without its answer."""


class LeanCrashed(LeanUnavailable):
    """The Lean process died, or answered something that is not an answer to the request."""


class LeanTimeout(LeanUnavailable):
    """The Lean process did not answer in time and was stopped."""


class ToolchainUnavailable(LeanUnavailable):
    """There is no usable Lean toolchain.

    Attributes:
        problem: what is wrong.
        remedy: what the user can do about it; empty if nothing is known.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.problem = message
        self.remedy = remedy


@dataclass(frozen=True)
class Message:
    """One message of the compiler. Lines count from 1, columns from 0, as in Lean's own messages."""

    severity: str
    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.text}"


class BuildFailed(LeanUnavailable):
    """The Lean package does not compile.

    Attributes:
        messages: the compiler's messages, errors and warnings, in order.
    """

    def __init__(self, messages: list[Message]) -> None:
        super().__init__("\n".join(str(message) for message in messages))
        self.messages = messages
