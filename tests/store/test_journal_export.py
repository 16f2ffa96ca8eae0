"""Exports, imports and the command line."""

# The tables have other names in each database; the names are constants of the helpers.
# ruff: noqa: S608

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from journal_helpers import RICH, Backend, SQLiteBackend, event
from typer.testing import CliRunner

from leanguard_host.journal_cli import app
from leanguard_host.store import (
    ExportFile,
    JournalError,
    JournalTamperedError,
    export_journal,
    import_journal,
    open_store,
)


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def exported(sqlite: SQLiteBackend, tmp_path: Path) -> Path:
    with open_store(sqlite.url) as store:
        store.append([RICH, *[event(number) for number in range(1, 10)]])
    assert run("export", sqlite.path, "--output", tmp_path / "export.jsonl").exit_code == 0
    return tmp_path / "export.jsonl"


def test_an_export_makes_the_same_journal(backend: Backend, tmp_path: Path) -> None:
    with open_store(backend.url) as store:
        store.append([RICH, *[event(number) for number in range(1, 1500)]])
        output = io.StringIO()
        assert export_journal(store, output) == 1500
        head, store_id, events = store.head(), store.store_id, list(store.read())
    file = tmp_path / "export.jsonl"
    file.write_text(output.getvalue(), encoding="utf-8")
    assert ExportFile(file).check() is None
    assert import_journal(file, backend.other) == 1500
    with open_store(backend.other, create=False) as copy:
        assert (copy.head(), copy.store_id) == (head, store_id)
        assert [(s.position, s.json, s.hash) for s in copy.read()] == [(s.position, s.json, s.hash) for s in events]
        assert copy.verify_chain(head) is None
        again = io.StringIO()
        export_journal(copy, again)
    assert again.getvalue() == output.getvalue()
    with pytest.raises(JournalError, match="exists already"):
        import_journal(file, backend.other)


def test_an_export_written_differently(exported: Path) -> None:
    lines = [json.loads(line) for line in exported.read_text(encoding="utf-8").splitlines()]
    exported.write_text("\r\n\n".join(json.dumps(dict(reversed(line.items())), indent=None) for line in lines))
    assert ExportFile(exported).check() is None


TAMPERED: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "changed": (lambda x: [*x[:5], x[5].replace('"number":4', '"number":7'), *x[6:]], "event 4 was changed"),
    "dropped": (lambda x: x[:5] + x[6:], "event 4 was dropped"),
    "swapped": (lambda x: [*x[:5], x[6], x[5], *x[7:]], "event 4 was moved"),
    "repeated": (lambda x: x[:6] + x[5:], "event 4 was inserted"),
    "cut": (lambda x: x[:-1], "event 9 was dropped"),
    "emptied": (lambda x: x[:1], "event 0 was dropped"),
}


@pytest.mark.parametrize("change", TAMPERED)
def test_a_tampered_export(change: str, exported: Path, tmp_path: Path) -> None:
    alter, expected = TAMPERED[change]
    exported.write_text("".join(alter(exported.read_text(encoding="utf-8").splitlines(True))), encoding="utf-8")
    result = run("verify", exported)
    assert result.exit_code == 1
    assert expected in result.stderr
    target = tmp_path / "imported.db"
    result = run("import", exported, target)
    assert result.exit_code == 1
    assert expected in result.stderr
    assert not target.exists()
    with pytest.raises(JournalTamperedError):
        import_journal(exported, target)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{", "line 1"),
        (b"{}\n", "no header"),
        (b'{"format":"leanguard journal"}\n', "header lacks"),
        (b'{"format":"leanguard journal","version":3}\n', "Upgrade LeanGuard"),
        (b"{\xff\n", "UTF-8"),
        (
            b'{"format":"leanguard journal","head":"%b","length":1,"store":"x","version":2}\nnull\n' % (b"0" * 64),
            "line 2",
        ),
    ],
)
def test_what_is_no_export(content: bytes, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "export.jsonl"
    file.write_bytes(content)
    for arguments in (("verify", file), ("import", file, tmp_path / "new.db")):
        result = run(*arguments)
        assert (result.exit_code, expected in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "new.db").exists()


def test_a_duplicate_key_in_an_export(exported: Path) -> None:
    text = exported.read_text(encoding="utf-8").replace(
        '{"event":{"data":{"number":4}', '{"event":{"data":{"number":1,"number":4}'
    )
    exported.write_text(text, encoding="utf-8")
    result = run("verify", exported)
    assert result.exit_code == 2
    assert "duplicate key" in result.stderr


def test_an_export_with_what_is_no_event(sqlite: SQLiteBackend, tmp_path: Path) -> None:
    from leanguard_host.store.chain import Head, chained

    with open_store(sqlite.url) as store:
        (record,) = chained(store.head().hash, 0, ['{"kind":"future","time":1,"weather":"fine"}'])
        with store.transaction():
            store._write([record], Head(0, record.previous))
    file = tmp_path / "export.jsonl"
    assert run("export", sqlite.path, "-o", file).exit_code == 0
    assert run("verify", file).exit_code == 0
    result = run("import", file, tmp_path / "new.db")
    assert result.exit_code == 2
    assert "weather" in result.stderr
    assert not (tmp_path / "new.db").exists()


def test_verify(backend: Backend, tmp_path: Path) -> None:
    with open_store(backend.url) as store:
        store.append([event(0), event(1)])
        head = store.head()
        store.append([event(2)])
    result = run("verify", backend.url)
    assert result.exit_code == 0
    assert "3 events, as recorded" in result.stdout
    assert run("verify", backend.url, "--head", str(head)).exit_code == 0
    assert run("verify", backend.url, "--head", f"2:{'0' * 64}").exit_code == 1
    assert run("verify", backend.url, "--head", "2").exit_code == 2
    backend.raw(f"UPDATE {backend.events} SET body = '{{}}' WHERE position = 1")
    result = run("verify", backend.url)
    assert result.exit_code == 1
    assert "event 1 was changed" in result.stderr
    assert run("export", backend.url, "--output", tmp_path / "export.jsonl").exit_code == 1
    assert list(tmp_path.glob("*export*")) == []


@pytest.mark.parametrize("content", [None, b"", b"no journal at all", b"SQLite format 3\0" + b"x" * 5000])
def test_verify_what_is_no_journal(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    if content is not None:
        file.write_bytes(content)
    for command in ("verify", "export", "show", "upgrade"):
        result = run(command, file)
        assert result.exit_code == 2
        assert str(file) in result.stderr
    assert file.exists() == (content is not None)
    assert run("verify", tmp_path).exit_code == 2


def test_show(sqlite: SQLiteBackend) -> None:
    with open_store(sqlite.url) as store:
        store.append([event(0), event(1), RICH.model_copy(update={"principal": "evil\x1b[2J"})])
    result = run("show", sqlite.path)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 3
    assert "\x1b" not in result.stdout
    assert "2023-11-14 22:13:20.000Z  observation" in result.stdout
    assert '"price":0.1' in result.stdout
    result = run("show", sqlite.path, "--tail", "2", "--json")
    assert [json.loads(line)["position"] for line in result.stdout.splitlines()] == [1, 2]
    assert run("show", sqlite.path, "--tail", "0").stdout == ""


def test_output_that_ends_early(sqlite: SQLiteBackend) -> None:
    with open_store(sqlite.url) as store:
        store.append([event(number, pad="x" * 1000) for number in range(1000)])
    program = f"{sys.executable} -c 'from leanguard_host.journal_cli import app; app()'"
    result = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program} export {sqlite.path} | head -1"], capture_output=True, timeout=60
    )
    assert (result.returncode, result.stderr, result.stdout.count(b"\n")) == (0, b"", 1)


def test_upgrade(sqlite: SQLiteBackend) -> None:
    sqlite.version_1("old", [])
    assert run("verify", sqlite.path).exit_code == 2
    assert "version 2" in run("upgrade", sqlite.path).stdout
    assert run("verify", sqlite.path).exit_code == 0
