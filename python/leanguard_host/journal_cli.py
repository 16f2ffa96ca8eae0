"""`leanguard journal`: verify, export, import, show, upgrade."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

# Imported on use: the command line starts without pydantic and the databases.
if TYPE_CHECKING:
    from leanguard_host.store import Head, JournalStore, StoredEvent

app = typer.Typer(help="Verify, export, import and show journals.", no_args_is_help=True, add_completion=False)

_TAMPERED, _UNUSABLE = 1, 2
_JOURNAL = "A journal: a file, or an address like postgresql://user@host/database."

JournalArgument = Annotated[str, typer.Argument(metavar="PATH", help=_JOURNAL, show_default=False)]


@contextmanager
def _reported() -> Iterator[None]:
    """Tell errors in one line and end with their exit status."""
    from leanguard_host.store import JournalError, JournalTamperedError

    try:
        yield
    except JournalTamperedError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(_TAMPERED) from None
    except JournalError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(_UNUSABLE) from None
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain once more when it flushes at its end.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except OSError as error:
        typer.echo(
            f"{error.filename or 'The output'} can't be written: {(error.strerror or str(error)).lower()}.", err=True
        )
        raise typer.Exit(_UNUSABLE) from None


def _is_export(path: str) -> bool:
    """Whether a file looks like an export. SQLite complains about what is neither."""
    if "://" in path:
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(1) == b"{"
    except (OSError, ValueError):
        return False


def _anchor(text: str | None) -> Head | None:
    from leanguard_host.store import Head

    try:
        return None if text is None else Head.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--head") from None


@app.command()
def verify(
    path: Annotated[str, typer.Argument(metavar="PATH", help=f"{_JOURNAL} Or an export.", show_default=False)],
    head: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH:HASH",
            help="What an earlier verification printed; what was recorded then must still be there.",
        ),
    ] = None,
) -> None:
    """Check that every event is as it was recorded.

    Exit status: 0 all are; 1 one was changed, dropped, moved or inserted, and the first is named; 2 unusable input.
    """
    from leanguard_host.store import ExportFile, open_store

    anchor = _anchor(head)
    with _reported():
        if _is_export(path):
            source = ExportFile(path)
            where, finding = source.where, source.check(anchor)
            end: Head | None = source.header.head
        else:
            with open_store(path, create=False, read_only=True) as store:
                where, finding = store.where, store.verify_chain(anchor)
                end = store.head() if finding is None else None
    if finding is not None or end is None:
        typer.echo(f"{where}: {finding}.", err=True)
        raise typer.Exit(_TAMPERED)
    typer.echo(f"{where}: {_counted(end.length)}, as recorded. Head {end}")


def _counted(number: int) -> str:
    return f"{number} event{'' if number == 1 else 's'}"


@app.command()
def export(
    path: JournalArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Standard output if not given.")
    ] = None,
) -> None:
    """Write a journal as JSON lines, checking it on the way."""
    from leanguard_host.store import export_journal, open_store

    with _reported(), open_store(path, create=False, read_only=True) as store:
        if output is None or str(output) == "-":
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
            export_journal(store, sys.stdout)
            sys.stdout.flush()
        else:
            number = _export_file(store, output)
            typer.echo(f"{output}: {_counted(number)}", err=True)


def _export_file(store: JournalStore, output: Path) -> int:
    """Under another name first, so that a file by this name is always a whole export."""
    from leanguard_host.store import export_journal

    handle, name = tempfile.mkstemp(dir=output.absolute().parent, prefix=f".{output.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123 - it is a descriptor
            number = export_journal(store, file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(output)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return number


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An export.", show_default=False)],
    path: Annotated[str, typer.Argument(metavar="PATH", help=f"{_JOURNAL} It must be new.", show_default=False)],
) -> None:
    """Make a new journal of an export, if it verifies."""
    from leanguard_host.store import import_journal

    with _reported():
        number = import_journal(file, path)
    typer.echo(f"{path if '://' not in path else 'The journal'}: {_counted(number)}")


@app.command()
def show(
    path: JournalArgument,
    tail: Annotated[int | None, typer.Option(min=0, metavar="N", help="Only the newest N events.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line: position, hash and event.")] = False,
) -> None:
    """Print a journal's events, oldest first."""
    from leanguard_host.store import open_store
    from leanguard_host.store.export import one_line

    with _reported(), open_store(path, create=False, read_only=True) as store:
        start = 0 if tail is None else max(0, store.length() - tail)
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        for stored in store.read(start):
            line = (
                f'{{"event":{one_line(stored.json)},"hash":"{stored.hash}","position":{stored.position}}}'
                if json
                else _row(stored)
            )
            sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _row(stored: StoredEvent) -> str:
    from leanguard_host.feedback import printable
    from leanguard_host.store.canonical import canonical

    event = stored.event
    resource = f"{event.resource.type}:{event.resource.id}" if event.resource else None
    call = f"{event.call.tool}({canonical(event.call.arguments)})" if event.call else None
    data = canonical(event.data) if event.data is not None else None
    parts = (event.kind, event.status, event.principal, event.conversation, resource, event.revision, call, data)
    # Arguments come from a model: no control characters on a terminal.
    return printable(f"{stored.position:>7}  {_time(event.time)}  " + "  ".join(part for part in parts if part))


def _time(milliseconds: int) -> str:
    try:
        return (
            datetime.fromtimestamp(milliseconds / 1000, UTC)
            .isoformat(sep=" ", timespec="milliseconds")
            .replace("+00:00", "Z")
        )
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"


@app.command()
def upgrade(path: JournalArgument) -> None:
    """Bring a journal of an older version to this one's, if it verifies."""
    from leanguard_host.store import SCHEMA_VERSION, open_store

    with _reported(), open_store(path, create=False) as store:
        typer.echo(f"{store.where}: version {SCHEMA_VERSION}, {_counted(store.length())}")
