"""A client finds the broker of a topic, and shares its connections."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import ssl
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.pulsar import backoff
from ropeway.storage.pulsar import client as module
from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.commands import (
    CloseProducer,
    Connect,
    Connected,
    GetSchema,
    Lookup,
    LookupAnswer,
    LookupType,
    OpenProducer,
    Refused,
    Schema,
    SchemaAnswer,
)
from ropeway.storage.pulsar.errors import (
    ForeignPulsarError,
    NotAllowedError,
    ProducerBusyError,
    PulsarError,
    PulsarUnavailableError,
)
from ropeway.storage.pulsar.pulsar_id import Expected, definition
from ropeway.storage.pulsar.send_entry import EntryMetadata
from tests.remoting import looped, until
from tests.storage.pulsar.broker import TOPIC, Peer, running
from tests.system.process import free_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TIMEOUT_S = 60
numbers = itertools.count()


@pytest.fixture
def two_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a client give up with its second try, and by no time.

    With a short one a busy machine fails a try for the time, which is another error.
    """
    monkeypatch.setattr(backoff, "delays", lambda: iter((0.0, 2.0 * TIMEOUT_S)))


@contextlib.asynccontextmanager
async def client(
    *urls: str, timeout_s: float = TIMEOUT_S
) -> AsyncIterator[PulsarClient]:
    hosts = ",".join(url.removeprefix("pulsar://") for url in urls)
    one = PulsarClient(f"pulsar://{hosts}", request_timeout_s=timeout_s)
    try:
        yield one
    finally:
        await one.close()


def pointing(kind: LookupType, url: str | None, **more: object):
    return lambda _, asked: LookupAnswer(
        url, response=kind, request_id=asked.request_id, **more
    )


def never(error: PulsarError) -> None:
    raise error


async def producer(one: PulsarClient):
    return await one.producer(TOPIC, f"writer-{next(numbers)}", lost=never)


@looped
async def test_a_broker_has_one_connection_however_many_want_it():
    async with running() as broker, client(broker.url) as one:
        await asyncio.gather(*(producer(one) for _ in range(20)))
        assert len(broker.of(Connect)) == 1
        assert len(broker.of(OpenProducer)) == 20
        assert len({each.producer_id for each in broker.of(OpenProducer)}) == 20


@looped
async def test_a_look_up_follows_redirects_and_says_they_are_authoritative():
    async with running() as first, running() as second, client(first.url) as one:
        first.answers[Lookup] = pointing(
            LookupType.REDIRECT, second.url, authoritative=True
        )
        await producer(one)
        assert [each.authoritative for each in first.of(Lookup)] == [False]
        assert [each.authoritative for each in second.of(Lookup)] == [True]
        assert len(second.of(OpenProducer)) == 1


@pytest.mark.usefixtures("two_tries")
@looped
async def test_redirects_without_end_are_given_up():
    async with running() as broker, client(broker.url) as one:
        broker.answers[Lookup] = pointing(LookupType.REDIRECT, broker.url)
        with pytest.raises(PulsarUnavailableError, match="more than 20 redirects"):
            await producer(one)


@looped
async def test_a_proxy_is_told_which_broker_is_meant():
    async with running() as proxy, client(proxy.url) as one:
        proxy.answers[Lookup] = pointing(
            LookupType.CONNECT, "pulsar://broker:6650", proxy_through_service_url=True
        )
        await producer(one)
        assert [each.proxy_to_broker_url for each in proxy.of(Connect)] == [
            None,
            "broker:6650",
        ]


@pytest.mark.parametrize(
    ("url", "said"), [(None, "has no pulsar address"), ("x://", "has a bad address")]
)
@looped
async def test_a_broker_without_a_usable_address_is_an_error(url, said):
    async with running() as broker, client(broker.url) as one:
        broker.answers[Lookup] = pointing(LookupType.CONNECT, url)
        with pytest.raises(PulsarError, match=f"the broker of {TOPIC} {said}"):
            await producer(one)


@looped
async def test_a_refused_look_up_is_the_brokers_error():
    async with running() as broker, client(broker.url) as one:
        broker.answers[Lookup] = pointing(
            LookupType.FAILED, None, error=4, message="not yours"
        )
        with pytest.raises(NotAllowedError, match="AuthorizationError: not yours"):
            await producer(one)


@looped
async def test_a_dead_broker_is_passed_over_for_the_next():
    dead = f"pulsar://127.0.0.1:{free_ports(1)[0]}"
    async with running() as broker, client(dead, broker.url) as one:
        await producer(one)
        await producer(one)
        assert len(broker.of(Connect)) == 1


@pytest.mark.usefixtures("two_tries")
@looped
async def test_why_no_broker_answers_is_said_in_the_systems_words():
    (port,) = free_ports(1)
    async with client(f"pulsar://127.0.0.1:{port}") as one:
        with pytest.raises(PulsarUnavailableError) as told:
            await producer(one)
    assert str(told.value) == f"127.0.0.1:{port}: Connection refused"


@looped
async def test_all_who_ask_at_once_pass_over_a_dead_broker():
    dead = f"pulsar://127.0.0.1:{free_ports(1)[0]}"
    for count in (2, 3):
        async with running() as broker, client(dead, broker.url) as one:
            # Without another try: those who make a topic do not wait for one.
            found = await asyncio.gather(*(one.host_of(TOPIC) for _ in range(count)))
            assert found == ["127.0.0.1"] * count


@pytest.mark.parametrize("silent", [Connect, Lookup])
@looped
async def test_a_broker_that_stands_still_is_passed_over_for_the_next(
    monkeypatch, silent
):
    monkeypatch.setattr(module, "LOOK_UP_TIMEOUT_S", 2)
    monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", 2)
    async with running() as still, running() as broker:
        del still.answers[silent]
        async with client(still.url, broker.url) as one:
            await producer(one)
            await producer(one)
            assert len(still.of(silent)) == 1
            assert len(broker.of(Lookup)) == 2


@looped
async def test_a_broker_that_is_not_ready_is_passed_over_for_the_next():
    async with running() as starting, running() as broker:
        starting.answers[Lookup] = pointing(LookupType.FAILED, None, error=6)
        async with client(starting.url, broker.url) as one:
            assert await one.host_of(TOPIC) == "127.0.0.1"


@looped
async def test_each_of_several_proxies_connects_to_what_it_named():
    async with running() as gone, running() as proxy:
        for each in (gone, proxy):
            each.answers[Lookup] = pointing(
                LookupType.CONNECT, "pulsar://b:6650", proxy_through_service_url=True
            )
        gone.refuse(OpenProducer, 6, times=1)
        async with client(gone.url, proxy.url) as one:
            waiting = asyncio.ensure_future(producer(one))
            await gone.wait(OpenProducer, 1)
            gone.answers[Lookup] = pointing(LookupType.FAILED, None, error=6)
            await waiting
            assert [each.proxy_to_broker_url for each in proxy.of(Connect)] == [
                None,
                "b:6650",
            ]


@pytest.mark.usefixtures("two_tries")
@looped
async def test_no_broker_at_all_is_an_error_that_names_it():
    port = free_ports(1)[0]
    async with client(f"pulsar://127.0.0.1:{port}") as one:
        with pytest.raises(PulsarUnavailableError, match=f"127.0.0.1:{port}: Conn"):
            await producer(one)


@looped
async def test_an_opening_is_tried_again_while_a_broker_is_busy():
    async with running() as broker, client(broker.url) as one:
        broker.refuse(OpenProducer, 16, times=2)
        await producer(one)
        assert len(broker.of(OpenProducer)) == 3


@pytest.mark.usefixtures("two_tries")
@looped
async def test_an_opening_that_stays_busy_is_given_up_with_that_error():
    async with running() as broker, client(broker.url) as one:
        broker.refuse(OpenProducer, 16)
        with pytest.raises(ProducerBusyError, match="ProducerBusy: so told"):
            await producer(one)


@looped
async def test_a_handshake_that_fails_leaves_nothing_behind():
    async with running() as broker, client(broker.url) as one:
        broker.answers[Connect] = lambda _, __: Refused(-1, 3, "who?")
        with pytest.raises(NotAllowedError, match=r"AuthenticationError: who\?"):
            await producer(one)
        await until(broker.peers[0].transport.is_closing)
        broker.answers[Connect] = lambda _, __: Connected("fake", 21, 1000)
        await producer(one)
        assert len(broker.peers) == 2


@looped
async def test_a_broker_that_accepts_and_says_nothing_is_given_up_in_time():
    async with running() as broker, client(broker.url, timeout_s=0.1) as one:
        del broker.answers[Connect]
        with pytest.raises(
            PulsarUnavailableError, match=r"no answer to Connect in 0\.1"
        ):
            await producer(one)


@looped
async def test_a_broker_that_speaks_no_tls_is_given_up_in_time(monkeypatch):
    monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", 0.2)
    async with running() as broker:
        url = broker.url.replace("pulsar://", "pulsar+ssl://")
        one = PulsarClient(url, tls=ssl.create_default_context, request_timeout_s=0.1)
        with pytest.raises(PulsarUnavailableError):
            await producer(one)
        await one.close()


@looped
async def test_closing_closes_all_that_is_open():
    async with running() as broker:
        async with client(broker.url) as one:
            opened = await producer(one)
        failed: list[PulsarError | None] = []
        opened.send([b"x"], 1, lambda _, error: failed.append(error), EntryMetadata(1))
        await asyncio.sleep(0)
        assert isinstance(failed[0], PulsarUnavailableError)
        await broker.wait(CloseProducer, 1)
        await until(lambda: all(peer.transport.is_closing() for peer in broker.peers))


def test_a_malformed_service_url_is_refused_at_once():
    with pytest.raises(ValueError, match="service URL 'http://x'; allowed"):
        PulsarClient("http://x")


@looped
async def test_a_broker_that_was_away_is_connected_to_when_it_is_there():
    (port,) = free_ports(1)
    async with (
        running() as other,
        client(f"pulsar://127.0.0.1:{port}", timeout_s=0.5) as one,
    ):
        with pytest.raises(PulsarUnavailableError):
            await producer(one)
        server = await asyncio.get_running_loop().create_server(
            lambda: Peer(other), "127.0.0.1", port
        )
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                with contextlib.suppress(PulsarUnavailableError):
                    await producer(one)
                    break
        server.close()


def shown(pulsar_id: str | None, error: int = 11):
    """Answer who asks for the id of the cluster; None: there is none, or `error`."""
    if pulsar_id is None:
        return lambda _, asked: SchemaAnswer(asked.request_id, error, "so told")
    schema = Schema(definition(pulsar_id).encode())
    return lambda _, asked: SchemaAnswer(asked.request_id, schema=schema)


@looped
async def test_a_broker_of_another_cluster_is_passed_over_and_not_asked_again():
    async with running() as other, running() as ours:
        other.answers[GetSchema] = shown(None)
        ours.answers[GetSchema] = shown("aa")
        async with client(other.url, ours.url) as one:
            one.expected = Expected("persistent://a/b/c", "aa")
            await producer(one)
            await producer(one)
        assert len(other.of(GetSchema)) == len(ours.of(GetSchema)) == 1
        assert other.of(Lookup) == other.of(OpenProducer) == []
        assert ours.of(GetSchema)[0].topic == "persistent://a/b/c"
        assert len(ours.of(OpenProducer)) == 2


@pytest.mark.usefixtures("two_tries")
@looped
async def test_brokers_of_other_clusters_alone_are_an_error_that_says_so():
    async with running() as other, client(other.url) as one:
        other.answers[GetSchema] = shown("bb")
        one.expected = Expected("persistent://a/b/c", "aa")
        with pytest.raises(ForeignPulsarError, match="is of another Pulsar cluster"):
            await producer(one)
        assert len(other.of(GetSchema)) == 1


@pytest.mark.usefixtures("two_tries")
@looped
async def test_a_broker_that_cannot_tell_its_cluster_is_asked_again():
    async with running() as broker, client(broker.url) as one:
        broker.answers[GetSchema] = shown(None, error=6)
        one.expected = Expected("persistent://a/b/c", "aa")
        with pytest.raises(PulsarUnavailableError, match="ServiceNotReady: so told"):
            await producer(one)
        assert broker.of(Lookup) == []
