"""One Spark session for the whole run, and topics that tests fill and read."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin, BulkReader, Message, Producer
from ropeway.testing import Gateway
from tests import builds, jvm
from tests.ropeway.client.scenario import PATIENT, PATIENT_PRODUCER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that lives for a minute starts sooner with less of it compiled."""


def main() -> None:
    """Do a little of all that a driver does, and end in order."""
    session = begin()
    session.range(8).mapInArrow(lambda batches: batches, "id long").collect()
    counts = session.readStream.format("rate").load().groupBy("value").count()
    query = counts.writeStream.format("noop").outputMode("update")
    query.trigger(availableNow=True).start().awaitTermination()
    end(session)


@pytest.fixture(scope="session")
def spark_classes() -> str:
    """Have drivers map the classes of one that has ended: they start with half the CPU.

    Java wants their jars where they were, and as old: they are in the cache, as links.

    Returns:
        Options with which a JVM of the same class path does so.
    """
    import pyspark

    installed = Path(pyspark.__file__).parent
    kind = f"{pyspark.__version__}-{jvm.installed()}"
    home = builds.cache() / "spark" / kind
    archive = home / "classes.jsa"
    options = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {QUICK_JVM} -Xlog:cds*=off"
    os.environ["SPARK_HOME"] = str(home)
    with builds.alone(home):
        if not archive.exists():
            for part in ("bin", "jars"):
                shutil.rmtree(home / part, ignore_errors=True)
                shutil.copytree(installed / part, home / part, copy_function=_linked)
            part_of_it = archive.with_suffix(".part")
            part_of_it.unlink(missing_ok=True)
            leaves = f"{options} {jvm.LEAVES}{part_of_it}"
            subprocess.run(
                [sys.executable, "-m", "tests.spark_session"],
                cwd=Path(__file__).parents[1],
                env={**os.environ, "SPARK_SUBMIT_OPTS": leaves},
                check=True,
                capture_output=True,
            )
            part_of_it.rename(archive)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{options} -XX:SharedArchiveFile={archive}"
    return f"{QUICK_JVM} -Xlog:cds*=off -XX:SharedArchiveFile={archive}"


def _linked(source: str, target: str) -> None:
    """Another name of a file, or another file where that is on another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def begin(**more: str) -> SparkSession:
    """Start Spark on this machine, with two workers, reachable from here alone."""
    from ropeway.spark.session import open_session

    settings = {"spark.driver.memory": "1g", **more}
    session = open_session("ropeway-tests", "local[2]", settings)
    session.sparkContext.setLogLevel("OFF")
    return session


def end(session: SparkSession) -> None:
    """Stop Spark, and its JVM, which it leaves to the end of the process."""
    from pyspark import SparkContext

    process = session.sparkContext._gateway.proc
    session.stop()
    SparkContext._gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    process.stdin.close()
    process.wait()


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, spark_classes: str
) -> Iterator[SparkSession]:
    """One session that tests share."""
    del spark_classes
    settings = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.streaming.numRecentProgressUpdates": "100",
    }
    session = begin(**settings)
    yield session
    end(session)


class Topics:
    """Topics of a server."""

    def __init__(self, name_server: str) -> None:
        self.name_server = name_server
        self.from_the_start = {
            "nameServer": name_server,
            "startingOffsets": "earliest",
        }
        """Options of the data source."""

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


if __name__ == "__main__":
    main()
