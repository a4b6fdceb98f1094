"""Messages as requests."""

from ropeway.client import Message, MessageQueue
from ropeway.client.send_request import (
    batch_request,
    compressed,
    single_request,
    wire_properties,
)
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.batch import decode_batch

QUEUE = MessageQueue("t", "b", 3)


def test_everything_that_brokers_read_goes_into_properties():
    message = Message(
        "t",
        b"x",
        "A",
        ("k", "l"),
        sharding_key="s",
        delay_level=3,
        properties={"p": "q"},
    )
    assert wire_properties(message, "ID") == {
        "p": "q",
        names.WAIT: "true",
        names.TAGS: "A",
        names.KEYS: "k l",
        names.SHARDING_KEY: "s",
        names.DELAY: "3",
        names.UNIQ_KEY: "ID",
    }


def test_a_unique_key_of_the_sender_stays():
    message = Message("t", b"x", properties={names.UNIQ_KEY: "mine"})
    assert wire_properties(message, "ID")[names.UNIQ_KEY] == "mine"


def test_a_retry_says_its_count_in_the_header():
    queue = MessageQueue("%RETRY%g", "b", 0)
    given = {names.RECONSUME_TIME: "4", names.MAX_RECONSUME_TIMES: "3", "p": "q"}
    header = single_request("g", queue, given)
    assert (header.reconsume_times, header.max_reconsume_times) == (4, 3)
    assert names.parse(header.properties) == {"p": "q"}


def test_other_topics_keep_those_properties():
    header = single_request("g", QUEUE, {names.RECONSUME_TIME: "4"})
    assert header.reconsume_times == 0
    assert names.parse(header.properties) == {names.RECONSUME_TIME: "4"}
    assert (header.queue_id, header.bname) == (3, "b")


def test_a_batch_holds_its_messages_whole():
    messages = [Message("t", b"one", flag=5), Message("t", b"two")]
    header, body = batch_request("g", QUEUE, messages, [{"a": "1"}, {"b": "2"}])
    assert header.batch
    entries = [(e.flag, e.body, names.parse(e.properties)) for e in decode_batch(body)]
    assert entries == [(5, b"one", {"a": "1"}), (0, b"two", {"b": "2"})]


def test_compression_can_be_off():
    assert compressed(b"a" * 9000, 0) == (b"a" * 9000, 0)
