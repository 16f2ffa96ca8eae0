"""The warm process: nothing that it does wrong may pass for an answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from leanguard_host.lean.build import BuildResult, build
from leanguard_host.lean.errors import LeanCrashed, LeanTimeout, LeanUnavailable
from leanguard_host.lean.process import LeanProcess
from leanguard_host.lean.toolchain import Toolchain

from .conftest import MakePackage, MakeProgram

LAKE = '#!/bin/sh\nshift\nexec "$@"\n'
REPL = f"""#!{sys.executable}
import json, os, signal, sys, time

def answer(value):
    sys.stdout.write(json.dumps(value) + "\\n\\n")
    sys.stdout.flush()

def raw(text):
    sys.stdout.buffer.write(text)
    sys.stdout.flush()

last = None
while True:
    lines = []
    while (line := sys.stdin.readline()).strip():
        lines.append(line)
    if not lines:
        break
    request = json.loads("".join(lines))
    guard = request.get("guard", {{}})
    good = {{"guard": {{"id": guard.get("id"), "ok": True, "size": len(guard.get("text", "")), "pid": os.getpid()}}}}
    match guard.get("op"):
        case "hang": time.sleep(1000)
        case "hang with a child":
            os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")
            time.sleep(1000)
        case "die": os.kill(os.getpid(), signal.SIGKILL)
        case "die halfway":
            raw(b'{{"guard": {{"id"')
            sys.exit(1)
        case "die with a word":
            sys.stderr.write("INTERNAL PANIC: out of memory")
            sys.exit(1)
        case "garbage": raw(b"hello\\n\\n")
        case "not utf-8": raw(b'{{"guard": "\\xff"}}\\n\\n')
        case "empty": raw(b"\\n\\n")
        case "not an object": raw(b"[1]\\n\\n")
        case "no id": answer({{"guard": {{"ok": True}}}})
        case "stale": answer({{"guard": {{"id": last, "ok": True}}}})
        case "message": answer({{"message": "could not serve"}})
        case "twice":
            raw((json.dumps(good) + "\\n\\n" + json.dumps(good) + "\\n\\n").encode())
        case "late":
            answer(good)
            time.sleep(0.1)
            answer(good)
        case "slow":
            time.sleep(1)
            answer(good)
        case "noisy":
            sys.stderr.write("x" * 1_000_000)
            sys.stderr.flush()
            answer(good)
        case "long": answer({{"guard": {{"id": guard["id"], "text": "é" * 500_000}}}})
        case _: answer(good if guard else {{"env": 0, "got": request}})
    last = guard.get("id")
"""

MakeProcess = Callable[[], LeanProcess]


def result(root: Path, lake: Path) -> BuildResult:
    """A built package with a given lake."""
    return BuildResult(root, Toolchain("official", "4.28.0", "", lake, "key", ""), root, (), {})


@pytest.fixture
def process(make_package: MakePackage, make_program: MakeProgram, tmp_path: Path) -> Iterator[LeanProcess]:
    root = make_package({})
    make_program(root / ".lake/build/bin/repl", REPL)
    with LeanProcess(result(root, make_program(tmp_path / "lake", LAKE)), start_timeout=20) as started:
        yield started


def works(process: LeanProcess) -> None:
    """The next request is answered."""
    assert process.guard({"op": "admit"}, 10)["ok"] is True


def test_answers_without_the_id(process: LeanProcess) -> None:
    body = process.guard({"op": "admit", "text": "a\n\n\u2028é"}, 10)
    assert body["size"] == 5 and "id" not in body
    works(process)
    assert process.starts == 1


def test_command(process: LeanProcess) -> None:
    assert process.command("#eval 1", timeout=10)["got"] == {"cmd": "#eval 1"}
    assert process.command("#eval 1", env=3, timeout=10)["got"] == {"cmd": "#eval 1", "env": 3}


@pytest.mark.parametrize(
    ("op", "says"),
    [
        ("die", "ended"),
        ("die halfway", "in the middle of an answer"),
        ("die with a word", "INTERNAL PANIC"),
        ("garbage", "hello"),
        ("not utf-8", "utf-8"),
        ("empty", "no output|parse"),
        ("not an object", "not an object|attribute"),
        ("no id", "something else"),
        ("stale", "something else"),
        ("message", "could not serve"),
        ("twice", "more than one answer"),
    ],
)
def test_a_bad_answer_is_a_crash_and_the_next_request_works(process: LeanProcess, op: str, says: str) -> None:
    works(process)
    with pytest.raises(LeanCrashed, match=says):
        process.guard({"op": op}, 10)
    assert process.pid is None
    works(process)
    assert process.starts == 2


def test_an_answer_that_comes_after_its_own_is_never_taken_for_the_next(process: LeanProcess) -> None:
    process.guard({"op": "late"}, 10)
    time.sleep(0.3)
    with pytest.raises(LeanCrashed, match="unasked"):
        process.guard({"op": "admit"}, 10)
    works(process)


def test_a_hang_is_stopped_with_all_its_children(process: LeanProcess) -> None:
    works(process)
    pid = process.pid
    assert pid is not None
    before = time.monotonic()
    with pytest.raises(LeanTimeout, match=r"within 0\.5 s"):
        process.guard({"op": "hang with a child"}, 0.5)
    assert time.monotonic() - before < 5
    assert not psutil.pid_exists(pid)
    assert not [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == ["sleep", "1000"]]
    works(process)


def test_a_late_answer_is_not_taken_for_the_next(process: LeanProcess) -> None:
    works(process)
    with pytest.raises(LeanTimeout):
        process.guard({"op": "slow"}, 0.2)
    works(process)
    assert process.starts == 2


def test_killed_between_and_during_requests(process: LeanProcess) -> None:
    works(process)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    time.sleep(0.2)
    works(process)  # nothing was lost
    pid = process.pid
    threading.Timer(0.3, lambda: os.kill(pid, signal.SIGKILL)).start()
    with pytest.raises(LeanCrashed):
        process.guard({"op": "hang"}, 10)
    works(process)


def test_a_request_that_is_not_read_times_out(
    make_package: MakePackage, make_program: MakeProgram, tmp_path: Path
) -> None:
    root = make_package({})
    make_program(root / ".lake/build/bin/repl", "#!/bin/sh\nsleep 1000\n")
    with (
        LeanProcess(result(root, make_program(tmp_path / "lake", LAKE)), start_timeout=0.5) as process,
        pytest.raises(LeanTimeout),
    ):
        process.guard({"text": "x" * 10_000_000}, 0.5)


def test_large_requests_answers_and_noise(process: LeanProcess) -> None:
    assert process.guard({"op": "admit", "text": "x" * 10_000_000}, 30)["size"] == 10_000_000
    assert len(process.guard({"op": "long"}, 30)["text"]) == 500_000
    works(process)
    assert process.guard({"op": "noisy"}, 30)["ok"] is True
    assert process.starts == 1


def test_several_threads(process: LeanProcess) -> None:
    sizes: list[int] = []

    def ask(size: int) -> None:
        for _ in range(20):
            sizes.append(process.guard({"op": "admit", "text": "x" * size}, 20)["size"] - size)

    threads = [threading.Thread(target=ask, args=(size,)) for size in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [0] * 160 and process.starts == 1


def test_close_frees_a_thread_that_waits(process: LeanProcess) -> None:
    works(process)
    threading.Timer(0.3, process.close).start()
    with pytest.raises(LeanUnavailable):
        process.guard({"op": "hang"}, 30)
    with pytest.raises(LeanUnavailable, match="closed"):
        process.guard({"op": "admit"}, 10)


def test_a_program_that_is_not_there(make_package: MakePackage, tmp_path: Path) -> None:
    process = LeanProcess(result(make_package({}), tmp_path / "no-lake"))
    with pytest.raises(LeanUnavailable, match="could not be started"):
        process.guard({"op": "admit"}, 10)


TOY = {
    "Repl.lean": """import Lean
open Lean

partial def spin (n : Nat) : IO Nat := do
  if n == 0 then return 0
  spin (n + 1)

partial def loop (input : IO.FS.Stream) (framed : Bool) (text : String) : IO Unit := do
  let line ← input.getLine
  if line.isEmpty then return
  if !line.trimAscii.isEmpty then return ← loop input framed (text ++ line)
  let answer ← match Json.parse text >>= (·.getObjVal? "guard") with
    | .error e => pure (Json.mkObj [("message", e)])
    | .ok body => do
      if (body.getObjVal? "op").toOption == some "spin" then discard (spin 1)
      IO.println "noise"
      IO.eprintln "more noise"
      pure (Json.mkObj [("guard", body)])
  IO.print (if framed then "\\x1e" ++ answer.compress ++ "\\n" else answer.compress ++ "\\n\\n")
  (← IO.getStdout).flush
  loop input framed ""

def main : IO Unit := do
  loop (← IO.getStdin) (← IO.getEnv "LEANGUARD_FRAMED").isSome ""
"""
}


@pytest.fixture
def toy(portable: Toolchain, make_package: MakePackage) -> BuildResult:
    """A small program, built by the portable toolchain."""
    return build(portable, root=make_package(TOY))


def test_real_lean_answers_hangs_and_dies(toy: BuildResult) -> None:
    with LeanProcess(toy) as process:
        assert process.guard({"op": "echo", "text": 'é\n"\x1e'}, 10) == {"op": "echo", "text": 'é\n"\x1e'}
        assert len(process.guard({"op": "echo", "text": "x" * 10_000_000}, 60)["text"]) == 10_000_000
        with pytest.raises(LeanTimeout):
            process.guard({"op": "spin"}, 1)
        assert process.guard({"op": "echo"}, 10) == {"op": "echo"}
        pid = process.pid
        assert pid is not None
        threading.Timer(0.5, lambda: os.kill(pid, signal.SIGKILL)).start()
        with pytest.raises(LeanCrashed):
            process.guard({"op": "spin"}, 60)
        assert process.guard({"op": "echo"}, 10) == {"op": "echo"}


def test_real_lean_dies_with_its_parent(toy: BuildResult) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.run([{str(toy.launcher)!r}])"], stdin=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + 60
        children: list[psutil.Process] = []
        while time.monotonic() < deadline and not any("boot.js" in " ".join(child.cmdline()) for child in children):
            children = psutil.Process(parent.pid).children(recursive=True)
            time.sleep(0.2)
        time.sleep(2)
        parent.kill()
        parent.wait()
        _, alive = psutil.wait_procs(children, timeout=10)
        assert children and not alive
    finally:
        if parent.stdin:
            parent.stdin.close()
