"""How far groups are, as administrators see it."""

from types import SimpleNamespace

import msgspec

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateTopic, GetConsumeStats
from ropeway.gateway.wire.commands.broker_admin import GetBrokerConsumeStats
from ropeway.gateway.wire.commands.group_admin import (
    QueryConsumeTimeSpan,
    QueryCorrectionOffset,
)
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from tests.remoting import beat, looped, running
from tests.requests import pulling, sending


async def topic_with_three(client, name: str = "orders") -> list[int]:
    """A topic of two queues with three messages in the second; their store times."""
    await client.ask(
        CreateTopic(
            topic=name,
            default_topic="TBW102",
            read_queue_nums=2,
            write_queue_nums=2,
            perm=6,
        )
    )
    for _ in range(3):
        await client.ask(sending(name, queue_id=1), b"one")
    found = (await client.ask(pulling(name, queue_id=1))).messages()
    return [one.store_ms for one in found]


async def commit(client, offset: int, topic: str = "orders") -> None:
    await client.ask(
        UpdateConsumerOffset(
            consumer_group="readers", topic=topic, queue_id=1, commit_offset=offset
        )
    )


@looped
async def test_consume_stats_tell_the_lag_of_every_queue(tmp_path):
    async with running(tmp_path) as (_, client):
        times = await topic_with_three(client)
        await commit(client, 2)
        answer = await client.ask(GetConsumeStats(consumer_group="readers"))
        assert answer.body == (
            b'{"consumeTps":0.0,"offsetTable":{'
            b'{"brokerName":"broker-0","queueId":0,"topic":"orders"}:'
            b'{"brokerOffset":0,"consumerOffset":0,"lastTimestamp":0,"pullOffset":0},'
            b'{"brokerName":"broker-0","queueId":1,"topic":"orders"}:'
            b'{"brokerOffset":3,"consumerOffset":2,"lastTimestamp":%d,"pullOffset":3}}}'
            % times[1]
        )


@looped
async def test_a_group_without_offsets_has_empty_stats(tmp_path):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(GetConsumeStats(consumer_group="nobody"))
        assert answer.body == b'{"consumeTps":0.0,"offsetTable":{}}'


@looped
async def test_only_topics_that_are_asked_for_are_in_the_stats(tmp_path):
    async with running(tmp_path) as (_, client):
        for name in ("a", "b", "c"):
            await topic_with_three(client, name)
            await commit(client, 1, name)

        async def topics(**asked: str) -> set[str]:
            header = GetConsumeStats(consumer_group="readers", **asked)
            body = (await client.ask(header)).body
            return {name for name in "abc" if b'"topic":"%b"' % name.encode() in body}

        assert await topics() == {"a", "b", "c"}
        assert await topics(topic="b") == {"b"}
        assert await topics(topic_list="a;c") == {"a", "c"}
        assert await topics(topic="none") == set()
        # What its connected consumers do not want is no lag of the group.
        await beat(client, "c1", "readers", topic="a")
        assert await topics() == {"a"}
        assert await topics(topic_list="a;c") == {"a", "c"}


@looped
async def test_the_broker_tells_how_far_every_group_is(tmp_path):
    async with running(tmp_path) as (_, client):
        for name in ("a", "b"):
            await topic_with_three(client, name)
            await commit(client, 1, name)
        order = CreateTopic(
            topic="b",
            default_topic="TBW102",
            read_queue_nums=2,
            write_queue_nums=2,
            perm=6,
            order=True,
        )
        await client.ask(order)
        answer = await client.ask(GetBrokerConsumeStats(is_order=False))
        host_port = client.writer.get_extra_info("peername")
        assert answer.body.startswith(
            b'{"brokerAddr":"%s:%d","consumeStatsList":[{"readers":[{"consumeTps":0.0,'
            b'"offsetTable":{' % (host_port[0].encode(), host_port[1])
        )
        # Two of three are not done in either; all were pulled.
        assert answer.body.endswith(b'"totalDiff":4,"totalInflightDiff":4}')
        answer = await client.ask(GetBrokerConsumeStats(is_order=True))
        assert b'"topic":"a"' not in answer.body
        assert answer.body.endswith(b'"totalDiff":2,"totalInflightDiff":2}')
        # What is not subscribed to any more is nobody's lag.
        await beat(client, "c1", "readers", topic="a")
        answer = await client.ask(GetBrokerConsumeStats(is_order=False))
        assert answer.body.endswith(b'"totalDiff":2,"totalInflightDiff":2}')


@looped
async def test_a_correction_is_the_lowest_offset_of_groups_that_count(tmp_path):
    async with running(tmp_path) as (app, client):
        await topic_with_three(client)
        for group, offset in (("leader", 3), ("second", 2), ("slow", 1)):
            await client.ask(pulling("orders", group=group))
            await client.ask(
                UpdateConsumerOffset(
                    consumer_group=group,
                    topic="orders",
                    queue_id=1,
                    commit_offset=offset,
                )
            )

        async def correction(group: str, *left_out: str) -> dict[str, int]:
            header = QueryCorrectionOffset(
                compare_group=group, topic="orders", filter_groups=",".join(left_out)
            )
            body = msgspec.json.decode((await client.ask(header)).body)
            return body["correctionOffsets"]

        assert await correction("leader") == {"1": 1}
        assert await correction("leader", "slow") == {"1": 2}
        assert await correction("leader", "slow", "second") == {"1": 3}
        assert await correction("nobody") == {"1": 1}
        assert await correction("slow", "slow") == {"1": 2**63 - 1}
        # Neither a queue that is gone counts, nor an offset whose message is.
        app.node.offsets.commit("second", "orders", 99, 1)
        partitions = app.node.topics.get("orders").partitions
        partitions[1] = SimpleNamespace(first=2)
        assert await correction("leader") == {"1": 2}
        none = QueryCorrectionOffset(compare_group="slow", topic="none")
        assert (await client.ask(none)).code == ResponseCode.TOPIC_NOT_EXIST


@looped
async def test_what_a_filter_passes_over_counts_as_pulled(tmp_path):
    async with running(tmp_path) as (_, client):
        await topic_with_three(client)
        header = pulling("orders", queue_id=1, subscription="never")
        assert not (await client.ask(header)).messages()
        stats = GetConsumeStats(consumer_group="readers", topic="orders")
        assert b'"pullOffset":3' in (await client.ask(stats)).body


@looped
async def test_time_spans_tell_how_old_what_is_done_and_undone_is(tmp_path):
    async with running(tmp_path) as (_, client):
        times = await topic_with_three(client)
        await commit(client, 2)
        answer = await client.ask(QueryConsumeTimeSpan(topic="orders", group="readers"))
        empty, full = msgspec.json.decode(answer.body)["consumeTimeSpanSet"]
        assert (empty["minTimeStamp"], empty["maxTimeStamp"]) == (-1, -1)
        assert empty["delayTime"] == 0
        assert full["messageQueue"]["queueId"] == 1
        assert (full["minTimeStamp"], full["maxTimeStamp"]) == (times[0], times[2])
        assert full["consumeTimeStamp"] == times[1]
        assert full["delayTime"] >= 0


@looped
async def test_time_spans_of_no_topic_are_refused(tmp_path):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(QueryConsumeTimeSpan(topic="none", group="readers"))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
