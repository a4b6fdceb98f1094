"""A connection joins what it writes, notices death, and leaves nobody waiting."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.storage.pulsar import connection as module
from ropeway.storage.pulsar.authentication import Token, Unauthenticated
from ropeway.storage.pulsar.commands import (
    AuthChallenge,
    AuthData,
    AuthResponse,
    CloseProducer,
    Connect,
    Connected,
    Lookup,
    LookupAnswer,
    Ping,
    Pong,
    Send,
    SendReceipt,
    Success,
    TopicMigrated,
    encode_command,
)
from ropeway.storage.pulsar.connection import Connection
from ropeway.storage.pulsar.errors import (
    NotAllowedError,
    PulsarError,
    PulsarUnavailableError,
    WireError,
)
from ropeway.storage.pulsar.frames import payload_frame
from tests.remoting import looped
from tests.storage.pulsar.broker import TOPIC, FakeBroker, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

TIMEOUT_S = 60


class Log:
    """A producer end that writes down what it is told."""

    def __init__(self) -> None:
        self.receipts: list[SendReceipt] = []
        self.errors: list[PulsarError] = []
        self.receipt = self.receipts.append
        self.send_error = self.receipts.append
        self.closed = self.errors.append


@contextlib.asynccontextmanager
async def connected(
    broker: FakeBroker,
    token: Callable[[], str] | None = None,
    keep_alive_s: float = TIMEOUT_S,
) -> AsyncIterator[Connection]:
    host, port = broker.url.removeprefix("pulsar://").split(":")
    who = Unauthenticated() if token is None else Token(token)
    lost: asyncio.Future[Connection] = asyncio.Future()
    _, one = await asyncio.get_running_loop().create_connection(
        lambda: Connection(who, None, keep_alive_s, lost.set_result), host, int(port)
    )
    try:
        yield one
    finally:
        one.abort(PulsarUnavailableError("the test ends"))
        assert await lost is one


def lookup(number: int) -> Lookup:
    return Lookup(TOPIC, number)


@looped
async def test_the_handshake_says_who_we_are_and_learns_the_limit():
    async with running() as broker, connected(broker, lambda: "secret") as one:
        await one.handshake(TIMEOUT_S)
        (connect,) = broker.of(Connect)
        assert (connect.auth_method, connect.auth_data) == ("token", b"secret")
        assert connect.feature_flags.broker_entry_metadata
        assert connect.feature_flags.auth_refresh
        assert one.max_message_bytes == 1000


@looped
async def test_a_refused_handshake_is_the_brokers_error():
    async with running() as broker, connected(broker) as one:
        broker.answers[Connect] = lambda _, __: module.Refused(-1, 3, "bad token")
        with pytest.raises(NotAllowedError, match="AuthenticationError: bad token"):
            await one.handshake(TIMEOUT_S)


@looped
async def test_requests_get_their_own_answers_in_any_order():
    async with running() as broker, connected(broker) as one:
        held: list[Lookup] = []

        def reverse(peer, asked):
            held.append(asked)
            if len(held) == 3:
                for each in reversed(held):
                    peer.tell(LookupAnswer(request_id=each.request_id, message="x"))

        broker.answers[Lookup] = reverse
        answers = await asyncio.gather(
            *(one.request(lookup, LookupAnswer, TIMEOUT_S) for _ in range(3))
        )
        assert [each.request_id for each in answers] == [1, 2, 3]


@looped
async def test_a_request_without_an_answer_ends_in_time():
    async with running() as broker, connected(broker) as one:
        broker.answers.clear()
        with pytest.raises(
            PulsarUnavailableError, match=r"no answer to Lookup in 0\.05"
        ):
            await one.request(lookup, LookupAnswer, 0.05)


@looped
async def test_an_answer_of_another_kind_is_an_error():
    async with running() as broker, connected(broker) as one:
        broker.answers[Lookup] = lambda _, asked: Success(asked.request_id)
        with pytest.raises(WireError, match="Success for an answer to Lookup; allowed"):
            await one.request(lookup, LookupAnswer, TIMEOUT_S)


@looped
async def test_a_lost_connection_tells_all_who_rely_on_it():
    async with running() as broker, connected(broker) as one:
        broker.answers[Lookup] = lambda peer, _: peer.transport.abort()
        end = Log()
        one.producers[1] = end
        with pytest.raises(PulsarUnavailableError, match="the connection was lost"):
            await one.request(lookup, LookupAnswer, TIMEOUT_S)
        assert len(end.errors) == 1
        with pytest.raises(PulsarUnavailableError):
            await one.request(lookup, LookupAnswer, TIMEOUT_S)


@looped
async def test_garbage_ends_the_connection_with_what_was_wrong():
    async with running() as broker, connected(broker) as one:
        broker.answers[Lookup] = lambda peer, _: peer.transport.write(b"\0\0\0\1HTTP")
        with pytest.raises(WireError, match="frame of 1 bytes; allowed: 5 to"):
            await one.request(lookup, LookupAnswer, TIMEOUT_S)


@looped
async def test_a_ping_is_answered():
    async with running() as broker, connected(broker) as one:
        await one.handshake(TIMEOUT_S)
        broker.peers[0].tell(Ping())
        await broker.wait(Pong, 1)


@looped
async def test_a_challenge_is_answered_with_a_new_token():
    tokens = iter(["first", "second"])
    async with running() as broker, connected(broker, lambda: next(tokens)) as one:
        await one.handshake(TIMEOUT_S)
        broker.peers[0].tell(AuthChallenge(AuthData("token", b"PulsarAuthRefresh")))
        (response,) = await broker.wait(AuthResponse, 1)
        assert response.response == AuthData("token", b"second")


@looped
async def test_a_challenge_that_cannot_be_met_ends_the_connection_with_the_reason():
    tokens = iter(["first", ""])
    async with running() as broker, connected(broker, lambda: next(tokens)) as one:
        await one.handshake(TIMEOUT_S)
        broker.answers[Lookup] = lambda *_: None
        challenge = AuthChallenge(AuthData("token", b"PulsarAuthRefresh"))
        for _ in range(2):  # one that comes while the other is being met
            broker.peers[0].tell(challenge)
        with pytest.raises(
            PulsarUnavailableError, match="cannot use the token: 0 char"
        ):
            await one.request(lookup, LookupAnswer, TIMEOUT_S)
        assert broker.of(AuthResponse) == []


@looped
async def test_a_silent_broker_is_asked_twice_and_then_given_up():
    async with running() as broker, connected(broker, keep_alive_s=0.05) as one:
        await one.handshake(TIMEOUT_S)
        end, told = Log(), asyncio.Event()
        end.closed = lambda error: (end.errors.append(error), told.set())
        one.producers[1] = end
        await told.wait()
        assert str(end.errors[0]) == "no byte came since 2 PINGs, one each 0.05 s"
        await broker.wait(Ping, 2)


@looped
async def test_a_broker_that_answers_one_ping_of_two_is_kept():
    async with running() as broker, connected(broker) as one:
        await one.handshake(TIMEOUT_S)
        for _ in range(3):
            # As after a stop of this process: two are due before anything is read.
            for _ in range(2):
                one._watch()
            await one.request(lookup, LookupAnswer, TIMEOUT_S)
        assert one.broken is None


@looped
async def test_nobody_is_asked_before_the_handshake_is_over():
    async with running() as broker, connected(broker, keep_alive_s=0) as one:
        usual = broker.answers[Connect]

        def late(peer, asked):
            asyncio.get_running_loop().call_later(0.01, peer.tell, usual(peer, asked))

        broker.answers[Connect] = late
        await one.handshake(TIMEOUT_S)
        assert broker.of(Ping) == []


@looped
async def test_what_is_closed_by_the_broker_is_told_once_and_forgotten():
    async with running() as broker, connected(broker) as one:
        await one.handshake(TIMEOUT_S)
        closed, migrated = Log(), Log()
        one.producers[1], one.producers[2] = closed, migrated
        with capture_logs() as logs:
            for _ in range(2):
                broker.peers[0].tell(CloseProducer(1, -1))
                broker.peers[0].tell(TopicMigrated(2, 0, "pulsar://there:6650"))
                broker.peers[0].tell(SendReceipt(1, 1))
            await one.request(lookup, LookupAnswer, TIMEOUT_S)
        assert [one["to"] for one in logs] == ["pulsar://there:6650"]
        assert [len(closed.errors), len(migrated.errors)] == [1, 1]
        assert closed.receipts == []


@looped
async def test_what_a_peer_does_not_read_waits_and_comes_whole_and_in_order():
    async with running() as broker, connected(broker) as one:
        await one.handshake(TIMEOUT_S)
        broker.answers.pop(Send)
        broker.peers[0].transport.pause_reading()
        payload = bytes(900)
        for number in range(20_000):
            frame = payload_frame(encode_command(Send(1, number)), b"m", [payload])
            one.write(frame)
            if number % 1000 == 0:
                await asyncio.sleep(0)
        assert one._paused
        broker.peers[0].transport.resume_reading()
        came = await broker.wait(Send, 20_000)
        assert [one.sequence_id for one in came] == list(range(20_000))
        assert not one._paused


@looped
async def test_frames_of_one_turn_of_the_loop_are_written_at_once(monkeypatch):
    async with running() as broker, connected(broker) as one:
        await one.handshake(TIMEOUT_S)
        written: list[int] = []
        usual = one._transport.writelines

        class Counting:
            def writelines(self, parts):
                written.append(len(parts))
                usual(parts)

            def abort(self):
                real.abort()

        real, one._transport = one._transport, Counting()  # type: ignore[assignment]
        for _ in range(5):
            one.tell(Ping())
        await broker.wait(Ping, 5)
        assert written == [5]


@looped
async def test_connected_without_a_limit_keeps_the_usual_one():
    async with running() as broker, connected(broker) as one:
        broker.answers[Connect] = lambda _, __: Connected("old", 10)
        await one.handshake(TIMEOUT_S)
        assert one.max_message_bytes == 5 * 1024 * 1024
