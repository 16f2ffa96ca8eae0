"""The real command: verdicts, exit codes, and every kind of bad input."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import EXAMPLES, ROOT, Ran, command, environment, leanguard, load, options

import leanguard_host
from leanguard_host import demo
from leanguard_host.checking import run
from leanguard_host.cli import plain_check
from leanguard_host.engine import Engine
from leanguard_host.out import Progressing

pytestmark = pytest.mark.usefixtures("daemon")

FIELDS = {
    "verdict", "failed_rules", "errors", "revision", "policy", "policy_digest", "toolchain", "elapsed_ms", "repair",
    "repair_search",
}  # fmt: skip


def check(*more: str, stdin: str | None = None, **files: str | Path) -> Ran:
    return leanguard("check", *options(**files), *more, stdin=stdin)


def failed(ran: Ran) -> list[str]:
    return [rule["id"] for rule in ran.json["failed_rules"]]


def write(folder: Path, value: Any, name: str = "file.json") -> Path:
    file = folder / name
    file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return file


# ---- verdicts ----


@pytest.mark.parametrize(
    ("call", "journal", "code", "rules"),
    [
        ("call.json", "journal.jsonl", 1, ["retail.confirmation"]),
        ("call_injected.json", "journal.jsonl", 1, ["retail.payment", "retail.confirmation"]),
        ("call.json", "journal_confirmed.jsonl", 0, []),
        ("call_injected.json", "journal_confirmed.jsonl", 1, ["retail.payment", "retail.confirmation"]),
    ],
)
def test_the_examples(call: str, journal: str, code: int, rules: list[str]) -> None:
    ran = check("--json", call=EXAMPLES / call, journal=EXAMPLES / journal)
    assert ran.code == code
    assert set(ran.json) == FIELDS
    assert ran.json["verdict"] == ("deny" if code else "admit")
    assert failed(ran) == rules
    assert all({"id", "category", "hint"} <= set(rule) for rule in ran.json["failed_rules"])
    assert ran.json["errors"] == []
    assert ran.json["policy"] == "retail"
    assert ran.json["revision"] == "backend-4182"
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", ran.json["policy_digest"])
    assert "Lean 4." in ran.json["toolchain"]
    assert ran.json["elapsed_ms"] > 0
    assert ran.json["repair"] is None
    assert ran.err == ""


def test_for_people() -> None:
    ran = check(journal=EXAMPLES / "journal.jsonl")
    assert ran.code == 1
    assert ran.out.startswith("denied\n  retail.confirmation (authorization failure)\n    List the details")
    assert check().out == "admitted\n"


def test_without_the_background_process() -> None:
    ran = check("--json", "--no-daemon")
    assert ran.code == 0
    with_it = check("--json").json
    assert {**ran.json, "elapsed_ms": 0} == {**with_it, "elapsed_ms": 0}


def test_unknown_policy_without_the_background_process(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def started(reporter: object) -> Iterator[Engine]:
        yield engine

    monkeypatch.setattr(Engine, "start", started)
    with pytest.raises(SystemExit) as ended:
        run(**(plain_check(["check", *options(policy="retial"), "--no-daemon"]) or {}))
    engine.restarts = True
    assert ended.value.code == 2


def test_standard_input() -> None:
    text = (EXAMPLES / "call.json").read_text(encoding="utf-8")
    assert check(call="-", stdin=text).code == 0
    ran = check(call="-", stdin='{"tool": 3}')
    assert ran.code == 2
    assert "standard input, at $.tool: expected a string, found the number 3" in ran.err


def test_an_empty_journal() -> None:
    assert failed(check("--json", journal="/dev/null")) == [
        "retail.identity",
        "retail.status_observed",
        "retail.confirmation",
    ]


def test_unknown_tool(tmp_path: Path) -> None:
    ran = check("--json", call=write(tmp_path, {"tool": "delete_everything", "arguments": {}}))
    assert ran.code == 1
    assert failed(ran) == ["host.unknown_tool"]


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    ran = check("--json", call=write(tmp_path, {"tool": "get_order_details", "arguments": {"order": 1}}))
    assert ran.code == 1
    assert failed(ran) == ["host.arguments"]
    assert len(ran.json["errors"]) == 2


def test_missing_field_in_the_state(tmp_path: Path) -> None:
    snapshot = load("snapshot.json")
    del snapshot["state"]["orders"]["#L20417"]["status"]
    ran = check("--json", snapshot=write(tmp_path, snapshot))
    assert ran.code == 1
    assert {"rule": "retail.delivered", "message": "status: missing"} in ran.json["errors"]


# ---- input that can't be used ----


def refused(ran: Ran, *parts: str) -> None:
    """It ended with 2, with one clear line that has the parts."""
    assert ran.code == 2, ran
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1
    for part in parts:
        assert part in ran.err


def test_unknown_policy() -> None:
    refused(check(policy="retial"), "--policy", "retail", "did you mean retail?")
    refused(check(policy=""), "--policy", "retail")


@pytest.mark.parametrize("option", ["call", "snapshot", "journal"])
def test_unreadable_files(option: str, tmp_path: Path) -> None:
    refused(check(**{option: tmp_path}), str(tmp_path), "a directory")
    refused(check(**{option: tmp_path / "none.json"}), "none.json", "nothing by this name")
    refused(check(**{option: write(tmp_path, "{not json")}), "file.json, line 1", "expected JSON")
    (tmp_path / "file.json").write_bytes(b'{"a": "\xff"}')
    refused(check(**{option: tmp_path / "file.json"}), "file.json, line 1", "UTF-8")


@pytest.mark.parametrize("option", ["call", "snapshot"])
def test_empty_files(option: str) -> None:
    refused(check(**{option: "/dev/null"}), "/dev/null", "expected JSON, found nothing")


def test_wrong_types(tmp_path: Path) -> None:
    snapshot = load("snapshot.json")
    refused(
        check(snapshot=write(tmp_path, {**snapshot, "revision": 7})), "file.json, at $.revision", "a string", "number 7"
    )
    refused(check(snapshot=write(tmp_path, {**snapshot, "time": "noon"})), "$.time", "a time", '"noon"')
    refused(check(snapshot=write(tmp_path, {**snapshot, "time": "2026-03-02T10:15:40"})), "$.time", "zone")
    refused(check(snapshot=write(tmp_path, {**snapshot, "orders": {}})), "$.orders", "unknown field")
    refused(check(snapshot=write(tmp_path, [])), "an object", "a list")
    refused(check(call=write(tmp_path, {"tool": "t", "arguments": [1]})), "$.arguments", "an object", "a list")
    refused(check(call=write(tmp_path, {"tool": "t"})), "$.arguments")


def test_missing_field_of_the_snapshot_itself(tmp_path: Path) -> None:
    snapshot = load("snapshot.json")
    del snapshot["state"]
    refused(check(snapshot=write(tmp_path, snapshot)), "$.state", "no such field")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("{}", ("$.kind",)),
        ("[]", ("an object", "a list")),
        ('{"kind": "consent"}', ("$.time",)),
        ('{"kind": "consent", "time": 1, "when": 2}', ("$.when", "unknown field")),
        ('{"kind": "outcome", "time": 1, "status": "done"}', ("succeeded",)),
        ("kind: consent", ("expected JSON",)),
        ('{"kind": "a", "kind": "b", "time": 1}', ("$.kind", "duplicate")),
    ],
)
def test_a_journal_line_that_is_no_event(line: str, parts: tuple[str, ...], tmp_path: Path) -> None:
    journal = (EXAMPLES / "journal.jsonl").read_text(encoding="utf-8") + "\n" + line + "\n"
    refused(check(journal=write(tmp_path, journal, "journal.jsonl")), "journal.jsonl, line 4", *parts)


def test_duplicate_keys(tmp_path: Path) -> None:
    text = (EXAMPLES / "call.json").read_text(encoding="utf-8")
    twice = text.replace('"order_id"', '"payment_method_id": "gift_card_6666", "order_id"')
    refused(check(call=write(tmp_path, twice)), "file.json", "$.arguments.payment_method_id", "duplicate key")


@pytest.mark.parametrize("number", ["1e16", "0.0000001", "NaN", "Infinity", "1e999999999999", "9" * 5000])
def test_numbers_out_of_range(number: str, tmp_path: Path) -> None:
    text = '{"tool": "t", "arguments": {"x": [NUMBER]}}'.replace("NUMBER", number)
    refused(check(call=write(tmp_path, text)), "$.arguments.x[0]", "a number")


def test_half_surrogates_and_deep_nesting(tmp_path: Path) -> None:
    refused(check(call=write(tmp_path, '{"tool": "t", "arguments": {"x": "\\ud800"}}')), "$.arguments.x", "Unicode")
    deep = "[" * 40 + "]" * 40
    refused(check(call=write(tmp_path, f'{{"tool": "t", "arguments": {{"x": {deep}}}}}')), "32 levels")


def test_large_calls(tmp_path: Path) -> None:
    call = {"tool": "t", "arguments": {"x": "y" * 10_000_000}}
    refused(check(call=write(tmp_path, call)), "file.json", "at most 1 MiB", "9.5 MiB")
    refused(check(call="-", stdin=json.dumps(call)), "standard input", "at most 1 MiB")
    call["arguments"] = {"x": "y" * 1_000_000}
    assert check(call=write(tmp_path, call)).code == 1  # an unknown tool, but decided


def test_standard_input_twice_or_closed() -> None:
    refused(check(call="-", snapshot="-", stdin="{}"), "standard input", "one file")
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command("check", *options(call="-"))],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    refused(Ran(done.returncode, done.stdout, done.stderr), "standard input", "closed")


@pytest.mark.parametrize("timeout", ["0", "-1", "nan", "inf", "601"])
def test_timeouts_out_of_range(timeout: str) -> None:
    refused(check(f"--timeout={timeout}"), "--timeout", "more than 0")


def test_mistyped_command_lines() -> None:
    for arguments in (["check"], ["check", "--polcy", "retail"], ["chek"], ["check", *options(), "--timeout", "soon"]):
        ran = leanguard(*arguments)
        assert ran.code == 2
        assert ran.out == ""
        assert "Usage" in ran.err


def test_bad_input_as_json(tmp_path: Path) -> None:
    ran = check("--json", call=write(tmp_path, {"tool": 3, "arguments": {}}))
    assert ran.code == 2
    error = ran.json["error"]
    assert error["kind"] == "input"
    assert (error["file"], error["path"]) == (str(tmp_path / "file.json"), "$.tool")
    assert (error["expected"], error["found"]) == ("a string", "the number 3")
    assert ran.err == ""


# ---- no usable Lean ----


def test_no_usable_lean(tmp_path: Path) -> None:
    env = environment(LEANGUARD_TOOLCHAIN=str(tmp_path / "none"))
    ran = leanguard("check", *options(), env=env)
    assert ran.code == 3
    assert ran.out == ""
    assert "LEANGUARD_TOOLCHAIN" in ran.err and "unset it" in ran.err
    ran = leanguard("check", *options(), "--json", env=env)
    assert ran.code == 3
    assert ran.json["error"]["kind"] == "unavailable"
    assert ran.json["error"]["remedy"]
    assert leanguard("doctor", env=env).code == 3
    assert leanguard("toolchain", "path", env=env).code == 3


def test_bad_input_is_told_before_lean_is_looked_for(tmp_path: Path) -> None:
    env = environment(LEANGUARD_TOOLCHAIN=str(tmp_path / "none"))
    assert leanguard("check", *options(call=write(tmp_path, "{}")), env=env).code == 2


def test_a_package_that_does_not_compile(tmp_path: Path) -> None:
    (tmp_path / "LeanGuard").mkdir()
    (tmp_path / "policies").mkdir()
    for name in ("lakefile.lean", "lean-toolchain"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "LeanGuard.lean").write_text("def x : Nat := 1\n")
    (tmp_path / "policies" / "Policies.lean").write_text("import LeanGuard\n\n  def y : Nat := true\n")
    (tmp_path / "Repl.lean").write_text("import Policies\n")
    env = environment(LEANGUARD_PACKAGE=str(tmp_path))
    ran = leanguard("build", env=env)
    assert ran.code == 3
    assert re.search(r"^policies/Policies\.lean:3:\d+: error: ", ran.err, re.MULTILINE)
    assert "The Lean package does not compile." in ran.err


# ---- the other commands ----


def test_demo() -> None:
    ran = leanguard("demo")
    assert ran.code == 0, ran.out
    assert [line.strip() for line in ran.out.splitlines() if line.strip() in ("ADMITTED", "DENIED")] == [
        "DENIED",
        "DENIED",
        "ADMITTED",
        "DENIED",
        "DENIED",
    ]
    assert "expected:" not in ran.out


def test_demo_notices_an_unexpected_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """With the attacker's gift card on the customer's account, the attack is another story."""
    for file in EXAMPLES.iterdir():
        text = file.read_text(encoding="utf-8")
        (tmp_path / file.name).write_text(text.replace('"gift_card_7003":', '"gift_card_6666":'), encoding="utf-8")
    monkeypatch.setattr(demo, "examples", lambda: tmp_path)
    with Progressing() as reporter:
        assert not demo.tell(reporter)
    assert "expected: deny retail.confirmation, retail.payment" in capsys.readouterr().out


def test_policies() -> None:
    ran = leanguard("policies", "--json")
    assert "retail" in [policy["name"] for policy in ran.json["policies"]]
    assert "retail.payment" in leanguard("policies").out


def test_a_long_journal_is_no_reason_to_deny(tmp_path: Path) -> None:
    lines = (EXAMPLES / "journal_confirmed.jsonl").read_text(encoding="utf-8").splitlines()
    read = next(line for line in lines if '"observation"' in line)
    journal = tmp_path / "long.jsonl"
    journal.write_text("\n".join([lines[0], *[read] * 3000, *lines[1:]]) + "\n", encoding="utf-8")
    ran = leanguard("check", *options(journal=journal, call=EXAMPLES / "call.json"))
    assert ran.code == 0, ran
    assert ran.out.startswith("admitted")


def test_feedback_for_a_model() -> None:
    injected = options(call=EXAMPLES / "call_injected.json")
    told = {style: leanguard("check", *injected, "--feedback", style) for style in ("bare", "rules", "hints")}
    assert {ran.code for ran in told.values()} == {1}
    assert told["bare"].out == "The call was denied and not made.\n"
    assert "- retail.payment (policy prohibition)\n" in told["rules"].out
    assert "Use a payment method that is on the customer's account" in told["hints"].out
    assert leanguard("check", *options(), "--feedback=hints").out == "The call is admitted.\n"
    refused(leanguard("check", *injected, "--feedback", "long"), "--feedback: expected one of bare, rules, hints")
    both = leanguard("check", *injected, "--feedback", "bare", "--json")
    assert (both.code, both.json["error"]["expected"][:9]) == (2, "no --json")


def test_without_the_stricter_rules() -> None:
    decided = {}
    for flags in ((), ("--without-stricter",)):
        answer = leanguard("check", *options(), "--json", *flags)
        assert answer.code == 0
        decided[answer.json["policy"]] = answer.json["policy_digest"]
    assert set(decided) == {"retail", "retail:without-stricter"}
    assert len(set(decided.values())) == 2
    marked = {
        rule["id"] for p in leanguard("policies", "--json").json["policies"] for rule in p["rules"] if rule["stricter"]
    }
    assert marked == {"retail.modify_once", "telecom.stable_identity"}
    unknown = leanguard("check", *options(policy="retial"), "--without-stricter")
    assert unknown.code == 2
    assert "did you mean retail" in unknown.err


def test_explain() -> None:
    ran = leanguard("explain", "retail.exchange_items", "--json")
    assert {"id", "kind", "category", "hint", "sentence", "tools"} <= set(ran.json)
    assert ran.json["tools"] == ["exchange_delivered_order_items"]
    assert "every tool that writes" in leanguard("explain", "host.no_overlap").out
    assert leanguard("explain", "host.arguments").code == 0
    refused(leanguard("explain", "retail.paymnt"), "did you mean retail.payment?")


def test_host_rules_are_as_lean_tells_them(tmp_path: Path) -> None:
    from leanguard_host.builtin import HOST_RULES

    known = {rule["id"]: rule for rule in HOST_RULES}
    for call in ({"tool": "none", "arguments": {}}, {"tool": "get_order_details", "arguments": {}}):
        for rule in check("--json", call=write(tmp_path, call)).json["failed_rules"]:
            assert {name: known[rule["id"]][name] for name in rule} == rule


def test_doctor_and_toolchain() -> None:
    facts = leanguard("doctor", "--json").json
    assert facts["chosen"]["version"].startswith("4.")
    assert facts["chosen"]["lake"] == leanguard("toolchain", "path").out.strip()
    assert facts["chosen"]["version"] in leanguard("doctor").out
    assert leanguard("toolchain", "show", "--json").json["kind"] == facts["chosen"]["kind"]
    assert leanguard("toolchain", "install").code == 0


def test_build() -> None:
    ran = leanguard("build", "--json")
    assert ran.json["compiled"] == 0
    assert "up to date" in leanguard("build").out


def test_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert leanguard("version").out == f"leanguard {leanguard_host.__version__}\n"
    assert project["version"] == leanguard_host.__version__


def test_help() -> None:
    ran = leanguard("--help")
    assert ran.code == 0
    assert "leanguard demo" in ran.out
    ran = leanguard("check", "--help")
    assert "Exit codes" in ran.out


# ---- output ----


def on_a_terminal(arguments: list[str], env: dict[str, str]) -> str:
    """What a command prints on a terminal."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(arguments, stdin=terminal, stdout=terminal, stderr=terminal, env=env, close_fds=True)
    os.close(terminal)
    data = b""
    try:
        while select.select([main], [], [], 60)[0]:
            more = os.read(main, 65536)
            if not more:
                break
            data += more
    except OSError:  # how Linux tells that the other side is closed
        pass
    finally:
        os.close(main)
        process.wait(timeout=60)
    return data.decode()


def test_colours_only_on_a_terminal() -> None:
    arguments = command("check", *options(journal=EXAMPLES / "journal.jsonl"))
    env = environment(TERM="xterm-256color", NO_COLOR=None)
    assert "\x1b[" in on_a_terminal(arguments, env)
    assert "\x1b[" not in on_a_terminal(arguments, {**env, "NO_COLOR": "1"})
    for ran in (
        check(journal=EXAMPLES / "journal.jsonl"),
        leanguard("demo"),
        leanguard("doctor"),
        leanguard("policies"),
    ):
        assert "\x1b" not in ran.out + ran.err


def test_untrusted_texts_can_not_reach_the_terminal(tmp_path: Path) -> None:
    call = {"tool": "get_order_details", "arguments": {"order_id": "#L20417", "\x1b[2Jx\n\u2028admitted": 1}}
    ran = check(call=write(tmp_path, call))
    assert ran.code == 1
    assert "\x1b" not in ran.out
    assert ran.out.splitlines()[0] == "denied"
    assert "admitted" not in [line.strip() for line in ran.out.splitlines()]
    assert "\x1b" not in check(policy="\x1b[2J").err


def test_narrow_encodings() -> None:
    ran = leanguard("explain", "retail.delivered", env=environment(PYTHONIOENCODING="ascii"))
    assert ran.code == 0
    assert "\\u201cdelivered\\u201d" in ran.out


def test_a_decision_that_can_not_be_told_is_no_admission() -> None:
    for redirection in ("| true", "> /dev/full"):
        done = subprocess.run(
            ["/bin/bash", "-c", f'set -o pipefail; "$@" {redirection}', "bash", *command("check", *options())],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr
        if redirection != "| true":  # there it depends on who is faster
            assert done.returncode == 1


def test_interrupted(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    arguments = command("check", *options(call=pipe))
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    time.sleep(1.5)  # it waits for somebody to write into the pipe
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in out + err


# ---- the quick way ----


def test_the_quick_way_is_taken_for_plain_checks_alone() -> None:
    full = options()
    assert plain_check(["check", *full, "--json", "--timeout=3"]) == {
        "policy": "retail",
        "snapshot": str(EXAMPLES / "snapshot.json"),
        "journal": str(EXAMPLES / "journal_confirmed.jsonl"),
        "call": str(EXAMPLES / "call.json"),
        "json_": True,
        "timeout": 3.0,
    }
    assert plain_check(["check", "--policy=p", "--snapshot=s", "--journal=j", "--call", "-"])
    for arguments in (
        [],
        ["demo"],
        ["check", "--help"],
        ["check", *full[:-2]],
        ["check", *full[:-1]],
        ["check", *full, "--call", "other"],
        ["check", *full, "--json=yes"],
        ["check", *full, "more"],
        ["check", *full, "--timeout", "soon"],
        ["check", "--policy", "--snapshot", *full],
    ):
        assert plain_check(arguments) is None


def test_both_ways_to_the_command_agree() -> None:
    slow = leanguard("check", *options(), "--json", "--json", "--repair", "--no-repair")
    assert slow.code == 2  # there is no such option: the full parser said so
    quick = check("--json").json
    full = leanguard("check", *options()[2:], "--policy", "x", "--policy", "retail", "--json").json
    assert {**quick, "elapsed_ms": 0} == {**full, "elapsed_ms": 0}


def test_a_plain_check_imports_little() -> None:
    program = (
        "import sys; from leanguard_host import cli\n"
        "try: cli.main()\n"
        "finally: print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    arguments = command("check", *options())
    done = subprocess.run(
        [arguments[0], "-c", program, *arguments[3:]],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    imported = set(done.stdout.splitlines()[-1].split())
    assert done.returncode == 0
    assert not imported & {"pydantic", "typer", "rich", "lean_interact", "psutil", "filelock", "asyncio"}
