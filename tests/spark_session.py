"""One Spark session for the whole run, and topics that tests fill and read."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin, BulkReader, Message, Producer
from ropeway.client.config import ClientConfig, ProducerConfig
from ropeway.testing import Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that lives for a minute starts sooner with less of it compiled."""

PATIENT = ClientConfig(connect_timeout_s=60.0, request_timeout_s=60.0)
PATIENT_PRODUCER = ProducerConfig(connect_timeout_s=60.0, request_timeout_s=60.0)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on this machine, with two workers, reachable from here alone."""
    from pyspark import SparkContext

    from ropeway.spark.session import open_session

    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.streaming.numRecentProgressUpdates": "100",
    }
    session = open_session("ropeway-tests", "local[2]", settings)
    session.sparkContext.setLogLevel("OFF")
    yield session
    process = session.sparkContext._gateway.proc
    session.stop()
    # Spark leaves its JVM to the end of the process, and this one has more to do.
    SparkContext._gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    process.stdin.close()
    process.wait()


class Topics:
    """Topics of a server."""

    def __init__(self, name_server: str) -> None:
        self.name_server = name_server

    def make(self, queues: int = 2) -> str:
        """A new topic."""
        topic = f"topic-{uuid.uuid4().hex[:10]}"
        self.extend(topic, queues)
        return topic

    def extend(self, topic: str, queues: int) -> None:
        """Give a topic so many queues."""

        async def extend() -> None:
            async with Admin(self.name_server, config=PATIENT) as admin:
                await admin.create_topic(topic, queues)

        asyncio.run(extend())

    def send(
        self, topic: str, bodies: Sequence[str], *, queue: int = 0, **more: str
    ) -> None:
        """Send messages to one queue, in order."""

        async def send() -> None:
            async with Producer(
                self.name_server, "tests", config=PATIENT_PRODUCER
            ) as producer:
                target = (await producer.queues(topic))[queue]
                for body in bodies:
                    message = Message(topic, body.encode(), **more)
                    await producer.send(message, target)

        asyncio.run(send())

    def read(self, topic: str) -> list[str]:
        """All that a topic has, queue by queue."""

        async def read() -> list[str]:
            found: list[str] = []
            async with BulkReader(self.name_server, "tests", config=PATIENT) as reader:
                for queue in await reader.queues(topic):
                    begin = await reader.begin_offset(queue)
                    end = await reader.end_offset(queue)
                    async for columns in reader.read(queue, begin, end):
                        found += [body.decode() for body in columns.bodies]
            return found

        return asyncio.run(read())


@pytest.fixture(scope="session")
def ropeway_topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    """Topics of a gateway."""
    gateway = Gateway(tmp_path_factory.mktemp("spark") / "data")
    gateway.start()
    yield Topics(gateway.name_server)
    gateway.kill()
