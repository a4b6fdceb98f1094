"""Batches over many queues, against gateways: all of a batch, or none, and once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.client import (
    Admin,
    BatchProducer,
    ConnectionFailedError,
    ConsumeFrom,
    ConsumerConfig,
    Message,
    PullConsumer,
    ResponseError,
)
from ropeway.gateway.wire.codes import RequestCode
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import PATIENCE, PATIENT, PATIENT_PRODUCER
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ropeway.client.batch_producer import Staged

TOPIC = "orders"
QUEUES = 4


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Ropeway]:
    """A gateway that a test may kill."""
    gateway = Ropeway(tmp_path, sync_flush=True)
    gateway.start()
    yield gateway
    gateway.kill()


async def bodies(server: str, count: int) -> list[bytes]:
    """All that a topic has, when it has so many messages, or more."""
    found: list[bytes] = []
    config = ConsumerConfig(**PATIENCE, pull_wait_s=0.2)
    async with PullConsumer(
        server,
        "readers",
        consume_from=ConsumeFrom.FIRST_OFFSET,
        auto_commit=False,
        config=config,
    ) as consumer:
        queues = await consumer.queues(TOPIC)
        await consumer.assign(queues)
        for queue in queues:
            await consumer.seek(queue, 0)
        while len(found) < count:
            found += [one.body for one in await consumer.poll(5.0, 1000)]
        found += [one.body for one in await consumer.poll(0.5, 1000)]
    return sorted(found)


async def stage(producer: BatchProducer, *words: str) -> list[Staged]:
    """Stage each word in another queue."""
    queues = await producer.queues(TOPIC)
    return [
        await producer.stage(
            queues[at % len(queues)], [Message(TOPIC, word.encode(), tags="t")]
        )
        for at, word in enumerate(words)
    ]


def test_a_batch_appears_in_all_its_queues_once_however_often_it_is_committed(
    gateway: Ropeway,
) -> None:
    async def scenario() -> None:
        async with Admin(gateway.name_server, config=PATIENT) as admin:
            await admin.create_topic(TOPIC, QUEUES)
        async with BatchProducer(
            gateway.name_server, "sink", config=PATIENT_PRODUCER
        ) as producer:
            assert await producer.last() is None
            await stage(producer, "never", "committed")
            assert await producer.commit(0, await stage(producer, *"abcdef"))
            # As after a crash: staged anew, and committed under the same number.
            assert not await producer.commit(0, await stage(producer, *"abcdef"))
            assert await producer.commit(1, await stage(producer, "g"))
            assert await producer.last() == 1
            assert not await producer.commit(0, await stage(producer, "h"))
        found = await bodies(gateway.name_server, 7)
        assert found == [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]

    asyncio.run(scenario())


def test_nothing_is_committed_while_a_broker_has_no_master() -> None:
    """It may be the one that has this very batch, to be delivered once."""

    async def scenario() -> None:
        async with (
            FakeServer() as server,
            BatchProducer(server.address, "sink", config=PATIENT_PRODUCER) as producer,
        ):
            table = ",".join(
                f'"{name}":{{"brokerAddrs":{{"{id_}":"{server.address}"}},'
                f'"brokerName":"{name}","cluster":"c"}}'
                for name, id_ in (("a", 0), ("b", 1))
            )
            body = f'{{"brokerAddrTable":{{{table}}},"clusterAddrTable":{{}}}}'
            server.behaviours[RequestCode.GET_BROKER_CLUSTER_INFO] = lambda _: Answer(
                body=body.encode()
            )
            with pytest.raises(ConnectionFailedError, match="b: has no master"):
                await producer.commit(0, [("a", 0)])
            assert not server.asked(RequestCode.ROPEWAY_COMMIT_BATCH)

    asyncio.run(scenario())


@pytest.mark.slow
def test_what_was_committed_survives_kills_and_is_known(gateway: Ropeway) -> None:
    async def scenario() -> None:
        async with Admin(gateway.name_server, config=PATIENT) as admin:
            await admin.create_topic(TOPIC, QUEUES)
        sent: list[str] = []
        for batch in range(4):
            words = [f"{batch}-{at}" for at in range(10)]
            async with BatchProducer(
                gateway.name_server, "sink", config=PATIENT_PRODUCER
            ) as producer:
                staged = await stage(producer, *words)
                committing = asyncio.create_task(producer.commit(batch, staged))
                await asyncio.sleep(0.002 * batch)
                gateway.kill()
                await asyncio.gather(committing, return_exceptions=True)
            gateway.start()
            async with BatchProducer(
                gateway.name_server, "sink", config=PATIENT_PRODUCER
            ) as producer:
                await producer.commit(batch, await stage(producer, *words))
                assert await producer.last() == batch
            sent += words
        found = await bodies(gateway.name_server, len(sent))
        assert found == sorted(word.encode() for word in sent)

    asyncio.run(scenario())


def test_a_commit_names_only_what_its_producer_staged(gateway: Ropeway) -> None:
    async def scenario() -> None:
        async with Admin(gateway.name_server, config=PATIENT) as admin:
            await admin.create_topic(TOPIC, QUEUES)
        async with (
            BatchProducer(gateway.name_server, "one", config=PATIENT_PRODUCER) as one,
            BatchProducer(
                gateway.name_server, "other", config=PATIENT_PRODUCER
            ) as other,
        ):
            ((broker, offset),) = await stage(one, "a")
            with pytest.raises(ResponseError, match="was staged by producer one"):
                await other.commit(0, [(broker, offset)])
            with pytest.raises(ResponseError, match="nothing is staged at offset"):
                await one.commit(0, [(broker, offset + 1)])
            queue = (await one.queues(TOPIC))[0]
            with pytest.raises(ValueError, match="delay"):
                await one.stage(queue, [Message(TOPIC, b"x", delay_level=1)])
            assert await one.commit(0, [(broker, offset)])

    asyncio.run(scenario())
