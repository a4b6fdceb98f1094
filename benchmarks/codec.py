"""How long the codec takes: microseconds a call, the best of several rounds.

    $ python -m benchmarks.codec
    $ python -m benchmarks.codec feed encode

Names on the command line choose the rows that have one of them in theirs. It needs
no server and takes a few seconds.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import msgspec

import ropeway.gateway.wire.commands  # noqa: F401 - fills the registry
from ropeway.gateway.wire import batch, header, message, properties
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.pull import PullMessage
from ropeway.gateway.wire.commands.send import SendMessageV2, SendReply
from ropeway.gateway.wire.frame import (
    ROCKETMQ,
    FrameReader,
    decode_envelope,
    encode_frame,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 7
ROUND_S = 0.05

PROPERTIES = properties.dump(
    {
        "a": "10",
        "KEYS": "k-64384",
        "UNIQ_KEY": "FD0000000000000000000000000000022D834E0E2F2A68BC3E460000",
        "WAIT": "true",
        "TAGS": "TagA",
    }
)
SEND = SendMessageV2(
    producer_group="pg_produce",
    topic="T_normal",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=2,
    sys_flag=0,
    born_timestamp=1795248367175,
    flag=0,
    properties=PROPERTIES,
    reconsume_times=0,
    bname="broker-a",
)
PULL = PullMessage(
    consumer_group="cg_push",
    topic="T_normal",
    queue_id=2,
    queue_offset=1000,
    max_msg_nums=32,
    sys_flag=3,
    commit_offset=1000,
    suspend_timeout_millis=15000,
    sub_version=1795248367175,
    expression_type="TAG",
)
REPLY = SendReply(msg_id="7F000001000052130000000000000E91", queue_id=2, queue_offset=3)
BODY = bytes(128)


def frame_of(code: int, fields: header.Header, serialize_type: int = 0) -> bytes:
    return encode_frame(
        code,
        7,
        fields=header.to_fields(fields),
        body=BODY,
        serialize_type=serialize_type,
    )


def cases() -> dict[str, tuple[Callable[[], object], int]]:
    """Every row: what is called, and how many operations a call counts for."""
    send_frame = frame_of(RequestCode.SEND_MESSAGE_V2, SEND)
    binary_frame = frame_of(RequestCode.SEND_MESSAGE_V2, SEND, ROCKETMQ)
    pull_frame = frame_of(RequestCode.PULL_MESSAGE, PULL)
    window = send_frame * 64
    reader = FrameReader()
    (send_raw,) = FrameReader().feed(send_frame)
    (binary_raw,) = FrameReader().feed(binary_frame)
    (pull_raw,) = FrameReader().feed(pull_frame)
    send_fields = decode_envelope(0, send_raw.header).ext_fields
    pull_fields = decode_envelope(0, pull_raw.header).ext_fields
    send_row = header.row_of(SendMessageV2)
    pull_row = header.row_of(PullMessage)
    host = message.pack_host("127.0.0.1", 10911)
    magic, topic = message.topic_field("T_normal")
    text = PROPERTIES.encode()
    crc = message.crc(BODY)
    parsed = properties.parse(PROPERTIES)

    def assemble() -> bytes:
        front = message.Front(magic, crc, 2, 0, 3, 99, 0, 1, host, 2, host, 0)
        return message.assemble(front, BODY, topic, text)

    stored = assemble()
    pulled = stored * 32
    entries = [batch.BatchEntry(0, BODY, PROPERTIES)] * 100
    packed = batch.encode_batch(entries)
    half = len(window) // 2 + 3

    def feed_in_two() -> None:
        reader.feed(window[:half])
        reader.feed(window[half:])

    def tags() -> None:
        for index in range(1000):
            properties._hash.__wrapped__(f"Tag{index}")  # noqa: SLF001 - not what is remembered

    return {
        "feed, one frame": (lambda: reader.feed(send_frame), 1),
        "feed, 64 frames, each": (lambda: reader.feed(window), 64),
        "feed, 64 frames in two parts, each": (feed_in_two, 64),
        "decode_envelope JSON": (lambda: decode_envelope(0, send_raw.header), 1),
        "decode_envelope ROCKETMQ": (lambda: decode_envelope(1, binary_raw.header), 1),
        "decode_request SEND_MESSAGE_V2": (
            lambda: header.decode_request(send_row, send_fields),
            1,
        ),
        "decode_request PULL_MESSAGE": (
            lambda: header.decode_request(pull_row, pull_fields),
            1,
        ),
        "assemble": (assemble, 1),
        "message.decode": (lambda: message.decode(stored), 1),
        "split, 32 messages, each": (lambda: list(message.split(pulled)), 32),
        "view_properties": (lambda: message.view_properties(stored), 1),
        "decode_batch of 100, each": (lambda: batch.decode_batch(packed), 100),
        "encode_batch of 100, each": (lambda: batch.encode_batch(entries), 100),
        "to_fields SendReply": (lambda: header.to_fields(REPLY), 1),
        "from_fields SendReply": (_answer_reader(), 1),
        "encode_frame, an answer": (
            lambda: encode_frame(0, 7, flag=1, fields={"queueId": "2", "msgId": "7F"}),
            1,
        ),
        "tag_hash, cached": (lambda: properties.tag_hash("TagA"), 1),
        "tag_hash, 1000 new ones, each": (tags, 1000),
        "properties.parse": (lambda: properties.parse(PROPERTIES), 1),
        "properties.dump": (
            lambda: properties.dump(parsed),
            1,
        ),
    }


def _answer_reader() -> Callable[[], object]:
    raw = msgspec.Raw(msgspec.json.encode(header.to_fields(REPLY)))
    return lambda: header.from_fields(SendReply, raw)


def microseconds(call: Callable[[], object]) -> float:
    """Time one call: the best of `ROUNDS` rounds of about `ROUND_S` seconds."""
    began = time.perf_counter()
    call()
    once = max(time.perf_counter() - began, 1e-7)
    count = max(1, min(100_000, int(ROUND_S / once)))
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, time.perf_counter() - began)
    return best / count * 1e6


def main() -> None:
    wanted = sys.argv[1:]
    for name, (call, operations) in cases().items():
        if not wanted or any(word in name for word in wanted):
            print(f"{name:40} {microseconds(call) / operations:8.3f} us")


if __name__ == "__main__":
    main()
