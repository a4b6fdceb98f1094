"""Ropeway's gRPC beside RocketMQ's proxy and broker together: the same calls on both.

    $ python -m benchmarks.grpc
    $ python -m benchmarks.grpc --rounds 1 --messages 2000 --ropeway-only
    $ python -m benchmarks.grpc --beside grpcio

Producers send messages of 128 B, one a call. Then a consumer receives them, 32 a call,
and acknowledges each with a call of its own, as RocketMQ's clients do. The figures are
of a message: CPU of the server processes, and how many in a second. The one that waits
is stopped meanwhile; each round has a ratio of its own. Both are warm when it begins.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import http2, requests, servers, table
from benchmarks.http2 import Connection, Exchange
from benchmarks.servers import BROKER_JAVA, Server, running
from ropeway.gateway.grpc import protocol
from ropeway.gateway.grpc.protocol import (
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    ClientType,
    Code,
    Duration,
    FilterExpression,
    Message,
    MessageQueue,
    MessageType,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    Resource,
    SendMessageRequest,
    SendMessageResponse,
    Settings,
    SubscriptionEntry,
    SystemProperties,
    TelemetryCommand,
)
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import row_of, to_fields
from tests.system.rocketmq_proxy import RocketMQWithProxy
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.cases import Flush

QUEUES = 4
BODY = bytes(128)
GROUP = "bench_grpc"
BATCH = 32
CASES = {"1 connection, 1 call": (1, 1), "4 connections, 16 calls each": (4, 16)}
PROXY_JAVA = ["-server", "-Xms512m", "-Xmx512m", "-XX:+UseG1GC"]
MOST_CPU = LEAST_RATE = 1.0
WHAT = ("send", "receive and acknowledge")


class Cost(NamedTuple):
    """What a message cost, in one round."""

    rate: float
    cpu_us: float


def ropeway(directory: Path, _: Flush) -> Ropeway:
    """Ropeway with gRPC."""
    return Ropeway(directory, options=["--grpc"])


class OnGrpcio(Ropeway):
    """Ropeway whose calls grpcio's server takes."""

    name = "grpcio"


def grpcio(directory: Path, _: Flush) -> OnGrpcio:
    """Ropeway behind grpcio's server."""
    directory.mkdir(parents=True, exist_ok=True)
    settings = directory / "grpcio.toml"
    settings.write_text('grpc_server = "grpcio"\n')
    return OnGrpcio(directory, options=["--grpc", "--config", str(settings)])


def rocketmq(directory: Path, _: Flush) -> RocketMQWithProxy:
    """Broker and proxy with room enough; the broker with its buffer of hand-outs."""
    return RocketMQWithProxy(
        directory,
        broker_java=BROKER_JAVA,
        proxy_java=PROXY_JAVA,
        settings={"enablePopBufferMerge": "true"},
    )


def connection(server: Server, name: str) -> Connection:
    """One client's connection."""
    endpoint = getattr(server.started, "endpoint", server.started.name_server)
    return Connection(endpoint, protocol.SERVICE.full_name, metadata(name))


def metadata(name: str) -> dict[str, str]:
    """What a client says of itself with each call."""
    return {
        "x-mq-client-id": name,
        "x-mq-language": "JAVA",
        "x-mq-client-version": "5.0.7",
        "x-mq-protocol": "v2",
        "x-mq-request-id": "0f0e0d0c-0b0a-0908-0706-050403020100",
        "x-mq-date-time": "20261122T080000Z",
    }


def sending(topic: str) -> bytes:
    """The request that sends one message."""
    return SendMessageRequest(
        messages=[
            Message(
                topic=Resource(name=topic),
                system_properties=SystemProperties(
                    message_id="01020304050607080910111213141516",
                    message_type=MessageType.NORMAL,
                    tag="TagA",
                ),
                body=BODY,
            )
        ]
    ).SerializeToString()


def send(connections: Sequence[Connection], calls: int, topic: str, count: int) -> None:
    """Send messages, so many calls on each connection at a time."""
    request = sending(topic)
    left, done = itertools.count(), itertools.count(1)
    answered = 0

    def ask(one: Connection) -> None:
        if next(left) < count:
            one.call(Exchange("SendMessage", request, lambda got: took(one, got)))

    def took(one: Connection, got: list[bytes]) -> None:
        nonlocal answered
        _expect(SendMessageResponse.FromString(got[0]).status.code)
        answered = next(done)
        ask(one)

    for one in connections:
        for _ in range(calls):
            ask(one)
    http2.run(list(connections), lambda: answered < count)


def receiving(topic: str) -> bytes:
    """The request that receives messages."""
    return ReceiveMessageRequest(
        group=Resource(name=GROUP),
        message_queue=MessageQueue(topic=Resource(name=topic)),
        filter_expression=FilterExpression(expression="*"),
        batch_size=BATCH,
        invisible_duration=Duration(seconds=60),
        long_polling_timeout=Duration(seconds=5),
    ).SerializeToString()


def received(got: list[bytes]) -> list[Message]:
    """The messages of an answer."""
    answers = [ReceiveMessageResponse.FromString(one) for one in got]
    found = [answer.message for answer in answers if answer.HasField("message")]
    if not found and answers[0].status.code != Code.MESSAGE_NOT_FOUND:
        _expect(answers[0].status.code)
    return found


def acknowledging(topic: str, message: Message) -> bytes:
    """The request that acknowledges a message."""
    system = message.system_properties
    entry = AckMessageEntry(
        message_id=system.message_id, receipt_handle=system.receipt_handle
    )
    return AckMessageRequest(
        entries=[entry], topic=Resource(name=topic), group=Resource(name=GROUP)
    ).SerializeToString()


class Consumer:
    """Receives and acknowledges until it has had all.

    Args:
        connections: What it does that on.
        calls: Receiving calls at a time, on all together.
        topic: What it consumes.
        count: How many messages there are.
    """

    def __init__(
        self, connections: Sequence[Connection], calls: int, topic: str, count: int
    ) -> None:
        self._connections = list(connections)
        self._calls = calls
        self._left = count
        self._topic = topic
        self._request = receiving(topic)

    def run(self) -> None:
        """Consume."""
        for number in range(self._calls):
            self._receive(self._connections[number % len(self._connections)])
        http2.run(self._connections, lambda: self._left > 0)

    def _receive(self, one: Connection) -> None:
        if self._left > 0:
            exchange = Exchange(
                "ReceiveMessage", self._request, lambda got: self._received(one, got)
            )
            one.call(exchange)

    def _received(self, one: Connection, got: list[bytes]) -> None:
        found = received(got)
        open_acks = len(found)
        if not found:
            self._receive(one)

        def acknowledged(answer: list[bytes]) -> None:
            nonlocal open_acks
            _expect(AckMessageResponse.FromString(answer[0]).status.code)
            open_acks -= 1
            self._left -= 1
            if not open_acks:
                self._receive(one)

        for message in found:
            request = acknowledging(self._topic, message)
            one.call(Exchange("AckMessage", request, acknowledged))


def _expect(code: int) -> None:
    if code != Code.OK:
        raise SystemExit(f"a call was answered {Code.Name(code)}")


def telemetry(topic: str) -> bytes:
    """What a client says that consumes."""
    wanted = Settings(client_type=ClientType.SIMPLE_CONSUMER)
    wanted.subscription.group.name = GROUP
    entry = SubscriptionEntry(
        topic=Resource(name=topic), expression=FilterExpression(expression="*")
    )
    wanted.subscription.subscriptions.append(entry)
    return TelemetryCommand(settings=wanted).SerializeToString()


def settle(one: Connection, topic: str) -> None:
    """Say that a client consumes, and wait until that is answered."""
    stream = one.open(Exchange("Telemetry", telemetry(topic), lambda _: None))
    http2.run([one], lambda: not one.first_message(stream))


def prepare(server: Server, topic: str) -> None:
    """A topic, and a group that begins at its first messages."""
    requests.create_topic(server.port, topic, QUEUES)
    with requests.connect(server.port) as asked:
        for queue_id in range(QUEUES):
            header = UpdateConsumerOffset(GROUP, topic, queue_id, 0, "broker-0")
            code = row_of(type(header)).code
            requests.ask(asked, encode_frame(code, 1, fields=to_fields(header)))


def measured(server: Server, count: int, work: Callable[[], None]) -> Cost:
    """What a message of some work costs."""
    cpu_s, began = server.cpu_s(), time.monotonic()
    work()
    took_s = time.monotonic() - began
    return Cost(count / took_s, (server.cpu_s() - cpu_s) * 1e6 / count)


def one_round(
    server: Server, shape: tuple[int, int], topic: str, count: int
) -> list[Cost]:
    """Send messages, and consume them."""
    width, calls = shape
    prepare(server, topic)
    clients = [connection(server, f"{topic}-{number}") for number in range(width)]
    consumer = Consumer(clients, min(calls, 2) * width, topic, count)
    try:
        sent = measured(server, count, lambda: send(clients, calls, topic, count))
        for one in clients:
            # Now: the proxy forgets who sends no heartbeat for two minutes.
            settle(one, topic)
        return [sent, measured(server, count, consumer.run)]
    finally:
        for one in clients:
            one.socket.close()


def compare(started: Sequence[Server], rounds: int, count: int, warm_up: int) -> str:
    """CPU and messages a second, side by side."""
    rows = []
    other = started[-1].name if len(started) > 1 else "-"
    numbers = itertools.count()
    for server in started:
        with server.alone(list(started)):
            one_round(server, (4, 16), "bench-warm", warm_up)
    for name, shape in CASES.items():
        costs: dict[str, list[list[Cost]]] = {one.name: [] for one in started}
        for _ in range(rounds):
            topic = f"bench-{next(numbers)}"
            for server in started:
                with server.alone(list(started)):
                    costs[server.name].append(one_round(server, shape, topic, count))
        for index, what in enumerate(WHAT):
            ours, theirs = (
                [one[index] for one in costs.get(who, [])] for who in ("Ropeway", other)
            )
            rows.append((f"{what}, {name}", *_row(ours, theirs)))
    headings = (
        *("a message", "Ropeway/s", f"{other}/s", "ratio", "target"),
        *("Ropeway, us CPU", f"{other}, us CPU", "ratio", "target"),
    )
    return table.table(headings, rows)


def _row(ours: list[Cost], theirs: list[Cost]) -> list[str]:
    rates = [one.rate / two.rate for one, two in zip(ours, theirs, strict=False)]
    costs = [one.cpu_us / two.cpu_us for one, two in zip(ours, theirs, strict=False)]
    middle = [
        f"{statistics.median(one.rate for one in some):,.0f}" if some else "-"
        for some in (ours, theirs)
    ]
    return [
        *middle,
        table.spread(rates),
        table.at_least(LEAST_RATE, rates),
        table.spread([one.cpu_us for one in ours]),
        table.spread([one.cpu_us for one in theirs]),
        table.spread(costs),
        table.at_most(MOST_CPU, costs),
    ]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=5000, help="of each round")
    parser.add_argument("--warm-up", type=int, default=20_000, help="messages")
    parser.add_argument("--ropeway-only", action="store_true")
    parser.add_argument("--beside", choices=["rocketmq", "grpcio"], default="rocketmq")
    given = parser.parse_args()
    makes: list[servers.Make] = [ropeway]
    if not given.ropeway_only:
        makes.append(grpcio if given.beside == "grpcio" else rocketmq)
    with ExitStack() as stack:
        started = [stack.enter_context(running(make)) for make in makes]
        print(compare(started, given.rounds, given.messages, given.warm_up))


if __name__ == "__main__":
    main()
