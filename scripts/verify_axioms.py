"""Audits the proofs of a LeanGuard package: that its theorems hold, by what, and that they still say what was reviewed.

  verify_axioms.py                       audit this checkout
  verify_axioms.py --package DIR         audit another one
  verify_axioms.py --json                one JSON object on standard output
  verify_axioms.py --sarif FILE          write SARIF 2.1.0 as well, for code scanning
  verify_axioms.py --update-statements   accept the statements of the public theorems as they are now

The same as `leanguard verify`, without anything to install where the official Lean toolchain is on PATH.
Exit code 0: nothing found; 1: findings; 2: input that can't be used; 3: no usable Lean.
"""

from __future__ import annotations

import argparse
import sys
import types
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "leanguard_host"


def main() -> int:
    """Run the audit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, metavar="DIR", help="the package to audit (this checkout)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="write the findings as SARIF 2.1.0 to FILE")
    parser.add_argument("--statements", type=Path, metavar="FILE", help="the reviewed statements, if in another place")
    parser.add_argument("--update-statements", action="store_true", help="write the statements, in place of comparing")
    arguments = parser.parse_args()

    # The package's own __init__ imports what only its users need.
    stub = types.ModuleType("leanguard_host")
    stub.__path__ = [str(PACKAGE)]
    sys.modules["leanguard_host"] = stub
    from leanguard_host.verify import run_verify

    return run_verify(
        "json" if arguments.json else "text",
        package=arguments.package,
        sarif=arguments.sarif,
        statements=arguments.statements,
        update_statements=arguments.update_statements,
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
