"""RocketMQ's own command for administrators, mqadmin 5.5.0, works on a gateway."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ropeway.client import (
    ConsumeFrom,
    Message,
    Producer,
    PushConsumer,
    SendResult,
)
from ropeway.testing import Gateway, running_gateway
from tests import builds

HERE = Path(__file__).parent / "mqadmin"
JAVA = [
    "java",
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
]
TIMEOUT_S = 120.0
CLUSTER = "DefaultCluster"


class MqAdmin:
    """One JVM that runs command lines."""

    def __init__(self, gateway: Gateway, directory: Path) -> None:
        jars = builds.classpath(HERE / "pom.xml")
        classes = builds.java_classes(HERE, jars)
        self._name_server = gateway.name_server
        self.process = subprocess.Popen(
            [
                *JAVA,
                f"-Duser.home={directory}",
                f"-Drocketmq.home.dir={directory}",
                "-Drocketmq.client.logUseSlf4j=false",
                "-cp",
                f"{classes}:{jars}",
                "Commands",
            ],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __call__(self, line: str) -> str:
        """What a command prints."""
        self.process.stdin.write(f"{line} -n {self._name_server}\n")
        self.process.stdin.flush()
        printed = ""
        while (part := self.process.stdout.readline()) != "--\n":
            assert part, printed
            printed += part
        return printed


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with running_gateway() as running:
        yield running


@pytest.fixture(scope="module")
def mqadmin(gateway, tmp_path_factory) -> Iterator[MqAdmin]:
    admin = MqAdmin(gateway, tmp_path_factory.mktemp("mqadmin"))
    yield admin
    admin.process.stdin.close()
    try:
        admin.process.wait(TIMEOUT_S)
    finally:
        admin.process.kill()
        admin.process.stdout.close()


@asynccontextmanager
async def clients(
    gateway: Gateway, topic: str, group: str
) -> AsyncIterator[list[SendResult]]:
    """A producer that has sent, and a consumer that has read and committed."""
    seen: list[bytes] = []
    consumer = PushConsumer(
        gateway.name_server, group, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    consumer.subscribe(topic, "tagA || tagB", lambda one: seen.append(one.body))
    async with consumer, Producer(gateway.name_server, "writers") as producer:
        sent = [
            await producer.send(
                Message(topic, b"%d" % number, "tagA", (f"key{number}",))
            )
            for number in range(4)
        ]
        async with asyncio.timeout(TIMEOUT_S):
            while len(seen) < len(sent):  # noqa: ASYNC110 - a thread fills it
                await asyncio.sleep(0.01)
        yield sent


@pytest.mark.jvm
def test_topics_and_groups_are_made_shown_and_deleted(mqadmin):
    made = mqadmin(f"updateTopic -t T1 -c {CLUSTER} -r 4 -w 4 -a +message.type=NORMAL")
    assert "success" in made
    assert "T1" in mqadmin("topicList").split()
    assert '"writeQueueNums":4' in mqadmin("topicRoute -t T1").replace(" ", "")
    assert "create subscription group" in mqadmin(f"updateSubGroup -c {CLUSTER} -g G1")
    sent = mqadmin("sendMessage -t T1 -p hello -k key1 -c tagA")
    assert "SEND_OK" in sent
    assert "BODY: hello" in mqadmin("consumeMessage -t T1 -g G1")
    status = mqadmin("topicStatus -t T1").splitlines()
    assert [line.split()[3] for line in status if line.startswith("broker-0")].count(
        "1"
    ) == 1
    assert "success" in mqadmin(f"deleteTopic -c {CLUSTER} -t T1")
    assert "T1" not in mqadmin("topicList").split()
    assert "success" in mqadmin(f"deleteSubGroup -c {CLUSTER} -g G1 -r true")


@pytest.mark.jvm
def test_what_is_refused_says_why(mqadmin, gateway):
    broker = gateway.name_server
    too_many = mqadmin(f"updateTopic -t T2 -b {broker} -r 1025 -w 4")
    assert "readQueueNums of topic T2 is 1025; allowed: 0 to 1024" in too_many
    reserved = mqadmin(f"updateTopic -t TBW102 -b {broker} -r 4 -w 4")
    assert "conflict with system topic" in reserved
    assert "No topic route info" in mqadmin("topicRoute -t none")


@pytest.mark.jvm
def test_the_cluster_and_its_broker_are_shown(mqadmin, gateway):
    listed = mqadmin("clusterList")
    assert gateway.name_server in listed
    assert "Ropeway" in listed
    assert "brokerActive" in mqadmin(f"brokerStatus -b {gateway.name_server}")
    assert "flushDiskType" in mqadmin(f"getBrokerConfig -b {gateway.name_server}")


@pytest.mark.jvm
def test_messages_progress_and_connections_are_shown(mqadmin, gateway):
    async def look() -> None:
        async with clients(gateway, "T3", "readers") as sent:
            loop = asyncio.get_running_loop()

            async def ask(line: str) -> str:
                # The clients' heartbeats go on meanwhile.
                return await loop.run_in_executor(None, mqadmin, line)

            last = sent[-1]
            place = f"-b broker-0 -i {last.queue.queue_id} -o {last.queue_offset}"
            for query in (
                f"queryMsgById -i {last.offset_msg_id} -t T3",
                f"queryMsgByUniqueKey -t T3 -i {last.msg_id}",
                f"queryMsgByOffset -t T3 {place}",
            ):
                found = await ask(query)
                assert last.msg_id in found, query
                assert "[key3]" in found, query
            assert last.msg_id in await ask("queryMsgByKey -t T3 -k key3")
            # Consumers commit every few seconds.
            async with asyncio.timeout(TIMEOUT_S):
                while "T3 " not in (
                    progress := await ask("consumerProgress -g readers")
                ):
                    pass
            assert sum(line.startswith("T3 ") for line in progress.splitlines()) == 4
            assert "CLUSTERING" in await ask("consumerProgress")
            consumers = await ask("consumerConnection -g readers")
            assert "tagA || tagB" in consumers
            assert "CONSUME_FROM_FIRST_OFFSET" in consumers
            assert "PYTHON" in await ask("producerConnection -g writers -t T3")
            assert "readers" in await ask("topicList -c")

    asyncio.run(look())
