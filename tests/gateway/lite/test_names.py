"""Names of lite topics."""

from __future__ import annotations

import pytest

from ropeway.gateway.lite.names import broker, complaint, of_pairs, parts_of, queue_name


@pytest.mark.parametrize("name", ["a", "A-b_9", "x" * 64])
def test_letters_digits_hyphens_and_underscores_make_a_name(name: str):
    assert complaint(name) is None


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a b", "a$b", "ä", "a\x00", "a\n"])
def test_all_else_is_refused(name: str):
    said = complaint(name)
    assert said is not None
    assert "allowed: 1 to 64" in said


def test_progress_has_a_name_that_says_both():
    name = queue_name("rooms", "a-1")
    assert name == "%LMQ%$rooms$a-1"
    assert parts_of(name) == ("rooms", "a-1")


def test_a_lite_topic_is_on_one_broker_whoever_asks_in_whatever_order():
    brokers = ["broker-0", "broker-1", "broker-2"]
    found = {name: broker(name, brokers) for name in map(str, range(100))}
    assert set(found.values()) == set(brokers)
    assert found == {name: broker(name, reversed(brokers)) for name in found}


@pytest.mark.parametrize(
    ("pairs", "name"),
    [
        (b"\x02__LITE_TOPIC\x01a\x02", "a"),
        (b"\x02KEYS\x01k\x02__LITE_TOPIC\x01a\x02TAGS\x01t\x02", "a"),
        # Of several the last one counts, as where properties are parsed.
        (b"\x02__LITE_TOPIC\x01a\x02__LITE_TOPIC\x01b\x02", "b"),
        (b"\x02__LITE_TOPIC\x01a b\x02", None),
        (b"\x02__LITE_TOPIC\x01\xff\x02", None),
        (b"\x02KEYS\x01__LITE_TOPIC\x02", None),
        (b"\x02\x02", None),
    ],
)
def test_a_message_says_which_lite_topic_it_is_of(pairs: bytes, name: str | None):
    assert of_pairs(pairs) == name
