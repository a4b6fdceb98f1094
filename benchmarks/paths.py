"""How long the way of a request is: which functions and files it enters, by tracing.

    $ python -m benchmarks.paths
    $ python -m benchmarks.paths --show "gRPC send"

A node on the embedded log works in this process, and a client asks it from a thread of
its own. From the request's first byte to its answer's last, each call of a function of
ours is noted; comprehensions and what compiled forms do inside count as nothing. Each
request is asked several times, and what is not entered each time (timers, checkpoints)
is left out. A switch is a call of a function in another file than the call before it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from contextlib import closing, contextmanager
from itertools import pairwise
from logging import ERROR
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog
import uvloop

from benchmarks import http2, requests, table
from benchmarks.grpc import GROUP as GRPC_GROUP
from benchmarks.grpc import Consumer, connection, send, settle
from benchmarks.processing import PROPERTIES
from ropeway.gateway.app import App
from ropeway.gateway.config import Config, ListenerConfig
from ropeway.gateway.grpc.setup import messaging
from ropeway.gateway.wire import properties, receipt
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from ropeway.gateway.wire.commands.pop import FROM_EARLIEST, AckMessage, PopMessage
from ropeway.gateway.wire.commands.send import (
    SendBatchMessage,
    SendMessage,
    SendMessageV2,
)
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import Header, decode_fields, row_of, to_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ropeway"
OURS = tuple(f"{PACKAGE / name}/" for name in ("gateway", "routing", "acl", "storage"))
TIMES = 5
"""How often each request is asked and noted, after the first, which warms up."""
TOPIC, GROUP = "paths", "paths_group"


class Way(NamedTuple):
    """What one request entered."""

    functions: tuple[CodeType, ...]
    """In the order in which they were first entered."""
    switches: int

    @property
    def files(self) -> set[str]:
        """The files of its functions."""
        return {one.co_filename for one in self.functions}


class Tracer:
    """Notes calls of our functions in all threads but the one that asks."""

    def __init__(self) -> None:
        self._calls: list[CodeType] | None = None
        self.asks = 0
        """Which thread is the client's."""

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Be told what a thread does; for `sys.setprofile`."""
        if (
            event == "call"
            and self._calls is not None
            and (code := frame.f_code).co_filename.startswith(OURS)
            and (code.co_name[0] != "<" or code.co_name == "<lambda>")
            and threading.get_ident() != self.asks
        ):
            self._calls.append(code)

    def way(self, ask: Callable[[], object]) -> Way:
        """What the node entered until a client had its answer."""
        calls = self._calls = []
        ask()
        self._calls = None
        files = [one.co_filename for one in calls]
        switches = sum(one != other for one, other in pairwise(files))
        return Way(tuple(dict.fromkeys(calls)), switches)


class Client:
    """Asks for what is traced, on one connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = requests.connect(port)
        self._popped = ""
        self._offset = 0

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def ask(self, header: Header, body: bytes = b"") -> dict[str, str]:
        """The fields of an answer.

        Raises:
            RuntimeError: The node refuses.
        """
        code = row_of(type(header)).code
        frame = encode_frame(code, 1, fields=to_fields(header), body=body)
        answer = requests.answer_to(self._socket, frame)
        if answer.code:
            raise RuntimeError(
                f"{code.name} was answered {answer.code} {answer.remark}"
            )
        return decode_fields(answer.ext_fields)

    def send(
        self, more: dict[str, str] | None = None, sys_flag: int = 0, text: str = ""
    ) -> None:
        """Send a message to queue 0."""
        pairs = text or PROPERTIES + properties.dump(more or {})
        self._send(SendMessageV2, bytes(128), pairs, sys_flag)

    def send_batch(self) -> None:
        """Send ten messages at once."""
        entries = [BatchEntry(0, bytes(128), PROPERTIES)] * 10
        self._send(SendBatchMessage, encode_batch(entries), PROPERTIES)

    def _send(
        self, kind: type[SendMessage], body: bytes, pairs: str, sys_flag: int = 0
    ) -> None:
        header = kind(
            producer_group=GROUP,
            topic=TOPIC,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=0,
            sys_flag=sys_flag,
            born_timestamp=1795248367175,
            flag=0,
            properties=pairs,
            batch=kind is SendBatchMessage,
        )
        self.ask(header, body)

    def pull(self) -> None:
        """Pull the first message."""
        frame = requests.pull(TOPIC, 0, 0, most=1)
        if code := requests.ask(self._socket, frame):
            raise RuntimeError(f"a pull was answered {code}")

    def pop(self) -> None:
        """Pop one message, and remember it."""
        header = PopMessage(
            consumer_group=GROUP,
            topic=TOPIC,
            queue_id=0,
            max_msg_nums=1,
            invisible_time=600_000,
            poll_time=0,
            born_time=time.time_ns() // 1_000_000,
            init_mode=FROM_EARLIEST,
        )
        found = self.ask(header)
        start = int(found["startOffsetInfo"].split()[2])
        self._offset = int(found["msgOffsetInfo"].split()[2])
        handed = receipt.Receipt(
            start,
            int(found["popTime"]),
            int(found["invisibleTime"]),
            int(found["reviveQid"]),
            receipt.NORMAL,
            "broker-0",
            0,
        )
        self._popped = receipt.dump(handed, self._offset)

    def acknowledge(self) -> None:
        """Acknowledge the message that was popped."""
        self.ask(AckMessage(GROUP, TOPIC, 0, self._popped, self._offset))

    def commit(self) -> None:
        """Commit an offset."""
        self.ask(UpdateConsumerOffset(GROUP, TOPIC, 0, 1, "broker-0"))


class _Endpoint(NamedTuple):
    """What `benchmarks.grpc` asks of a server."""

    name_server: str

    @property
    def started(self) -> _Endpoint:
        return self


@contextmanager
def _grpc(port: int) -> Iterator[http2.Connection]:
    one = connection(_Endpoint(f"127.0.0.1:{port}"), "paths")  # type: ignore[arg-type]
    try:
        yield one
    finally:
        one.socket.close()


def ways(port: int, tracer: Tracer) -> dict[str, Way]:
    """Ask for everything."""
    tracer.asks = threading.get_ident()
    found = {}

    def traced(
        name: str, ask: Callable[[], object], first: Callable[[], object] = int
    ) -> None:
        noted = []
        for _ in range(TIMES + 1):
            first()
            noted.append(tracer.way(ask))
            time.sleep(0.01)  # what follows an answer is over before the next
        always = set.intersection(*(set(one.functions) for one in noted[1:]))
        functions = tuple(one for one in noted[-1].functions if one in always)
        found[name] = Way(functions, min(one.switches for one in noted[1:]))

    requests.create_topic(port, TOPIC, 1)
    with closing(Client(port)) as client, _grpc(port) as grpc:
        late = {"TIMER_DELAY_SEC": "86400"}
        half = {"TRAN_MSG": "true", "PGROUP": GROUP}
        careful = properties.dump({"TAGS": "TagA"})
        traced("send", client.send)
        traced("send without its unique key", lambda: client.send(text=careful))
        traced("batch of 10", client.send_batch)
        traced("timed send", lambda: client.send(late))
        traced("half message", lambda: client.send(half, sys_flag=4))
        traced("gRPC send", lambda: send([grpc], 1, TOPIC, 1))
        traced("pull", client.pull)
        traced("pop", client.pop)
        traced("acknowledgement", client.acknowledge, client.pop)
        traced("offset", client.commit)
        requests.create_topic(port, GRPC_GROUP, 1)
        settle(grpc, GRPC_GROUP)
        traced(
            "gRPC receive and acknowledge",
            lambda: Consumer([grpc], 1, GRPC_GROUP, 1).run(),
            lambda: send([grpc], 1, GRPC_GROUP, 1),
        )
    return found


async def trace() -> dict[str, Way]:
    """Run a node, and ask it."""
    with tempfile.TemporaryDirectory() as data:
        config = Config(
            data=Path(data),
            listeners=(ListenerConfig(port=0),),
            shutdown_ms=100,
            grpc=True,
        )
        tracer = Tracer()
        threading.setprofile(tracer.note)
        sys.setprofile(tracer.note)
        try:
            async with App(config) as app, messaging(app):
                port = app.server.listeners[0].port
                return await asyncio.to_thread(ways, port, tracer)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def main() -> None:
    """Trace, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", help="the functions of one request, in order")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(ERROR))
    found = uvloop.run(trace())
    if given.show:
        for one in found[given.show].functions:
            path = one.co_filename.removeprefix(f"{PACKAGE}/")
            print(f"{path}:{one.co_firstlineno} {one.co_qualname}")
        return
    rows = [
        (name, str(len(way.functions)), str(len(way.files)), str(way.switches))
        for name, way in found.items()
    ]
    print(table.table(("a request", "functions", "files", "switches"), rows))


if __name__ == "__main__":
    main()
