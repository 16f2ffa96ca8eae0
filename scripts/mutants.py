"""Plants faults in copies of the package and checks that each is caught: by a proof that breaks, or by a test.

The faults are listed in tests/mutants/faults.toml. For each one, the package is copied, a text that must occur exactly
once is replaced, and the modules that state theorems are built: an error there is a proof that caught it. If all proofs
still hold, the differential tests run on the copy. What does not depend on the fault comes from the cache of compiled
modules, where it is kept by content.

Exit code 0: all caught; 1: a fault survived; 2: the check itself could not be made (a fault that matches no text or
does not compile, a package that is not sound without any fault).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
with contextlib.suppress(ImportError):
    sys.path.insert(0, str(ROOT / "python"))

from leanguard_host.lean import modules  # noqa: E402
from leanguard_host.lean.build import build  # noqa: E402
from leanguard_host.lean.errors import BuildFailed, LeanTimeout, LeanUnavailable  # noqa: E402
from leanguard_host.lean.paths import cache_dir  # noqa: E402
from leanguard_host.lean.portable import builder  # noqa: E402
from leanguard_host.lean.toolchain import Toolchain, find_toolchain  # noqa: E402

FAULTS = ROOT / "tests" / "mutants" / "faults.toml"
TESTS = ROOT / "tests" / "differential"
DISAGREEMENT = "Lean says"  # how the differential tests report one
SEED = 3
TEST_SECONDS = 900
ENDLESS = "no end of it"
PROOF_SECONDS = 240  # a fault can send a tactic on a search without end; the sound package is held to it too


class CheckError(Exception):
    """The check itself can't be made."""


@dataclass(frozen=True)
class Fault:
    """A fault to plant."""

    name: str
    what: str
    file: str
    find: str
    replace: str

    def plant(self, package: Path) -> None:
        """Change the package.

        Raises:
            CheckError: the text to replace does not occur exactly once.
        """
        file = package / self.file
        source = file.read_text(encoding="utf-8")
        if (count := source.count(self.find)) != 1:
            raise CheckError(f"{self.name}: its text occurs {count} times in {self.file}, not once")
        file.write_text(source.replace(self.find, self.replace), encoding="utf-8")


@dataclass(frozen=True)
class Verdict:
    """How a fault was caught: `proof`, `test` or neither."""

    fault: str
    proof: str = ""
    test: str = ""
    seconds: float = 0.0

    @property
    def caught(self) -> bool:
        return bool(self.proof or self.test)


def read_faults() -> list[Fault]:
    """The list, in order.

    Raises:
        CheckError: two faults have the same name.
    """
    entries = tomllib.loads(FAULTS.read_text(encoding="utf-8"))["fault"]
    faults = [Fault(**entry) for entry in entries]
    if len({fault.name for fault in faults}) < len(faults):
        raise CheckError(f"{FAULTS.name} names a fault twice")
    return faults


@contextlib.contextmanager
def package_copy(fault: Fault | None) -> Iterator[Path]:
    """A copy of the Lean package, with the fault."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder, "package")
        copy.mkdir()
        for name in ("LeanGuard", "policies", ".lake"):
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name)  # .lake: what the official toolchain has built
        for file in (*ROOT.glob("*.lean"), ROOT / "lean-toolchain"):
            shutil.copy2(file, copy)
        if fault:
            fault.plant(copy)
        yield copy


@contextlib.contextmanager
def own_builds() -> Iterator[None]:
    """Keep the builds of faulty packages out of the user's cache, but for modules, which are kept there by content."""
    shared = cache_dir()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for name in ("portable", "oleans"):
            (shared / name).mkdir(parents=True, exist_ok=True)
            Path(folder, name).symlink_to(shared / name)
        before = os.environ.get("LEANGUARD_CACHE_DIR")
        os.environ["LEANGUARD_CACHE_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["LEANGUARD_CACHE_DIR"]
            if before is not None:
                os.environ["LEANGUARD_CACHE_DIR"] = before


def theorem_modules(package: Path) -> list[str]:
    """The modules with the theorems about evaluator, monitor and decision: those whose path mirrors theirs."""
    stated = [module for module in modules.all_modules(package) if module.startswith("LeanGuard.Thm.")]
    about = {
        f"{folder}.{file.stem}" for folder in ("Spec", "Eval") for file in (package / "LeanGuard" / folder).glob("*")
    }
    names = {name.partition(".")[2] for name in about} | {"Authorization"}
    return [module for module in stated if module.removeprefix("LeanGuard.Thm.") in names]


def broken_proof(toolchain: Toolchain, package: Path, fault: Fault | None) -> str:
    """Where the first proof breaks; empty if all hold.

    Raises:
        CheckError: the file with the fault does not compile.
    """
    theorems = theorem_modules(package)
    # A file's own theorems first: most faults break them, and then the others need not be compiled.
    nearest = [module for module in theorems if fault and Path(fault.file).stem == module.rpartition(".")[2]]
    for targets in filter(None, (nearest, theorems)):
        try:
            build(toolchain, root=package, targets=targets)
        except LeanTimeout as error:  # without a fault the same proofs were checked within that time
            return f"{error}: {ENDLESS}"
        except BuildFailed as failed:
            errors = [message for message in failed.messages if message.severity == "error"]
            if fault and any(error.file == fault.file for error in errors):
                raise CheckError(f"{fault.name}: {fault.file} does not compile with it: {errors[0]}") from failed
            return f"{errors[0].file}:{errors[0].line}" if errors else str(failed)
    return ""


def failed_test(package: Path, cases: int) -> str:
    """The first differential test that fails on the package; empty if none does.

    Raises:
        CheckError: the tests fail otherwise than by a disagreement.
    """
    environment = os.environ | {
        "LEANGUARD_PACKAGE": str(package),
        "LEANGUARD_DIFFERENTIAL_CASES": str(cases),
        "LEANGUARD_DIFFERENTIAL_SEED": str(SEED),
        "LEANGUARD_DIFFERENTIAL_SHRINK": "0",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", str(TESTS)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TEST_SECONDS,
        check=False,
    )
    if done.returncode == 0:
        return ""
    if done.returncode != 1 or DISAGREEMENT not in done.stdout:
        raise CheckError(f"the differential tests do not work:\n{(done.stdout + done.stderr)[-3000:]}")
    failed = next(line for line in done.stdout.splitlines() if line.startswith("FAILED "))
    return failed.split(" ")[1].rpartition("::")[2]


def examine(toolchain: Toolchain, fault: Fault | None, cases: int, both: bool) -> Verdict:
    """Plant a fault, or none, and see what catches it."""
    began = time.monotonic()
    with package_copy(fault) as package:
        proof = broken_proof(toolchain, package, fault)
        # The official toolchain makes the program only of a package whose proofs hold.
        # A search without end may only be a slow machine: let the tests say it too.
        asked = not proof or ((both or ENDLESS in proof) and toolchain.kind == "portable")
        test = failed_test(package, cases) if asked else ""
    return Verdict(fault.name if fault else "", proof, test, time.monotonic() - began)


def check(faults: list[Fault], cases: int, both: bool) -> list[Verdict]:
    """Examine the faults.

    Raises:
        CheckError: the package without any fault is not sound, so that nothing could be said about the faults.
    """
    for fault in faults:  # a text that does not match is found at once
        if (count := (ROOT / fault.file).read_text(encoding="utf-8").count(fault.find)) != 1:
            raise CheckError(f"{fault.name}: its text occurs {count} times in {fault.file}, not once")
    toolchain = find_toolchain(root=ROOT)
    builder.MODULE_SECONDS = PROOF_SECONDS
    with own_builds():
        sound = examine(toolchain, None, cases, both=True)
        if sound.caught:
            raise CheckError(f"without any fault, this fails: {sound.proof or sound.test}")
        print(f"without a fault, proofs and tests hold ({sound.seconds:.0f} s)", flush=True)
        width = max(len(fault.name) for fault in faults)
        verdicts = []
        for fault in faults:
            verdict = examine(toolchain, fault, cases, both)
            verdicts.append(verdict)
            ways = [f"proof {verdict.proof}" if verdict.proof else "", f"test {verdict.test}" if verdict.test else ""]
            print(
                f"{fault.name:{width}}  {verdict.seconds:4.0f} s  {', '.join(filter(None, ways)) or 'SURVIVED'}",
                flush=True,
            )
    return verdicts


def main() -> int:
    """Run the check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the faults and plant none")
    parser.add_argument("--only", action="append", metavar="NAME", help="this fault alone; may be given several times")
    parser.add_argument("--both", action="store_true", help="run the tests also where a proof has caught the fault")
    parser.add_argument("--cases", type=int, default=3000, help="cases of the differential tests (default 3000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts to a file")
    arguments = parser.parse_args()
    try:
        faults = read_faults()
        if unknown := set(arguments.only or []).difference(fault.name for fault in faults):
            raise CheckError(f"no such fault: {', '.join(sorted(unknown))} (see --list)")
        if arguments.only:
            faults = [fault for fault in faults if fault.name in arguments.only]
        if arguments.list:
            width = max(len(fault.name) for fault in faults)
            for fault in faults:
                print(f"{fault.name:{width}}  {fault.file}: {fault.what}")
            return 0
        verdicts = check(faults, arguments.cases, arguments.both)
    except (CheckError, LeanUnavailable, subprocess.TimeoutExpired) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    survived = [verdict.fault for verdict in verdicts if not verdict.caught]
    by_proof = sum(bool(verdict.proof) for verdict in verdicts)
    by_test = sum(bool(verdict.test) for verdict in verdicts)
    print(f"{len(verdicts)} faults: {by_proof} caught by proofs, {by_test} by tests, {len(survived)} survived")
    if arguments.json:
        arguments.json.write_text(
            json.dumps([asdict(verdict) for verdict in verdicts], indent=1) + "\n", encoding="utf-8"
        )
    if survived:
        print(f"mutants: survived: {', '.join(survived)}", file=sys.stderr)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
