"""One connection to a broker: commands in, commands out, requests and their answers."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

import structlog

from ropeway.common.reasons import reason_of
from ropeway.storage.pulsar.authentication import Authentication
from ropeway.storage.pulsar.commands import (
    PROTOCOL_VERSION,
    AuthChallenge,
    AuthData,
    AuthResponse,
    CloseConsumer,
    CloseProducer,
    Connect,
    Connected,
    Delivery,
    FeatureFlags,
    LastMessageId,
    LookupAnswer,
    Ping,
    Pong,
    ProducerSuccess,
    Refused,
    SchemaAnswer,
    SendError,
    SendReceipt,
    Success,
    TopicMigrated,
)
from ropeway.storage.pulsar.errors import (
    NotAllowedError,
    PulsarError,
    PulsarUnavailableError,
    WireError,
    server_error,
)
from ropeway.storage.pulsar.frames import (
    DEFAULT_MESSAGE_BYTES,
    PADDING_BYTES,
    Buffer,
    Deframer,
    command_frame,
    decode_frame,
)
from ropeway.storage.pulsar.protobuf import Message
from ropeway.storage.pulsar.tls import explained

CLIENT_VERSION = "Ropeway"
UNANSWERED_PINGS = 2
"""When another PING is due after so many without a byte, the connection is dead. Two,
not one as brokers count: when this process has stood still, answers may be there that
nobody has read, and one more interval reads them."""
HANDSHAKE = -1
"""The request id of what belongs to CONNECT."""
_CLOSED = "closed by the broker"
_log = structlog.get_logger()

MIGRATED_PRODUCER = 0

Answer = TypeVar("Answer", bound=Message)


class End(Protocol):
    """What a connection tells a producer or a consumer that is open on it."""

    def closed(self, error: PulsarError) -> None:
        """It is not open any more: the broker or the network closed it."""


class ProducerEnd(End, Protocol):
    """A producer."""

    def receipt(self, receipt: SendReceipt) -> None:
        """An entry is stored."""

    def send_error(self, error: SendError) -> None:
        """An entry is not stored, or not known to be."""


class ConsumerEnd(End, Protocol):
    """A consumer."""

    def delivery(self, delivery: Delivery, frame: bytes, at: int) -> None:
        """An entry came; its metadata begins at `at` in `frame`."""


class Connection(asyncio.Protocol):
    """A connection; `handshake` before anything else, then any number of requests.

    Frames go out in the order of `write`, joined once in each turn of the event loop.
    While the other side does not read, they wait here, not copied.

    Args:
        authentication: who we are; asked anew whenever the broker asks.
        proxy_to: the broker that a proxy shall connect us to.
        keep_alive_s: between two PINGs; after two to three times as long without a byte
            the connection is given up.
        lost: called when the connection has ended.
    """

    def __init__(
        self,
        authentication: Authentication,
        proxy_to: str | None,
        keep_alive_s: float,
        lost: Callable[["Connection"], None],
    ) -> None:
        self.producers: dict[int, ProducerEnd] = {}
        self.consumers: dict[int, ConsumerEnd] = {}
        self.max_message_bytes = DEFAULT_MESSAGE_BYTES
        self.ids = itertools.count(1)
        """Of producers and of consumers: never used twice on a connection, so that
        what still comes for a closed one finds nobody."""
        self.broken: PulsarError | None = None
        """Why the connection has ended."""
        self._authentication = authentication
        self._proof = b""
        """What was shown last."""
        self._proving: asyncio.Task[None] | None = None
        self._proxy_to = proxy_to
        self._keep_alive_s = keep_alive_s
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._deframer = Deframer()
        self._request_ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._outgoing: list[Buffer] = []
        self._flush_due = self._paused = False
        self._told_migration = False
        self._unanswered = 0
        """PINGs since the last byte came."""
        self._transport: asyncio.Transport
        self._keep_alive: asyncio.TimerHandle | None = None

    async def handshake(self, timeout_s: float) -> None:
        """Tell the broker who we are.

        Raises:
            PulsarError: refused, or no answer in time.
        """
        self._proof = await self._authentication.proof()
        connect = Connect(
            CLIENT_VERSION,
            auth_data=self._proof or None,
            protocol_version=PROTOCOL_VERSION,
            auth_method=self._authentication.method,
            proxy_to_broker_url=self._proxy_to,
            feature_flags=FeatureFlags(auth_refresh=True, broker_entry_metadata=True),
        )
        try:
            answer = await self._answered(HANDSHAKE, connect, Connected, timeout_s)
        except NotAllowedError:
            self._authentication.refused(self._proof)
            raise
        if answer.max_message_bytes:
            self.max_message_bytes = answer.max_message_bytes
            self._deframer.limit_bytes = answer.max_message_bytes + PADDING_BYTES
        # Not before: a proxy that still connects to a broker expects nothing.
        if self.broken is None:
            self._keep_alive = self._loop.call_later(self._keep_alive_s, self._watch)

    async def request(
        self, make: Callable[[int], Message], kind: type[Answer], timeout_s: float
    ) -> Answer:
        """Send a request and wait for its answer.

        Args:
            make: makes the request of its id.
            kind: what a success answers with.
            timeout_s: how long to wait.

        Raises:
            PulsarError: refused; or no answer in time, or of another kind.
        """
        number = next(self._request_ids)
        return await self._answered(number, make(number), kind, timeout_s)

    async def _answered(
        self, number: int, request: Message, kind: type[Answer], timeout_s: float
    ) -> Answer:
        if self.broken is not None:
            raise self.broken
        waiting = self._waiting[number] = self._loop.create_future()
        self.tell(request)
        what = type(request).__name__
        try:
            async with asyncio.timeout(timeout_s):
                answer = await waiting
        except TimeoutError:
            raise PulsarUnavailableError(f"no answer to {what} in {timeout_s} s") from (
                None
            )
        finally:
            del self._waiting[number]
        if not isinstance(answer, kind):
            got = type(answer).__name__
            raise WireError(f"{got} for an answer to {what}; allowed: {kind.__name__}")
        return answer

    def tell(self, command: Message) -> None:
        """Send a command that has no payload."""
        self.write([command_frame(command)])

    def write(self, frame: Sequence[Buffer]) -> None:
        """Send a frame, given in parts that do not change any more."""
        self._outgoing += frame
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def abort(self, error: PulsarError) -> None:
        """End the connection at once, for a reason."""
        if self.broken is None:
            self.broken = error
            self._transport.abort()

    def _flush(self) -> None:
        self._flush_due = False
        if not self._paused and self._outgoing and self.broken is None:
            outgoing, self._outgoing = self._outgoing, []
            self._transport.writelines(outgoing)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to send."""
        # uvloop's transports have the methods, but not the class.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Do what the commands say that arrived."""
        self._unanswered = 0
        try:
            for frame in self._deframer.feed(data):
                command, at = decode_frame(frame)
                do = DOES.get(type(command))
                if do is not None:
                    do(self, command, frame, at)
        except WireError as error:
            self.abort(error)

    def pause_writing(self) -> None:
        """Hold frames back: the other side does not read."""
        self._paused = True

    def resume_writing(self) -> None:
        """Send what was held back."""
        self._paused = False
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everybody who relied on it."""
        error = self.broken = self.broken or PulsarUnavailableError(
            f"the connection was lost: {explained(reason_of(exc) if exc else _CLOSED)}"
        )
        if self._keep_alive is not None:
            self._keep_alive.cancel()
        if self._proving is not None:
            self._proving.cancel()
        self._outgoing.clear()
        self._lost(self)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)
        ends: list[End] = [*self.producers.values(), *self.consumers.values()]
        self.producers.clear()
        self.consumers.clear()
        for end in ends:
            end.closed(error)

    def _watch(self) -> None:
        if self._unanswered >= UNANSWERED_PINGS:
            self.abort(
                PulsarUnavailableError(
                    f"no byte came since {self._unanswered} PINGs, one each "
                    f"{self._keep_alive_s:g} s"
                )
            )
            return
        self._unanswered += 1
        self.tell(Ping())
        self._keep_alive = self._loop.call_later(self._keep_alive_s, self._watch)

    # What commands do.

    def _answer(self, answer: Any, _frame: bytes, _at: int) -> None:
        waiting = self._waiting.get(getattr(answer, "request_id", HANDSHAKE))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _refused(self, refused: Refused, _frame: bytes, _at: int) -> None:
        waiting = self._waiting.get(refused.request_id)
        if waiting is not None and not waiting.done():
            waiting.set_exception(server_error(refused.error, refused.message))

    def _ping(self, _ping: Ping, _frame: bytes, _at: int) -> None:
        self.tell(Pong())

    def _challenge(self, _challenge: AuthChallenge, _frame: bytes, _at: int) -> None:
        # One that came before is answered by what is being found out already.
        if self._proving is None or self._proving.done():
            self._proving = self._loop.create_task(self._prove())

    async def _prove(self) -> None:
        """Say again who we are: what was shown before has ended."""
        who = self._authentication
        who.refused(self._proof)
        try:
            self._proof = await who.proof()
        except PulsarError as error:
            self.abort(error)
            return
        proof = AuthData(who.method, self._proof)
        self.tell(AuthResponse(CLIENT_VERSION, proof, PROTOCOL_VERSION))

    def _receipt(self, receipt: SendReceipt, _frame: bytes, _at: int) -> None:
        producer = self.producers.get(receipt.producer_id)
        if producer is not None:
            producer.receipt(receipt)

    def _send_error(self, error: SendError, _frame: bytes, _at: int) -> None:
        producer = self.producers.get(error.producer_id)
        if producer is not None:
            producer.send_error(error)

    def _delivery(self, delivery: Delivery, frame: bytes, at: int) -> None:
        consumer = self.consumers.get(delivery.consumer_id)
        if consumer is not None:
            consumer.delivery(delivery, frame, at)

    def _close_producer(self, close: CloseProducer, _frame: bytes, _at: int) -> None:
        self._close(self.producers.pop(close.producer_id, None))

    def _close_consumer(self, close: CloseConsumer, _frame: bytes, _at: int) -> None:
        self._close(self.consumers.pop(close.consumer_id, None))

    def _migrated(self, migrated: TopicMigrated, _frame: bytes, _at: int) -> None:
        ends: dict[int, Any] = (
            self.producers
            if migrated.resource_type == MIGRATED_PRODUCER
            else self.consumers
        )
        self._close(ends.pop(migrated.resource_id, None))
        if not self._told_migration:
            self._told_migration = True
            # Offsets and what is stored do not come along, so nobody may go on there.
            _log.error(
                "Pulsar migrates topics to another cluster, which is not followed",
                to=migrated.service_url or migrated.tls_service_url,
            )

    def _close(self, end: End | None) -> None:
        if end is not None:
            end.closed(PulsarUnavailableError("closed by the broker"))


DOES: dict[type[Message] | type[None], Callable[[Connection, Any, bytes, int], None]]
DOES = {
    **dict.fromkeys(
        (
            *(Connected, Success, ProducerSuccess),
            *(LookupAnswer, LastMessageId, SchemaAnswer),
        ),
        Connection._answer,  # noqa: SLF001 - this class's own table
    ),
    Refused: Connection._refused,  # noqa: SLF001
    Ping: Connection._ping,  # noqa: SLF001
    AuthChallenge: Connection._challenge,  # noqa: SLF001
    SendReceipt: Connection._receipt,  # noqa: SLF001
    SendError: Connection._send_error,  # noqa: SLF001
    Delivery: Connection._delivery,  # noqa: SLF001
    CloseProducer: Connection._close_producer,  # noqa: SLF001
    CloseConsumer: Connection._close_consumer,  # noqa: SLF001
    TopicMigrated: Connection._migrated,  # noqa: SLF001
}
"""What each command does that a broker may send; others do nothing."""


class TopicLookup(Protocol):
    """Finds the brokers of topics, for those who are open there; see `PulsarClient`."""

    request_timeout_s: float

    async def broker_of(self, topic: str) -> Connection:
        """A connection to the broker that serves a topic.

        Raises:
            PulsarError: there is none, or not in time.
        """

    def forget(self, one: Any) -> None:
        """Let go of what was closed."""
