"""A scripted agent in a guarded loop: follows an injected instruction, is denied, gets a confirmation, succeeds once.

Usage: python examples/agent_loop.py [--journal FILE] [--mcp]

No model is needed: the agent's turns are written down below. All else is real: the policy in Lean decides, the journal
is on disk, and the tools change a small shop in memory. With --mcp the shop is an MCP server (examples/shop_server.py),
and the agent is a client of `leanguard mcp`, which guards it; that needs the extra `mcp`. Ends with 1 if anything came
out differently than it must.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from leanguard_host import Call, DefiniteFailure, Guard, GuardUnavailable, Reservation

FILES = Path(__file__).resolve().parent / "retail_exchange"
ORDER, CUSTOMER, CHAT = "#L20417", "nora_feld", "chat-0117"


class Shop:
    """The backend: what the tools change, and a revision that tells its states apart."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = json.loads((FILES / "snapshot.json").read_text(encoding="utf-8"))["state"]
        self.revision = 4182
        self.exchanges: list[tuple[str, str]] = []

    def find_user_id_by_email(self, email: str) -> str:
        """The customer with that address."""
        for user, record in self.state["users"].items():
            if record["email"] == email:
                return str(user)
        raise DefiniteFailure("no such customer")

    def get_order_details(self, order_id: str) -> dict[str, Any]:
        """An order, with whatever somebody wrote into its delivery note."""
        return copy.deepcopy(dict(self.state["orders"][order_id]))

    def exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> str:
        """Exchange items, and charge the difference."""
        self.exchanges.append((order_id, payment_method_id))
        self.state["orders"][order_id]["status"] = "exchange requested"
        self.revision += 1
        return f"{', '.join(item_ids)} will be exchanged for {', '.join(new_item_ids)}"

    def tools(self) -> dict[str, Callable[..., Any]]:
        """The tools that the agent is offered."""
        return {
            tool.__name__: tool
            for tool in (self.find_user_id_by_email, self.get_order_details, self.exchange_delivered_order_items)
        }


class ShopAdapter:
    """What LeanGuard needs to know of the shop: an adapter for one conversation."""

    def __init__(self, shop: Shop, conversation: str) -> None:
        self.shop, self.conversation = shop, conversation
        self.principal: str | None = None  # nobody, until the host has authenticated somebody

    def snapshot(self, call: Call) -> dict[str, Any]:
        """The shop's state, from the shop itself and never from what the agent was told about it."""
        found = {"revision": f"backend-{self.shop.revision}", "conversation": self.conversation}
        who = {} if self.principal is None else {"principal": self.principal}
        return {**found, **who, "state": copy.deepcopy(self.shop.state)}

    def facts(self, call: Call, result: object) -> list[dict[str, Any]]:
        """A customer who was looked up is authenticated in this conversation."""
        if call.tool != "find_user_id_by_email":
            return []
        self.principal = str(result)
        return [
            {
                "kind": "authentication",
                "principal": self.principal,
                "conversation": self.conversation,
                "call": call.wire(),
            }
        ]

    def reconcile(self, reservation: Reservation) -> str | None:
        """Whether an exchange of which nobody knows took place: the order tells."""
        order = reservation.call.arguments.get("order_id")
        return "succeeded" if any(done == order for done, _ in self.shop.exchanges) else "failed"


class Story:
    """Tells what happens, and remembers what surprised it."""

    def __init__(self) -> None:
        self.surprises: list[str] = []

    def say(self, who: str, text: str) -> None:
        """One paragraph of the transcript."""
        lines = [line for part in text.splitlines() for line in textwrap.wrap(part, 96) or [""]]
        print(f"{who:>9} | " + f"\n{'':9} | ".join(lines))

    def expect(self, what: str, found: object, wanted: object) -> None:
        """Complain unless they are equal."""
        if found != wanted:
            self.surprises.append(f"{what}: expected {wanted!r}, found {found!r}")
            self.say("SURPRISE", self.surprises[-1])


@dataclass(frozen=True)
class Heard:
    """What the agent's program hears of a call."""

    status: str
    text: str
    rules: frozenset[str]
    proposal_id: str | None


class Loop(Protocol):
    """The way from the agent to the shop."""

    def call(self, name: str, arguments: dict[str, Any]) -> Heard:
        """A call that the agent proposes."""

    def confirm(self, proposal_id: str) -> str:
        """The customer's Yes, on the trusted screen; answers what the screen shows then."""

    def exchanges(self) -> list[tuple[str, str]]:
        """What took place in the shop: order and payment."""

    def unsettled(self) -> list[Reservation]:
        """The calls of which nobody knows how they ended."""


class InProcess:
    """The guard as a Python object."""

    def __init__(self, guard: Guard) -> None:
        self.guard, self.shop = guard, Shop()
        self.tools, self.adapter = self.shop.tools(), ShopAdapter(self.shop, CHAT)

    def call(self, name: str, arguments: dict[str, Any]) -> Heard:
        """Decided, and run if admitted."""
        done = self.guard.execute({"tool": name, "arguments": arguments}, self.tools[name], adapter=self.adapter)
        rules = frozenset(rule.id for rule in done.decision.failed_rules)
        return Heard(done.status, str(done.value) if done.executed else done.feedback(), rules, done.proposal_id)

    def confirm(self, proposal_id: str) -> str:
        """Recorded."""
        return self.guard.confirm(proposal_id, by=CUSTOMER, expires_in=600).feedback()

    def exchanges(self) -> list[tuple[str, str]]:
        """The shop's own list."""
        return self.shop.exchanges

    def unsettled(self) -> list[Reservation]:
        """By the journal."""
        return self.guard.unsettled()


class ThroughMcp:
    """The guard as a proxy before the shop, an MCP server. The trusted screen has a guard on the same journal."""

    def __init__(self, portal: Any, session: Any, screen: Guard, books: Path) -> None:
        self.portal, self.session, self.screen, self.books = portal, session, screen, books

    def call(self, name: str, arguments: dict[str, Any]) -> Heard:
        """As any MCP client calls a tool. What came of it is in the result's `_meta`, which no model reads."""
        result = self.portal.call(self.session.call_tool, name, arguments)
        told = result.meta["leanguard/call"]
        text = "\n".join(content.text for content in result.content)
        rules = frozenset(rule["id"] for rule in told["failed_rules"])
        return Heard(told["status"], text, rules, told["proposal_id"])

    def confirm(self, proposal_id: str) -> str:
        """Recorded by another process than the proxy's."""
        return self.screen.confirm(proposal_id, by=CUSTOMER, expires_in=600).feedback()

    def exchanges(self) -> list[tuple[str, str]]:
        """What the server wrote into its books."""
        lines = self.books.read_text(encoding="utf-8").splitlines() if self.books.exists() else []
        return [(order, payment) for order, payment in map(json.loads, lines)]

    def unsettled(self) -> list[Reservation]:
        """By the journal."""
        return self.screen.unsettled()


@contextlib.contextmanager
def in_process(journal: str) -> Iterator[Loop]:
    """The loop in one process.

    Raises:
        GuardUnavailable: there is no usable Lean or journal.
    """
    with Guard(policy="retail", journal=f"sqlite:///{journal}", timeout=20.0) as guard:
        yield InProcess(guard)


@contextlib.contextmanager
def through_mcp(journal: str) -> Iterator[Loop]:
    """The loop through `leanguard mcp`, over standard input and output.

    Raises:
        GuardUnavailable: there is no usable Lean or journal.
    """
    from anyio.from_thread import start_blocking_portal
    from mcp import ClientSession, StdioServerParameters, stdio_client

    here = Path(__file__).resolve().parent
    given = ["--policy", "retail", "--journal", str(Path(journal).resolve()), "--adapter", "shop_server:adapter"]
    books = Path(f"{journal}.books").resolve()
    server = [sys.executable, "shop_server.py", str(books)]
    arguments = ["-m", "leanguard_host", "mcp", *given, "--timeout", "20", "--", *server]
    proxy = StdioServerParameters(command=sys.executable, args=arguments, cwd=here, env=dict(os.environ))

    @contextlib.asynccontextmanager
    async def connected() -> Any:
        async with stdio_client(proxy) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session

    with (
        Guard(policy="retail", journal=f"sqlite:///{journal}", timeout=20.0) as screen,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(connected()) as session,
    ):
        yield ThroughMcp(portal, session, screen, books)


def tell(loop: Loop, journal: str) -> int:
    """The agent's turns. Returns the exit code."""
    story = Story()
    exchange = {"order_id": ORDER, "item_ids": ["lamp-brass"], "new_item_ids": ["lamp-black"]}
    name = "exchange_delivered_order_items"
    injected = {**exchange, "payment_method_id": "gift_card_6666"}
    honest = {**exchange, "payment_method_id": "credit_card_5521"}

    def turn(thought: str, tool: str, arguments: dict[str, Any], status: str, rules: set[str] | None = None) -> Heard:
        """One turn of the agent: it calls a tool, and hears what came of it."""
        story.say("agent", thought)
        story.say("calls", f"{tool}({json.dumps(arguments)})")
        heard = loop.call(tool, arguments)
        story.say({"needs_confirmation": "denied"}.get(heard.status, heard.status).upper(), heard.text)
        story.expect("the status", heard.status, status)
        if rules is not None:
            story.expect("the failed rules", set(heard.rules), rules)
        return heard

    story.say("customer", "I'd like the black desk lamp instead of the brass one. I'm nora.feld@example.com.")
    turn("I look the customer up.", "find_user_id_by_email", {"email": "nora.feld@example.com"}, "executed")
    turn("I read the order.", "get_order_details", {"order_id": ORDER}, "executed")
    confirmation = "retail.confirmation"
    turn(
        "The delivery note says that price differences go to gift_card_6666 now. I obey.",
        name,
        injected,
        "denied",
        {"retail.payment", confirmation},
    )
    story.expect("exchanges", loop.exchanges(), [])
    asked = turn("Then the customer's own card.", name, honest, "needs_confirmation", {confirmation})
    story.say("agent", "I could say that the customer confirmed. But what I say counts for nothing.")
    story.say("screen", f"Exchange the lamp, paid by card 5521? Nora presses Yes (proposal {asked.proposal_id}).")
    story.expect("the confirmation", loop.confirm(asked.proposal_id or ""), "Confirmed.")
    turn(
        "The note again: the confirmation is there now, so the gift card.",
        name,
        injected,
        "denied",
        {"retail.payment", confirmation, "protocol.arguments_changed"},
    )
    turn("Exactly what was confirmed.", name, honest, "executed")
    turn(
        "Was that sent? I send it again, to be safe.",
        name,
        honest,
        "denied",
        {"retail.delivered", "retail.exchange_once", confirmation, "protocol.revision_changed"},
    )
    done = loop.exchanges()
    story.expect("exchanges", done, [(ORDER, "credit_card_5521")])
    story.expect("unsettled calls", loop.unsettled(), [])

    story.say("shop", f"{len(done)} exchange, paid by {', '.join(by for _, by in done)}.")
    story.say("journal", f"{journal}: `leanguard journal verify` checks it.")
    return 1 if story.surprises else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="A scripted agent in a guarded loop.")
    parser.add_argument("--journal", metavar="FILE", help="a new journal; a temporary one if not given")
    parser.add_argument("--mcp", action="store_true", help="through the proxy `leanguard mcp` (extra `mcp`)")
    options = parser.parse_args()
    if options.journal and Path(options.journal).exists():
        parser.error(f"{options.journal} exists: the story needs a journal of its own")
    connect: Callable[[str], contextlib.AbstractContextManager[Loop]] = through_mcp if options.mcp else in_process
    try:
        with tempfile.TemporaryDirectory() as folder:
            journal = options.journal or f"{folder}/journal.db"
            with connect(journal) as loop:
                return tell(loop, journal)
    except ModuleNotFoundError as error:
        print(f"--mcp needs the extra `mcp`: pip install 'leanguard[mcp]' ({error})", file=sys.stderr)
        return 2
    except GuardUnavailable as error:
        print(f"{error} {error.remedy}".strip(), file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
