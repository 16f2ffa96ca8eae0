"""What the policies' files say of the rules is what Lean knows of them."""

from __future__ import annotations

import re
from typing import Any

from helpers import ROOT, leanguard

from leanguard_host.sources import flat, rule_sources, rules_in

FILE = """
/-! # A policy -/
namespace Shop

/-- "One thing." And "another ... thing". -/
def first : Rule where
  id := "shop.first"
  kind := .require
  tools := .these [
    a, b]
  condition := .now "it is so" fun p => do
    let x := 1

    return x == 1
  hint := "Do it."

def plain (x : Nat) : Nat := x
/-- Not a rule's comment. -/
def other := 1
@[simp] private def second : Rule where
  id := "shop.second"
  condition := .top

def made : Rule := { first with id := "shop.made" }
"""


def test_rules_are_read_from_a_file() -> None:
    first, second = rules_in(FILE, "Shop.lean")
    assert (first.id, first.name, first.file, first.line) == ("shop.first", "first", "Shop.lean", 6)
    assert first.comment == '"One thing." And "another ... thing".'
    assert first.quotes == ("One thing.", "another ... thing")
    assert first.condition.splitlines() == [
        'condition := .now "it is so" fun p => do',
        "  let x := 1",
        "",
        "  return x == 1",
    ]
    assert (second.id, second.comment, second.condition) == ("shop.second", "", "condition := .top")


def test_lean_knows_the_same_rules_and_comments(engine: Any) -> None:
    sources = rule_sources()
    rules = {rule["id"] for policy in engine.policies for rule in policy["rules"]}
    assert set(sources) == rules
    for source in sources.values():
        text = (ROOT / source.file).read_text(encoding="utf-8")
        space = re.search(r"^namespace (\S+)", text, re.MULTILINE)
        assert space
        assert text.splitlines()[source.line - 1] == f"def {source.name} : Rule where"
        assert source.condition.startswith("condition :=")
        assert all(code.startswith("def ") for code in source.where)
    listed = ", ".join(
        f"(``{space}.{source.name}, {space}.{source.name}.id)"
        for source in sources.values()
        for space in re.findall(r"^namespace (\S+)", (ROOT / source.file).read_text(encoding="utf-8"), re.MULTILINE)
    )
    answer = engine.process.command(
        f"#eval show Lean.CoreM Unit from do\n"
        f"  for (name, id) in [{listed}] do\n"
        f'    IO.println s!"{{id}}\\t{{repr ((← Lean.findDocString? (← Lean.getEnv) name).getD "")}}"',
        timeout=120,
    )
    (message,) = answer["messages"]
    assert message["severity"] == "info", message
    told = dict(line.split("\t", 1) for line in message["data"].splitlines())
    assert set(told) == rules
    for rule, comment in told.items():
        text = comment[1:-1].replace("\\n", " ").replace('\\"', '"')
        assert flat(text) == sources[rule].comment


def test_explain_shows_english_and_lean_and_examples(daemon: Any) -> None:
    told = leanguard("explain", "retail.order_owner", "--json").json
    assert told["source"]["file"] == "policies/Retail.lean"
    assert told["source"]["quotes"][0].startswith("You can only help one user per conversation")
    assert told["condition"] == "“the order is the customer's”"
    assert "guard (isCustomer p" in told["source"]["condition"]
    assert told["examples"]["denied"]["call"]["tool"] == "get_order_details"
    assert not told["stricter"]
    shown = leanguard("explain", "retail.modify_once").out
    assert "yes: can be left out with --without-stricter" in shown
    assert "within [resource] once" in shown
    assert "def succeeded (tool : Symbol) : Formula :=" in shown
    assert shown.count("modify_pending_order_items(") == 2
    assert "nothing: this permit always holds" in leanguard("explain", "retail.read_permit").out
    assert "get_order_details()" in leanguard("explain", "host.arguments").out
    assert leanguard("explain", "host.unavailable").code == 0
