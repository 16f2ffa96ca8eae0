"""One text for one value, and the times of events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_helpers import RICH, event

from leanguard_host.jsonfiles import LARGEST, Source, exact, parse
from leanguard_host.models import Event
from leanguard_host.store import monotone_time, next_time, now_ms, open_store
from leanguard_host.store.canonical import canonical
from leanguard_host.store.stored import body_of, event_of

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-LARGEST, LARGEST) | st.integers(-(10**14), 10**14).map(lambda n: exact(n / 10**6))
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_the_text_is_read_back_as_the_value(value: Any) -> None:
    text = canonical(value)
    assert json.loads(text) == value
    assert parse(Source("test", text)) == value
    assert canonical(json.loads(text)) == text
    text.encode()


@given(st.dictionaries(texts, values, max_size=4))
def test_events_are_read_back(data: dict[str, Any]) -> None:
    original = Event(kind="test", time=1, data=data)
    body = body_of(original)
    assert event_of(body, "test", 0) == original
    assert body_of(event_of(body, "test", 0)) == body


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.000001, "0.000001"),
        (-0.00001, "-0.00001"),
        (0.1, "0.1"),
        (1.0, "1"),
        (-0.0, "0"),
        (123456789.123456, "123456789.123456"),
        (10**15, "1000000000000000"),
        (True, "true"),
        ({"\U00010000": 1, "\uffff": 2, "a": 3}, '{"a":3,"\U00010000":1,"\uffff":2}'),
        ('\x00\x1f\x7f\b\f\n\r\t"\\/\u2028', '"\\u0000\\u001f\x7f\\b\\f\\n\\r\\t\\"\\\\/\u2028"'),
    ],
)
def test_as_rfc_8785(value: Any, text: str) -> None:
    assert canonical(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e-9, {1}, object(), b""])
def test_what_has_no_text(value: Any) -> None:
    with pytest.raises(ValueError, match=r"exactly|no JSON"):
        canonical([value])


def test_the_format_does_not_change() -> None:
    """The hashes of journals that exist depend on every byte of this."""
    with open_store("sqlite://:memory:", store_id="6d0c7f7e-0000-4000-8000-000000000000") as store:
        store.append([event(1), RICH])
        assert str(store.head()) == "2:95c1e0a2f3ea0796f9c1e3bbc0738587012c6e68607f18594f8c5fad52ea1137"


def test_time_does_not_go_back() -> None:
    assert monotone_time(None, 5) == 5
    assert monotone_time(7, 5) == 7
    assert monotone_time(7, 9) == 9
    assert abs(monotone_time(None) - now_ms()) < 60_000
    with open_store("sqlite://:memory:") as store:
        assert next_time(store, 5) == 5
        store.append([event(0)])
        assert next_time(store, 5) == event(0).time
        with store.transaction() as section:
            assert next_time(section, 5) == event(0).time
            section.append([event(100)])
            assert next_time(section, 5) == event(100).time
