"""`leanguard policy`: start one, review one."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leanguard_host.failing import failures
from leanguard_host.jsonfiles import FILE_LIMIT, InputError, read
from leanguard_host.out import Progressing, as_json, say

if TYPE_CHECKING:
    from leanguard_host.review import Review

app = typer.Typer(help="Start a policy, or review one.", no_args_is_help=True, rich_markup_mode="markdown")

_NEW_EPILOG = """
**Examples**

`leanguard policy new order_desk --dir ~/policies` — in a folder of your own, made if it is not there

`export LEANGUARD_PACKAGE=~/policies` — from then on that folder's policies are the ones that are used
"""

_REVIEW_EPILOG = """
**Examples**

`leanguard policy review retail` — each rule with the sentences that it states, and the sentences without a rule

`leanguard policy review retail --english policy.md` — also every sentence of the English policy beside its rule

**Exit codes**: 0 complete, 1 something has neither rule nor reason, 2 input that can't be used, 3 no usable Lean.
"""


@app.command(epilog=_NEW_EPILOG)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="In lower case, as in `order_desk`.")],
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="FOLDER", help="Where your policies are, or are to be. A new folder gets all it needs."
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Write a policy to start from: contracts, rules of each kind, examples. It builds and is decided at once."""
    from leanguard_host.authoring import new_policy
    from leanguard_host.lean.paths import package_root

    with failures(json_):
        try:
            made = new_policy(name, directory)
        except OSError as error:
            raise InputError(
                str(error.filename or "--dir"), "a folder that can be written", str(error.strerror)
            ) from error
        used = made.package == package_root()
    if json_:
        paths = {"package": made.package, "policy_file": made.policy, "examples": made.examples}
        as_json(
            {"policy": made.name, **{key: str(path) for key, path in paths.items()}, "new_package": made.new_package}
        )
        return
    say(("wrote", "good"), f" {made.policy}")
    say(("wrote", "good"), f" {made.examples}: call.json, snapshot.json, journal.jsonl")
    say("Then:")
    if not used:
        say(f"  export LEANGUARD_PACKAGE={shlex.quote(str(made.package))}")
    say("  leanguard build")
    files = [f"--{each} {shlex.quote(str(made.examples / file))}" for each, file in _FILES]
    say(f"  leanguard check --policy {made.name} {' '.join(files)}")


_FILES = (("snapshot", "snapshot.json"), ("journal", "journal.jsonl"), ("call", "call.json"))


@app.command(epilog=_REVIEW_EPILOG)
def review(
    policy: Annotated[str | None, typer.Argument(metavar="[POLICY]", help="Its name; all policies without it.")] = None,
    english: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="The English policy, in Markdown; again for one in several files."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown document.")] = False,
    no_daemon: Annotated[bool, typer.Option("--no-daemon", help="Do without the background process.")] = False,
) -> None:
    """Print the review sheet: each English sentence beside its rule, or beside the reason why it has none."""
    from leanguard_host.checking import ask_policies
    from leanguard_host.engine import UnknownPolicyError, policy_problem
    from leanguard_host.review import as_markdown
    from leanguard_host.review import review as reviewed

    with failures(json_), Progressing() as reporter:
        if json_ and markdown:
            raise InputError("--markdown", "no --json beside it", "both")
        if english and policy is None:
            raise InputError("--english", "a POLICY that it is the English of", "none")
        texts = [read(file, FILE_LIMIT).text for file in english or ()]
        known = ask_policies(reporter=reporter, daemon=not no_daemon)
        names = [found["name"] for found in known]
        if policy is not None and policy not in names:
            raise policy_problem(UnknownPolicyError(policy, sorted(names)))
        sheets = [reviewed(found, texts) for found in known if policy in (None, found["name"])]
    if json_:
        as_json({"policies": [sheet.as_json() for sheet in sheets]})
    elif markdown:
        for sheet in sheets:
            print(as_markdown(sheet))
    else:
        for sheet in sheets:
            _show(sheet)
    if not all(sheet.complete for sheet in sheets):
        raise typer.Exit(1)


def _show(sheet: Review) -> None:
    say((sheet.policy, "title"))
    if sheet.entries is None:
        for rule in sheet.rules:
            say("  ", (rule["id"], "title"), f"  {rule['kind']}, {rule['category']}{', stricter' * rule['stricter']}")
            for text in rule["quotes"] or [rule["sentence"]]:
                say("    ", text)
        say("  no rule")
        for item in sheet.unenforced:
            for text in item["sentences"] + [f"section {name}" for name in item["sections"]]:
                say("    ", text)
            say("      ", (item["reason"], "dim"))
    else:
        above: tuple[str, ...] = ()
        for entry in sheet.entries:
            if entry.sentence.sections != above:
                above = entry.sentence.sections
                say("  ", (" / ".join(above), "dim"))
            say("    ", entry.sentence.text)
            if entry.missing:
                say("      ", ("neither rule nor reason", "bad"))
            if entry.rules:
                say("      ", (", ".join(entry.rules), "good"))
            for reason in entry.reasons:
                say("      no rule: ", (reason, "dim"))
    _show_problems(sheet)


def _show_problems(sheet: Review) -> None:
    for stray in sheet.stray:
        say(
            "  ",
            ("not in the English policy", "bad"),
            f": {json.dumps(stray['quotation'], ensure_ascii=False)} ({stray['by']})",
        )
    for problem in sheet.problems:
        say("  ", (problem, "bad"))
    counts: dict[str, Any] = {"rules": len(sheet.rules)}
    if sheet.entries is not None:
        counts |= {"sentences": len(sheet.entries), "missing": len(sheet.missing), "stray": len(sheet.stray)}
    verdict = ("complete", "good") if sheet.complete else ("not complete", "bad")
    say("  ", verdict, ": " + ", ".join(f"{count} {what}" for what, count in counts.items()))
