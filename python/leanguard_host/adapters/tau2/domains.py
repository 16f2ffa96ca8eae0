"""The domains by name, and where their databases lie."""

from __future__ import annotations

from pathlib import Path

from leanguard_host.adapters.tau2.airline import Airline
from leanguard_host.adapters.tau2.backend import Backend, DataError
from leanguard_host.adapters.tau2.retail import Retail
from leanguard_host.adapters.tau2.telecom import Telecom

DOMAINS: dict[str, type[Backend]] = {domain.name: domain for domain in (Retail, Airline, Telecom)}


def open_backend(name: str, folder: Path) -> Backend:
    """The domain's database, from its own folder or from one that has the benchmark's folders.

    Raises:
        DataError: there is no such domain, or no database of it.
    """
    if name not in DOMAINS:
        raise DataError(f"There is no adapter for {name!r}; there are: {', '.join(DOMAINS)}.")
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    parts = ("", "tau2", "tau-bench", "tau2/domains", "data/tau2/domains")
    places = [folder, *(folder / part / name for part in parts)]
    problems = []
    for place in places:
        if any((place / file).is_file() for file in ("db.json", "db.toml", "flights.json")):
            try:
                return DOMAINS[name].load(place)
            except DataError as error:  # another domain's database may lie in the folder itself
                problems.append(str(error))
    raise DataError("; ".join(problems) or f"{folder} has no {name} database")
