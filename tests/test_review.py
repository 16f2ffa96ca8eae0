"""The review sheet: sentences, quotations, and what is told to be missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import leanguard

from leanguard_host.review import Review, as_markdown, review, sentences

ENGLISH = """
# Shop policy

You help **customers**, e.g. with orders.
An order can be *cancelled* if it
is pending. Cancel it once!

## Facts

Important:
- orders have an id
- 1. items | things

### Colours

Red or blue.

## Rules

1. Ask first: the customer's yes counts.
2. Be polite.
"""
SOURCE = """
/-- "An order can be cancelled if ... pending." {extra} -/
def cancel : Rule where
  id := "shop.cancel"
  condition := .top

/-- "Ask first; the customer\u2019s YES counts" -/
def ask : Rule where
  id := "shop.ask"
  condition := .top
"""


def sheet(
    tmp_path: Path,
    *,
    extra: str = '"Cancel it once."',
    unenforced: list[dict[str, Any]] | None = None,
    english: str = ENGLISH,
) -> Review:
    """The review of an invented policy."""
    (tmp_path / "policies").mkdir(exist_ok=True)
    (tmp_path / "policies" / "Shop.lean").write_text(SOURCE.format(extra=extra), encoding="utf-8")
    rule = {"kind": "require", "category": "c", "sentence": "s", "condition": "a | b", "stricter": False}
    listed = [
        {"sentences": ["You help customers"], "sections": [], "reason": "Introduces."},
        {"sentences": [], "sections": ["facts"], "reason": "Facts | data."},
        {"sentences": ["Be polite."], "sections": [], "reason": "Text."},
    ]
    policy = {
        "name": "shop",
        "rules": [{**rule, "id": "shop.cancel"}, {**rule, "id": "shop.ask"}],
        "unenforced": listed if unenforced is None else unenforced,
    }
    return review(policy, [english], tmp_path)


def test_sentences() -> None:
    assert [(s.text, s.sections) for s in sentences(ENGLISH)] == [
        ("You help customers, e.g. with orders.", ("Shop policy",)),
        ("An order can be *cancelled* if it is pending.", ("Shop policy",)),
        ("Cancel it once!", ("Shop policy",)),
        ("orders have an id", ("Shop policy", "Facts")),
        ("1. items | things", ("Shop policy", "Facts")),
        ("Red or blue.", ("Shop policy", "Facts", "Colours")),
        ("Ask first: the customer's yes counts.", ("Shop policy", "Rules")),
        ("Be polite.", ("Shop policy", "Rules")),
    ]
    assert sentences("") == sentences("#\n\n---\n") == []


def test_everything_has_a_rule_or_a_reason(tmp_path: Path) -> None:
    found = sheet(tmp_path, unenforced=None)
    assert [entry.sentence.text for entry in found.missing] == [
        "You help customers, e.g. with orders."
    ]  # half of it is quoted
    found = sheet(
        tmp_path,
        unenforced=[
            {"sentences": ["You help ... orders.", "be polite"], "sections": [], "reason": "Text."},
            {"sentences": [], "sections": ["FACTS"], "reason": "Facts."},
        ],
    )
    assert found.complete and found.entries
    assert [(entry.rules, entry.reasons) for entry in found.entries] == [
        ([], ["Text."]),
        (["shop.cancel"], []),
        (["shop.cancel"], []),
        ([], ["Facts."]),
        ([], ["Facts."]),
        ([], ["Facts."]),
        (["shop.ask"], []),
        ([], ["Text."]),
    ]


def test_what_is_missing_stray_or_without_a_reason_is_told(tmp_path: Path) -> None:
    found = sheet(
        tmp_path,
        extra='"No such sentence."',
        unenforced=[{"sentences": ["You help ... orders"], "sections": ["Nowhere"], "reason": " "}],
    )
    assert not found.complete
    assert [entry.sentence.text for entry in found.missing] == [
        "Cancel it once!",
        "orders have an id",
        "1. items | things",
        "Red or blue.",
        "Be polite.",
    ]
    assert [stray["quotation"] for stray in found.stray] == ["No such sentence.", "section Nowhere"]
    assert len(found.problems) == 1
    told = found.as_json()
    assert (told["complete"], len(told["missing"]), len(told["sentences"])) == (False, 5, 8)
    text = as_markdown(found)
    assert "| Cancel it once! | **neither rule nor reason** |" in text
    assert "| 1. items \\| things |" in text
    assert "Not in the English policy: “No such sentence.” (shop.cancel)" in text


def test_an_empty_quotation_covers_nothing(tmp_path: Path) -> None:
    found = sheet(tmp_path, extra='"..."', unenforced=[{"sentences": ["", "… ..."], "sections": [], "reason": "r"}])
    assert len(found.missing) == 6
    assert len(found.stray) == 3


def test_the_sheets_of_the_policies(daemon: Any, tmp_path: Path) -> None:
    told = leanguard("policy", "review", "--json")
    assert told.code == 0
    assert {sheet["policy"] for sheet in told.json["policies"]} >= {"retail", "airline", "telecom"}
    for each in told.json["policies"]:
        assert each["complete"] and each["sentences"] is None
        assert each["rules"] and each["unenforced"]
        assert all(rule["quotes"] or rule["id"] in ("airline.active", "host.no_overlap") for rule in each["rules"])
    assert (
        "retail.modify_once  forbid, temporal incompatibility, stricter" in leanguard("policy", "review", "retail").out
    )
    assert leanguard("policy", "review", "airline", "--markdown").out.startswith("# airline: review\n")
    english = tmp_path / "policy.md"
    english.write_text("You should deny user requests that are against this policy. Nothing else.", encoding="utf-8")
    partial = leanguard("policy", "review", "retail", "--english", str(english))
    assert partial.code == 1
    assert "neither rule nor reason" in partial.out
    assert "not in the English policy" in partial.out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["retial"], "did you mean retail?"),
        (["--english", "x.md"], "a POLICY that it is the English of"),
        (["retail", "--english", "none.md"], "none.md"),
    ],
)
def test_reviews_that_can_not_be_made(daemon: Any, arguments: list[str], part: str) -> None:
    ran = leanguard("policy", "review", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert part in ran.err
