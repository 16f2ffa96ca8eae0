"""The three policies are complete: every sentence of the English ones has a rule, or a reason for having none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leanguard_host.review import review

FILES = {
    "retail": ["retail/policy.md"],
    "airline": ["airline/policy.md"],
    "telecom": ["telecom/main_policy.md", "telecom/tech_support_workflow.md"],
}


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_without_rule_or_reason(engine: Any, data: Path, name: str) -> None:
    policy = next(policy for policy in engine.policies if policy["name"] == name)
    sheet = review(policy, [(data / "tau2" / file).read_text(encoding="utf-8") for file in FILES[name]])
    assert [entry.sentence.text for entry in sheet.missing] == []
    assert sheet.stray == []
    assert sheet.complete
    assert sheet.entries and len(sheet.entries) > 80
    with_rule = {rule for entry in sheet.entries for rule in entry.rules}
    # Each rule states a sentence, but for LeanGuard's own and for what goes without saying.
    assert {rule["id"] for rule in policy["rules"]} - with_rule <= {"host.no_overlap", "airline.active"}
    fewer = {**policy, "rules": policy["rules"][:-3], "unenforced": policy["unenforced"][1:]}
    assert not review(fewer, [(data / "tau2" / file).read_text(encoding="utf-8") for file in FILES[name]]).complete
