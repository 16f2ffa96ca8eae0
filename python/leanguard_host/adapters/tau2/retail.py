"""Retail: products, users, orders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Self

from leanguard_host.adapters.tau2.backend import (
    Backend,
    DataError,
    Json,
    ToolError,
    milliseconds,
    read_json,
    texts,
    usable,
)

_ORDER = ("order", "order_id")
_USER = ("user", "user_id")
_TABLES = ("orders", "users", "products")
_REASONS = ("no longer needed", "ordered by mistake")


class Retail(Backend):
    """The retail database and its 16 agent tools."""

    name = "retail"
    now = milliseconds("2024-05-15T15:00:00")
    confirmations = frozenset({"retail.confirmation"})
    stricter = frozenset({"retail.modify_once"})
    writes = frozenset(
        {
            "cancel_pending_order",
            "modify_pending_order_address",
            "modify_pending_order_payment",
            "modify_pending_order_items",
            "return_delivered_order_items",
            "exchange_delivered_order_items",
            "modify_user_address",
        }
    )
    resources: ClassVar = {
        **dict.fromkeys(writes | {"get_order_details"}, _ORDER),
        "modify_user_address": _USER,
        "get_user_details": _USER,
        "get_product_details": ("product", "product_id"),
        "get_item_details": ("item", "item_id"),
    }

    @classmethod
    def load(cls, folder: Path) -> Self:
        data = read_json(folder / "db.json")
        if not isinstance(data, dict) or not all(isinstance(data.get(table), dict) for table in _TABLES):
            raise DataError(f"{folder / 'db.json'}: not a retail database")
        return cls(data)

    def state(self, call: Json, principal: str | None) -> Json:
        arguments = call["arguments"]
        state: Json = {"users": {}, "orders": {}, "products": {}}
        if principal is not None:
            user = self.row("users", principal)
            state["users"][principal] = user and {"payment_methods": user["payment_methods"]}
        if not usable(key := arguments.get("order_id")):
            return state
        order = self.row("orders", key)
        state["orders"][key] = order and {
            "user_id": order["user_id"],
            "status": order["status"],
            "items": [{name: item[name] for name in ("item_id", "product_id", "price")} for item in order["items"]],
            "payment_history": order["payment_history"],
        }
        named, wanted = set(texts(arguments.get("item_ids"))), set(texts(arguments.get("new_item_ids")))
        for item in order["items"] if order and wanted else []:
            product = self.row("products", item["product_id"])
            if item["item_id"] in named:
                state["products"][item["product_id"]] = product and {
                    "variants": {
                        new: {"available": variant["available"], "price": variant["price"]}
                        for new, variant in product["variants"].items()
                        if new in wanted
                    }
                }
        return state

    def identified(self, call: Json, result: Any) -> str | None:
        return result if call["tool"].startswith("find_user_id_") and isinstance(result, str) else None

    def _method(self, order: Json, key: str) -> Json:
        methods: Json = self.need("users", order["user_id"], "User")["payment_methods"]
        if key not in methods:
            raise ToolError("Payment method not found")
        found: Json = methods[key]
        return found

    @staticmethod
    def _pay(method: Json, amount: float) -> None:
        """Takes the amount (gives it back, if negative) from a gift card."""
        if method["source"] == "gift_card":
            method["balance"] = round(method["balance"] - amount, 2)

    @staticmethod
    def _covered(method: Json, amount: float) -> None:
        if method["source"] == "gift_card" and method["balance"] < amount:
            raise ToolError("Insufficient gift card balance")

    def _order(self, key: str, status: str, *, loose: bool = False) -> Json:
        order = self.need("orders", key, "Order")
        if status not in order["status"] if loose else order["status"] != status:
            raise ToolError(f"The order is not {status}")
        return order

    @staticmethod
    def _count(order: Json, item_ids: list[str]) -> None:
        there = [item["item_id"] for item in order["items"]]
        for key in item_ids:
            if item_ids.count(key) > there.count(key):
                raise ToolError(f"{key} not found")

    def _replacements(self, order: Json, item_ids: list[str], new_item_ids: list[str]) -> tuple[list[Json], float]:
        """The new variants and the price difference."""
        self._count(order, item_ids)
        if len(item_ids) != len(new_item_ids):
            raise ToolError("The number of items should match")
        variants, difference = [], 0.0
        for key, new in zip(item_ids, new_item_ids, strict=True):
            item = next(item for item in order["items"] if item["item_id"] == key)
            variant = self.need("products", item["product_id"], "Product")["variants"].get(new)
            if variant is None or not variant["available"]:
                raise ToolError(f"New item {new} not found or available")
            variants.append(variant)
            difference += variant["price"] - item["price"]
        return variants, round(difference, 2)

    def tool_find_user_id_by_email(self, email: str) -> str:
        for key, user in self.data["users"].items():
            if user["email"].lower() == email.lower():
                return str(key)
        raise ToolError("User not found")

    def tool_find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> str:  # noqa: A002 - the tool's own
        for key, user in self.data["users"].items():
            name = (user["name"]["first_name"].lower(), user["name"]["last_name"].lower())
            if name == (first_name.lower(), last_name.lower()) and user["address"]["zip"] == zip:
                return str(key)
        raise ToolError("User not found")

    def tool_get_user_details(self, user_id: str) -> Json:
        return self.need("users", user_id, "User")

    def tool_get_order_details(self, order_id: str) -> Json:
        return self.need("orders", order_id, "Order")

    def tool_get_product_details(self, product_id: str) -> Json:
        return self.need("products", product_id, "Product")

    def tool_get_item_details(self, item_id: str) -> Json:
        for product in self.data["products"].values():
            if item_id in product["variants"]:
                found: Json = product["variants"][item_id]
                return found
        raise ToolError("Item not found")

    def tool_list_all_product_types(self) -> str:
        return json.dumps({p["name"]: key for key, p in self.data["products"].items()}, sort_keys=True)

    def tool_cancel_pending_order(self, order_id: str, reason: str) -> Json:
        order = self._order(order_id, "pending")
        if reason not in _REASONS:
            raise ToolError("Invalid reason")
        methods = [self._method(order, payment["payment_method_id"]) for payment in order["payment_history"]]
        for payment, method in zip(list(order["payment_history"]), methods, strict=True):
            self._pay(method, -payment["amount"])
            order["payment_history"].append({**payment, "transaction_type": "refund"})
        order.update(status="cancelled", cancel_reason=reason)
        return order

    def tool_modify_pending_order_address(self, order_id: str, **address: str) -> Json:
        order = self._order(order_id, "pending", loose=True)
        order["address"] = dict(address)
        return order

    def tool_modify_user_address(self, user_id: str, **address: str) -> Json:
        user = self.need("users", user_id, "User")
        user["address"] = dict(address)
        return user

    def tool_modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> Json:
        order = self._order(order_id, "pending", loose=True)
        method, history = self._method(order, payment_method_id), order["payment_history"]
        if len(history) != 1 or history[0]["transaction_type"] != "payment":
            raise ToolError("There should be exactly one payment for a pending order")
        old, amount = history[0]["payment_method_id"], history[0]["amount"]
        if old == payment_method_id:
            raise ToolError("The new payment method should be different from the current one")
        self._covered(method, amount)
        self._pay(method, amount)
        self._pay(self._method(order, old), -amount)
        for kind, key in (("payment", payment_method_id), ("refund", old)):
            history.append({"transaction_type": kind, "amount": amount, "payment_method_id": key})
        return order

    def tool_modify_pending_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Json:
        order = self._order(order_id, "pending")
        if any(old == new for old, new in zip(item_ids, new_item_ids, strict=False)):
            raise ToolError("The new item id should be different from the old item id")
        variants, difference = self._replacements(order, item_ids, new_item_ids)
        method = self._method(order, payment_method_id)
        self._covered(method, difference)
        self._pay(method, difference)
        kind = "payment" if difference > 0 else "refund"
        order["payment_history"].append(
            {"transaction_type": kind, "amount": abs(difference), "payment_method_id": payment_method_id}
        )
        for key, variant in zip(item_ids, variants, strict=True):
            item = next(item for item in order["items"] if item["item_id"] == key)
            item.update(item_id=variant["item_id"], price=variant["price"], options=variant["options"])
        order["status"] = "pending (item modified)"
        return order

    def tool_return_delivered_order_items(self, order_id: str, item_ids: list[str], payment_method_id: str) -> Json:
        order = self._order(order_id, "delivered")
        method = self._method(order, payment_method_id)
        if method["source"] != "gift_card" and payment_method_id != order["payment_history"][0]["payment_method_id"]:
            raise ToolError("Payment method should be the original payment method")
        self._count(order, item_ids)
        order.update(
            status="return requested", return_items=sorted(item_ids), return_payment_method_id=payment_method_id
        )
        return order

    def tool_exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Json:
        order = self._order(order_id, "delivered")
        _, difference = self._replacements(order, item_ids, new_item_ids)
        self._covered(self._method(order, payment_method_id), difference)
        order.update(
            status="exchange requested",
            exchange_items=sorted(item_ids),
            exchange_new_items=sorted(new_item_ids),
            exchange_payment_method_id=payment_method_id,
            exchange_price_difference=difference,
        )
        return order
