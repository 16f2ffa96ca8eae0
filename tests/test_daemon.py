"""The background process, through the real command."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from helpers import EXAMPLES, Ran, command, environment, leanguard, options

from leanguard_host import checking, client
from leanguard_host.engine import Silent
from leanguard_host.jsonfiles import Source

Status = Callable[[], dict[str, Any]]


def check(*more: str, env: dict[str, str] | None = None) -> Ran:
    return leanguard("check", *options(), "--json", *more, env=env)


def workers(status: dict[str, Any]) -> list[psutil.Process]:
    """The processes that make up Lean."""
    process = psutil.Process(status["lean_pid"])
    return [process, *process.children(recursive=True)]


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(condition: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_commands_share_it(daemon: Status) -> None:
    before = daemon()
    assert check().code == 0
    after = daemon()
    assert (after["pid"], after["lean_pid"]) == (before["pid"], before["lean_pid"])
    assert after["requests"] > before["requests"]
    assert str(before["pid"]) in leanguard("daemon", "status").out


def test_it_stands_alone(daemon: Status) -> None:
    pid = daemon()["pid"]
    assert os.getsid(pid) == pid
    assert stat.S_IMODE(client.run_dir().stat().st_mode) == 0o700
    assert len(os.fsencode(client.socket_path())) <= 108


def test_lean_killed_during_a_request(daemon: Status) -> None:
    victims = workers(daemon())
    for process in victims:
        process.suspend()  # so that it has the request, and has not answered
    running = subprocess.Popen(
        command("check", *options(), "--json", "--timeout", "20"), stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert not until(lambda: running.poll() is not None, 2)
    for process in victims:
        os.kill(process.pid, signal.SIGKILL)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 1
    assert '"host.unavailable"' in out
    assert check().code == 0


def test_slow_lean(daemon: Status) -> None:
    workers(daemon())[-1].suspend()
    denial = check("--timeout", "0.3")
    assert denial.code == 1
    assert re.search(r"did not answer within 0\.3\d* s", denial.json["errors"][0]["message"])
    assert check().code == 0


def test_killed_during_a_request(daemon: Status) -> None:
    status = daemon()
    victims = workers(status)
    for process in victims:
        process.suspend()
    running = subprocess.Popen(
        command("check", *options(), "--json", "--timeout", "20"), stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert not until(lambda: running.poll() is not None, 2)
    os.kill(status["pid"], signal.SIGKILL)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 1
    assert '"host.unavailable"' in out and '"backend-4182"' in out
    for process in victims:
        process.resume()
    assert until(lambda: not any(alive(process.pid) for process in victims))  # Lean ends with it
    assert Path(status["socket"]).exists()  # it is stale now
    assert check().code == 0
    assert daemon()["pid"] != status["pid"]


def test_stop_and_several_that_start_one(daemon: Status) -> None:
    socket_file = Path(daemon()["socket"])
    assert "Ended 1" in leanguard("daemon", "stop").out
    assert not socket_file.exists()
    results: list[Ran] = []
    threads = [threading.Thread(target=lambda: results.append(check("--timeout", "20"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [ran.code for ran in results] == [0, 0, 0], results
    found = leanguard("daemon", "status", "--json").json["daemons"]
    ours = [one for one in found if one["socket"] == str(socket_file)]
    assert len(ours) == 1
    assert ours[0]["requests"] >= 3


def test_it_ends_when_idle(lean: None) -> None:
    env = environment(LEANGUARD_IDLE_SECONDS="10")
    assert check(env=env).code == 0
    daemons = leanguard("daemon", "status", "--json", env=env).json["daemons"]
    found = [one for one in daemons if one["idle_seconds"] == 10]
    assert len(found) == 1
    assert until(lambda: not alive(found[0]["pid"]))
    socket_file = Path(found[0]["socket"])
    assert not list(socket_file.parent.glob(f"{socket_file.stem}.*"))


def test_sigterm(daemon: Status) -> None:
    status = daemon()
    victims = workers(status)
    os.kill(status["pid"], signal.SIGTERM)
    assert until(lambda: not alive(status["pid"]) and not any(alive(process.pid) for process in victims))
    assert not Path(status["socket"]).exists()


def test_a_removed_socket(daemon: Status) -> None:
    pid = daemon()["pid"]
    Path(daemon()["socket"]).unlink()
    assert until(lambda: not alive(pid))


def test_what_does_not_speak_its_language(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as impostor:
        impostor.bind(str(tmp_path / "socket"))
        impostor.listen()

        def talk() -> None:
            connection, _ = impostor.accept()
            with connection:
                connection.sendall(b'{"hello": 1}\n')

        thread = threading.Thread(target=talk)
        thread.start()
        with pytest.raises(client.DaemonError):
            client.connect(tmp_path / "socket")
        thread.join()


def test_going_on_without_it(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def refuse() -> None:
        raise client.DaemonError("something else listens there")

    decided = {"verdict": "deny", "failed_rules": [], "errors": []}
    monkeypatch.setattr(checking, "connect", refuse)
    monkeypatch.setattr(checking, "_check_here", lambda *given: decided)
    sources = [Source(name, (EXAMPLES / name).read_text()) for name in ("call.json", "snapshot.json", "journal.jsonl")]
    assert checking.check("retail", *sources, timeout=1, reporter=Silent()) is decided
    assert "without the background process: something else listens there" in capsys.readouterr().err


@pytest.mark.parametrize(
    "answer", [b"", b"{}", b"{}\n", b"nonsense\n", b'{"id": "other", "decision": {}}\n', b"\xff\n"]
)
def test_answers_that_are_none(answer: bytes, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as broken:
        broken.bind(str(tmp_path / "socket"))
        broken.listen()

        def talk() -> None:
            connection, _ = broken.accept()
            with connection, connection.makefile("rb") as lines:
                connection.sendall(b'{"protocol": 1}\n')
                lines.readline()
                connection.sendall(answer)

        thread = threading.Thread(target=talk)
        thread.start()
        with client.Connection(tmp_path / "socket") as connection, pytest.raises(client.DaemonLostError):
            connection.ask({"op": "check"})
        thread.join()


def test_requests_that_are_none(daemon: Status) -> None:
    assert daemon()["pid"]
    for text in (
        b"nonsense\n",
        b"[]\n",
        b"{}\n",
        b'{"id": 1, "op": "launch"}\n',
        b'{"id": 1, "op": "check"}\n',
        b"\xff\n",
    ):
        with client.Connection(client.socket_path()) as connection:
            connection._socket.sendall(text)
            assert b'"fault"' in connection._file.readline()
    assert check().code == 0


def test_a_changed_policy_gets_another_one(lean: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    (package / "LeanGuard").mkdir(parents=True)
    (package / "policies").mkdir()
    for name in ("lakefile.lean", "lean-toolchain", "policies/P.lean"):
        (package / name).write_text("one")
    monkeypatch.setenv("LEANGUARD_PACKAGE", str(package))
    first = client.fingerprint()
    assert client.fingerprint() == first
    (package / "policies" / "P.lean").write_text("two")
    second = client.fingerprint()
    assert second != first
    monkeypatch.setenv("LEANGUARD_TOOLCHAIN", "portable")
    assert client.fingerprint() not in (first, second)


def test_long_cache_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEANGUARD_CACHE_DIR", str(tmp_path / ("x" * 90)))
    folder = client.run_dir()
    try:
        assert len(os.fsencode(folder / ("0" * 16 + ".sock"))) <= client.LONGEST_PATH
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        folder.rmdir()


def test_a_folder_that_others_may_enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEANGUARD_CACHE_DIR", str(tmp_path))
    (tmp_path / "run").mkdir(mode=0o777)
    assert stat.S_IMODE(client.run_dir().stat().st_mode) == 0o700
    (tmp_path / "run").rmdir()
    (tmp_path / "run").symlink_to(tmp_path)
    with pytest.raises(client.DaemonError):
        client.run_dir()


def test_serve(lean: None) -> None:
    env = environment(LEANGUARD_IDLE_SECONDS="555")
    serving = subprocess.Popen(command("serve"), stderr=subprocess.PIPE, text=True, env=env)
    try:
        assert serving.stderr is not None
        lines = [serving.stderr.readline()]
        while lines[-1] and not lines[-1].startswith("ready"):
            lines.append(serving.stderr.readline())
        assert lines[-1].startswith("ready"), lines
        assert check(env=env).code == 0
        again = leanguard("serve", env=env)
        assert again.code == 1
        assert "running already" in again.err
        serving.send_signal(signal.SIGINT)
        assert serving.wait(timeout=30) == 0
    finally:
        serving.kill()
        serving.wait()
