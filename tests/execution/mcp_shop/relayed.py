"""The real `leanguard` command, with the test run's Lean behind a relay: a Lean of its own would take seconds."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay import connect

from leanguard_host.cli import main
from leanguard_host.engine import Engine


def start(*arguments: Any, **options: Any) -> Engine:
    return connect(os.environ["LEANGUARD_TEST_ADDRESS"])


Engine.start = start  # type: ignore[method-assign,assignment]
main()
