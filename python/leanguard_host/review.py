"""`leanguard policy review`: each sentence of an English policy beside its rule, or beside the reason why it has none.

A rule quotes its sentences in its comment; a policy lists the others, with the reason, in `unenforced`. A sentence that
is in neither is missing, and a quotation that is not in the English policy is stray: both are told, never passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leanguard_host.sources import RuleSource, flat, rule_sources

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_LEFT_OUT = re.compile(r"\.\.\.|…")
_MARKUP = re.compile(r"\*\*|__|`|~~")
_WORD = re.compile(r"[\w$%']+")
_APOSTROPHES = str.maketrans("\u2018\u2019", "''")
_LABEL = 4
_FARTHEST = 800
_MOSTLY = 0.6


def plain(text: str) -> str:
    """The text as it is compared: its words in lower case; case, markup and punctuation make no difference."""
    return " ".join(word.strip("'") for word in _WORD.findall(_MARKUP.sub("", text).translate(_APOSTROPHES).lower()))


@dataclass(frozen=True)
class Sentence:
    """A sentence of the English policy.

    Attributes:
        text: the sentence.
        sections: the headings above it, the outermost first.
    """

    text: str
    sections: tuple[str, ...]


def sentences(text: str) -> list[Sentence]:
    """The sentences and list items of a Markdown text, in order. A paragraph that goes over several lines is joined.

    A label such as "Important:" says nothing by itself and is left out.
    """
    found: list[Sentence] = []
    headings: list[tuple[int, str]] = []
    block: list[str] = []

    def end() -> None:
        joined = flat(_MARKUP.sub("", " ".join(block)))
        block.clear()
        sections = tuple(name for _, name in headings)
        for part in _SENTENCE_END.split(joined):
            if plain(part) and not (part.endswith(":") and len(part.split()) <= _LABEL):
                found.append(Sentence(part, sections))

    for line in text.splitlines():
        if match := _HEADING.match(line):
            end()
            level = len(match[1])
            headings = [(depth, name) for depth, name in headings if depth < level]
            headings.append((level, flat(_MARKUP.sub("", match[2]))))
        elif not line.strip():
            end()
        else:
            if item := _ITEM.match(line):
                end()
                line = line[item.end() :]
            block.append(line)
    end()
    return found


class _Document:
    """The sentences as one text, in which quotations are found."""

    def __init__(self, found: Sequence[Sentence]) -> None:
        self.spans: list[tuple[int, int]] = []
        parts, at = [], 0
        for sentence in found:
            part = plain(sentence.text)
            self.spans.append((at, at + len(part)))
            parts.append(part)
            at += len(part) + 1
        self.text = " ".join(parts)

    def places(self, quotation: str) -> list[tuple[int, int]]:
        """Everywhere that the quotation stands, from its first word to its last."""
        pieces = [piece for part in _LEFT_OUT.split(quotation) if (piece := plain(part))]
        found, start = [], 0
        while pieces and (begin := self.text.find(pieces[0], start)) >= 0:
            end = begin + len(pieces[0])
            for piece in pieces[1:]:
                next_ = self.text.find(piece, end, end + _FARTHEST)
                if next_ < 0:
                    break
                end = next_ + len(piece)
            else:
                found.append((begin, end))
            start = begin + 1
        return found


@dataclass
class Entry:
    """A sentence and what stands beside it.

    Attributes:
        sentence: the sentence.
        rules: the rules that quote it.
        reasons: why no rule states it.
    """

    sentence: Sentence
    rules: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def missing(self) -> bool:
        """Whether nothing stands beside it."""
        return not self.rules and not self.reasons

    def as_json(self) -> dict[str, Any]:
        """The entry as JSON."""
        return {
            "section": list(self.sentence.sections),
            "sentence": self.sentence.text,
            "rules": self.rules,
            "reasons": self.reasons,
        }


@dataclass
class Review:
    """The review sheet of one policy.

    Attributes:
        policy: its name.
        rules: each rule with what it quotes, what it says in one sentence and its condition.
        unenforced: the sentences and sections without a rule, each with its reason.
        entries: the English policy's sentences, if it was given.
        stray: quotations that are not in it.
        problems: rules and reasons that lack something, whether or not the English policy was given.
    """

    policy: str
    rules: list[dict[str, Any]]
    unenforced: list[dict[str, Any]]
    entries: list[Entry] | None = None
    stray: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def missing(self) -> list[Entry]:
        """The sentences with neither rule nor reason."""
        return [entry for entry in self.entries or [] if entry.missing]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing, stray or lacking, as far as that can be told."""
        return not self.missing and not self.stray and not self.problems

    def as_json(self) -> dict[str, Any]:
        """The sheet as JSON."""
        return {
            "policy": self.policy,
            "complete": self.complete,
            "rules": self.rules,
            "unenforced": self.unenforced,
            "sentences": None if self.entries is None else [entry.as_json() for entry in self.entries],
            "missing": [entry.as_json() for entry in self.missing],
            "stray": self.stray,
            "problems": self.problems,
        }


def _rule(rule: dict[str, Any], source: RuleSource | None) -> dict[str, Any]:
    told = {name: rule[name] for name in ("id", "kind", "category", "sentence", "condition", "stricter")}
    return {**told, "quotes": list(source.quotes) if source else [], "comment": source.comment if source else ""}


def review(policy: dict[str, Any], english: Iterable[str] = (), root: Path | None = None) -> Review:
    """The review sheet of a policy.

    Args:
        policy: as Lean tells it.
        english: the texts of the English policy, in Markdown; without any, only the Lean side is listed.
        root: the package with the policy's source; the one that belongs to this code if None.
    """
    sources = rule_sources(root)
    rules = [_rule(rule, sources.get(rule["id"])) for rule in policy["rules"]]
    sheet = Review(policy["name"], rules, policy["unenforced"])
    for rule in rules:
        if not rule["quotes"] and not rule["sentence"] and not rule["comment"]:
            sheet.problems.append(f"{rule['id']} quotes nothing and has no sentence")
    for item in policy["unenforced"]:
        if not item["reason"].strip():
            sheet.problems.append(f"no reason is given for {item['sentences'] + item['sections']}")
    found = [sentence for text in english for sentence in sentences(text)]
    if found:
        _compare(sheet, found)
    return sheet


def _compare(sheet: Review, found: list[Sentence]) -> None:
    document = _Document(found)
    covered: dict[str, list[tuple[int, int]]] = {}
    sheet.entries = [Entry(sentence) for sentence in found]

    def mark(quotation: str, by: str, kind: str) -> None:
        places = document.places(quotation)
        if not places:
            sheet.stray.append({"quotation": quotation, "by": by})
        covered.setdefault(f"{kind}{by}", []).extend(places)

    for rule in sheet.rules:
        for quotation in rule["quotes"]:
            mark(quotation, rule["id"], "+")
    for item in sheet.unenforced:
        for quotation in item["sentences"]:
            mark(quotation, item["reason"], "-")
        for section in item["sections"]:
            wanted = plain(section)
            under = [entry for entry in sheet.entries if wanted in (plain(name) for name in entry.sentence.sections)]
            if not under:
                sheet.stray.append({"quotation": f"section {section}", "by": item["reason"]})
            for entry in under:
                entry.reasons.append(item["reason"])
    everything = [place for places in covered.values() for place in places]
    for entry, (begin, end) in zip(sheet.entries, document.spans, strict=True):
        whole = _overlap(everything, begin, end)
        if whole < _MOSTLY * (end - begin):
            continue
        for by, places in covered.items():
            if _overlap(places, begin, end):
                known = entry.rules if by[0] == "+" else entry.reasons
                known.extend([by[1:]] if by[1:] not in known else [])
    for entry in sheet.entries:
        if entry.rules:  # a section's reason is for what no rule states
            entry.reasons = [r for r in entry.reasons if f"-{r}" in covered]


def _overlap(places: Iterable[tuple[int, int]], begin: int, end: int) -> int:
    """How many characters between begin and end the places cover."""
    inside = sorted((max(a, begin), min(b, end)) for a, b in places if a < end and b > begin)
    total, at = 0, begin
    for a, b in inside:
        total += max(0, b - max(a, at))
        at = max(at, b)
    return total


def as_markdown(sheet: Review) -> str:
    """The sheet as a Markdown document."""

    def cell(text: str) -> str:
        return flat(text).replace("\\", "\\\\").replace("|", "\\|")

    lines = [f"# {sheet.policy}: review", ""]
    if sheet.entries is not None:
        above: tuple[str, ...] | None = None
        for entry in sheet.entries:
            if entry.sentence.sections != above:
                above = entry.sentence.sections
                lines += [
                    "",
                    f"## {' / '.join(above) or 'Policy'}",
                    "",
                    "| sentence | rule, or why there is none |",
                    "|---|---|",
                ]
            beside = ", ".join(f"`{rule}`" for rule in entry.rules)
            reasons = " ".join(cell(reason) for reason in entry.reasons)
            told = "; ".join(part for part in (beside, reasons) if part) or "**neither rule nor reason**"
            lines.append(f"| {cell(entry.sentence.text)} | {told} |")
    lines += ["", "## Rules", "", "| rule | kind | English | condition |", "|---|---|---|---|"]
    for rule in sheet.rules:
        english = " ".join(f"“{cell(quote)}”" for quote in rule["quotes"]) or cell(rule["sentence"])
        kind = rule["kind"] + (", stricter" if rule["stricter"] else "")
        lines.append(f"| `{rule['id']}` | {kind} | {english} | {cell(rule['condition'])} |")
    lines += ["", "## Sentences without a rule", "", "| sentence | reason |", "|---|---|"]
    for item in sheet.unenforced:
        texts = [f"“{cell(text)}”" for text in item["sentences"]] + [
            f"section {cell(name)}" for name in item["sections"]
        ]
        lines.append(f"| {' '.join(texts)} | {cell(item['reason'])} |")
    lines += [f"\nNot in the English policy: “{stray['quotation']}” ({stray['by']})" for stray in sheet.stray]
    lines += [f"\n{problem}" for problem in sheet.problems]
    return "\n".join(lines) + "\n"
