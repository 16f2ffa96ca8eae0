"""How many cases are compared, and from which seeds."""

from __future__ import annotations

import os
import secrets
from collections import Counter

CASES = int(os.environ.get("LEANGUARD_DIFFERENTIAL_CASES") or 20_000)
# A seed of its own for each run, unless one is to be replayed.
FRESH = int(os.environ.get("LEANGUARD_DIFFERENTIAL_SEED") or secrets.randbits(32))
SEEDS = (1, 2, FRESH)
# "0" where only the fact of a disagreement counts: reducing it takes a while.
SHRINK = os.environ.get("LEANGUARD_DIFFERENTIAL_SHRINK") != "0"

compared: Counter[str] = Counter()
"""What was compared so far, for the report at the end."""
