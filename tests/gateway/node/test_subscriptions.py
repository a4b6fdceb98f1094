"""What a consumer wants, made ready for reading."""

from __future__ import annotations

import pytest

from gateway.node.subscriptions import SubscriptionError, build
from gateway.wire import message, properties


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


@pytest.mark.parametrize(
    ("text", "kind"), [("||", "TAG"), ("a > 1", "SQL92"), ("a", "x")]
)
def test_what_cannot_be_used_is_refused(text: str, kind: str):
    with pytest.raises(SubscriptionError):
        build(text, kind, 1)
