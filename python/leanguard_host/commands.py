"""The commands of `leanguard`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from leanguard_host import __version__
from leanguard_host.failing import NO_LEAN, failures
from leanguard_host.journal_cli import app as journal_app
from leanguard_host.jsonfiles import InputError
from leanguard_host.lean.errors import LeanUnavailable
from leanguard_host.out import Progressing, as_json, say
from leanguard_host.policy_cli import app as policy_app

_EPILOG = """
**Start here**

`leanguard demo` — a retail exchange, decided by Lean (installs and builds what is missing)

**Then**

`leanguard check --policy retail --snapshot snapshot.json --journal journal.jsonl --call call.json`

`leanguard explain retail.payment` — what a rule is about

`leanguard doctor` — which Lean is used, and why
"""

_CHECK_EPILOG = """
**Examples**

`leanguard check --policy retail --snapshot snapshot.json --journal journal.jsonl --call call.json`

`my-agent --next-call | leanguard check --policy retail --snapshot s.json --journal j.jsonl --call - --json`

`leanguard check --policy retail --snapshot s.json --journal /dev/null --call c.json` — nothing has happened so far

**Exit codes**: 0 admitted, 1 denied, 2 input that can't be used, 3 no usable Lean.
"""

_MCP_EPILOG = """
**Examples**

`leanguard mcp --policy retail --journal journal.db --adapter shop_adapter:ShopAdapter -- python shop_server.py`

As an MCP client's configuration names a server: the command is `leanguard`, and the rest are its arguments.

**Exit codes**: 0 the client has left, 1 the server has ended, 2 input that can't be used, 3 no usable Lean.
"""

app = typer.Typer(
    name="leanguard",
    help="A checkpoint for tool calls of language models: every call is decided by a policy written in Lean 4.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
toolchain_app = typer.Typer(help="Show, find or install the Lean that is used.", rich_markup_mode="markdown")
daemon_app = typer.Typer(
    help="The background process that commands share.", no_args_is_help=True, rich_markup_mode="markdown"
)
app.add_typer(toolchain_app, name="toolchain")
app.add_typer(daemon_app, name="daemon")
app.add_typer(journal_app, name="journal")
app.add_typer(policy_app, name="policy")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Repair = Annotated[
    bool, typer.Option("--repair", help="After a denial, look for a nearby call that is proved to be admitted.")
]
Portable = Annotated[bool, typer.Option("--portable", help="The portable one, even where the official one is usable.")]
WithoutStricter = Annotated[
    bool, typer.Option("--without-stricter", help="Leave out the rules that are stricter than the policy's source.")
]
NoDaemon = Annotated[
    bool, typer.Option("--no-daemon", help="Do without the background process: slower, leaves nothing running.")
]


@app.command(epilog=_CHECK_EPILOG)
def check(
    policy: Annotated[str, typer.Option(metavar="NAME", help="The policy; `leanguard policies` lists them.")],
    snapshot: Annotated[str, typer.Option(metavar="FILE", help="What the backend says now (JSON).")],
    journal: Annotated[str, typer.Option(metavar="FILE", help="What has happened (JSON Lines, oldest first).")],
    call: Annotated[str, typer.Option(metavar="FILE", help="The proposed call (JSON): `tool` and `arguments`.")],
    json_: AsJson = False,
    repair: Repair = False,
    no_daemon: NoDaemon = False,
    without_stricter: WithoutStricter = False,
    feedback: Annotated[
        str | None,
        typer.Option(metavar="STYLE", help="Print what a model would be told instead: bare, rules or hints."),
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="A decision that takes longer is a denial.")] = 2.0,
) -> None:
    """Decide one tool call. A FILE of `-` is standard input (for one of them)."""
    from leanguard_host.checking import run

    code = run(
        policy=policy,
        snapshot=snapshot,
        journal=journal,
        call=call,
        json_=json_,
        repair=repair,
        no_daemon=no_daemon,
        without_stricter=without_stricter,
        style=feedback,
        timeout=timeout,
    )
    raise typer.Exit(code)


@app.command()
def demo(no_daemon: NoDaemon = False) -> None:
    """Tell the story of one exchange, decided by Lean: an injected payment, a confirmation, one admission."""
    from leanguard_host.demo import tell

    with failures(), Progressing() as reporter:
        as_expected = tell(reporter, daemon=not no_daemon)
    if not as_expected:
        say(("A decision was not the expected one.", "bad"), error=True)
        raise typer.Exit(1)


@app.command()
def policies(json_: AsJson = False, no_daemon: NoDaemon = False) -> None:
    """List the policies, their tools and rules."""
    from leanguard_host.checking import ask_policies

    with failures(json_), Progressing() as reporter:
        found = ask_policies(reporter=reporter, daemon=not no_daemon)
    if json_:
        as_json({"policies": found})
        return
    for policy in found:
        say((policy["name"], "title"), f": {policy['title']}")
        say("  tools")
        for contract in policy["contracts"]:
            arguments = ", ".join(parameter["name"] for parameter in contract["parameters"])
            say(f"    {contract['tool']}({arguments})", (f"  {contract['access']}", "dim"))
        say("  rules")
        for rule in policy["rules"]:
            stricter = "  stricter" if rule["stricter"] else ""
            say("    ", (rule["id"], "title"), f"  {rule['kind']}: {rule['sentence']}", (stricter, "dim"))


@app.command()
def explain(
    rule: Annotated[
        str | None, typer.Argument(metavar="[RULE]", help="The rule's id, as in `retail.order_owner`.")
    ] = None,
    theorems: Annotated[bool, typer.Option("--theorems", help="Print what is proved, in words and in Lean.")] = False,
    json_: AsJson = False,
    no_daemon: NoDaemon = False,
) -> None:
    """Say what a rule is about, in English and in Lean, with examples; or, with --theorems, what is proved."""
    if (rule is None) != theorems:
        with failures(json_):
            raise InputError("RULE", "either the id of a rule or --theorems", "both" if theorems else "neither")
    if rule is None:
        _show_theorems(json_)
        return

    from leanguard_host.checking import ask_policies
    from leanguard_host.explaining import explained, show

    with failures(json_), Progressing() as reporter:
        found = explained(rule, ask_policies(reporter=reporter, daemon=not no_daemon))
    if json_:
        as_json(found)
    else:
        show(found)


def _show_theorems(json_: bool) -> None:
    from leanguard_host.theorems import theorems

    found = theorems()
    if json_:
        as_json({"theorems": [theorem.as_json() for theorem in found]})
        return
    for theorem in found:
        say((theorem.name, "title"))
        say("  ", theorem.says)
        for line in theorem.statement.splitlines():
            say("  ", (line, "dim"))


@app.command()
def build(json_: AsJson = False) -> None:
    """Build the Lean package: what changed, and what depends on it. Errors are told as FILE:LINE:COLUMN."""
    from leanguard_host.engine import prepare, toolchain_text

    with failures(json_), Progressing() as reporter:
        result = prepare(reporter)
    messages = [str(message) for message in result.messages]
    if json_:
        as_json(
            {
                "toolchain": toolchain_text(result.toolchain),
                "compiled": result.compiled,
                "cached": result.cached,
                "seconds": round(result.seconds, 3),
                "messages": messages,
                "package": str(result.root),
            }
        )
        return
    for message in messages:
        say(message, error=True)
    counts = f"{result.compiled} modules compiled, {result.cached} up to date, {result.seconds:.1f} s"
    say(("built", "good"), f" with {toolchain_text(result.toolchain)}: {counts}")


@app.command()
def replay(
    episodes: Annotated[str, typer.Argument(metavar="EPISODES", help="A folder or file of recorded episodes.")],
    policy: Annotated[str, typer.Option(help="The policy to decide by.")],
    data: Annotated[str, typer.Option(metavar="FOLDER", help="The benchmark's own database.")],
    assume_consent: Annotated[
        bool, typer.Option("--assume-consent", help="Look past consent, which a transcript can't show.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="How many Lean processes share the work.")] = 1,
    without_stricter: WithoutStricter = False,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write one page with filters, timelines and a chart.")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep in this file what is decided; if it exists, go on from there."),
    ] = None,
    prove: Annotated[
        bool, typer.Option("--prove", help="Have every decision proved as a theorem, and tell what did not check.")
    ] = False,
    json_: AsJson = False,
) -> None:
    """Decide every call of recorded episodes, and tell what was denied by which rule, and carried out all the same.

    Exit codes: 0 replayed, 1 a proof did not check, 2 input that can't be used, 3 no usable Lean, 130 interrupted.
    """
    from leanguard_host.replay.command import run

    code = run(
        episodes=episodes,
        policy=policy,
        data=data,
        json_=json_,
        html=html,
        resume=resume,
        assume_consent=assume_consent,
        workers=workers,
        without_stricter=without_stricter,
        prove=prove,
    )
    raise typer.Exit(code)


@app.command()
def verify(
    json_: AsJson = False,
    sarif: Annotated[Path | None, typer.Option(help="Also write the findings to this file, in SARIF 2.1.0.")] = None,
    package: Annotated[Path | None, typer.Option(help="Another checkout than LeanGuard's own.")] = None,
    update_statements: Annotated[
        bool, typer.Option("--update-statements", help="Write the public statements as they are now, for review.")
    ] = False,
) -> None:
    """Audit every theorem of LeanGuard and of the policies: no `sorry`, no axiom of ours, no changed statement.

    Exit codes: 0 nothing found, 1 findings, 2 input that can't be used, 3 no usable Lean.
    """
    from leanguard_host.verify import run_verify

    raise typer.Exit(
        run_verify("json" if json_ else "text", package=package, sarif=sarif, update_statements=update_statements)
    )


@app.command()
def doctor(json_: AsJson = False) -> None:
    """Say which Lean is used and why, what it can't do, and what to do about what is missing. Installs nothing."""
    from leanguard_host.lean.doctor import doctor as examine

    with failures(json_):
        facts = examine()
    if json_:
        as_json(facts)
    else:
        _show_doctor(facts)
    if facts["chosen"] is None:
        raise typer.Exit(NO_LEAN)


def _show_doctor(facts: dict[str, Any]) -> None:
    def row(name: str, text: str) -> None:
        say("  ", (f"{name:<10}", "dim"), text)

    chosen = facts["chosen"]
    if chosen:
        say(("usable", "good"), f": {chosen['kind']} Lean {chosen['version']}")
        row("why", chosen["why"])
        row("commit", chosen["commit"] or "not told")
        row("lake", chosen["lake"])
        for limit in chosen["limits"]:
            row("can't do", limit)
    else:
        say(("no usable Lean", "bad"), f": {facts['problem']}")
        if facts["remedy"]:
            row("remedy", facts["remedy"])
    row("wanted", facts["wanted"])
    row("override", facts["override"] or "none (LEANGUARD_TOOLCHAIN=official, portable or a folder)")
    for kind in ("official", "portable"):
        row(kind, ("usable: " if facts[kind]["usable"] else "not usable: ") + facts[kind]["reason"])
        if facts[kind]["remedy"]:
            row("", facts[kind]["remedy"])
    row("package", facts["package"])
    for cache in facts["caches"]:
        row("cache", f"{cache['what']}: {cache['bytes'] / 1e6:.0f} MB in {cache['path']}")


@toolchain_app.callback(invoke_without_command=True)
def toolchain(context: typer.Context) -> None:
    """Show, find or install the Lean that is used."""
    if context.invoked_subcommand is None:
        toolchain_show()


@toolchain_app.command("show")
def toolchain_show(json_: AsJson = False) -> None:
    """Show which Lean is used. Installs nothing."""
    from leanguard_host.engine import toolchain_text
    from leanguard_host.lean.toolchain import find_toolchain

    with failures(json_):
        found = find_toolchain(may_install=False)
    if json_:
        facts = {name: getattr(found, name) for name in ("kind", "version", "commit", "why")}
        as_json({**facts, "lake": str(found.lake)})
    else:
        say((toolchain_text(found), "title"), f": {found.why}")


@toolchain_app.command("install")
def toolchain_install(
    portable: Portable = False,
) -> None:
    """Install Lean unless a usable one is here: by elan if it is there, else the portable toolchain."""
    from leanguard_host.engine import toolchain_text
    from leanguard_host.lean.toolchain import find_toolchain, portable_toolchain

    with failures(), Progressing() as reporter:
        if portable:
            found = portable_toolchain(progress=reporter.progress, announce=reporter.announce)
        else:
            found = find_toolchain(progress=reporter.progress, announce=reporter.announce)
    say((toolchain_text(found), "title"), " is installed.")


@toolchain_app.command("path")
def toolchain_path() -> None:
    """Print the path of the `lake` that is used. Installs nothing."""
    from leanguard_host.lean.toolchain import find_toolchain

    with failures():
        print(find_toolchain(may_install=False).lake)


@app.command(epilog=_MCP_EPILOG, context_settings={"allow_interspersed_args": False})
def mcp(
    server: Annotated[
        list[str], typer.Argument(metavar="SERVER [ARGS]...", help="The MCP server's command, after --.")
    ],
    policy: Annotated[str, typer.Option(metavar="NAME", help="The policy; `leanguard policies` lists them.")],
    journal: Annotated[
        str,
        typer.Option(metavar="FILE", help="The journal; made if it is not there. Or an address (postgresql://...)."),
    ],
    adapter: Annotated[
        str,
        typer.Option(
            metavar="MODULE:ATTRIBUTE",
            help="The adapter that reads the backend: an object, or a class or function that makes one.",
        ),
    ],
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="A decision that takes longer is a denial.")] = 2.0,
    tool_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="The outcome of a tool that takes longer is unknown; no limit if not given."
        ),
    ] = None,
    on_denial: Annotated[
        str,
        typer.Option(
            metavar="SETTING",
            help="What a denial does: `feedback` (a tool error with the feedback), `raise` (a protocol error) or `end` "
            "(that, and the end of the connection).",
        ),
    ] = "feedback",
    resources: Annotated[
        bool, typer.Option("--resources", help="Let the server's resources pass. No policy decides about them.")
    ] = False,
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Let the server's prompts pass. No policy decides about them.")
    ] = False,
) -> None:
    """Guard an MCP server: be an MCP server over stdio whose every tool call the policy decides (extra `mcp`).

    A denial comes back as a tool error with the failed rules and hints. Only tools that the policy names are listed.
    Needs `pip install 'leanguard[mcp]'`.
    """
    with failures():
        for name, seconds in (("--timeout", timeout), ("--tool-timeout", tool_timeout)):
            if seconds is not None and not seconds > 0:
                raise InputError(name, "more than 0 seconds", str(seconds))
        if on_denial not in ("feedback", "raise", "end"):
            raise InputError("--on-denial", "feedback, raise or end", repr(on_denial))
        try:
            from leanguard_host.integrations.mcp import Settings, run
        except ImportError as error:
            raise InputError("leanguard mcp", "the extra `mcp`", str(error)) from error
    settings = Settings(on_denial, tool_timeout, resources, prompts)  # type: ignore[arg-type]
    raise typer.Exit(
        run(policy=policy, journal=journal, adapter=adapter, command=server, timeout=timeout, settings=settings)
    )


@app.command()
def confirm(
    proposal: Annotated[str, typer.Argument(metavar="PROPOSAL", help="The id of the denied call's proposal.")],
    policy: Annotated[str, typer.Option(metavar="NAME", help="The policy that denied it.")],
    journal: Annotated[str, typer.Option(metavar="FILE", help="The journal that it is in.")],
    by: Annotated[str, typer.Option(metavar="PERSON", help="Who agrees: the authenticated person.")],
    expires_in: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How long it counts; for ever if not given.")
    ] = None,
) -> None:
    """Record a person's consent to exactly one proposed call. For a trusted screen: never for a model to run.

    Exit codes: 0 it counts, 1 it does not, 2 input that can't be used, 3 no usable Lean.
    """
    from leanguard_host.confirming import run

    raise typer.Exit(run(proposal=proposal, policy=policy, journal=journal, by=by, expires_in=expires_in))


@app.command()
def serve() -> None:
    """Be the background process, in the foreground, until Ctrl-C or SIGTERM.

    With LEANGUARD_IDLE_SECONDS set, also until nobody has asked for so long.
    """
    from leanguard_host.client import DaemonError, lock, socket_path
    from leanguard_host.daemon import idle_seconds, run
    from leanguard_host.engine import Engine

    with failures():
        try:
            path = socket_path()
        except DaemonError as error:
            raise LeanUnavailable(str(error)) from error
        with lock(path.with_suffix(".lock"), 1.0) as had:
            if not had:
                say("A background process is running already; `leanguard daemon stop` ends it.", error=True)
                raise typer.Exit(1)
            with Progressing() as reporter:
                engine = Engine.start(reporter)
            idle = idle_seconds() if os.environ.get("LEANGUARD_IDLE_SECONDS") else None
            say(f"ready ({engine.toolchain}), at {path}", error=True)
            run(engine, path, idle)


@daemon_app.command("status")
def daemon_status(json_: AsJson = False) -> None:
    """Show the background processes of this user."""
    from leanguard_host.client import running

    found = [status for path in _daemon_paths(running) if (status := _ask_daemon(path, "status"))]
    if json_:
        as_json({"daemons": found})
    elif not found:
        say("No background process is running.")
    else:
        for one in found:
            facts = f"Lean is process {one['lean_pid']}, up {one['up_seconds']:.0f} s, {one['requests']} requests"
            say((f"process {one['pid']}", "title"), f": {one['toolchain']}, {facts}")


@daemon_app.command("stop")
def daemon_stop(
    all_: Annotated[bool, typer.Option("--all", help="Also those of other packages and settings.")] = False,
) -> None:
    """End the background process. Calls that it is deciding are decided first."""
    import time

    from leanguard_host.client import running, socket_path

    paths = _daemon_paths(running if all_ else lambda: [socket_path()])
    stopping = [path for path in paths if _ask_daemon(path, "stop")]
    deadline = time.monotonic() + 10
    while any(path.exists() for path in stopping) and time.monotonic() < deadline:
        time.sleep(0.05)
    count = len(stopping) or "no"
    say(f"Ended {count} background process{'' if count == 1 else 'es'}.")


def _daemon_paths(find: Callable[[], list[Path]]) -> list[Path]:
    from leanguard_host.client import DaemonError

    with failures():
        try:
            return find()
        except DaemonError as error:
            raise LeanUnavailable(str(error)) from error
    raise AssertionError("failures() raises")


def _ask_daemon(path: Path, operation: str) -> dict[str, Any] | None:
    """What the process at a socket answers; None if none runs there."""
    from leanguard_host.client import DaemonError, DaemonLostError, connect

    try:
        if connection := connect(path):
            with connection:
                answer = connection.ask({"op": operation})
                told = answer.get(operation)
                return told if isinstance(told, dict) else answer
    except (DaemonError, DaemonLostError):
        pass
    return None


@app.command()
def version() -> None:
    """Print LeanGuard's version."""
    print(f"leanguard {__version__}")
