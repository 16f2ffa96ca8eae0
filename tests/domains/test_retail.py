"""The retail policy's rules, one by one, on an invented store."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import Chat, retail

LAMP = {"item_ids": ["lamp-a"], "new_item_ids": ["lamp-b"], "payment_method_id": "card_1"}
ADDRESS = {"address1": "2 Oak", "address2": "", "city": "Ely", "state": "ME", "country": "USA", "zip": "04403"}


@pytest.fixture
def chat(engine: Any) -> Chat:
    """Ada is authenticated and has read her orders."""
    chat = Chat(engine, retail()).login()
    for order in ("#P1", "#D1", "#D2", "#C1"):
        chat.ok("get_order_details", order_id=order)
    return chat


def test_nothing_before_the_customer_is_authenticated(engine: Any) -> None:
    chat = Chat(engine, retail())
    chat.ok("get_product_details", product_id="lamp").ok("list_all_product_types").ok("calculate", expression="1 + 1")
    chat.ok("get_item_details", item_id="mug-a").ok("transfer_to_human_agents", summary="help")
    chat.no("identity order_owner", "get_order_details", order_id="#P1")
    chat.no("identity profile_owner", "get_user_details", user_id="ada_1")
    chat.ok("find_user_id_by_name_zip", first_name="ada", last_name="MOSS", zip="04401")
    chat.ok("get_user_details", user_id="ada_1").ok("get_order_details", order_id="#P1")


def test_one_customer_a_conversation(chat: Chat) -> None:
    chat.ok("find_user_id_by_email", email="bob@example.com")  # a look-up; Ada stays the customer
    chat.no("order_owner", "get_order_details", order_id="#B1")
    chat.no("profile_owner", "get_user_details", user_id="bob_2")
    chat.no("profile_owner", "modify_user_address", user_id="bob_2", **ADDRESS)
    chat.no("order_owner status_observed", "cancel_pending_order", order_id="#B1", reason="no longer needed")


def test_the_status_is_read_in_this_conversation(engine: Any) -> None:
    chat = Chat(engine, retail()).login()
    chat.no("status_observed", "cancel_pending_order", order_id="#P1", reason="no longer needed")
    chat.ok("get_order_details", order_id="#D1")  # another order
    chat.no("status_observed", "cancel_pending_order", order_id="#P1", reason="no longer needed")
    chat.ok("get_order_details", order_id="#P1")
    chat.ok("cancel_pending_order", order_id="#P1", reason="no longer needed")
    chat.no("pending", "cancel_pending_order", order_id="#P1", reason="no longer needed")


def test_only_two_reasons_cancel(chat: Chat) -> None:
    for reason in ("found it cheaper", "No longer needed", " ordered by mistake", ""):
        chat.no("cancel_permit", "cancel_pending_order", order_id="#P1", reason=reason)
    chat.ok("cancel_pending_order", order_id="#P1", reason="ordered by mistake")


def test_only_pending_orders_change(chat: Chat) -> None:
    chat.no("pending", "modify_pending_order_address", order_id="#D1", **ADDRESS)
    chat.no("pending", "cancel_pending_order", order_id="#C1", reason="no longer needed")
    chat.ok("modify_pending_order_address", order_id="#P1", **ADDRESS)


def test_items_change_once_and_for_good(chat: Chat) -> None:
    chat.ok("modify_pending_order_items", order_id="#P1", **LAMP)
    chat.no("pending modify_once", "modify_pending_order_address", order_id="#P1", **ADDRESS)
    chat.no("pending", "cancel_pending_order", order_id="#P1", reason="no longer needed")


def test_an_order_changes_once(chat: Chat) -> None:
    chat.ok("modify_pending_order_address", order_id="#P1", **ADDRESS)
    chat.no("modify_once", "modify_pending_order_items", order_id="#P1", **LAMP)
    chat.no("modify_once", "modify_pending_order_payment", order_id="#P1", payment_method_id="paypal_1")
    chat.ok("cancel_pending_order", order_id="#P1", reason="no longer needed")


@pytest.mark.parametrize("tool", ["modify_pending_order_items", "exchange_delivered_order_items"])
@pytest.mark.parametrize(
    ("items", "new"),
    [
        (["lamp-a"], ["mug-b"]),  # another product
        (["lamp-a"], ["lamp-d"]),  # not available
        (["lamp-a"], ["lamp-a"]),  # the same
        (["lamp-a"], ["lamp-x"]),  # no such item
        (["lamp-x"], ["lamp-b"]),
        (["LAMP-A"], ["lamp-b"]),
        (["lamp-a "], ["lamp-b"]),
        (["lamp-a"], ["lamp-b", "lamp-b"]),
        (["lamp-a"] * 3, ["lamp-b"] * 3),  # more than there are
        ([], []),
    ],
)
def test_new_items_must_fit(chat: Chat, tool: str, items: list[str], new: list[str]) -> None:
    order, rule = ("#P1", "modify_items") if tool.startswith("modify") else ("#D1", "exchange_items")
    chat.no(rule, tool, order_id=order, item_ids=items, new_item_ids=new, payment_method_id="card_1")


def test_duplicates_count(chat: Chat) -> None:
    both = {"item_ids": ["lamp-a", "lamp-a"], "new_item_ids": ["lamp-b", "lamp-c"], "payment_method_id": "card_1"}
    chat.no("modify_items", "modify_pending_order_items", order_id="#P1", **both)
    chat.ok("exchange_delivered_order_items", order_id="#D1", **both)


def test_delivered_orders_are_exchanged_once(chat: Chat) -> None:
    chat.no("delivered", "exchange_delivered_order_items", order_id="#P1", **LAMP)
    chat.ok("exchange_delivered_order_items", order_id="#D1", **LAMP)
    chat.no("delivered exchange_once", "exchange_delivered_order_items", order_id="#D1", **LAMP)
    chat.no("delivered", "return_delivered_order_items", order_id="#D1", item_ids=["mug-a"], payment_method_id="card_1")


def test_the_difference_is_settled_by_an_own_method(chat: Chat) -> None:
    for method, rules in (("card_2", "payment"), ("CARD_1", "payment"), ("", "payment"), ("gift_1", "")):
        call = {**LAMP, "order_id": "#D1", "payment_method_id": method}
        if rules:
            chat.no(rules, "exchange_delivered_order_items", **call)
    dear = {**LAMP, "new_item_ids": ["lamp-c"], "payment_method_id": "gift_1"}
    chat.no("payment", "exchange_delivered_order_items", order_id="#D1", **dear)  # 20 are due, 5.25 are there
    chat.ok("exchange_delivered_order_items", order_id="#D1", **{**LAMP, "payment_method_id": "gift_1"})  # 5.25 exactly


def test_payment_changes_to_another_method_that_covers_all(chat: Chat) -> None:
    chat.no("payment", "modify_pending_order_payment", order_id="#P1", payment_method_id="card_1")
    chat.no("payment", "modify_pending_order_payment", order_id="#P1", payment_method_id="gift_1")
    chat.no("payment", "modify_pending_order_payment", order_id="#P1", payment_method_id="card_2")
    chat.ok("modify_pending_order_payment", order_id="#P1", payment_method_id="paypal_1")


def test_returns_go_to_the_original_method_or_a_gift_card(chat: Chat) -> None:
    back = {"order_id": "#D1", "item_ids": ["lamp-a", "lamp-a"]}
    chat.no("return", "return_delivered_order_items", **back, payment_method_id="paypal_1")
    chat.no("return", "return_delivered_order_items", **back, payment_method_id="card_2")
    for items in ([], ["lamp-a"] * 3, ["lamp-b"]):
        chat.no("return", "return_delivered_order_items", order_id="#D1", item_ids=items, payment_method_id="card_1")
    chat.ok("return_delivered_order_items", **back, payment_method_id="gift_1")
    chat.ok("return_delivered_order_items", order_id="#D2", item_ids=["mug-a"], payment_method_id="card_1")


def test_a_confirmation_is_for_one_call_in_one_state(chat: Chat) -> None:
    chat.no("confirmation", "modify_user_address", confirm=False, user_id="ada_1", **ADDRESS)
    chat.ok("modify_user_address", user_id="ada_1", **ADDRESS)
    chat.no("confirmation", "modify_user_address", confirm=False, user_id="ada_1", **ADDRESS)  # it was for one time
    call = {"order_id": "#D1", **LAMP}
    chat.decide("exchange_delivered_order_items", True, call)
    other = {**call, "new_item_ids": ["lamp-c"]}
    chat.no("confirmation", "exchange_delivered_order_items", confirm=False, **other)
    chat.session.backend.need("users", "ada_1", "")["payment_methods"]["gift_1"]["balance"] = 1.0  # another state
    chat.no("confirmation", "exchange_delivered_order_items", confirm=False, **call)


@pytest.mark.parametrize("order", ["#X1", "#p1", " #P1", "P1", "", "#P1\u0000"])
def test_an_unknown_order_is_no_order_of_the_customer(chat: Chat, order: str) -> None:
    chat.no("order_owner", "get_order_details", order_id=order)


def test_arguments_must_fit_the_schema(chat: Chat) -> None:
    wrong = "host.arguments"
    chat.no(wrong, "get_order_details")
    chat.no(wrong, "get_order_details", order_id=7)
    chat.no(wrong, "get_order_details", order_id="#P1", note="x")
    chat.no(wrong, "exchange_delivered_order_items", order_id="#D1", **{**LAMP, "item_ids": "lamp-a"})
    chat.no(wrong, "exchange_delivered_order_items", order_id="#D1", **{**LAMP, "item_ids": [1]})
    chat.no("host.unknown_tool", "think", thought="hm")
    chat.no("host.unknown_tool", "Get_order_details", order_id="#P1")
