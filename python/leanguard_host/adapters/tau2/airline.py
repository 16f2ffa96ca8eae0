"""Airline: flights, users, reservations; from tau2-bench's database (`db.json`) or tau-bench's (a file a table)."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any, ClassVar, Self

from leanguard_host.adapters.tau2.backend import (
    Backend,
    DataError,
    Json,
    ToolError,
    milliseconds,
    objects,
    read_json,
    usable,
)

_TABLES = ("flights", "reservations", "users")
_RESERVATION = ("reservation", "reservation_id")
_USER = ("user", "user_id")
_RESERVATION_FIELDS = (
    "user_id", "origin", "destination", "flight_type", "cabin", "passengers", "total_baggages", "nonfree_baggages",
    "insurance",
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z0-9_]+")
_NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
_NEW_CERTIFICATES = ("certificate_3221322", "certificate_3221323", "certificate_3221324")


class Airline(Backend):
    """The airline database and its 14 agent tools."""

    name = "airline"
    now = milliseconds("2024-05-15T15:00:00")
    confirmations = frozenset({"airline.confirmation"})
    writes = frozenset(
        {
            "book_reservation",
            "cancel_reservation",
            "update_reservation_flights",
            "update_reservation_passengers",
            "update_reservation_baggages",
            "send_certificate",
        }
    )
    resources: ClassVar = {
        **dict.fromkeys(writes | {"get_reservation_details"}, _RESERVATION),
        **dict.fromkeys(("get_user_details", "book_reservation", "send_certificate"), _USER),
    }

    @classmethod
    def load(cls, folder: Path) -> Self:
        if (folder / "db.json").is_file():
            data = read_json(folder / "db.json")
        else:
            data = {table: read_json(folder / f"{table}.json") for table in _TABLES}
        if not isinstance(data, dict) or not all(isinstance(data.get(table), dict) for table in _TABLES):
            raise DataError(f"{folder}: not an airline database")
        return cls(data)

    def state(self, call: Json, principal: str | None) -> Json:
        arguments = call["arguments"]
        state: Json = {"users": {}, "reservations": {}, "flights": {}}
        user = self.row("users", principal)
        if principal is not None:
            state["users"][principal] = user and {name: user[name] for name in ("membership", "payment_methods")}
        wanted = [arguments["reservation_id"]] if usable(arguments.get("reservation_id")) else []
        if call["tool"] == "send_certificate" and user:
            wanted += user["reservations"]
        legs = objects(arguments.get("flights"))
        for key in wanted:
            row = self.row("reservations", key)
            state["reservations"][key] = row and self._reservation(row)
            legs = legs + (row["flights"] if row else [])
        for leg in legs:
            if usable(number := leg.get("flight_number")) and usable(day := leg.get("date")):
                flight = self.row("flights", number)
                entry = state["flights"].setdefault(
                    number, flight and {"origin": flight["origin"], "destination": flight["destination"], "dates": {}}
                )
                if flight and entry:
                    instance = flight["dates"].get(day)
                    entry["dates"][day] = instance and {
                        name: instance[name] for name in ("status", "available_seats", "prices") if name in instance
                    }
        return state

    @staticmethod
    def _reservation(row: Json) -> Json:
        return {
            **{name: row[name] for name in _RESERVATION_FIELDS},
            "flights": [{name: leg[name] for name in ("flight_number", "date", "price")} for leg in row["flights"]],
            "status": row.get("status") or "active",
            "created_at": milliseconds(row["created_at"]),
        }

    def claimed(self, text: str) -> str | None:
        # The benchmark has no log-in: who the customer is, is what they say.
        return next((word for word in _WORD.findall(text) if self.row("users", word) is not None), None)

    def disruption(self, call: Json) -> Json | None:
        row = self.row("reservations", call["arguments"].get("reservation_id"))
        if row is None or call["tool"] not in ("cancel_reservation", "update_reservation_flights"):
            return None
        instances = [self._instance(leg["flight_number"], leg["date"]) or {} for leg in row["flights"]]
        if not any(instance.get("status") == "delayed" for instance in instances):
            return None
        return {"passengers": len(row["passengers"]), "insurance": row["insurance"], "cabin": row["cabin"]}

    def _instance(self, number: str, day: str) -> Json | None:
        found = (self.row("flights", number) or {"dates": {}})["dates"].get(day)
        return found if isinstance(found, dict) else None

    def _seat(self, leg: Json, cabin: str, seats: int) -> Json:
        """The flight as a leg of a reservation."""
        number, day = leg["flight_number"], leg["date"]
        flight, instance = self.row("flights", number), self._instance(number, day)
        if flight is None or instance is None or instance["status"] != "available":
            raise ToolError(f"Flight {number} not available on date {day}")
        if instance["available_seats"][cabin] < seats:
            raise ToolError(f"Not enough seats on flight {number}")
        return {
            "flight_number": number,
            "date": day,
            "price": instance["prices"][cabin],
            "origin": flight["origin"],
            "destination": flight["destination"],
        }

    def _settle(self, row: Json, payment_id: str, due: int) -> None:
        method = self.need("users", row["user_id"], "User")["payment_methods"].get(payment_id)
        if method is None:
            raise ToolError("Payment method not found")
        if method["source"] == "certificate":
            raise ToolError("Certificate cannot be used to update reservation")
        if method["source"] == "gift_card":
            if method["amount"] < due:
                raise ToolError("Gift card balance is not enough")
            method["amount"] -= due
        if due:
            row["payment_history"].append({"payment_id": payment_id, "amount": due})

    def tool_search_direct_flight(self, origin: str, destination: str, date: str) -> list[Json]:
        # What was found matters to no rule.
        return []

    def tool_search_onestop_flight(self, origin: str, destination: str, date: str) -> list[Json]:
        return []

    def tool_list_all_airports(self) -> list[Json]:
        return []

    def tool_get_flight_status(self, flight_number: str, date: str) -> str:
        if (found := self._instance(flight_number, date)) is None:
            raise ToolError(f"Flight {flight_number} not found on date {date}")
        return str(found["status"])

    def tool_get_user_details(self, user_id: str) -> Json:
        return self.need("users", user_id, f"User {user_id}")

    def tool_get_reservation_details(self, reservation_id: str) -> Json:
        return self.need("reservations", reservation_id, f"Reservation {reservation_id}")

    def tool_book_reservation(self, user_id: str, **booking: Any) -> Json:
        user = self.need("users", user_id, f"User {user_id}")
        passengers, cabin, payments = booking["passengers"], booking["cabin"], booking.pop("payment_methods")
        key = next((key for key in _NEW_RESERVATIONS if key not in self.data["reservations"]), None)
        if key is None:
            raise ToolError("Too many reservations")
        legs = [self._seat(leg, cabin, len(passengers)) for leg in booking["flights"]]
        price = sum(leg["price"] for leg in legs) * len(passengers) + 50 * booking["nonfree_baggages"]
        price += 30 * len(passengers) if booking["insurance"] == "yes" else 0
        methods = user["payment_methods"]
        for payment in payments:
            method = methods.get(payment["payment_id"])
            if method is None:
                raise ToolError(f"Payment method {payment['payment_id']} not found")
            if method["source"] != "credit_card" and method["amount"] < payment["amount"]:
                raise ToolError(f"Not enough balance in payment method {payment['payment_id']}")
        paid = sum(payment["amount"] for payment in payments)
        if paid != price:
            raise ToolError(f"Payment amount does not add up, total price is {price}, but paid {paid}")
        for payment in payments:
            source = methods[payment["payment_id"]]["source"]
            if source == "gift_card":
                methods[payment["payment_id"]]["amount"] -= payment["amount"]
            elif source == "certificate":
                del methods[payment["payment_id"]]
        for leg in legs:
            flight = self.need("flights", leg["flight_number"], "Flight")
            flight["dates"][leg["date"]]["available_seats"][cabin] -= len(passengers)
        row = {
            "reservation_id": key,
            "user_id": user_id,
            **copy.deepcopy(booking),
            "flights": legs,
            "payment_history": copy.deepcopy(payments),
            "created_at": "2024-05-15T15:00:00",
        }
        self.data["reservations"][key] = row
        user["reservations"].append(key)
        return row

    def tool_cancel_reservation(self, reservation_id: str) -> Json:
        row = self.need("reservations", reservation_id, f"Reservation {reservation_id}")
        row["payment_history"] += [{**payment, "amount": -payment["amount"]} for payment in row["payment_history"]]
        row["status"] = "cancelled"
        return row

    def tool_update_reservation_flights(
        self, reservation_id: str, cabin: str, flights: list[Json], payment_id: str
    ) -> Json:
        row = self.need("reservations", reservation_id, f"Reservation {reservation_id}")
        seats, legs = len(row["passengers"]), []
        held = {(leg["flight_number"], leg["date"]): leg for leg in row["flights"]} if cabin == row["cabin"] else {}
        for leg in flights:
            legs.append(held.get((leg["flight_number"], leg["date"])) or self._seat(leg, cabin, seats))
        due = (sum(leg["price"] for leg in legs) - sum(leg["price"] for leg in row["flights"])) * seats
        self._settle(row, payment_id, due)
        row.update(flights=legs, cabin=cabin)
        return row

    def tool_update_reservation_passengers(self, reservation_id: str, passengers: list[Json]) -> Json:
        row = self.need("reservations", reservation_id, f"Reservation {reservation_id}")
        if len(passengers) != len(row["passengers"]):
            raise ToolError("Number of passengers does not match")
        row["passengers"] = copy.deepcopy(passengers)
        return row

    def tool_update_reservation_baggages(
        self, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> Json:
        row = self.need("reservations", reservation_id, f"Reservation {reservation_id}")
        self._settle(row, payment_id, 50 * max(0, nonfree_baggages - row["nonfree_baggages"]))
        row.update(total_baggages=total_baggages, nonfree_baggages=nonfree_baggages)
        return row

    def tool_send_certificate(self, user_id: str, amount: int) -> str:
        methods = self.need("users", user_id, f"User {user_id}")["payment_methods"]
        key = next((key for key in _NEW_CERTIFICATES if key not in methods), None)
        if key is None:
            raise ToolError("Too many certificates")
        methods[key] = {"id": key, "amount": amount, "source": "certificate"}
        return f"Certificate {key} added to user {user_id} with amount {amount}."
