"""Stored messages as their readers see them."""

import threading
import zlib

import msgspec
import pytest

from ropeway.client import BadResponseError, received
from ropeway.client.columns import read_columns
from ropeway.client.decompression import MAX_BODY_BYTES
from ropeway.client.received import read_all, read_answer, read_one
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire import properties as names
from tests.ropeway.client.scenario import scenario
from tests.ropeway.client.test_decompression import bomb

PLAIN = stored.Message(
    topic="t",
    queue_id=1,
    queue_offset=2,
    message_id=3,
    body=b"body",
    properties=names.dump({names.TAGS: "A", names.KEYS: "k  l"}),
    store_host=("127.0.0.1", 10911),
)


def changed(**members) -> stored.Message:
    return msgspec.structs.replace(PLAIN, **members)


def test_a_message_without_a_unique_key_goes_by_its_place():
    message = read_one(PLAIN, "b")
    assert message.msg_id == message.offset_msg_id == "7F00000100002A9F0000000000000003"
    assert (message.tags, message.keys) == ("A", ("k", "l"))


def test_a_retried_message_has_its_own_topic_and_the_retry_queue():
    retried = changed(
        topic="%RETRY%g", properties=names.dump({names.RETRY_TOPIC: "orders"})
    )
    message = read_one(retried, "b")
    assert (message.topic, message.queue.topic) == ("orders", "%RETRY%g")


@pytest.mark.parametrize("kind", [0, 0x300])
def test_zlib_is_undone(kind):
    message = read_one(changed(body=zlib.compress(b"long"), sys_flag=1 | kind), "b")
    assert (message.body, message.compression) == (b"long", None)


@pytest.mark.parametrize(
    ("sys_flag", "name"),
    [(0x101, "lz4"), (0x201, "zstd"), (0x301, "zlib"), (0x701, "type 7")],
)
def test_what_cannot_be_undone_is_named(sys_flag, name):
    message = read_one(changed(body=b"???", sys_flag=sys_flag), "b")
    assert (message.body, message.compression) == (b"???", name)


def test_a_pulls_body_is_cut_into_messages():
    body = stored.encode(PLAIN) + stored.encode(changed(queue_offset=9))
    assert [message.queue_offset for message in read_all(body, "b")] == [2, 9]


@pytest.mark.parametrize("cut", [1, 50, 91])
def test_bytes_that_are_no_messages_are_an_error_of_the_broker(cut):
    with pytest.raises(BadResponseError, match="broker 'b' sent"):
        read_all(stored.encode(PLAIN)[:cut], "b")


def test_a_bomb_stays_compressed_and_is_named():
    body = bomb(MAX_BODY_BYTES + (1 << 20))
    message = read_one(changed(body=body, sys_flag=1), "b")
    assert (message.body, message.compression) == (body, "zlib")
    data = stored.encode(changed(body=body, sys_flag=1))
    assert read_columns(data, 0, 100).bodies == [body]


@scenario
async def test_what_is_compressed_is_undone_on_a_thread(monkeypatch):
    threads = []
    inflate = received.inflate

    def noting(*given):
        threads.append(threading.current_thread())
        return inflate(*given)

    monkeypatch.setattr(received, "inflate", noting)
    data = stored.encode(changed(body=zlib.compress(b"long"), sys_flag=1))
    (found,) = await read_answer(data, "b")
    assert found.body == b"long"
    assert threading.main_thread() not in threads
    assert len(threads) == 1
    plain = stored.encode(PLAIN)
    assert [one.body for one in await read_answer(plain, "b")] == [b"body"]
    assert len(threads) == 1
    with pytest.raises(BadResponseError):
        await read_answer(plain[:9], "b")


@scenario
async def test_all_bodies_of_a_look_up_are_bounded_together():
    body = bomb(1 << 20)
    packed = [changed(body=body, sys_flag=1, queue_offset=at) for at in range(5)]
    data = b"".join(map(stored.encode, [*packed, PLAIN]))
    found = await read_answer(data, "b", 3 << 20)
    assert [one.compression for one in found] == [None] * 3 + ["zlib"] * 2 + [None]
    assert found[3].body == body
    assert found[5].body == b"body"
    whole = await read_answer(data, "b")
    assert {one.compression for one in whole} == {None}
