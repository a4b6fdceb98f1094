"""Groups are moved to times and offsets, and their consumers hear of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import Language, RequestCode, ResponseCode
from ropeway.gateway.wire.commands.admin import (
    CreateGroup,
    CreateTopic,
    DeleteGroup,
    GetConsumeStats,
    QueryTopicConsumeByWho,
)
from ropeway.gateway.wire.commands.group_admin import CloneGroupOffset, ResetOffset
from ropeway.gateway.wire.commands.offsets import (
    Offset,
    QueryConsumerOffset,
    UpdateConsumerOffset,
)
from ropeway.gateway.wire.commands.pull import PullReply
from tests.remoting import Frame, Remoting, beat, connect, looped, running
from tests.requests import heartbeat, pulling, sending, waiting

if TYPE_CHECKING:
    from ropeway.gateway.wire.commands.pull import PullMessage

JAVA_4_9_8 = 409


async def fill(client: Remoting, topic: str = "orders", *, count: int = 5) -> list[int]:
    """A topic of two queues with messages in each; when those of the first came.

    And a group.
    """
    await client.ask(
        CreateGroup(), bodies.encode(bodies.GroupConfig(group_name="readers"))
    )
    await client.ask(
        CreateTopic(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=2,
            write_queue_nums=2,
            perm=6,
        )
    )
    for _ in range(count):
        for queue_id in range(2):
            await client.ask(sending(topic, queue_id=queue_id), b"one")
        # Store times differ, so that a time means one message.
        await asyncio.sleep(0.002)
    pulled = await client.ask(pulling(topic, group="others"))
    return [one.store_ms for one in pulled.messages()]


async def commit(
    client: Remoting, offset: int, *, queue_id: int = 0, group: str = "readers"
) -> None:
    await client.ask(
        UpdateConsumerOffset(
            consumer_group=group,
            topic="orders",
            queue_id=queue_id,
            commit_offset=offset,
        )
    )


async def committed(
    client: Remoting, group: str = "readers", queue_id: int = 0
) -> int | None:
    header = QueryConsumerOffset(
        consumer_group=group,
        topic="orders",
        queue_id=queue_id,
        set_zero_if_not_found=False,
    )
    answer = await client.ask(header)
    return answer.read(Offset).offset if answer.code == 0 else None


def to(time_ms: int = -1, **changes: Any) -> ResetOffset:
    fields = {"group": "readers", "topic": "orders", "is_force": True, **changes}
    return ResetOffset(timestamp=time_ms, **fields)


def offsets_in(body: bytes) -> dict[int, int]:
    found = admin_bodies.read_object_map(body)
    assert {queue.topic for queue, _ in found} <= {"orders"}
    return {queue.queue_id: offset for queue, offset in found}


async def moved(client: Remoting, header: ResetOffset) -> dict[int, int]:
    answer = await client.ask(header)
    assert answer.code == 0, answer.remark
    return offsets_in(answer.body)


async def follow(client: Remoting, header: PullMessage) -> int | None:
    """Where a pull is sent on to; None where it is answered like any other."""
    answer = await client.ask(header)
    if answer.code != ResponseCode.PULL_OFFSET_MOVED:
        return None
    assert answer.remark == "OFFSET_RESET"
    return answer.read(PullReply).next_begin_offset


@looped
async def test_a_time_means_the_first_message_since_then_in_each_queue(tmp_path):
    async with running(tmp_path) as (_, client):
        times = await fill(client)
        await commit(client, 5)
        for time_ms, expected in (
            (0, 0),
            (times[0] - 1, 0),
            (times[2], 2),
            (times[-1] + 60_000, 5),
            (-1, 5),
        ):
            found = await moved(client, to(time_ms))
            assert found.keys() == {0, 1}
            assert found[0] == expected
            assert await committed(client) == expected


@looped
async def test_the_answer_is_written_as_brokers_write_it(tmp_path):
    async with running(tmp_path) as (_, client):
        await fill(client)
        await commit(client, 1)
        answer = await client.ask(to())
        assert answer.body == (
            b'{"offsetTable":{'
            b'{"brokerName":"broker-0","queueId":0,"topic":"orders"}:5,'
            b'{"brokerName":"broker-0","queueId":1,"topic":"orders"}:5}}'
        )


@looped
async def test_one_queue_is_moved_to_an_offset_or_a_time(tmp_path):
    async with running(tmp_path) as (_, client):
        await fill(client)
        await commit(client, 5)
        await commit(client, 4, queue_id=1)
        assert await moved(client, to(0, queue_id=0, offset=3)) == {0: 3}
        assert await moved(client, to(0, queue_id=0, offset=5)) == {0: 5}
        assert await moved(client, to(0, queue_id=0, offset=-1)) == {0: 0}
        assert await moved(client, to(queue_id=0)) == {0: 5}
        assert await committed(client, queue_id=1) == 4
        for wrong in (6, -2):
            answer = await client.ask(to(0, queue_id=0, offset=wrong))
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert answer.remark == (
                f"Target offset {wrong} not in consume queue range [0-5]"
            )
        answer = await client.ask(to(queue_id=2))
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert "queues 0 to 1" in answer.remark


@looped
async def test_without_force_nothing_goes_forward(tmp_path):
    async with running(tmp_path) as (_, client):
        times = await fill(client)
        await commit(client, 3)
        found = await moved(client, to(is_force=False))
        # The other queue has no offset yet.
        assert found == {0: 3, 1: 5}
        assert (await moved(client, to(times[1], is_force=False)))[0] == 1


@looped
async def test_unknown_topics_and_groups_are_refused(tmp_path):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(to(topic="none"))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        assert answer.remark == "Topic none does not exist"
        await fill(client)
        answer = await client.ask(to(group="nobody"))
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert answer.remark == "Group nobody does not exist"


@looped
async def test_commits_and_pulls_from_before_do_not_undo_a_reset(tmp_path):
    async with running(tmp_path) as (_, client):
        await fill(client)
        await commit(client, 4)
        await moved(client, to(0))
        await commit(client, 4)
        assert await committed(client) == 0
        assert await follow(client, pulling("orders", 4)) == 0
        assert await follow(client, pulling("orders", 5)) == 0
        await commit(client, 5)
        assert await committed(client) == 0
        answer = await client.ask(pulling("orders", 0))
        assert len(answer.messages()) == 5
        await commit(client, 5)
        assert await committed(client) == 5
        assert await follow(client, pulling("orders", 5)) is None


@looped
async def test_a_reset_holds_over_a_restart(tmp_path):
    async with running(tmp_path) as (_, client):
        await fill(client)
        await commit(client, 4)
        await moved(client, to(0))
    async with running(tmp_path) as (_, client):
        await commit(client, 4)
        assert await follow(client, pulling("orders", 4)) == 0


@looped
async def test_a_waiting_pull_hears_at_once(tmp_path):
    async with running(tmp_path) as (_, client):
        await fill(client)
        await beat(client, "c1", "readers")
        pull = client.send(waiting("orders", 5))
        await moved(client, to(0))
        assert (await pull).code == ResponseCode.PULL_NOT_FOUND
        assert await follow(client, waiting("orders", 5)) == 0
        assert {one.code for one in received(client)} == {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        }


def received(client: Remoting) -> list[Frame]:
    """What the node has asked so far."""
    return [client.requests.get_nowait() for _ in range(client.requests.qsize())]


async def told(
    client: Remoting, language: Language, version: int, **wanted: Any
) -> Frame | None:
    """A connected consumer of some language, and how it hears of a reset."""
    await client.ask(
        RequestCode.HEART_BEAT,
        heartbeat("c1", "readers", **wanted),
        fields={},
        language=language,
        version=version,
    )
    received(client)
    await moved(client, to(0))
    frames = received(client)
    assert len(frames) <= 1
    return frames[0] if frames else None


@looped
@pytest.mark.parametrize(
    ("language", "version"),
    [(Language.JAVA, JAVA_4_9_8), (Language.GO, 317)],
)
async def test_clients_that_take_long_to_follow_pulls_are_told(
    tmp_path, language, version
):
    async with running(tmp_path) as (app, first):
        await fill(first)
        async with connect(app.server.listeners[0]) as client:
            frame = await told(client, language, version)
            assert frame.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET
            assert frame.fields["group"] == "readers"
            assert frame.fields["topic"] == "orders"
            assert offsets_in(frame.body) == {0: 0, 1: 0}
            # It acts on that: what it still pulls leads it nowhere else.
            answer = await client.ask(pulling("orders", 3))
            assert answer.code == ResponseCode.PULL_NOT_FOUND


@looped
async def test_cpp_clients_are_told_by_a_list(tmp_path):
    async with running(tmp_path) as (app, first):
        await fill(first)
        async with connect(app.server.listeners[0]) as client:
            frame = await told(client, Language.CPP, 100)
            queues = msgspec.json.decode(frame.body)["offsetTable"]
            assert queues == [
                {
                    "brokerName": "broker-0",
                    "offset": 0,
                    "queueId": queue_id,
                    "topic": "orders",
                }
                for queue_id in range(2)
            ]


@looped
@pytest.mark.parametrize(
    ("language", "version", "wanted"),
    [
        (Language.JAVA, 513, {}),
        (Language.RUST, 100, {}),
        (Language.GO, 317, {"consume_type": "CONSUME_ACTIVELY"}),
    ],
)
async def test_other_clients_hear_by_their_next_pull(
    tmp_path, language, version, wanted
):
    async with running(tmp_path) as (app, first):
        await fill(first)
        async with connect(app.server.listeners[0]) as client:
            assert await told(client, language, version, **wanted) is None
            assert await follow(client, pulling("orders", 3)) == 0


@looped
async def test_broadcast_consumers_are_told_and_led_nowhere(tmp_path):
    async with running(tmp_path) as (app, first):
        await fill(first)
        async with connect(app.server.listeners[0]) as client:
            frame = await told(client, Language.JAVA, 513, message_model="BROADCASTING")
            assert frame.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET
            assert await follow(client, pulling("orders", 3)) is None


@looped
async def test_a_reset_ends_what_was_pulled(tmp_path):
    async with running(tmp_path) as (_, client):
        await fill(client)
        await client.ask(pulling("orders"))
        stats = GetConsumeStats(consumer_group="readers", topic="orders")
        assert b'"pullOffset":5' in (await client.ask(stats)).body
        await moved(client, to(0))
        assert b'"pullOffset":5' not in (await client.ask(stats)).body


@looped
async def test_what_keeps_a_reset_is_no_group_that_consumes(tmp_path):
    async with running(tmp_path) as (_, client):
        await fill(client)
        await moved(client, to(0))
        answer = await client.ask(QueryTopicConsumeByWho(topic="orders"))
        assert answer.body == b'{"groupList":["readers"]}'


@looped
async def test_a_deleted_group_leaves_no_reset_behind(tmp_path):
    async with running(tmp_path) as (app, client):
        await fill(client)
        await commit(client, 4)
        await client.ask(pulling("orders"))
        await moved(client, to(0))
        await client.ask(DeleteGroup(group_name="readers", clean_offset=True))
        assert not app.node.resets.pending
        assert "reset:readers" not in list(app.node.offsets.groups())


@looped
async def test_a_clone_is_where_its_source_is(tmp_path):
    async with running(tmp_path) as (app, client):
        await fill(client)
        no_more = len(app.node.topics.get("orders").partitions)
        app.node.offsets.commit("readers", "orders", no_more, 1)
        await commit(client, 2)
        await commit(client, 4, queue_id=1)
        await commit(client, 5, group="others")
        clone = CloneGroupOffset(src_group="readers", dest_group="others")
        assert (await client.ask(clone)).code == 0
        for group in ("readers", "others"):
            assert await committed(client, group) == 2
            assert await committed(client, group, 1) == 4
        assert no_more not in app.node.offsets.queues("others", "orders")
        # Its consumers follow.
        assert await follow(client, pulling("orders", 5, group="others")) == 2


@looped
async def test_only_what_the_source_consumes_is_cloned(tmp_path):
    async with running(tmp_path) as (_, client):
        await fill(client)
        await commit(client, 2)
        await beat(client, "c1", "readers", topic="other")
        clone = CloneGroupOffset(
            src_group="readers", dest_group="copies", topic="orders"
        )
        assert (await client.ask(clone)).code == 0
        assert await committed(client, "copies") is None
        offline = msgspec.structs.replace(clone, offline=True)
        assert (await client.ask(offline)).code == 0
        assert await committed(client, "copies") == 2
        wrong = msgspec.structs.replace(clone, dest_group="a b")
        answer = await client.ask(wrong)
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
