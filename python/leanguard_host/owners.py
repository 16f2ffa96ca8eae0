"""Whose a reservation is, so that the ones that a crash left behind are told from those that are running.

The id of a reservation names the process that made it: the machine since it was started, the process and when that
began. So nothing has to be written for it, and no lease has to be kept alive.
"""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import psutil

_running: set[str] = set()
_guarding = threading.Lock()


@lru_cache
def _machine() -> str:
    """Machine, boot, and the space in which process ids are counted: a container counts its own."""
    parts = [str(uuid.getnode())]
    facts: tuple[Callable[[], str], ...] = (
        lambda: Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
        lambda: str(Path("/proc/self/ns/pid").readlink()),
    )
    for read in facts:
        try:
            parts.append(read())
        except OSError:
            parts.append("")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _began(pid: int) -> str | None:
    """When a process began; None if there is no such process, or only what it left."""
    try:
        # In ticks since the boot: psutil's times move when the clock is set.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return None if fields[0] in ("Z", "X") else fields[19]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
    except OSError:
        pass
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(round(process.create_time()))
    except psutil.NoSuchProcess:
        return None
    except psutil.Error:
        return ""


def new_reservation() -> str:
    """The id of a reservation of this process."""
    pid = os.getpid()
    return f"{_machine()}.{pid}.{_began(pid) or 0}.{uuid.uuid4().hex}"


def started(reservation: str) -> None:
    """This process holds the reservation, or runs its tool."""
    with _guarding:
        _running.add(reservation)


def ended(reservation: str) -> None:
    """It does no more."""
    with _guarding:
        _running.discard(reservation)


def runs_here(reservation: str) -> bool:
    """Whether this process holds the reservation or runs its tool."""
    with _guarding:
        return reservation in _running


def abandoned(reservation: str, *, elsewhere: bool = False) -> bool:
    """Whether nobody holds the reservation any more.

    Args:
        reservation: its id.
        elsewhere: the answer for one of another machine, about whose processes nothing can be known here.
    """
    try:
        machine, pid, began, _ = reservation.split(".")
        number = int(pid)
    except ValueError:
        return elsewhere
    if machine != _machine():
        return elsewhere
    if number == os.getpid() and began == _began(number):
        return not runs_here(reservation)
    return _began(number) not in (began, "")
