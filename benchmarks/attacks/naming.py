"""Attacks by names: requests that name very much, and what is kept of each name."""

from __future__ import annotations

import base64
import itertools
import struct
from functools import cache
from typing import TYPE_CHECKING

from benchmarks import requests
from benchmarks.attacks import calls
from benchmarks.attacks.attack import Attack, Target
from benchmarks.attacks.brokers import many, send
from ropeway.gateway.grpc.protocol import (
    ClientType,
    QueryRouteRequest,
    Resource,
    Settings,
    TelemetryCommand,
)
from ropeway.gateway.wire import bodies, receipt
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import GetConsumeStats
from ropeway.gateway.wire.commands.clients import HeartBeat
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from ropeway.gateway.wire.commands.pop import BatchAckMessage, Notification
from ropeway.gateway.wire.commands.query import ViewMessage
from ropeway.gateway.wire.message_id import base

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator

    from ropeway.gateway.wire.header import Header

_TOPICS = 256
_GROUPS = 1000
_QUEUES = 8
_TOGETHER = 64


def _topic(number: int) -> str:
    return f"named-{number}"


def _group(number: int) -> str:
    return f"naming-{number}"


def _make_topics(target: Target) -> None:
    """Make topics, each with a message."""
    _send_all(
        target,
        (
            send(_topic(number), default_topic_queue_nums=_QUEUES, queue_id=0)
            for number in range(_TOPICS)
        ),
    )


def _make_both(target: Target) -> None:
    _make_topics(target)
    _send_all(target, (_notification(number, 0) for number in range(_GROUPS)))


def _send_all(target: Target, headers: Iterable[Header]) -> None:
    frames = [target.request(one, b"x") for one in headers]
    with requests.connect(target.port) as connection:
        for at in range(0, len(frames), _TOGETHER):
            some = frames[at : at + _TOGETHER]
            while not _are_done(connection, some):
                pass


def _are_done(connection: socket.socket, frames: list[bytes]) -> bool:
    """Send some; whether none has waited for too long."""
    connection.sendall(b"".join(frames))
    codes = {requests.ask(connection, b"") for _ in frames}
    assert codes <= {ResponseCode.SUCCESS, ResponseCode.SYSTEM_BUSY}, codes
    return ResponseCode.SYSTEM_BUSY not in codes


def _notification(group: int, topic: int) -> Notification:
    return Notification(
        consumer_group=_group(group),
        topic=_topic(topic),
        queue_id=-1,
        poll_time=0,
        born_time=0,
    )


def _places(connection: int) -> Iterator[tuple[int, int]]:
    """Every group with every topic, beginning elsewhere for each connection."""
    for topic in itertools.count(connection * 61):
        for group in range(_GROUPS):
            yield group, topic % _TOPICS


def _notifications(target: Target, number: int) -> Iterator[bytes]:
    for group, topic in _places(number):
        yield target.request(_notification(group, topic))


def _progress(target: Target, number: int) -> Iterator[bytes]:
    for group, topic in _places(number):
        yield b"".join(
            target.request(
                UpdateConsumerOffset(
                    consumer_group=_group(group),
                    topic=_topic(topic),
                    queue_id=queue_id,
                    commit_offset=1,
                )
            )
            for queue_id in range(_QUEUES)
        )


def _much_progress(target: Target) -> None:
    """One group has been everywhere."""
    _make_both(target)
    _send_all(
        target,
        (
            UpdateConsumerOffset(
                consumer_group=_group(0),
                topic=_topic(topic),
                queue_id=queue_id,
                commit_offset=1,
            )
            for topic in range(_TOPICS)
            for queue_id in range(_QUEUES)
        ),
    )


def _stats(target: Target, _: int) -> Iterator[bytes]:
    return many(target.request(GetConsumeStats(consumer_group=_group(0))), 1)


def _found_by_id(target: Target, _: int) -> Iterator[bytes]:
    """Each topic has a message of that id; which of them is not said."""
    return many(target.request(ViewMessage(offset=base(0, retry=False))), 1)


def _ambiguous(target: Target, _: int) -> Iterator[bytes]:
    """Names of retry topics that may be those of very many groups."""
    names = [f"%RETRY%{number:04x}{'_' * 120}" for number in range(4096)]
    wanted = [bodies.SubscriptionData(name, "*") for name in names]
    body = bodies.encode(
        bodies.HeartbeatData(
            client_id="me",
            consumer_data_set=[
                bodies.ConsumerData(_group(0), subscription_data_set=wanted)
            ],
        )
    )
    return many(target.request(HeartBeat(), body), 1)


def _acks(bits: bytes, count: int) -> bytes:
    one = receipt.BatchAck(
        group=_group(0),
        topic=_topic(0),
        retry="0",
        start=0,
        queue_id=0,
        revive_queue_id=0,
        pop_ms=1,
        invisible_ms=1,
        bits=base64.b64encode(bits).decode(),
    )
    return bodies.encode(receipt.BatchAcks([one] * count, "broker-0"))


def _many_acks(target: Target, _: int) -> Iterator[bytes]:
    return many(target.request(BatchAckMessage(), _acks(b"\xff" * 4, 8000)), 1)


def _members(target: Target, number: int) -> Iterator[bytes]:
    """A member of a thousand groups, which then leaves them all."""
    wanted = [bodies.SubscriptionData(_topic(0), "*")]
    body = bodies.encode(
        bodies.HeartbeatData(
            client_id=f"me-{number}",
            consumer_data_set=[
                bodies.ConsumerData(_group(one), subscription_data_set=wanted)
                for one in range(_GROUPS)
            ],
        )
    )
    yield target.request(HeartBeat(), body)


# By gRPC.


def _unknown_field(data: bytes) -> bytes:
    """A field that no version has."""
    return _varint(1999 << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


@cache
def _echoed() -> bytes:
    topic = Resource(name=_topic(0))
    topic.MergeFromString(_unknown_field(bytes(1_000_000)))
    data = QueryRouteRequest(topic=topic).SerializeToString()
    return struct.pack(">BI", 0, len(data)) + data


def _routes(target: Target, _: int) -> Iterator[bytes]:
    return calls.repeated(target, "QueryRoute", _echoed(), 1)


def _settings(size: int) -> bytes:
    wanted = Settings(client_type=ClientType.PRODUCER)
    wanted.publishing.topics.add(name=_topic(0))
    wanted.user_agent.hostname = "x" * size
    data = TelemetryCommand(settings=wanted).SerializeToString()
    return struct.pack(">BI", 0, len(data)) + data


def _large_settings(target: Target, _: int) -> Iterator[bytes]:
    return calls.streaming(target, "Telemetry", _settings(1_000_000), 1)


def _sessions(target: Target, number: int) -> Iterator[bytes]:
    """Clients that come by the hundred, and leave together."""
    for chunk in calls.streaming(
        target, "Telemetry", _settings(1), 90, client_id=f"me-{number}-%d"
    ):
        if not chunk:
            return
        yield chunk


ATTACKS = (
    Attack(
        "notifications of all groups in all topics",
        _notifications,
        16,
        prepare=_make_both,
    ),
    Attack("progress of all groups in all topics", _progress, 16, prepare=_make_both),
    Attack(
        "consume stats of a group that was everywhere",
        _stats,
        16,
        prepare=_much_progress,
    ),
    Attack(
        "an id that a message of every topic has",
        _found_by_id,
        16,
        prepare=_make_topics,
    ),
    Attack(
        "names that may be those of many retry topics",
        _ambiguous,
        16,
        prepare=_make_both,
    ),
    Attack("very many acknowledgements", _many_acks, 16, prepare=_make_both),
    Attack(
        "members of 1000 groups that come and go",
        _members,
        90,
        prepare=_make_both,
        stays_s=2,
    ),
    Attack("gRPC: routes with unknown fields", _routes, 16, prepare=_make_topics),
    Attack("gRPC: large settings", _large_settings, 16, prepare=_make_topics),
    Attack(
        "gRPC: clients that come and go", _sessions, 90, prepare=_make_topics, stays_s=1
    ),
)
