"""What the tests of the three domains share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    """The benchmark's data, which are not part of this repository."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("LEANGUARD_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no benchmark data in {folder}; set LEANGUARD_DATA")
    return folder
