"""Adapters as a user of `leanguard mcp` writes them: what reads the backend through the server, and wrong ones."""

from __future__ import annotations

import copy
import json
import sys
from typing import Any

from leanguard_host.integrations.mcp import Backend, ToolReportedError

print("an adapter that prints when it is imported")  # must not get among the protocol's messages


class ShopAdapter:
    def __init__(self, server: Backend) -> None:
        self.server = server

    async def snapshot(self, call: Any) -> dict[str, Any]:
        who = json.loads((await self.server.call_tool("who")).content[0].text)  # type: ignore[union-attr]
        state = json.loads(await self.server.read_resource("shop://state"))
        order = call.arguments.get("order_id", "#none")
        state["orders"] = {order: copy.deepcopy(state["orders"]["#L20417"])}
        print("and at each call")
        return {"revision": "r1", **who, "state": state}

    def failed_definitely(self, error: BaseException) -> bool:
        return isinstance(error, ToolReportedError) and "certainly" in str(error.result.content)


class Silent:
    """Can't read the backend."""

    def snapshot(self, call: Any) -> Any:
        raise ConnectionError("no backend")


class NoAdapter:
    """Has no snapshot."""


class Failing:
    def __init__(self) -> None:
        raise RuntimeError("broken")


silent = Silent()
number = 7


def made_up(server: Backend) -> ShopAdapter:
    print("made", file=sys.stdout)
    return ShopAdapter(server)
