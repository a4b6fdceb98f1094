"""What clients hear from Pulsar, the model or a real one, frame by frame."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any, Protocol

from ropeway.storage.pulsar.commands import (
    CloseConsumer,
    CloseProducer,
    Connect,
    Connected,
    Delivery,
    FeatureFlags,
    Flow,
    GetLastMessageId,
    LastMessageId,
    Lookup,
    LookupAnswer,
    MessageId,
    OpenProducer,
    Ping,
    Pong,
    ProducerSuccess,
    Refused,
    Seek,
    Send,
    SendError,
    SendReceipt,
    Subscribe,
    Success,
    encode_command,
)
from ropeway.storage.pulsar.entry import Entry, Position
from ropeway.storage.pulsar.frames import (
    Deframer,
    command_frame,
    decode_frame,
    payload_frame,
)
from ropeway.storage.pulsar.send_entry import (
    EntryMetadata,
    encode_metadata,
    metadata_head,
)
from tests.simulation.pulsar_steps import CLIENTS, TOPICS, Step, Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LARGEST = (1 << 63) - 1
ADMINISTERED = ("make", "compact", "unload")
ASKED = {"stats": "internalStats", "index": "getMessageIdByIndex"}
"""What is asked of the admin REST."""


class Client(asyncio.Protocol):
    """A connection that says what it is told to, and keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.is_lost = False
        self.pings = self.pongs = 0
        self.transport: Any = None
        self._deframer = Deframer()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        flags = FeatureFlags(auth_refresh=True, broker_entry_metadata=True)
        self.tell(Connect("test", protocol_version=21, feature_flags=flags))

    def tell(self, command: Any) -> None:
        self.transport.write(command_frame(command))

    def data_received(self, data: bytes) -> None:
        for frame in self._deframer.feed(data):
            command, at = decode_frame(frame)
            if isinstance(command, Ping):
                self.tell(Pong())
            elif isinstance(command, Delivery):
                where = Position(command.message_id.ledger, command.message_id.entry)
                self.heard.append((command.consumer_id, Entry(where, frame, at)))
            elif isinstance(command, Pong):
                self.pongs += 1
            elif command is not None:
                self.heard.append(command)

    def connection_lost(self, _: Exception | None) -> None:
        self.is_lost = True
        self.heard.append("lost")


class ClosedAgainError(AssertionError):
    """A broker closed a consumer that had come back behind a seek once more.

    One of 4.0.8 sometimes does where it has to wait for a processor: three times of
    some sixty transcripts at a load average of 30 to 60, each elsewhere, and none of
    forty at one of 20. Clients come back once more.
    """


class Side(Protocol):
    """The model or the real one."""

    def name(self, topic: int) -> str:
        """A topic's name, in full."""

    async def connect(self, who: int) -> Client:
        """A connection to the broker."""

    async def ask(self, topic: int, path: str) -> Any:
        """What the admin REST answers; None where it refuses."""

    async def settle(self, clients: list[Client]) -> Any:
        """Return when all has been said; who is connected to topics."""

    async def administer(self, kind: str, topic: int) -> Any:
        """Do what an administrator does."""

    def time_ms(self) -> int:
        """The time of day."""


class Transcript:
    """What one side has answered, step by step."""

    def __init__(self, side: Side, seed: int, expected: Sequence[Any] = ()) -> None:
        self._side = side
        self._expected = expected
        self._steps = Steps(seed)
        self.clients: list[Client] = []
        self._stored: list[set[Position]] = [set() for _ in range(TOPICS)]
        self._times: list[list[int]] = [[] for _ in range(TOPICS)]
        self._names: dict[int, str] = {}
        self._requests = itertools.count(1)
        self._epochs = [0] * TOPICS
        self._of: dict[int, int] = {}
        """The topics of producers, consumers and requests."""
        self._asked: dict[int, Step] = {}
        self.lines: list[Any] = []

    async def do(self) -> None:
        """Do all steps."""
        side = self._side
        self.clients = [await side.connect(who) for who in range(CLIENTS)]
        await side.settle(self.clients)
        for client in self.clients:
            client.heard.clear()
        for step in self._steps:
            if self.clients[step.who].is_lost:
                self.clients[step.who] = await side.connect(step.who)
            answer = await self._do(step)
            connected = await side.settle(self.clients)
            line = step, answer, self._heard(), connected
            number = len(self.lines)
            if self._expected:
                wanted = self._expected[number]
                closed = step.who, "consumer closed", step.number
                seen = f"step {number}: {step}\nmodel {wanted[1:]}\nreal  {line[1:]}"
                if step.kind == "subscribe" and closed in {*line[2]} - {*wanted[2]}:
                    raise ClosedAgainError(seen)
                assert line[1:] == wanted[1:], seen
            self.lines.append(line)

    async def _do(self, step: Step) -> Any:
        kind, _, topic, number, given = step
        client, name = self.clients[step.who], self._side.name(topic)
        request = next(self._requests)
        self._of[request] = topic
        if number:
            self._of[-number] = topic
        self._asked[request] = step
        if kind in ADMINISTERED:
            return await self._side.administer(kind, topic)
        if kind in ASKED:
            path = ASKED[kind] + (f"?index={given[0]}" if given else "")
            return self._shown(await self._side.ask(topic, path))
        if kind == "drop":
            client.transport.close()
        elif kind in ("send", "again"):
            # So brokers' times of entries are on one side of it, each.
            await asyncio.sleep(0.003)
            self._times[topic].append(self._side.time_ms())
            await asyncio.sleep(0.003)
            for sequence_id, messages, key in given:
                self._send(client, number, topic, sequence_id, messages, key)
        else:
            client.tell(self._command(step, name, request))
        return None

    def _shown(self, content: Any) -> Any:
        """What the admin REST says, without what two servers may have different."""
        if content is None:
            return None
        filled = [one["entries"] for one in content["ledgers"] if one["entries"]]
        compacted = max(content["compactedLedger"]["entries"], 0)
        return filled, content["currentLedgerEntries"], compacted

    def _command(self, step: Step, name: str, request: int) -> Any:
        kind, _, topic, number, given = step
        make: dict[str, Callable[[], Any]] = {
            "open": lambda: self._open(step, name, request),
            "same": lambda: OpenProducer(
                *(name, number, request, self._names[number]), access=3
            ),
            "close": lambda: CloseProducer(number, request),
            "subscribe": lambda: Subscribe(
                *(name, f"s{number}", 0, number, request),
                consumer_name=f"s{number}",
                durable=False,
                start=self._start(topic, given[0], given[1]),
                read_compacted=given[2] or None,
                force_topic_creation=False,
            ),
            "flow": lambda: Flow(number, *given),
            "last": lambda: GetLastMessageId(number, request),
            "leave": lambda: CloseConsumer(number, request),
            "time": lambda: Seek(number, request, publish_ms=self._time(topic, *given)),
            "place": lambda: Seek(
                number, request, message_id=self._start(topic, "place", *given)
            ),
            "lookup": lambda: Lookup(name, request),
            "unknown": lambda: OpenProducer(name + "-none", 999, request, "a"),
        }
        return make[kind]()

    def _open(self, step: Step, name: str, request: int) -> OpenProducer:
        producer, access, epoch = step.given
        if epoch is not None:
            epoch += self._epochs[step.topic]
        self._names[step.number] = producer
        return OpenProducer(
            *(name, step.number, request, producer), access=access, topic_epoch=epoch
        )

    def _time(self, topic: int, at: int) -> int:
        times = self._times[topic] or [1]
        return times[at % len(times)]

    def _send(
        self,
        client: Client,
        number: int,
        topic: int,
        sequence_id: int,
        messages: int,
        key: str,
    ) -> None:
        said = EntryMetadata(self._times[topic][-1], partition_key=key)
        head = metadata_head(self._names[number])
        frame = payload_frame(
            encode_command(Send(number, sequence_id, messages)),
            encode_metadata(head, sequence_id, said),
            [b"%d" % sequence_id],
        )
        client.transport.write(b"".join(frame))

    def _start(self, topic: int, start: str, at: int) -> MessageId:
        stored = sorted(self._stored[topic])
        if start == "latest":
            return MessageId(LARGEST, LARGEST)
        if start == "earliest" or not stored:
            return MessageId(-1, -1)
        return MessageId(*stored[at % len(stored)])

    def _heard(self) -> list[Any]:
        found = []
        for who, client in enumerate(self.clients):
            for one in client.heard:
                found.append((who, *self._plain(one)))
                self._note(who, one)
            client.heard.clear()
        # Between producers, consumers and requests there is no order.
        return sorted(found, key=lambda one: (one[0], one[1], one[2]))

    def _note(self, who: int, one: Any) -> None:
        """Keep in mind what is open."""
        producers, consumers = self._steps.producers, self._steps.consumers
        if one == "lost":
            for there in (producers, consumers):
                for number in [*there]:
                    if there[number][0] == who:
                        del there[number]
        elif isinstance(one, CloseProducer):
            producers.pop(one.producer_id, None)
        elif isinstance(one, CloseConsumer):
            consumers.pop(one.consumer_id, None)
        elif isinstance(one, ProducerSuccess):
            step = self._asked[one.request_id]
            producers[step.number] = step.who, step.topic
        elif isinstance(one, Success):
            step = self._asked[one.request_id]
            if step.kind == "subscribe":
                consumers[step.number] = step.who, step.topic
            elif step.kind in ("close", "leave"):
                producers.pop(step.number, None)
                consumers.pop(step.number, None)

    def _plain(self, one: Any) -> tuple[Any, ...]:
        """What was heard, without what two servers may have different."""
        if one == "lost":
            return "lost", 0
        if isinstance(one, tuple):
            number, entry = one
            return (
                *("entry", number, self._place(-number, entry.position)),
                *(entry.sequence_id, entry.index, bytes(entry.payload)),
            )
        return PLAIN[type(one)](self, one)

    def _producer(self, one: ProducerSuccess) -> tuple[Any, ...]:
        if one.topic_epoch is not None:
            self._epochs[self._of[one.request_id]] = one.topic_epoch
        said = one.producer_name, one.last_sequence_id, one.topic_epoch
        return "producer", one.request_id, *said

    def _receipt(self, one: SendReceipt) -> tuple[Any, ...]:
        number, where = one.producer_id, one.message_id
        place = None if where is None else Position(where.ledger, where.entry)
        if place is not None and place.ledger >= 0:
            self._stored[self._of[-number]].add(place)
        return "receipt", number, one.sequence_id, self._place(-number, place)

    def _last(self, one: LastMessageId) -> tuple[Any, ...]:
        where, mark = one.message_id, one.mark_delete
        last = Position(where.ledger, where.entry)
        before = None if mark is None else Position(mark.ledger, mark.entry)
        of = self._of[one.request_id]
        return "last", one.request_id, self._at(of, last), self._at(of, before)

    def _place(self, number: int, where: Position | None) -> Any:
        return self._at(self._of[number], where)

    def _at(self, topic: int, where: Position | None) -> Any:
        """A place by how many entries are known to be before it."""
        if where is None or where.entry < 0:
            return "nowhere"
        return sum(one < where for one in self._stored[topic]), where.entry


PLAIN: dict[type, Callable[[Transcript, Any], tuple[Any, ...]]] = {
    Connected: lambda _, __: ("connected", 0),
    ProducerSuccess: Transcript._producer,
    SendReceipt: Transcript._receipt,
    SendError: lambda _, one: ("not sent", one.producer_id, one.sequence_id, one.error),
    Refused: lambda _, one: ("refused", one.request_id, one.error),
    Success: lambda _, one: ("success", one.request_id),
    CloseProducer: lambda _, one: ("producer closed", one.producer_id),
    CloseConsumer: lambda _, one: ("consumer closed", one.consumer_id),
    LastMessageId: Transcript._last,
    LookupAnswer: lambda _, one: ("lookup", one.request_id, one.response),
}
