"""What the policies' Lean files say of each rule: its comment, the sentences quoted there, and its condition.

A rule is written as

    /-- "The sentence of the English policy." A remark. -/
    def name : Rule where
      id := "shop.name"
      ...
      condition := ...

A rule that is made in another way is not found here; what Lean itself tells of it is all there is to tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leanguard_host.lean.paths import package_root

_RULE = re.compile(
    r"(?:^/--(?P<comment>(?:(?!-/).)*)-/\s*)?"
    r"^(?:@\[[^\]]*\]\s*)?(?:(?:private|protected)\s+)?(?:def|abbrev)\s+(?P<name>\S+)[^\n]*:\s*Rule\s+where[^\n]*\n"
    r"(?P<body>(?:[ \t]+[^\n]*(?:\n|\Z)|[ \t]*\n(?=[ \t]+\S))+)",
    re.MULTILINE | re.DOTALL,
)
_DEFINITION = re.compile(r"^def\s+(?P<name>\S+)[^\n]*\n(?:[ \t]+[^\n]*(?:\n|\Z)|[ \t]*\n(?=[ \t]+\S))*", re.MULTILINE)
_NAME = re.compile(r"[^\W\d][\w'!?]*(?:\.\w+)*")
_LONGEST_DEFINITION = 25
_ID = re.compile(r'^\s+id\s*:=\s*"([^"\\]+)"', re.MULTILINE)
_FIELD = re.compile(r"^(?P<indent>[ \t]+)(?P<name>[a-z]\w*)\s*:=", re.MULTILINE)
_QUOTE = re.compile(r'"([^"]+)"')


@dataclass(frozen=True)
class RuleSource:
    """Where and how a rule is written.

    Attributes:
        id: the rule's id.
        name: of its definition, without the namespace.
        file: the file, relative to the package.
        line: of its first line, from 1.
        comment: what stands above it, on one line; empty if nothing does.
        quotes: the sentences of the English policy in the comment; `...` stands for words left out.
        condition: the condition in Lean, with its line breaks.
        where: the definitions that the condition names, with their line breaks, as far as they stand in the policies.
    """

    id: str
    name: str
    file: str
    line: int
    comment: str
    quotes: tuple[str, ...]
    condition: str
    where: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON."""
        told = {"file": self.file, "line": self.line, "comment": self.comment, "quotes": list(self.quotes)}
        return {**told, "condition": self.condition, "where": list(self.where)}


def flat(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def _condition(body: str) -> str:
    fields = list(_FIELD.finditer(body))
    depth = fields[0]["indent"] if fields else ""
    own = [field for field in fields if field["indent"] == depth]
    for index, field in enumerate(own):
        if field["name"] == "condition":
            end = own[index + 1].start() if index + 1 < len(own) else len(body)
            return "\n".join(line.removeprefix(depth) for line in body[field.start() : end].rstrip().splitlines())
    return ""


def rules_in(text: str, file: str) -> Iterator[RuleSource]:
    """The rules that a Lean file defines, in order.

    Args:
        text: the file's.
        file: its name, to be told.
    """
    for match in _RULE.finditer(text):
        found = _ID.search(match["body"])
        if not found:
            continue
        comment = flat(match["comment"] or "")
        line = text.count("\n", 0, match.start("name")) + 1
        quotes = tuple(_QUOTE.findall(comment))
        yield RuleSource(found[1], match["name"], file, line, comment, quotes, _condition(match["body"]))


def _definitions(text: str) -> dict[str, str]:
    """The definitions of a Lean file that are no rules and not long, by name."""
    found = {match["name"]: match.group().rstrip() for match in _DEFINITION.finditer(text)}
    return {
        name: code
        for name, code in found.items()
        if ": Rule where" not in code and code.count("\n") < _LONGEST_DEFINITION
    }


def _where(condition: str, near: dict[str, str], shared: dict[str, str]) -> tuple[str, ...]:
    """The definitions that the condition names: those of its own file, else those that the policies share."""
    named = dict.fromkeys(name.rpartition("Shared.")[2] for name in _NAME.findall(re.sub(r'"[^"]*"', "", condition)))
    return tuple(code for name in named if (code := near.get(name) or shared.get(name)))


def rule_sources(root: Path | None = None) -> dict[str, RuleSource]:
    """Every rule that is written in the package's policies, by id.

    Args:
        root: the package; the one that belongs to this code if None.
    """
    root = root or package_root()
    texts = {file: file.read_text(encoding="utf-8") for file in sorted((root / "policies").rglob("*.lean"))}
    shared = _definitions(texts.get(root / "policies" / "Shared.lean", ""))
    found: dict[str, RuleSource] = {}
    for file, text in texts.items():
        near = _definitions(text)
        for rule in rules_in(text, file.relative_to(root).as_posix()):
            found.setdefault(rule.id, replace(rule, where=_where(rule.condition, near, shared)))
    return found
