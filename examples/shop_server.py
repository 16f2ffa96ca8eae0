"""The shop of agent_loop.py as an MCP server, and the adapter with which `leanguard mcp` reads it.

From this folder:

    leanguard mcp --policy retail --journal journal.db --adapter shop_server:adapter -- python shop_server.py BOOKS

Each exchange that takes place is a line of the file BOOKS. Needs the extra `mcp`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agent_loop import CHAT, Shop, ShopAdapter
from mcp.server.mcpserver import MCPServer

from leanguard_host import Call, Reservation
from leanguard_host.integrations.mcp import Backend


class Served(Shop):
    """The shop, with books."""

    def exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> str:
        """Exchange items, and charge the difference."""
        done = super().exchange_delivered_order_items(order_id, item_ids, new_item_ids, payment_method_id)
        with Path(sys.argv[1]).open("a", encoding="utf-8") as books:
            books.write(json.dumps([order_id, payment_method_id]) + "\n")
        return done


class GuardedShop:
    """The adapter: the shop's state, read from the server itself, and who the customer is.

    The resource that it reads is no tool, and `leanguard mcp` lets no resource pass to the agent unless told to.
    """

    def __init__(self, server: Backend) -> None:
        self.server = server
        self.shop = Shop()
        self.adapter = ShopAdapter(self.shop, CHAT)

    async def refresh(self) -> None:
        """Read the server."""
        found = json.loads(await self.server.read_resource("shop://state"))
        self.shop.state, self.shop.revision = found["state"], found["revision"]
        self.shop.exchanges = [(order, payment) for order, payment in found["exchanges"]]

    async def snapshot(self, call: Call) -> dict[str, Any]:
        """The state that decides this call."""
        await self.refresh()
        return self.adapter.snapshot(call)

    def facts(self, call: Call, result: Any) -> list[dict[str, Any]]:
        """What an MCP result shows: the look-up's text is the customer's id."""
        return self.adapter.facts(call, result.content[0].text)

    async def reconcile(self, reservation: Reservation) -> str | None:
        """Whether an exchange of which nobody knows took place."""
        await self.refresh()
        return self.adapter.reconcile(reservation)


def adapter(server: Backend) -> GuardedShop:
    """What `--adapter shop_server:adapter` names."""
    return GuardedShop(server)


def serve() -> None:
    """Be the server, over standard input and output."""
    shop = Served()
    server = MCPServer("shop")
    for tool in shop.tools().values():
        server.add_tool(tool)

    @server.resource("shop://state")
    def state() -> str:
        """Everything, for the adapter."""
        return json.dumps({"state": shop.state, "revision": shop.revision, "exchanges": shop.exchanges})

    server.run()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python shop_server.py BOOKS")
    serve()
