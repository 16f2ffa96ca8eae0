"""The page of what is proved, as `leanguard explain --theorems` prints it."""

from __future__ import annotations

import json

from helpers import leanguard

from leanguard_host.theorems import theorems

# The public names of the design.
NAMES = {
    "Symbol.ofString_inj",
    "Temporal.eval_iff_sat",
    "authorize_iff",
    "admit_iff",
    "forbid_overrides",
    "unmet_requirement_denies",
    "error_denies",
    "default_deny",
    "failed_rules_complete",
    "monitor_eq_eval",
    "dispatch_was_admitted",
    "dispatched_at_most_once",
    "unknown_not_redispatched",
    "consent_exact",
    "consent_once",
}


def test_the_page_lists_every_public_theorem() -> None:
    found = {theorem.name: theorem for theorem in theorems()}
    assert set(found) >= NAMES
    assert all(theorem.says.endswith(".") and ":" in theorem.statement for theorem in found.values())
    assert found["admit_iff"].statement.endswith("policy.Admitted call snapshot journal")


def test_explain_prints_it() -> None:
    ran = leanguard("explain", "--theorems")
    assert ran.code == 0
    assert "monitor_eq_eval" in ran.out
    assert "The monitor of a journal decides every call as the evaluator does over that journal." in ran.out
    listed = json.loads(leanguard("explain", "--theorems", "--json").out)["theorems"]
    assert {theorem["name"] for theorem in listed} >= NAMES


def test_a_rule_or_the_theorems() -> None:
    for arguments, found in ((["explain"], "neither"), (["explain", "retail.payment", "--theorems"], "both")):
        ran = leanguard(*arguments)
        assert ran.code == 2
        assert "either the id of a rule or --theorems" in ran.err
        assert found in ran.err
