"""The journal: an append-only, hash-chained list of events in SQLite or PostgreSQL.

```python
with open_store("sqlite:///journal.db") as store:
    with store.transaction() as section:  # excludes every other thread and process
        time = next_time(section)
        section.append([Event(kind="reservation", time=time, ...)])
    # durable from here on
```
"""

from __future__ import annotations

from leanguard_host.store.aio import AsyncJournalStore
from leanguard_host.store.base import SCHEMA_VERSION, JournalStore, Transaction
from leanguard_host.store.chain import Head
from leanguard_host.store.clock import monotone_time, next_time, now_ms
from leanguard_host.store.errors import (
    Finding,
    JournalBusyError,
    JournalConflictError,
    JournalCorruptError,
    JournalError,
    JournalTamperedError,
    JournalVersionError,
)
from leanguard_host.store.export import ExportFile, export_journal, import_journal
from leanguard_host.store.opening import open_store
from leanguard_host.store.stored import StoredEvent

__all__ = [
    "SCHEMA_VERSION",
    "AsyncJournalStore",
    "ExportFile",
    "Finding",
    "Head",
    "JournalBusyError",
    "JournalConflictError",
    "JournalCorruptError",
    "JournalError",
    "JournalStore",
    "JournalTamperedError",
    "JournalVersionError",
    "StoredEvent",
    "Transaction",
    "export_journal",
    "import_journal",
    "monotone_time",
    "next_time",
    "now_ms",
    "open_store",
]
