"""Properties and tag hashes, as Java reads, writes and computes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import decode_envelope
from ropeway.gateway.wire.header import decode_fields
from ropeway.gateway.wire.properties import (
    KEYS,
    UNIQ_KEY,
    dump,
    key_words,
    parse,
    tag_hash,
    tags_of,
)
from tests import captures

words = st.text(
    st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]),
    min_size=1,
    max_size=20,
)


def test_golden_properties() -> None:
    text = "TAGS\x01TagA\x02KEYS\x01k1 k2\x02"
    assert parse(text) == {"TAGS": "TagA", "KEYS": "k1 k2"}
    assert dump({"TAGS": "TagA", "KEYS": "k1 k2"}) == text


@given(st.dictionaries(words, words, max_size=10))
def test_any_properties_survive(pairs: dict[str, str]) -> None:
    assert parse(dump(pairs)) == pairs


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", {}),
        ("\x02", {}),
        ("a\x011", {"a": "1"}),
        ("a\x011\x02b\x012", {"a": "1", "b": "2"}),
        ("a\x02b\x012\x02", {"b": "2"}),
        ("\x01v\x02b\x012\x02", {"b": "2"}),
        ("a\x01\x02b\x012\x02", {"b": "2"}),
        ("a\x011\x012\x02", {"a": "1\x012"}),
        ("a\x011\x02a\x012\x02", {"a": "2"}),
        ("\x02\x02a\x011\x02\x02", {"a": "1"}),
    ],
    ids=repr,
)
def test_odd_properties_are_read_as_java_reads_them(
    text: str, pairs: dict[str, str]
) -> None:
    assert parse(text) == pairs


@given(st.text(max_size=100))
def test_any_text_is_some_properties(text: str) -> None:
    assert parse(dump(parse(text))) == parse(text)


def test_captured_properties_survive() -> None:
    seen = 0
    for code, name in (
        (RequestCode.SEND_MESSAGE, "properties"),
        (RequestCode.SEND_MESSAGE_V2, "i"),
    ):
        for capture in captures.load(code):
            raw = capture.request.raw
            fields = decode_envelope(raw.serialize_type, raw.header).ext_fields
            text = decode_fields(fields)[name]
            assert dump(parse(text)).rstrip("\x02") == text.rstrip("\x02")
            seen += 1
    assert seen


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("", 0),
        ("a", 97),
        ("TagA", 2598919),
        ("hello", 99162322),
        ("polygenelubricants", -2147483648),
        ("\u6d88\u606f", 893927),
        ("\U0001f600", 1772899),
    ],
)
def test_golden_tag_hashes(tag: str, value: int) -> None:
    assert tag_hash(tag) == value


@given(st.text(max_size=40))
def test_a_tag_hash_is_a_signed_32_bit_number(tag: str) -> None:
    assert -(1 << 31) <= tag_hash(tag) < 1 << 31


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        ("a", {"a"}),
        (" a||b ||  c d", {"a", "b", "c d"}),
        ("a || a || ", {"a"}),
        ("||", set()),
        ("", set()),
        ("a|b", {"a|b"}),
    ],
)
def test_an_expression_names_tags_between_double_bars(
    expression: str, tags: set[str]
) -> None:
    assert tags_of(expression) == tags


def test_a_subscriptions_codes_are_the_hashes_of_its_tags() -> None:
    seen = 0
    for capture in captures.load(RequestCode.HEART_BEAT):
        if capture.client.startswith("cpp"):
            continue  # It says 0 for every tag.
        beat = bodies.decode(bodies.HeartbeatData, capture.request.raw.body)
        for consumer in beat.consumer_data_set or ():
            for one in consumer.subscription_data_set or ():
                assert {tag_hash(tag) for tag in one.tags_set} == set(one.code_set)
                seen += len(one.tags_set)
    assert seen


def test_key_words_are_the_keys_and_the_unique_key() -> None:
    assert key_words({KEYS: " a  b ", UNIQ_KEY: "u"}) == ["a", "b", "u"]
    assert key_words({}) == []
