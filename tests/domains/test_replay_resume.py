"""A replay that is interrupted goes on where it stopped, and only on the same episodes, policy and data."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import command, environment, leanguard
from recorded import call, episode

from leanguard_host.jsonfiles import InputError
from leanguard_host.models import Call, Decision, Event, RuleError, Snapshot
from leanguard_host.replay import Summary, replay
from leanguard_host.replay.command import run
from leanguard_host.wire import UNAVAILABLE

COUNT = 12


class Decider:
    """Decides without Lean: what writes is denied. It counts its decisions, and can fail to answer or interrupt."""

    def __init__(self, digest: str = "sha256:1", silent: int = -1, interrupt: int = -1) -> None:
        self.digests: Mapping[str, str] = {"airline": digest}
        self.decided, self.silent, self.interrupt = 0, silent, interrupt

    def decide(self, policy: str, call: Call, snapshot: Snapshot, journal: list[Event], timeout: float) -> Decision:
        """Decide a call."""
        self.decided += 1
        if self.decided == self.interrupt:
            raise SystemExit(130)
        rule = UNAVAILABLE if self.decided == self.silent else "airline.cancel"
        denied = call.tool.startswith("cancel") or rule == UNAVAILABLE
        return Decision(
            verdict="deny" if denied else "admit",
            failed_rules=(),
            errors=(RuleError(rule=rule, message="because"),) if denied else (),
            revision=snapshot.revision,
            policy=policy,
            policy_digest=self.digests[policy],
            toolchain="none",
            elapsed_ms=0,
        )


@pytest.fixture
def file(folder: Path) -> Path:
    """Episodes, no two alike."""
    parts = [call("get_reservation_details", reservation_id="R1"), call("cancel_reservation", reservation_id="R1")]
    lines = [episode(*parts, *[call("calculate", expression=f"{n} + 0.5", n=n / 4)] * n) for n in range(COUNT)]
    path = folder / "episodes.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def go(file: Path, decider: Decider, keep: Path | None = None, **options: Any) -> Summary:
    """Replay the file."""
    return replay(file, "airline", file.parent, [decider], keep=keep, **options)


def found(summary: Summary) -> dict[str, Any]:
    """What it found, without what differs between any two runs."""
    return {name: value for name, value in summary.as_json().items() if name not in ("seconds", "resumed")}


def test_it_goes_on_where_it_was_interrupted(file: Path, tmp_path: Path) -> None:
    keep, fresh = tmp_path / "kept", go(file, Decider())
    calls = len(fresh.decisions)
    with pytest.raises(SystemExit):
        go(file, Decider(interrupt=30), keep)
    rest = Decider()
    resumed = go(file, rest, keep)
    assert 0 < resumed.resumed < COUNT
    assert 0 < rest.decided < calls
    assert found(resumed) == found(fresh)
    idle = Decider()
    assert found(go(file, idle, keep)) == found(fresh)
    assert idle.decided == 0


def test_an_interruption_is_not_waited_for(file: Path, tmp_path: Path) -> None:
    told: list[int] = []

    def progress(done: int, total: int) -> None:
        told.append(done)
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(file, Decider(), tmp_path / "kept", progress=progress)
    assert told == [0, 1, 2, 3]
    assert go(file, Decider(), tmp_path / "kept").resumed == 3


@pytest.mark.parametrize("part", ["the header", "the last line", "the whole last line", "nothing at all"])
def test_a_line_that_was_cut_is_dropped(file: Path, tmp_path: Path, part: str) -> None:
    keep = tmp_path / "kept"
    fresh = go(file, Decider(), keep)
    whole = keep.read_bytes()
    header, last = whole.index(b"\n"), len(whole) - len(whole.splitlines()[-1]) - 1
    ends = {
        "the header": (1, 20, header),
        "the last line": (last + 1, last + 20, len(whole) - 1),
        "the whole last line": (last,),
        "nothing at all": (0,),
    }
    for end in ends[part]:
        keep.write_bytes(whole[:end])
        again = Decider()
        assert found(go(file, again, keep)) == found(fresh)
        assert again.decided > 0
        assert sorted(keep.read_bytes().splitlines()) == sorted(whole.splitlines())  # nothing is left of the cut line


def test_a_last_line_that_the_machine_left_unwritten_is_dropped(file: Path, tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    fresh = go(file, Decider(), keep)
    with keep.open("ab") as opened:
        opened.write(b"\0" * 40 + b"\n")
    assert found(go(file, Decider(), keep)) == found(fresh)
    assert go(file, Decider(), keep).resumed == COUNT


def test_a_damaged_line_is_an_error(file: Path, tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    go(file, Decider(), keep)
    lines = keep.read_text(encoding="utf-8").split("\n")
    for damaged in (lines[2].replace('"deny"', '"admit"'), "", "{}", lines[2][:50], "[" * 100_000):
        keep.write_text("\n".join([*lines[:2], damaged, *lines[3:]]), encoding="utf-8")
        with pytest.raises(InputError, match=f"{keep}, line 3: expected the decisions of an episode"):
            go(file, Decider(), keep)


def test_only_the_same_replay_goes_on(file: Path, tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    go(file, Decider(), keep)
    written = keep.read_bytes()
    with pytest.raises(InputError, match="a policy that was changed since"):
        go(file, Decider("sha256:2"), keep)
    with pytest.raises(InputError, match="--assume-consent"):
        go(file, Decider(), keep, assume_consent=True)
    database = file.parent / "airline" / "db.json"
    data = database.read_text(encoding="utf-8")
    database.write_text(data.replace("economy", "business"), encoding="utf-8")
    with pytest.raises(InputError, match="another database"):
        go(file, Decider(), keep)
    database.write_text(data, encoding="utf-8")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("R1", "B1"), encoding="utf-8")
    with pytest.raises(InputError, match="other episodes"):
        go(file, Decider(), keep)
    file.write_text(text, encoding="utf-8")
    assert keep.read_bytes() == written
    assert go(file, Decider(), keep).resumed == COUNT
    begun = go(file, Decider("sha256:2"), keep, strict=False)
    assert begun.resumed == 0
    assert go(file, Decider("sha256:2"), keep).resumed == COUNT


@pytest.mark.parametrize("text", ["a letter", "a letter\n", '{"format": "other"}\n', "[]\n", "7"])
@pytest.mark.parametrize("strict", [True, False])
def test_a_file_of_another_kind_is_left_alone(file: Path, tmp_path: Path, text: str, strict: bool) -> None:
    keep = tmp_path / "kept"
    keep.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="line 1: expected the file of a replay"):
        go(file, Decider(), keep, strict=strict)
    assert keep.read_text(encoding="utf-8") == text


def test_two_at_once_do_not_share_a_file(file: Path, tmp_path: Path) -> None:
    def progress(done: int, total: int) -> None:
        with pytest.raises(InputError, match="no other replay is writing"):
            go(file, Decider(), tmp_path / "kept")

    go(file, Decider(), tmp_path / "kept", progress=progress)


def test_what_lean_did_not_answer_is_told_and_tried_again(file: Path, tmp_path: Path) -> None:
    silent = go(file, Decider(silent=5), tmp_path / "kept")
    assert silent.undecided == 1
    assert silent.totals()["by_category"]["not evaluated"] > 0
    again = Decider()
    resumed = go(file, again, tmp_path / "kept")
    assert (resumed.resumed, resumed.undecided) == (COUNT - 1, 0)
    assert found(resumed) == found(go(file, Decider()))


# ---- the command ----


def options(file: Path, *more: str | Path) -> list[str | Path]:
    """The command line of a replay."""
    return ["replay", file, "--policy", "airline", "--data", file.parent, *more]


@pytest.fixture
def many(folder: Path) -> Path:
    """Episodes that take a while."""
    parts = [call("get_reservation_details", reservation_id="R1"), call("cancel_reservation", reservation_id="R1")]
    path = folder / "many.jsonl"
    path.write_text("\n".join([episode(*parts * 5)] * 60), encoding="utf-8")
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_command_goes_on_after_ctrl_c_and_after_a_kill(lean: None, many: Path, number: signal.Signals) -> None:
    page = many.parent / "report.html"
    kept = many.parent / "report.html.part"
    running = subprocess.Popen(
        command(*options(many, "--html", page, "--json", "--workers", "2")),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not (kept.exists() and kept.read_bytes().count(b"\n") > 5):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(running.pid, number)
    out, err = running.communicate(timeout=60)
    assert running.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert out == ""
    assert ("Interrupted" in err) == (number == signal.SIGINT)
    assert "Traceback" not in err
    assert not page.exists()
    lines = kept.read_bytes().count(b"\n") - 1
    assert 5 <= lines < 60
    done = leanguard(*options(many, "--html", page, "--json", "--workers", "2"))
    assert done.code == 0
    assert done.json["resumed"] == lines
    assert (done.json["episodes"], done.json["calls"], len(done.json["decisions"])) == (60, 600, 600)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert not kept.exists()
    assert {path.name for path in many.parent.iterdir() if path.is_file()} == {"many.jsonl", "report.html"}


def test_the_file_of_resume_stays(lean: None, file: Path, tmp_path: Path) -> None:
    first = leanguard(*options(file, "--resume", tmp_path / "kept", "--html", tmp_path / "p.html"))
    assert (first.code, first.out.splitlines()[0]) == (0, "12 episodes, 90 calls by the policy airline")
    second = leanguard(*options(file, "--resume", tmp_path / "kept", "--json"))
    assert second.json["resumed"] == COUNT
    names = {"episodes", "calls", "admitted", "denied", "forbidden_executed", "by_rule", "by_category", "decisions"}
    assert names <= set(second.json)
    for decided in second.json["decisions"]:
        assert (decided["category"] is None) == (decided["verdict"] == "admit")
        assert {"rules", "executed", "changed", "tool", "episode"} <= set(decided)


def test_outputs_that_would_harm_are_refused(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = file.read_bytes()
    common = {"policy": "airline", "data": str(file.parent)}
    for option in ("html", "resume"):
        for path in (file, file.parent, tmp_path / "no" / "page"):
            with pytest.raises(SystemExit) as ended:
                run(episodes=str(file), **common, **{option: str(path)})
            assert ended.value.code == 2
        with pytest.raises(SystemExit) as ended:
            run(episodes=str(file.parent), **common, **{option: str(file.parent / "x.jsonl")})
        assert ended.value.code == 2
        assert f"--{option}: expected a file that is none of the episodes" in capsys.readouterr().err
    assert file.read_bytes() == data
