"""The page of a replay, opened in a browser: its filters work, and nothing of an episode is run or loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import browser
import pytest
from recorded import call, episode

from leanguard_host.adapters.tau2.episodes import Episode, Step
from leanguard_host.replay import CATEGORIES, CONSENT, Decided, Summary, page, replay

HOSTILE = "</script><script>window.stolen = 1</script><img src=x onerror='window.stolen = 2'><!--\u2028{{data}}\u202e"
INTO_SCRIPT = "<script>window.stolen = 3</script>"


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    """A browser."""
    if (program := browser.find()) is None:
        pytest.skip("no Chromium here")
    with browser.Browser(program) as opened:
        yield opened


def conversation(*parts: list[dict[str, Any]], name: object = 1) -> str:
    """An episode of that name."""
    return json.dumps({**json.loads(episode(*parts)), "task_id": name})


@pytest.fixture
def summary(engine: Any, folder: Path) -> Summary:
    """Three episodes: forbidden calls that were carried out, strange ones, and one that says hostile things."""
    read = call("get_reservation_details", reservation_id="R1")
    cancel = call("cancel_reservation", reservation_id="R1")
    business = [call(tool, reservation_id="business") for tool in ("get_reservation_details", "cancel_reservation")]
    hostile = call("get_user_details", HOSTILE, user_id=HOSTILE)
    hostile[0]["content"] = HOSTILE
    broken = call(INTO_SCRIPT, HOSTILE)
    broken[0]["tool_calls"][0]["function"]["arguments"] = "{" + HOSTILE
    lines = [
        conversation(read, cancel, *business, name="first"),
        conversation(call("think", thought="hm"), call("list_all_airports"), name="second"),
        conversation([{"role": "user", "content": HOSTILE}], hostile, broken, name=HOSTILE),
    ]
    file = folder / "episodes.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return replay(file, "airline", folder, [engine])


RULES = {"airline.cancel": {"category": "policy prohibition", "sentence": f"No. {HOSTILE}"}}


class Page:
    """The page, as a reader sees and uses it."""

    def __init__(self, chromium: browser.Browser, folder: Path, text: str) -> None:
        self.browser = chromium
        file = folder / "page.html"
        file.write_text(text, encoding="utf-8")
        chromium.open(file)

    def pick(self, **filters: str) -> Page:
        """Set these filters and no other."""
        self.browser.evaluate("document.querySelector('#filters [type=reset]').click()")
        self.browser.evaluate("new Promise((done) => setTimeout(done, 20))")
        for name, value in filters.items():
            script = f"(() => {{ const e = document.getElementById({json.dumps(name)}); e.value = {json.dumps(value)};"
            self.browser.evaluate(f"{script} e.dispatchEvent(new Event('input', {{bubbles: true}})); }})()")
        return self

    @property
    def shown(self) -> tuple[int, int]:
        """How many calls and how many episodes it says that it shows; and it shows so many."""
        text = self.browser.evaluate("document.getElementById('shown').textContent")
        calls, episodes = (int(number) for number in re.findall(r"(\d+) of", text)[:2])
        visible = self.browser.evaluate(
            "[...document.querySelectorAll('.episode')].filter((e) => e.getClientRects().length > 0).length"
        )
        assert visible == episodes
        bright = "[...document.querySelectorAll('.strip .mark:not(.other)')].filter((e) => e.getClientRects().length)"
        assert self.browser.evaluate(f"{bright}.length") == calls
        return calls, episodes

    def chart(self) -> dict[str, int]:
        """The bars that are not empty."""
        script = (
            "[...document.querySelectorAll('.bar')].map((b) => [b.dataset.category, b.querySelector('b').textContent])"
        )
        return {name: int(count) for name, count in self.browser.evaluate(script) if count != "0"}


def test_filters(chromium: browser.Browser, tmp_path: Path, summary: Summary) -> None:
    opened = Page(chromium, tmp_path, page([summary], RULES))
    totals = summary.totals()
    assert (totals["calls"], totals["denied"], totals["forbidden_executed"]) == (8, 5, 1)
    assert opened.shown == (8, 3)
    assert opened.chart() == totals["by_category"]
    assert opened.pick(decision="denied").shown == (5, 3)
    assert opened.pick(decision="admitted").shown == (3, 2)
    assert opened.pick(decision="forbidden").shown == (1, 1)
    assert opened.pick(decision="consent").shown == (1, 1)
    assert opened.pick(rule="airline.confirmation").shown == (2, 1)
    assert opened.pick(rule="airline.cancel").shown == (1, 1)
    assert opened.pick(category="invalid invocation").shown == (2, 2)
    assert opened.pick(episode="SECOND").shown == (2, 1)
    assert opened.pick(episode="list_all").shown == (1, 1)
    assert opened.pick(executed="changed").shown == (2, 1)
    assert opened.pick(executed="yes").shown == (6, 2)
    assert opened.pick(executed="no").shown == (2, 1)
    assert opened.pick(decision="denied", executed="changed", category="policy prohibition").shown == (1, 1)
    assert opened.pick(decision="admitted", rule="airline.cancel").shown == (0, 0)
    assert opened.pick().shown == (8, 3)


def test_the_chart_chooses_a_category(chromium: browser.Browser, tmp_path: Path, summary: Summary) -> None:
    opened = Page(chromium, tmp_path, page([summary], RULES))
    before = opened.chart()
    chromium.evaluate(f"document.querySelector(`.bar[data-category='{CONSENT}']`).click()")
    assert opened.shown == (before[CONSENT], 1)
    assert opened.chart() == before  # the others stay to be chosen
    chromium.evaluate(f"document.querySelector(`.bar[data-category='{CONSENT}']`).click()")
    assert opened.shown == (8, 3)
    chromium.evaluate("document.querySelector('#rules tbody button').click()")
    assert opened.shown[0] == max(summary.totals()["by_rule"].values())


def test_a_timeline_tells_the_episode_in_its_order(chromium: browser.Browser, tmp_path: Path, summary: Summary) -> None:
    opened = Page(chromium, tmp_path, page([summary], RULES))
    opened.pick(episode="first")
    chromium.evaluate("document.getElementById('toggle').click()")
    lines = chromium.evaluate("[...document.querySelectorAll('.episode[open] ol > li')].map((e) => e.textContent)")
    assert len(lines) == 5  # the customer and four calls
    assert "I am ada_1" in lines[0]
    assert "airline.cancel" in lines[2]
    assert "forbidden and carried out" in lines[2]
    assert "admitted" in lines[3]
    assert "only consent is missing" in lines[4]
    assert chromium.pdf().startswith(b"%PDF")


def test_nothing_of_an_episode_is_run_or_loaded(chromium: browser.Browser, tmp_path: Path, summary: Summary) -> None:
    hostile = Decided("x", 0, HOSTILE, "deny", [INTO_SCRIPT], [HOSTILE], HOSTILE, errors=[HOSTILE])
    extra = replace(
        summary,
        replayed=[*summary.replayed, Episode(INTO_SCRIPT, [Step("call", "", HOSTILE, HOSTILE, None, HOSTILE)])],
        by_episode=[*summary.by_episode, [hostile]],
        decisions=[*summary.decisions, hostile],
    )
    rules = {**RULES, INTO_SCRIPT: {"category": HOSTILE, "sentence": HOSTILE}}
    text = page([extra], rules)
    assert text.count("<script") == text.count("</script>") == 2
    assert "default-src 'none'" in text
    opened = Page(chromium, tmp_path, text)
    chromium.evaluate("document.getElementById('toggle').click()")
    chromium.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    chromium.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert opened.shown == (9, 4)
    assert opened.pick(rule=INTO_SCRIPT).shown == (1, 1)
    assert chromium.evaluate("window.stolen === undefined")
    assert chromium.evaluate("document.querySelectorAll('img, iframe, link, object').length") == 0
    assert chromium.evaluate("document.querySelectorAll('script').length") == 2
    assert HOSTILE.replace("\u2028", "") in chromium.evaluate("document.body.textContent").replace("\u2028", "")
    assert chromium.trouble() == []


def test_the_page_would_run_nothing_even_if_a_script_got_into_it(
    chromium: browser.Browser, tmp_path: Path, summary: Summary
) -> None:
    script = "(() => { const e = document.createElement('script'); e.textContent = 'window.stolen = 1';"
    Page(chromium, tmp_path, page([summary], RULES))
    chromium.evaluate(f"{script} document.body.append(e); }})()")
    chromium.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.stolen = 2\">')")
    chromium.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert chromium.evaluate("window.stolen === undefined")


def test_two_policies_and_a_hundred_episodes(chromium: browser.Browser, tmp_path: Path, summary: Summary) -> None:
    many = replace(
        summary,
        replayed=summary.replayed[:1] * 100,
        by_episode=summary.by_episode[:1] * 100,
        decisions=summary.by_episode[0] * 100,
    )
    other = replace(summary, policy="retail")
    opened = Page(chromium, tmp_path, page([many, other], RULES))
    assert opened.shown == (408, 103)
    assert opened.pick(policy="retail").shown == (8, 3)
    assert opened.pick(policy="airline", decision="forbidden").shown == (100, 100)
    assert chromium.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_empty_replay_is_a_page_too(chromium: browser.Browser, tmp_path: Path) -> None:
    opened = Page(chromium, tmp_path, page([Summary("airline", False, replayed=[Episode("x", [])], by_episode=[[]])]))
    assert opened.shown == (0, 1)
    assert opened.chart() == {}
    assert chromium.trouble() == []


def test_each_denial_has_a_category_of_the_chart(summary: Summary) -> None:
    for decided in summary.decisions:
        assert (decided.category in CATEGORIES) == decided.denied
        assert bool(decided.categories) == decided.denied
