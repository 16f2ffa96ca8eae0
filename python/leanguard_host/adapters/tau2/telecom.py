"""Telecom: customers, lines, plans, devices, bills.

Of the customer's own phone only what changes the account matters: paying a bill.
"""

from __future__ import annotations

import tomllib
from datetime import date, timedelta
from pathlib import Path
from typing import Any, ClassVar, Self

from leanguard_host.adapters.tau2.backend import Backend, DataError, Json, ToolError, midnight, milliseconds, usable

_TABLES = {f"{kind}s": f"{kind}_id" for kind in ("customer", "line", "plan", "device", "bill")}
_BY_LETTER = {"L": "lines", "D": "devices", "B": "bills", "C": "customers", "P": "plans"}
_TYPES = {"lines": "line", "devices": "device", "bills": "bill", "customers": "customer", "plans": "plan"}
_TODAY = date(2025, 2, 25)
_LINE = ("line", "line_id")
_AWAITING, _OVERDUE, _PAID = "Awaiting Payment", "Overdue", "Paid"


class Telecom(Backend):
    """The telecom database and its 13 agent tools."""

    name = "telecom"
    now = milliseconds("2025-02-25T12:08:00")
    confirmations = frozenset({"telecom.refuel_confirm"})
    stricter = frozenset({"telecom.stable_identity"})
    writes = frozenset(
        {"send_payment_request", "suspend_line", "resume_line", "enable_roaming", "disable_roaming", "refuel_data"}
    )
    resources: ClassVar = {
        **dict.fromkeys(writes | {"get_data_usage"}, _LINE),
        "send_payment_request": ("bill", "bill_id"),
        "get_customer_by_id": ("customer", "customer_id"),
        "get_bills_for_customer": ("customer", "customer_id"),
        "get_details_by_id": ("record", "id"),
    }

    @classmethod
    def load(cls, folder: Path) -> Self:
        path = folder / "db.toml"
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
            return cls({table: {row[key]: row for row in tables[table]} for table, key in _TABLES.items()})
        except OSError as error:
            raise DataError(f"{path}: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: not a telecom database: {error}") from error

    def state(self, call: Json, principal: str | None) -> Json:
        tool, arguments = call["tool"], call["arguments"]
        state: Json = {table: {} for table in ("customers", "found_customers", "lines", "bills", "plans")}
        customer = self.row("customers", principal)
        if principal is not None:
            state["customers"][principal] = customer and {name: customer[name] for name in ("line_ids", "bill_ids")}
        if tool.startswith("get_customer_by_"):
            try:
                found = self.run(call)
            except ToolError:
                found = []
            rows = found if isinstance(found, list) else [found]
            state["found_customers"] = {row["customer_id"]: {} for row in rows}
        wanted = [arguments["line_id"]] if usable(arguments.get("line_id")) else []
        if tool == "get_details_by_id":
            wanted += customer["line_ids"] if customer else []
            if plan := self.row("plans", arguments.get("id")):
                state["plans"][plan["plan_id"]] = {}
        for key in wanted:
            line = self.row("lines", key)
            state["lines"][key] = line and {
                "status": line["status"],
                "device_id": line.get("device_id"),
                "contract_end": midnight(line["contract_end_date"]),
                "roaming_enabled": line["roaming_enabled"],
                "data_refueling_gb": line["data_refueling_gb"],
            }
        if tool in ("send_payment_request", "suspend_line", "resume_line"):
            keys = [*(customer["bill_ids"] if customer else []), arguments.get("bill_id")]
            for key in filter(usable, keys):
                bill = self.row("bills", key)
                state["bills"][key] = bill and {"status": bill["status"], "total_due": bill["total_due"]}
        return state

    def seen(self, call: Json, result: Any) -> list[Json]:
        if call["tool"] == "get_bills_for_customer":
            return [{"type": "bill", "id": bill["bill_id"]} for bill in result]
        if call["tool"] == "get_details_by_id":
            key = call["arguments"]["id"]
            return [{"type": _TYPES[_BY_LETTER[key[0]]], "id": key}]
        return super().seen(call, result)

    def identified(self, call: Json, result: Any) -> str | None:
        if not call["tool"].startswith("get_customer_by_"):
            return None
        found = result if isinstance(result, list) else [result]
        return str(found[0]["customer_id"]) if len(found) == 1 else None  # two of one name and birthday are no one

    def initialize(self, action: Json) -> None:
        if action.get("env_type") != "assistant":
            return  # the customer's phone
        name, arguments = action["func_name"], action["arguments"]
        if name == "set_data_usage":
            self._line(arguments["customer_id"], arguments["line_id"])["data_used_gb"] = arguments["data_used_gb"]
        elif name == "suspend_line_for_overdue_bill":
            self._suspend_for_bill(**arguments)
        else:
            self.run({"tool": name, "arguments": arguments})

    def user_call(self, name: str, arguments: Json) -> None:
        if name == "make_payment":
            waiting = next((key for key, bill in self.data["bills"].items() if bill["status"] == _AWAITING), None)
            if waiting is not None:
                self.need("bills", waiting, "Bill")["status"] = _PAID

    def _line(self, customer_id: str, line_id: str) -> Json:
        if line_id not in self.need("customers", customer_id, "Customer")["line_ids"]:
            raise ToolError(f"Line {line_id} not found for customer {customer_id}")
        return self.need("lines", line_id, f"Line {line_id}")

    def _suspend_for_bill(self, customer_id: str, line_id: str, new_bill_id: str, contract_ended: bool) -> None:
        customer, line = self.need("customers", customer_id, "Customer"), self._line(customer_id, line_id)
        last = _TODAY.replace(day=1) - timedelta(days=1)
        due = self.need("plans", line["plan_id"], "Plan")["price_per_month"]
        self.data["bills"][new_bill_id] = {
            "bill_id": new_bill_id,
            "customer_id": customer_id,
            "issue_date": last.replace(day=1).isoformat(),
            "total_due": due,
            "status": _OVERDUE,
        }
        customer["bill_ids"].append(new_bill_id)
        line.update(status="Suspended", suspension_start_date=_TODAY.isoformat())
        if contract_ended:
            line["contract_end_date"] = last.isoformat()

    def tool_get_customer_by_phone(self, phone_number: str) -> Json:
        for customer in self.data["customers"].values():
            lines = (self.row("lines", key) or {} for key in customer["line_ids"])
            if phone_number in (customer["phone_number"], *(line.get("phone_number") for line in lines)):
                found: Json = customer
                return found
        raise ToolError(f"Customer with phone number {phone_number} not found")

    def tool_get_customer_by_id(self, customer_id: str) -> Json:
        return self.need("customers", customer_id, f"Customer with ID {customer_id}")

    def tool_get_customer_by_name(self, full_name: str, dob: str) -> list[Json]:
        everyone = self.data["customers"].values()
        return [c for c in everyone if c["full_name"].lower() == full_name.lower() and str(c["date_of_birth"]) == dob]

    def tool_get_details_by_id(self, id: str) -> Json:  # noqa: A002 - the tool's own
        if (table := _BY_LETTER.get(id[:1])) is None:
            raise ToolError(f"Unknown ID format or type: {id}")
        return self.need(table, id, id)

    def tool_get_bills_for_customer(self, customer_id: str, limit: int = 12) -> list[Json]:
        customer = self.need("customers", customer_id, f"Customer with ID {customer_id}")
        bills = [self.need("bills", key, f"Bill {key}") for key in customer["bill_ids"]]
        return sorted(bills, key=lambda bill: str(bill["issue_date"]), reverse=True)[:limit]

    def tool_get_data_usage(self, customer_id: str, line_id: str) -> Json:
        line = self._line(customer_id, line_id)
        plan = self.need("plans", line["plan_id"], "Plan")
        used = {name: line[name] for name in ("line_id", "data_used_gb", "data_refueling_gb")}
        return {**used, "data_limit_gb": plan["data_limit_gb"]}

    def tool_send_payment_request(self, customer_id: str, bill_id: str) -> str:
        keys = self.need("customers", customer_id, f"Customer {customer_id}")["bill_ids"]
        if any((self.row("bills", key) or {}).get("status") == _AWAITING for key in keys):
            raise ToolError("A bill is already awaiting payment for this customer")
        if bill_id not in keys:
            raise ToolError(f"Bill {bill_id} not found for customer {customer_id}")
        self.need("bills", bill_id, f"Bill {bill_id}")["status"] = _AWAITING
        return f"Payment request sent to the customer for bill {bill_id}"

    def tool_suspend_line(self, customer_id: str, line_id: str, reason: str) -> Json:
        line = self._line(customer_id, line_id)
        if line["status"] != "Active":
            raise ToolError("Line must be active to suspend")
        line.update(status="Suspended", suspension_start_date=_TODAY.isoformat())
        return {"message": "Line suspended", "line": line}

    def tool_resume_line(self, customer_id: str, line_id: str) -> Json:
        line = self._line(customer_id, line_id)
        if line["status"] not in ("Suspended", "Pending Activation"):
            raise ToolError("Line must be suspended to resume")
        line.update(status="Active", suspension_start_date=None)
        return {"message": "Line resumed successfully", "line": line}

    def tool_enable_roaming(self, customer_id: str, line_id: str) -> str:
        line = self._line(customer_id, line_id)
        if line["roaming_enabled"]:
            return "Roaming was already enabled"
        line["roaming_enabled"] = True
        return "Roaming enabled successfully"

    def tool_disable_roaming(self, customer_id: str, line_id: str) -> str:
        line = self._line(customer_id, line_id)
        if not line["roaming_enabled"]:
            return "Roaming was already disabled"
        line["roaming_enabled"] = False
        return "Roaming disabled successfully"

    def tool_refuel_data(self, customer_id: str, line_id: str, gb_amount: float) -> Json:
        line = self._line(customer_id, line_id)
        if gb_amount <= 0:
            raise ToolError("Refuel amount must be positive")
        price = self.need("plans", line["plan_id"], "Plan")["data_refueling_price_per_gb"]
        line["data_refueling_gb"] += gb_amount
        self._charge(customer_id, round(gb_amount * price, 2))
        return {"new_data_refueling_gb": line["data_refueling_gb"], "charge": gb_amount * price}

    def _charge(self, customer_id: str, amount: float) -> None:
        customer = self.need("customers", customer_id, "Customer")
        drafts = (key for key in customer["bill_ids"] if (self.row("bills", key) or {}).get("status") == "Draft")
        if (key := next(drafts, None)) is None:
            key = f"B{len(self.data['bills']):08d}"
            draft = {"issue_date": "2025-03-01", "total_due": 0, "status": "Draft"}
            self.data["bills"][key] = {"bill_id": key, "customer_id": customer_id, **draft}
            customer["bill_ids"].append(key)
        bill = self.need("bills", key, "Bill")
        bill["total_due"] = round(bill["total_due"] + amount, 2)
