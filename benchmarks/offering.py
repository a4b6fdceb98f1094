"""An open load: sends become due at a rate, whether or not earlier ones are answered.

A send's latency counts from when it was due, so it contains what it waited at the
client because the network took no more. Beside the load, one more connection asks for
a heartbeat and for a pull in turn, one at a time: what others notice of the overload.
"""

from __future__ import annotations

import math
import re
import selectors
import socket
import time
from array import array
from bisect import bisect_left
from typing import NamedTuple

from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.pull import SUBSCRIPTION_FLAG, PullMessage
from ropeway.gateway.wire.commands.send import SendMessageV2
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import Header, row_of, to_fields
from ropeway.gateway.wire.properties import dump

TOPIC = "overload"
QUEUES = 8
_KEYS = " ".join(f"key-{number}" for number in range(32))
"""Work for the server that costs this program nothing: both share the machine."""

_FIRST = 1_000_000_000
"""Opaques of sends begin here, so that all have as many digits."""
_PROBE = 999_999_999
_PROBE_EVERY_S = 0.005
_TURN_S = 0.001
_READ_BYTES = 1 << 20

CALM_S = 0.2
"""What sends may wait by default: one that waits no longer notices no overload."""

_ANSWER = re.compile(rb'\{"code":(\d+).*?"opaque":(\d+).*?"version":\d+\}', re.DOTALL)


class Outcome(NamedTuple):
    """What became of the sends of one phase."""

    offered: int
    accepted_s: list[float]
    """Latencies of the accepted sends, ascending."""
    refused: int
    """Answered SYSTEM_BUSY."""
    failed: int
    """Answered otherwise, or not at all."""
    others_s: list[float]
    """Latencies of heartbeats and pulls on another connection, ascending."""
    calm_after_s: float
    """When the first tenth of a second began, counted from the beginning of the
    phase, in which of 100 sends 99 were accepted within `CALM_S`."""


class Phase(NamedTuple):
    """A part of an offer."""

    rate: float
    """Sends a second."""
    seconds: float


def request(header: Header, opaque: int, body: bytes = b"") -> bytes:
    """A request's frame."""
    return encode_frame(
        row_of(type(header)).code, opaque, fields=to_fields(header), body=body
    )


def sends(size_bytes: int) -> list[bytes]:
    """A frame for each queue, with a place for the opaque."""
    made = []
    for queue_id in range(QUEUES):
        header = SendMessageV2(
            producer_group="offering",
            topic=TOPIC,
            default_topic="TBW102",
            default_topic_queue_nums=QUEUES,
            queue_id=queue_id,
            sys_flag=0,
            born_timestamp=1795248367175,
            flag=0,
            properties=dump({"UNIQ_KEY": "7F" * 16, "TAGS": "TagA", "KEYS": _KEYS}),
        )
        frame = request(header, _FIRST, bytes(size_bytes))
        made.append(frame.replace(b"%d" % _FIRST, b"%d", 1))
    return made


def pull(offset: int, *, count: int = 32, opaque: int = _PROBE) -> bytes:
    """A pull that does not wait."""
    header = PullMessage(
        consumer_group="offering",
        topic=TOPIC,
        queue_id=0,
        queue_offset=offset,
        max_msg_nums=count,
        bulk=count > 32 or None,
        sys_flag=SUBSCRIPTION_FLAG,
        commit_offset=0,
        suspend_timeout_millis=0,
        sub_version=0,
        subscription="*",
    )
    return request(header, opaque)


_PROBES = (
    encode_frame(RequestCode.HEART_BEAT, _PROBE, fields={}, body=b'{"clientID":"it"}'),
    pull(0),
)


class Client:
    """One connection that is never waited for."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.out = bytearray()
        self._rest = b""

    def flush(self) -> None:
        """Write what the network takes now."""
        if self.out:
            try:
                sent = self.socket.send(self.out)
            except BlockingIOError:
                return
            del self.out[:sent]

    def answers(self) -> list[tuple[int, int]]:
        """Codes and opaques of the answers that have come."""
        try:
            data = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return []
        if not data:
            raise ConnectionResetError("the server closed a connection")
        data = self._rest + data
        end = 0
        found = []
        for match in _ANSWER.finditer(data):
            found.append((int(match[1]), int(match[2])))
            end = match.end()
        self._rest = data[end:]
        return found


class Load:
    """Connections to one server, and what they offer it.

    Args:
        port: Where it listens.
        connections: How many share the load.
        size_bytes: Of a message's body.
    """

    def __init__(self, port: int, connections: int, size_bytes: int) -> None:
        self._frames = sends(size_bytes)
        self._clients = [Client(port) for _ in range(connections)]
        self._probe = Client(port)
        self._selector = selectors.DefaultSelector()
        for client in (self._probe, *self._clients):
            self._selector.register(client.socket, selectors.EVENT_READ, client)
        self._due = array("d")
        self._waited = array("d")
        self._codes = array("i")
        self._probes: list[tuple[float, float]] = []
        self._probe_at = 0.0
        self._probing = False
        self._answered = self._turn = 0

    def close(self) -> None:
        """Close every connection."""
        self._selector.close()
        for client in (self._probe, *self._clients):
            client.socket.close()

    def offer(
        self, *phases: Phase, in_flight: int = 1 << 62, patience_s: float = 20.0
    ) -> list[Outcome]:
        """Offer sends, one phase right after the other; then wait for the answers.

        Args:
            phases: Rates, and for how long.
            in_flight: Sends that may wait for an answer; more do not become due.
            patience_s: How long the last answers are waited for.
        """
        self._due, self._waited = array("d"), array("d")
        self._codes = array("i")
        self._probes, self._answered = [], 0
        begins = []
        for phase in phases:
            begins.append(time.monotonic())
            self._run(phase, in_flight)
        over = time.monotonic()
        while self._answered < len(self._due) and time.monotonic() < over + patience_s:
            self._exchange()
        return [
            self._outcome(begin, end)
            for begin, end in zip(begins, [*begins[1:], over], strict=True)
        ]

    def _run(self, phase: Phase, in_flight: int) -> None:
        began = now = time.monotonic()
        asked = 0
        while now < began + phase.seconds:
            due = int((now - began) * phase.rate) - asked
            asked += due
            self._ask(min(due, in_flight - len(self._due) + self._answered), now)
            self._ask_probe(now)
            self._exchange()
            now = time.monotonic()

    def _outcome(self, begin: float, end: float) -> Outcome:
        some = range(bisect_left(self._due, begin), bisect_left(self._due, end))
        codes = self._codes
        accepted = [self._waited[one] for one in some if codes[one] == 0]
        refused = sum(codes[one] == ResponseCode.SYSTEM_BUSY for one in some)
        windows: dict[int, list[bool]] = {}
        for one in some:
            calm = codes[one] == 0 and self._waited[one] <= CALM_S
            windows.setdefault(int((self._due[one] - begin) * 10), []).append(calm)
        calm_at = (at for at, calm in windows.items() if sum(calm) >= len(calm) * 0.99)
        return Outcome(
            len(some),
            sorted(accepted),
            refused,
            len(some) - len(accepted) - refused,
            sorted(waited for at, waited in self._probes if begin <= at < end),
            next(calm_at, math.inf) / 10,
        )

    def _ask(self, count: int, now: float) -> None:
        """Spread sends that are due over the connections, a few to each."""
        each = -(-count // len(self._clients))
        while count > 0:
            some = min(each, count)
            first = _FIRST + len(self._due)
            frame = self._frames[self._turn % QUEUES]
            client = self._clients[self._turn % len(self._clients)]
            client.out += b"".join([frame % one for one in range(first, first + some)])
            self._due.extend([now] * some)
            self._waited.extend([math.inf] * some)
            self._codes.extend([-1] * some)
            count -= some
            self._turn += 1

    def _ask_probe(self, now: float) -> None:
        if not self._probing and now >= self._probe_at + _PROBE_EVERY_S:
            self._probing = True
            self._probe_at = now
            self._probe.out += _PROBES[len(self._probes) % len(_PROBES)]
            self._probe.flush()

    def _exchange(self) -> None:
        """Write what the network takes, and take the answers that have come."""
        for client in self._clients:
            client.flush()
        for key, _ in self._selector.select(_TURN_S):
            answers = key.data.answers()
            now = time.monotonic()
            for code, opaque in answers:
                if opaque == _PROBE:
                    self._probing = False
                    self._probes.append((self._probe_at, now - self._probe_at))
                    continue
                at = opaque - _FIRST
                self._codes[at] = code
                self._waited[at] = now - self._due[at]
                self._answered += 1
