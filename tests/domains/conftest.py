"""What the tests of the three domains share."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from worlds import airline


@pytest.fixture(scope="session")
def data() -> Path:
    """The benchmark's data, which are not part of this repository."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("LEANGUARD_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no benchmark data in {folder}; set LEANGUARD_DATA")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The invented airline's database, as a benchmark's folder has it."""
    data = airline(business=airline().data["reservations"]["R1"] | {"cabin": "business"}).data
    (tmp_path / "airline").mkdir()
    (tmp_path / "airline" / "db.json").write_text(json.dumps(data), encoding="utf-8")
    return tmp_path
