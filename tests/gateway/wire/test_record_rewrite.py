"""Moved messages are what they would be if they had been stored there at first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.node.timer import pending_timers
from ropeway.gateway.wire import message, properties, record_rewrite
from ropeway.gateway.wire.compiled import may_be_compiled

if TYPE_CHECKING:
    from collections.abc import Callable

assert pending_timers  # it declares what may be compiled

PLACE = (*message.topic_field("t"), 0, 0, 0, 0)
HOSTS = st.sampled_from(["127.0.0.1", "2001:db8::1"])
TOPICS = st.sampled_from(["rmq_sys_wheel_timer", "t" * 127, "%RETRY%" + "g" * 200])
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), max_size=9)
MESSAGES = st.builds(
    message.Message,
    topic=TOPICS,
    queue_id=st.integers(0, 1023),
    queue_offset=st.integers(0, 1 << 50),
    message_id=st.integers(0, 1 << 62),
    body=st.binary(min_size=1, max_size=50),
    properties=st.dictionaries(
        st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "user", "XTAGS"]), WORDS
    ).map(properties.dump),
    flag=st.integers(-5, 5),
    sys_flag=st.sampled_from([0, 1, 8]),
    born_ms=st.integers(0, 1 << 40),
    born_host=st.tuples(HOSTS, st.integers(0, 65535)),
    store_ms=st.integers(0, 1 << 40),
    store_host=st.tuples(HOSTS, st.integers(0, 65535)),
    reconsume_times=st.integers(0, 20),
)


STORED = message.Message(
    topic="t",
    queue_id=0,
    queue_offset=0,
    message_id=0,
    body=b"x",
    properties="TIMER_OUT_MS\x015\x02",
)


def forms(name: str) -> list[Callable[..., Any]]:
    """Python's form of a function, and the compiled one where it was built."""
    return [form for form in may_be_compiled.twins[name] if form is not None]


@given(st.lists(MESSAGES, min_size=1, max_size=4), TOPICS)
def test_only_the_place_and_the_time_change(
    stored: list[message.Message], topic: str
) -> None:
    records = list(map(message.encode, stored))
    for records_in in forms("records_in"):
        assert records_in(memoryview(b"".join(records))) == [
            (one.queue_offset, one.store_ms, record)
            for one, record in zip(stored, records, strict=True)
        ]
    place = message.topic_field(topic)
    given_records = [(record, None) for record in records]
    for moved_all in forms("moved_all"):
        moved = moved_all(given_records, *place, 3, 4, 1 << 40, 6, False)
        for offset, (one, was, now) in enumerate(
            zip(stored, records, moved, strict=True), 4
        ):
            assert record_rewrite.properties_of(was).decode() == one.properties
            record, tag_hash, keys = now
            assert message.decode(record) == msgspec.structs.replace(
                message.decode(was),
                topic=topic,
                queue_id=3,
                queue_offset=offset,
                message_id=1 << 40 | offset,
                store_ms=6,
            )
            pairs = properties.parse(one.properties)
            tag = pairs.get("TAGS")
            assert tag_hash == (properties.tag_hash(tag) if tag else 0)
            assert keys == properties.key_words(pairs)


@pytest.mark.parametrize("size", [0, 32767])
def test_properties_can_be_others(size: int) -> None:
    given_records = [(message.encode(STORED), b"x" * size)]
    for moved_all in forms("moved_all"):
        ((record, _, _),) = moved_all(given_records, *PLACE, True)
        assert message.decode(record).properties == "x" * size


def test_properties_that_are_too_long_are_refused() -> None:
    record = message.encode(STORED)
    for moved_all in forms("moved_all"):
        for from_timer in (True, False):
            given_records = [(record, None), (record, b"x" * 32768)]
            assert moved_all(given_records, *PLACE, from_timer) is None


TIMES = "TIMER_ENQUEUE_MS\x015\x02TIMER_DEQUEUE_MS\x011234567890123\x02"


@pytest.mark.parametrize(
    ("size", "times"),
    [
        (0, TIMES),
        (32767 - len(TIMES), TIMES),
        (32767 - len(TIMES) + 1, ""),
        (32767, ""),
    ],
)
def test_out_of_the_timer_a_message_says_when_it_came_and_left_if_there_is_room(
    size: int, times: str
) -> None:
    stored = msgspec.structs.replace(STORED, store_ms=5, properties="x" * size)
    place = (*message.topic_field("t"), 0, 0, 0, 1234567890123)
    for moved_all in forms("moved_all"):
        ((data, _, _),) = moved_all([(message.encode(stored), None)], *place, True)
        assert message.decode(data).properties == times + stored.properties


@given(MESSAGES)
def test_a_half_message_is_committed_with_its_flag_and_its_own_id(
    half: message.Message,
) -> None:
    data = message.encode(half)
    for committed in forms("committed"):
        assert committed(data, b"x" * 32768, *PLACE, 9) is None
        longest, _, _ = committed(data, b"x" * 32767, *PLACE, 9)
        assert message.decode(longest).properties == "x" * 32767
        record, _, keys = committed(data, b"UNIQ_KEY\x01k\x02", *PLACE, 9)
        before = message.decode(data)
        assert message.decode(record) == msgspec.structs.replace(
            before,
            topic="t",
            queue_id=0,
            queue_offset=0,
            message_id=0,
            store_ms=0,
            sys_flag=before.sys_flag & ~message.TRANSACTION_MASK | 8,
            prepared_transaction_offset=9,
            properties="UNIQ_KEY\x01k\x02",
        )
        assert keys == ["k"]


@pytest.mark.parametrize("name", ["records_in", "waiting_in"])
def test_nothing_is_read_behind_a_message_that_is_cut(name: str) -> None:
    whole = message.encode(STORED)
    for form in forms(name):
        for end in range(1, len(whole)):
            with pytest.raises(ValueError, match="not whole"):
                form(whole[:end])


def test_a_topic_that_is_longer_than_its_message_is_refused() -> None:
    whole = bytearray(message.encode(STORED))
    whole[record_rewrite.parts_of(whole).topic_at] = 127
    for records_in in forms("records_in"):
        with pytest.raises(ValueError, match="not whole"):
            records_in(bytes(whole))


def test_what_stands_behind_a_message_is_none_of_its_properties() -> None:
    whole = message.encode(STORED)
    assert record_rewrite.properties_of(
        whole + b"KEYS\1k\2"
    ) == record_rewrite.properties_of(whole)
    for moved_all in forms("moved_all"):
        alone = moved_all([(whole, None)], *PLACE, False)
        assert moved_all([(whole + b"KEYS\1k\2", None)], *PLACE, False) == alone


@given(st.lists(MESSAGES, max_size=5), TOPICS, HOSTS, st.data())
def test_mirrored_messages_keep_all_but_their_place(
    messages: list[message.Message], topic: str, host: str, data: st.DataObject
) -> None:
    times = data.draw(st.lists(st.integers(0, 2), min_size=5, max_size=5))
    offsets = data.draw(st.lists(st.integers(0, 6), min_size=5, max_size=5))
    messages = [
        msgspec.structs.replace(one, store_ms=time, queue_offset=offset)
        for one, time, offset in zip(messages, times, offsets, strict=False)
    ]
    place = (*message.topic_field(topic), 3, 7 << 40, message.pack_host(host, 10911))
    found = record_rewrite.mirrored(b"".join(map(message.encode, messages)), *place)
    for one, (offset, store_ms, (record, tag, keys)) in zip(
        messages, found, strict=True
    ):
        is_as_long = (":" in host) == (":" in one.store_host[0])
        made = message.decode(record)
        assert (offset, store_ms) == (one.queue_offset, one.store_ms)
        assert made == msgspec.structs.replace(
            one,
            topic=topic,
            queue_id=3,
            message_id=7 << 40 | offset,
            store_host=(host, 10911) if is_as_long else one.store_host,
            sys_flag=made.sys_flag,
            body_crc=made.body_crc,
        )
        assert message.decode(message.encode(made)).sys_flag == made.sys_flag
        named = properties.parse(one.properties)
        assert tag == properties.tag_hash(named.get("TAGS", ""))
        unique = [named["UNIQ_KEY"]] if named.get("UNIQ_KEY") else []
        assert keys == [*named.get("KEYS", "").split(), *unique]
