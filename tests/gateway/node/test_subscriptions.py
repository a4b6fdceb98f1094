"""What a consumer wants, made ready for reading."""

from __future__ import annotations

import pytest

from ropeway.gateway.node import sql
from ropeway.gateway.node.subscriptions import SubscriptionError, build, read, unread
from ropeway.gateway.request_limits import RequestsConfig
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.bodies import SubscriptionData
from ropeway.storage.api import MAX_LOOKS, Filter


def stored(text: str) -> bytes:
    return message.encode(
        message.Message(
            topic="t",
            queue_id=0,
            queue_offset=0,
            message_id=0,
            body=b"x",
            properties=text,
        )
    )


@pytest.fixture(autouse=True, scope="module")
def grammar() -> None:
    """Have the grammar loaded: until it is, no expression is compiled at once."""
    sql.compile_condition("1 = 1")


@pytest.mark.parametrize("expression", [None, "", " ", "*", " * "])
def test_everything_needs_no_filter(expression: str | None):
    assert build(expression, None, 1).filter is None


def test_tags_are_wanted_by_hash_and_then_exactly():
    wanted = build(" Aa || C||", "TAG", 7)
    assert wanted.version == 7
    hashes = {properties.tag_hash("Aa"), properties.tag_hash("C")}
    assert set(wanted.filter.tag_hashes) == hashes
    accept = wanted.filter.accept
    for text, hit in (
        ("TAGS\x01Aa\x02", True),
        ("TAGS\x01C\x02", True),
        ("TAGS\x01BB\x02", False),
        ("TAGS\x01A\x02", False),
        ("TAGS\x01Aaa\x02", False),
        ("KEYS\x01k\x02TAGS\x01Aa\x02x\x01y\x02", True),
        ("MYTAGS\x01Aa\x02", False),
        ("k\x01TAGS\x02", False),
        ("", False),
        # The last one counts, as for the index.
        ("TAGS\x01BB\x02TAGS\x01Aa\x02", True),
        ("TAGS\x01Aa\x02TAGS\x01BB\x02", False),
    ):
        assert accept(stored(text)) is hit, text


def test_the_last_pair_need_not_be_closed():
    assert build("Aa", "TAG", 1).filter.accept(stored("k\x01v\x02TAGS\x01Aa"))


def test_a_condition_is_asked_about_stored_messages():
    wanted = build("price > 5 AND TAGS = 'a'", "SQL92", 7)
    assert (wanted.version, wanted.problem, wanted.tags) == (7, None, frozenset())
    assert wanted.filter.tag_hashes is None
    for text, hit in (
        ("price\x016\x02TAGS\x01a\x02", True),
        ("price\x016\x02TAGS\x01a", True),
        ("price\x015\x02TAGS\x01a\x02", False),
        ("price\x01x\x02TAGS\x01a\x02", False),
        ("", False),
    ):
        assert wanted.filter.accept(stored(text)) is hit, text


def test_what_takes_long_to_ask_is_asked_of_fewer_messages():
    texts = [" OR ".join(["a = '1'"] * terms) for terms in (1, 3, 30, 1000)]
    for text in texts:
        sql.compile_condition(text)
    looks = [build(text, "SQL92", 1).filter.looks for text in texts]
    assert looks[:2] == [MAX_LOOKS, MAX_LOOKS]
    assert MAX_LOOKS > looks[2] > looks[3] > 0
    assert build("1 = 1", "SQL92", 1).filter.looks == MAX_LOOKS


UNUSABLE = [
    ("||", "TAG"),
    ("a > ", "SQL92"),
    ("", "SQL92"),
    (None, "SQL92"),
    ("a", "x"),
]


@pytest.mark.parametrize(("text", "kind"), UNUSABLE)
def test_what_cannot_be_used_is_refused(text: str | None, kind: str):
    with pytest.raises(SubscriptionError):
        build(text, kind, 1)


@pytest.mark.parametrize(("text", "kind"), UNUSABLE)
def test_what_a_heartbeat_brings_is_kept_and_wants_nothing(text: str | None, kind: str):
    said = unread(
        SubscriptionData("t", text or "", sub_version=3, expression_type=kind)
    )
    assert not said.is_read
    kept = read(said)
    assert (kept.expression, kept.expression_type, kept.version) == (
        text or "",
        kind,
        3,
    )
    assert kept.problem
    assert kept.is_read
    assert kept.filter == Filter(tag_hashes=frozenset())
    assert read(unread(SubscriptionData("t", "a"))).problem is None


def test_what_a_heartbeat_brings_is_read_when_it_is_used_and_not_before():
    long = " OR ".join(["a = 'b'"] * 40)
    said = unread(SubscriptionData("t", long, expression_type="SQL92"))
    assert said.filter == Filter(tag_hashes=frozenset())
    with pytest.raises(sql.NotCompiledError) as missing:
        read(said)
    assert missing.value.text == long
    sql.compile_condition(long)
    assert read(said).filter.accept is not None
    assert unread(SubscriptionData("t", " * ")).filter is None


LIMITS = RequestsConfig(expression_characters=60, expression_terms=3)


@pytest.mark.parametrize(
    ("text", "kind", "complaint"),
    [
        ("a" * 61, "TAG", "61 characters; allowed: 60"),
        ("a = 1" + " " * 60, "SQL92", "65 characters; allowed: 60"),
        ("a||b||c||d", "TAG", "4 tags; allowed: 3"),
        ("a=1 OR b=1 OR c=1 OR d=1", "SQL92", "4 properties; allowed: 3"),
    ],
)
def test_an_expression_that_is_too_long_is_refused(text, kind, complaint):
    with pytest.raises(SubscriptionError, match=complaint):
        build(text, kind, 1, LIMITS)
    assert build("a||b||c", "TAG", 1, LIMITS).tags == {"a", "b", "c"}
