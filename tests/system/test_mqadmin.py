"""RocketMQ's own command for administrators, mqadmin 5.5.0, works on a gateway."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from ropeway.client import (
    ConsumeFrom,
    Message,
    Producer,
    PushConsumer,
    SendResult,
)
from ropeway.testing import Gateway, running_gateway
from tests.clients.harness import Session, bodies, numbered
from tests.clients.programs import JAVA_5
from tests.ropeway.client.scenario import PATIENT_PRODUCER
from tests.system.administration import TIMEOUT_S, MqAdmin

CLUSTER = "DefaultCluster"


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with running_gateway() as running:
        yield running


@pytest.fixture(scope="module")
def mqadmin(gateway, tmp_path_factory) -> Iterator[Callable[[str], str]]:
    with MqAdmin(tmp_path_factory.mktemp("mqadmin")) as admin:
        yield lambda line: admin(line, gateway.name_server)


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
    async with (
        consumer,
        Producer(gateway.name_server, "writers", config=PATIENT_PRODUCER) as producer,
    ):
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
@pytest.mark.mqadmin(
    "getColdDataFlowCtrInfo",
    "updateColdDataFlowCtrGroupConfig",
    "removeColdDataFlowCtrGroupConfig",
)
def test_cold_reads_of_a_group_are_limited(mqadmin, gateway):
    broker = f"-b {gateway.name_server}"
    done = mqadmin(f"updateColdDataFlowCtrGroupConfig {broker} -g G7 -v 5000")
    assert "updateColdDataFlowCtrGroupConfig success" in done
    shown = mqadmin(f"getColdDataFlowCtrInfo {broker}")
    assert '"G7":5000' in shown.replace(" ", "")
    assert "runtimeTable" in shown
    wrong = mqadmin(f"updateColdDataFlowCtrGroupConfig {broker} -g G7 -v none")
    assert "threshold of G7 is 'none'; allowed: a whole number above 0" in wrong
    gone = mqadmin(f"removeColdDataFlowCtrGroupConfig {broker} -g G7")
    assert "remove broker cold read threshold success" in gone
    assert "G7" not in mqadmin(f"getColdDataFlowCtrInfo {broker}")


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


@pytest.fixture(scope="module")
def java(gateway, tmp_path_factory) -> Iterator[Session]:
    """RocketMQ's Java client."""
    agent = JAVA_5.start(tmp_path_factory.mktemp("java"))
    yield Session(agent, gateway.name_server)
    agent.stop()


@pytest.mark.jvm
@pytest.mark.parametrize("own_topic", [False, True], ids=["usual", "own"])
def test_the_trace_of_a_message_is_found_by_its_id(mqadmin, java, own_topic):
    options = {"trace": True, **({"trace_topic": "traces4"} if own_topic else {})}
    (sent,) = java.produce("T4", numbered(1), **options)
    query = f"queryMsgTraceById -i {sent['msg_id']}"
    if own_topic:
        query += " -t traces4"
    give_up = time.monotonic() + TIMEOUT_S
    # The client sends its traces a moment later.
    while "Pub" not in (traced := mqadmin(query)):
        assert time.monotonic() < give_up, traced
    (row,) = [line.split() for line in traced.splitlines() if line.startswith("Pub")]
    assert row[1] == "agent-producer"
    assert row[-1] == "success"


def attempt(java: Session, topic: str, body: str) -> list[str]:
    """Send one message by a client that knows no old route; what came of it."""
    call = java.call(
        "produce",
        topic=topic,
        messages=[{"body": body}],
        producer_group=f"{topic}-{body}",
        retries=0,
    ).finish()
    return [
        *(one["status"] for one in call.events("sent")),
        *(one["error"].split(",")[0] for one in call.events("failed")),
    ]


@pytest.mark.jvm
def test_a_broker_without_write_permission_is_read_only_until_it_has_it_again(
    mqadmin, java
):
    mqadmin(f"updateTopic -t T5 -c {CLUSTER} -r 1 -w 1")
    assert attempt(java, "T5", "first") == ["SEND_OK"]
    assert "broker-0" in mqadmin("wipeWritePerm -b broker-0")
    try:
        assert '"perm":4' in mqadmin("topicRoute -t T5").replace(" ", "")
        (refused,) = attempt(java, "T5", "second")
        assert "No route info of this topic" in refused
        assert "BODY: first" in mqadmin("consumeMessage -t T5 -g readers5")
    finally:
        assert "broker-0" in mqadmin("addWritePerm -b broker-0")
    assert attempt(java, "T5", "third") == ["SEND_OK"]


@pytest.mark.jvm
def test_a_topic_may_be_read_only_or_write_only(mqadmin, java, gateway):
    broker = gateway.name_server
    mqadmin(f"updateTopic -t T6 -b {broker} -r 1 -w 1")
    assert attempt(java, "T6", "first") == ["SEND_OK"]
    assert "success" in mqadmin(f"updateTopicPerm -t T6 -b {broker} -p 4")
    (refused,) = attempt(java, "T6", "second")
    assert "No route info of this topic" in refused
    assert "BODY: first" in mqadmin("consumeMessage -t T6 -g readers6")
    assert "success" in mqadmin(f"updateTopicPerm -t T6 -b {broker} -p 2")
    assert attempt(java, "T6", "third") == ["SEND_OK"]
    assert "BODY" not in mqadmin("consumeMessage -t T6 -g readers6")


@pytest.mark.jvm
def test_attributes_that_cannot_be_are_refused_in_rocketmqs_words(mqadmin, gateway):
    broker = gateway.name_server
    made = mqadmin(f"updateTopic -t T7 -b {broker} -r 1 -w 1 -a +queue.type=SimpleCQ")
    assert "success" in made
    for change, words in (
        ("+message.type=ODD", "value is not in set"),
        ("+message.type=MIXED", "MIXED message type is not supported."),
        ("+queue.type=SimpleCQ", "attempt to update an unchangeable attribute"),
        ("+colour=red", "unsupported key: colour"),
    ):
        assert words in mqadmin(f"updateTopic -t T7 -b {broker} -r 1 -w 1 -a {change}")
    group = f"updateSubGroup -b {broker} -g G7"
    assert "success" in mqadmin(f"{group} --attributes +priority.factor=50")
    assert "unsupported key: colour" in mqadmin(f"{group} --attributes +colour=red")


@pytest.mark.jvm
def test_groups_are_moved_and_their_consumers_asked(mqadmin, gateway, agents):
    java = Session(agents.of(JAVA_5), gateway.name_server)
    mqadmin(f"updateTopic -t T8 -c {CLUSTER} -r 4 -w 4")
    sent = java.produce("T8", numbered(8), retry_for_ms=60_000)
    consumer = java.start("consume", topic="T8", group="movers")
    consumer.wait_for_bodies(bodies(sent))

    def offsets(printed: str) -> list[int]:
        rows = [line.split() for line in printed.splitlines()]
        return [int(row[2]) for row in rows if row[:1] == ["broker-0"]]

    # While it is connected.
    printed = mqadmin("resetOffsetByTime -g movers -t T8 -s 0")
    assert offsets(printed) == [0, 0, 0, 0]
    consumer.wait(lambda events: len(events) >= 2 * len(sent))
    (client_id,) = [
        line.split()[0]
        for line in mqadmin("consumerConnection -g movers").splitlines()
        if "JAVA" in line
    ]
    status = mqadmin("consumerStatus -g movers")
    assert "Same subscription in the same group of consumer" in status
    assert "Rebalance OK" in status
    single = mqadmin(f"consumerStatus -g movers -i {client_id} -s")
    assert "PROP_CONSUME_TYPE" in single
    assert "RebalanceService" in single
    again = f"queryMsgById -g movers -d {client_id} -t T8 -i {sent[3]['offset_msg_id']}"
    assert "CR_SUCCESS" in mqadmin(again)
    assert "T8 " in mqadmin("consumerProgress -g movers -s true")
    consumer.stop()
    # And when it has gone.
    java.produce("T8", numbered(4, "later"))
    assert sum(offsets(mqadmin("skipAccumulatedMessage -g movers -t T8"))) == 12
    mqadmin(f"updateSubGroup -c {CLUSTER} -g clones")
    assert "success" in mqadmin("cloneGroupOffset -s movers -d clones -t T8 -o true")
    lags = mqadmin(f"brokerConsumeStats -b {gateway.name_server}")
    assert {"movers", "clones"} <= set(lags.split())
    assert "Diff Total:" in lags
    one = f"resetOffsetByTime -g movers -t T8 -s 0 -b {gateway.name_server} -q 3 -o 1"
    assert "reset consumer offset to 1" in mqadmin(one)
    progress = mqadmin("consumerProgress -g movers").splitlines()
    assert ["3", "1"] in [line.split()[2:6:2] for line in progress if "T8 " in line]
