"""Rows of stored messages: as the codec reads them, in both forms, for any message."""

from __future__ import annotations

from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.wire import compaction_rows, message, properties
from ropeway.gateway.wire.compaction_rows import KEYED, ROW, TOMBSTONE
from ropeway.gateway.wire.compiled import may_be_compiled
from ropeway.gateway.wire.message import Message

HOSTS = st.sampled_from([("127.0.0.1", 1), ("::1", 2)])
WORDS = st.text("aKEYS \x00é😀", max_size=8) | st.text("k", min_size=50, max_size=140)
PAIRS = st.lists(
    st.tuples(st.sampled_from(["KEYS", "XKEYS", "TAGS", "KEY", "UNIQ_KEY"]), WORDS),
    max_size=5,
)
FORMS = [one for one in may_be_compiled.twins["describe"] if one is not None]


def stored(topic, body, pairs, born_host, store_host, store_ms) -> bytes:
    return message.encode(
        Message(
            topic=topic,
            queue_id=0,
            queue_offset=1,
            message_id=2,
            body=body,
            properties=pairs,
            born_host=born_host,
            store_host=store_host,
            store_ms=store_ms,
        )
    )


@given(
    st.sampled_from(["t", "t" * 200]),
    st.binary(max_size=20),
    PAIRS,
    HOSTS,
    HOSTS,
    st.integers(0, 1 << 60),
)
def test_key_tag_and_time_are_those_of_the_decoded_message(
    topic: str,
    body: bytes,
    pairs: list[tuple[str, str]],
    born_host: tuple[str, int],
    store_host: tuple[str, int],
    store_ms: int,
) -> None:
    known = {name: value for name, value in pairs if value}
    text = properties.dump(known)
    record = stored(topic, body, text, born_host, store_host, store_ms)
    wanted = known.get("KEYS", "").encode()
    # RocketMQ's brokers call a key of blanks missing.
    key = wanted if wanted.strip() else None
    assert compaction_rows.key_of(memoryview(record)) == (key, not body)
    tag = known.get("TAGS")
    row = ROW.pack(
        len(record),
        properties.tag_hash(tag) if tag else 0,
        store_ms,
        (key is not None) * KEYED + (not body) * TOMBSTONE,
        bytes(16) if key is None else sha256(key).digest()[:16],
    )
    for describe in FORMS:
        assert describe(memoryview(record * 2)) == row * 2


@pytest.mark.parametrize("size", [*range(50, 70), 118, 119, 120, 127, 128, 129, 1000])
def test_digests_are_right_at_every_length(size: int) -> None:
    key = "k" * size
    text = properties.dump({"KEYS": key})
    record = stored("t", b"b", text, ("127.0.0.1", 1), ("127.0.0.1", 1), 1)
    wanted = sha256(key.encode()).digest()[:16]
    assert [describe(record)[24:] for describe in FORMS] == [wanted] * len(FORMS)


def test_what_are_no_messages_is_refused_by_both_forms() -> None:
    text = properties.dump({"KEYS": "a"})
    record = stored("t", b"b", text, ("127.0.0.1", 1), ("127.0.0.1", 1), 1)
    huge_body = record[:84] + b"\x7f\xff\xff\xff" + record[88:]
    # Its topic has no letter, and the lengths of that and of its properties end it.
    no_topic = message.encode(msgspec.structs.replace(message.decode(record), body=b""))
    no_topic = (91).to_bytes(4, "big") + no_topic[4:88] + bytes(3)
    for describe in FORMS:
        assert describe(b"") == b""
        for cut in range(1, len(record)):
            for data in (record[:cut], record + record[:cut]):
                with pytest.raises(ValueError, match="no stored messages"):
                    describe(data)
        for data in (huge_body, no_topic):
            with pytest.raises(ValueError, match="no stored messages"):
                describe(data)
