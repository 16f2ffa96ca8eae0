"""From an address to a store."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from leanguard_host.store.base import JournalStore
from leanguard_host.store.errors import JournalError
from leanguard_host.store.sqlite import SQLiteStore

_SQLITE = "sqlite://"
_POSTGRES = ("postgresql://", "postgres://")


def open_store(
    where: str | PathLike[str],
    *,
    create: bool = True,
    read_only: bool = False,
    timeout: float = 5.0,
    store_id: str | None = None,
) -> JournalStore:
    """Open a journal, or create it; one of an older version is migrated.

    Args:
        where: a path; `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://:memory:` (for tests);
            `postgresql://user@host/database`.
        create: whether a missing journal is created.
        read_only: whether nothing may be written, not even a migration.
        timeout: seconds to wait for others who use the journal.
        store_id: the id of a journal that is created; random if None.

    Raises:
        ValueError: the timeout is not positive.
        JournalVersionError: it is of a newer version; or of an older one, and `read_only`.
        JournalBusyError: others held it for longer than the timeout.
        JournalError: it can't be opened; `remedy` says what to do.
    """
    if not timeout > 0:
        raise ValueError("timeout must be more than 0 seconds")
    address = fspath(where)
    if address.startswith(_POSTGRES):
        try:
            from leanguard_host.store.postgres import PostgresStore, without_password
        except ImportError as error:
            raise JournalError(
                "in PostgreSQL", f"needs psycopg ({error})", 'Install it with `pip install "leanguard[postgres]"`.'
            ) from None
        shown = without_password(address)
        if not address.partition("://")[2]:
            raise JournalError(shown, "has no usable address", "Write postgresql://user@host/database.")
        return PostgresStore(address, create=create, read_only=read_only, timeout=timeout, store_id=store_id)
    path = _sqlite_path(address)
    return SQLiteStore(path, create=create, read_only=read_only, timeout=timeout, store_id=store_id)


def _sqlite_path(address: str) -> Path | None:
    if address in ("sqlite://:memory:", "sqlite:///:memory:", ":memory:"):
        return None
    if address.startswith(_SQLITE):
        path = address.removeprefix(_SQLITE)
        if not path.startswith("/") or len(path) == 1:
            raise JournalError(
                address, "has no usable address", "Write sqlite:///name.db, with a fourth slash for an absolute path."
            )
        return Path(path[1:])
    if "://" in address:
        kind = address.partition("://")[0]
        raise JournalError(
            f"{kind}://...",
            "is of no known kind",
            "Write a path, sqlite:///name.db or postgresql://user@host/database.",
        )
    if not address:
        raise JournalError(
            '""', "has no usable address", "Write a path, sqlite:///name.db or postgresql://user@host/database."
        )
    return Path(address)
