"""From a message's parts to a record in its queue's log."""

from __future__ import annotations

import pytest

from ropeway.gateway.node.record_builder import NewMessage, make_note, make_record
from ropeway.gateway.node.served_topic import ServedTopic
from ropeway.gateway.wire import message, message_id, properties
from ropeway.gateway.wire.errors import MessageError
from ropeway.routing.api import Topic


class Partition:
    """A partition's number is all that is needed of it here."""

    number = 5


V4 = message.pack_host("10.0.0.1", 1)
V6 = message.pack_host("fd00::1", 2)


def record(name: str = "orders", **changes):
    setup = Topic(name=name, read_queue_nums=1, write_queue_nums=1)
    pairs = changes.pop("pairs", {"TAGS": "t", "KEYS": "a b", "UNIQ_KEY": "U"})
    fields = {
        "body": b"body",
        "properties": properties.dump(pairs),
        "flag": 1,
        "sys_flag": 0,
        "born_ms": 2,
        "born_host": V4,
        "store_host": V4,
        "reconsume_times": 3,
        **changes,
    }
    return make_record(ServedTopic(setup, [Partition()]), 0, 7, 9, NewMessage(**fields))


def test_a_record_has_the_message_with_its_place_and_its_index_entries():
    data, tag_hash, keys = record()
    found = message.decode(data)
    assert found == message.decode(message.encode(found))
    assert (found.queue_offset, found.store_ms, found.born_ms) == (7, 9, 2)
    assert found.message_id == message_id.pack(5, 7)
    assert (found.flag, found.reconsume_times) == (1, 3)
    assert found.body_crc == message.crc(b"body")
    assert tag_hash == properties.tag_hash("t")
    assert keys == ["a", "b", "U"]


def test_a_brokers_own_record_has_its_body_and_properties_and_no_producer():
    setup = Topic(name="own", read_queue_nums=1, write_queue_nums=1)
    topic = ServedTopic(setup, [Partition()])
    found = message.decode(make_note(topic, 7, 9, V4, b"body", {"how": "so"})[0])
    assert (found.queue_offset, found.born_ms, found.store_ms) == (7, 9, 9)
    assert (found.body, found.born_host) == (b"body", found.store_host)
    assert properties.parse(found.properties) == {
        "how": "so",
        "ROPEWAY_FORMAT": "1",
    }


def test_without_tag_and_keys_there_is_nothing_to_index():
    _, tag_hash, keys = record(pairs={})
    assert (tag_hash, keys) == (0, [])


def test_ids_of_retry_topics_say_so():
    identity = message.decode(record("%RETRY%g")[0]).message_id
    assert message_id.unpack(identity) == (True, 5, 7)


@pytest.mark.parametrize(
    ("born", "store", "flags"),
    [(V4, V4, 0), (V6, V4, 0x10), (V4, V6, 0x20), (V6, V6, 0x30)],
)
@pytest.mark.parametrize("given", [0, 0x31, 0x1])
def test_flags_tell_how_long_the_hosts_are_whatever_was_sent(born, store, flags, given):
    found = message.decode(record(born_host=born, store_host=store, sys_flag=given)[0])
    assert found.sys_flag == flags | given & 1


def test_long_topics_make_messages_of_the_second_version():
    name = "%RETRY%" + "x" * 248
    assert message.decode(record(name)[0]).topic == name


def test_properties_over_their_limit_are_refused():
    text = "k\x01" + "v" * message.MAX_PROPERTIES_BYTES + "\x02"
    with pytest.raises(MessageError, match="allowed: 32767"):
        record(properties=text)
