"""Single requests to a broker, for what a load needs before it can start."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from ropeway.gateway.wire.codes import RESPONSE_FLAG, RequestCode
from ropeway.gateway.wire.commands.pull import SUBSCRIPTION_FLAG, PullMessage
from ropeway.gateway.wire.frame import (
    PREFIX,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import decode_fields, to_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.gateway.wire.frame import Envelope

ANSWER_S = 30.0
LENGTH_MASK = 0xFFFFFF


def connect(port: int) -> socket.socket:
    """A connection that does not wait for full packets."""
    connection = socket.create_connection(("127.0.0.1", port), ANSWER_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def ask(connection: socket.socket, request: bytes) -> int:
    """Send a frame and read its answer; returns the answer's code."""
    return answer_to(connection, request).code


def answer_to(connection: socket.socket, request: bytes) -> Envelope:
    """Send a frame and read the envelope of its answer."""
    connection.sendall(request)
    while True:
        length, mark = PREFIX.unpack(_read(connection, PREFIX.size))
        rest = _read(connection, length - 4)
        envelope = decode_envelope(mark >> 24, rest[: mark & LENGTH_MASK])
        # A broker has requests, too: it tells members that their group has changed.
        if envelope.flag & RESPONSE_FLAG:
            return envelope


def _read(connection: socket.socket, size: int) -> bytes:
    # MSG_WAITALL does not wait where the socket has a time-out.
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            came = f"{len(data)} of {size} bytes"
            raise ConnectionError(f"{came}, then the server closed")
        data += part
    return bytes(data)


def creating(topic: str, queues: int) -> bytes:
    """The frame that makes a topic with so many queues."""
    fields: Mapping[str, str] = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    return encode_frame(RequestCode.UPDATE_AND_CREATE_TOPIC, 1, fields=fields)


def create_topic(port: int, topic: str, queues: int) -> None:
    """Make a topic with so many queues.

    Raises:
        RuntimeError: the broker does not want to.
    """
    with connect(port) as connection:
        if code := ask(connection, creating(topic, queues)):
            raise RuntimeError(f"topic {topic} of {queues} queues: code {code}")


def end_offset(port: int, topic: str, queue_id: int) -> int:
    """The offset that the next message of a queue will get.

    Raises:
        RuntimeError: the broker does not know it.
    """
    fields = {"topic": topic, "queueId": str(queue_id)}
    request = encode_frame(RequestCode.GET_MAX_OFFSET, 1, fields=fields)
    with connect(port) as connection:
        envelope = answer_to(connection, request)
        if envelope.code:
            raise RuntimeError(f"end of {topic} {queue_id}: code {envelope.code}")
    return int(decode_fields(envelope.ext_fields)["offset"])


def pull(
    topic: str, queue_id: int, offset: int, *, most: int = 32, group: str = "bench_pull"
) -> bytes:
    """The frame of a pull that does not wait."""
    header = PullMessage(
        consumer_group=group,
        topic=topic,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=most,
        sys_flag=SUBSCRIPTION_FLAG,
        commit_offset=0,
        suspend_timeout_millis=0,
        sub_version=0,
        subscription="*",
        bulk=most > 32 or None,
    )
    return encode_frame(RequestCode.PULL_MESSAGE, 1, fields=to_fields(header))
