"""Where a mirrored job begins, read from its topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.client import BatchProducer, Message, Producer, select_by_keys
from ropeway.spark.options import Options, read_options
from ropeway.streams import StreamBuilder, Topology, TopologyError, Tumbling, restore
from ropeway.streams.carried import told
from ropeway.streams.mirror import offset_topic, state_topic
from ropeway.streams.preflight import prepare
from ropeway.streams.records import load
from tests.ropeway.client.scenario import PATIENT_PRODUCER

if TYPE_CHECKING:
    from tests.spark_session import Topics


def windows(source: str, sink: str) -> Topology:
    builder = StreamBuilder(f"job-{source}")
    keyed = builder.source(source, name="orders").key_by(str).through()
    keyed.window(Tumbling(10)).count(name=f"count-{source}").sink(sink, name="sink")
    return builder.build()


def prepared(topics: Topics) -> tuple[Topology, Options]:
    """A job whose topics are there, with three messages in its source."""
    source, sink = topics.make(2), topics.make(1)
    topology = windows(source, sink)
    given = {"nameServer": topics.name_server, "startingOffsets": "latest"}
    options = read_options(given)
    mirror_topics = [state_topic(node) for node in topology.nodes[-2:-1]]
    prepare(topology, options, None, [offset_topic(topology.job_id), *mirror_topics])
    topics.send(source, ["a", "b", "c"], queue=1)
    return topology, options


def send(topics: Topics, topic: str, bodies: dict[str, str]) -> None:
    """Send what a sink would."""

    async def send() -> None:
        async with Producer(
            topics.name_server, "tests", config=PATIENT_PRODUCER
        ) as producer:
            for key, body in bodies.items():
                message = Message(topic, body.encode(), keys=(key,))
                await producer.send(message, selector=select_by_keys)

    asyncio.run(send())


def test_a_new_job_begins_where_its_options_say_and_goes_on_from_there(
    ropeway_topics: Topics,
) -> None:
    topology, options = prepared(ropeway_topics)
    source = topology.nodes[0].arguments["topic"]
    through, sink = topology.queries
    first, states = restore.read(topology, options)
    assert states == {}
    begins = first[through.name]
    assert sorted(begins.offsets["orders"][source].values()) == [0, 3]
    assert not begins.is_restored
    # What is shuffled belongs to the job, and is read from its first message.
    (shuffled,) = first["sink"].offsets.values()
    (shuffled_topic,) = shuffled
    assert set(shuffled[shuffled_topic].values()) == {0}

    restore.announce(topology, options, first)
    restore.check(topology, options, first)
    ropeway_topics.send(source, ["d"], queue=1)
    (queue,) = [name for name, at in begins.offsets["orders"][source].items() if at]
    send(
        ropeway_topics,
        offset_topic(topology.job_id),
        {
            told(through.name, "orders", source, queue): "4",
            told("sink", sink.parents[0].name): "20",
        },
    )
    send(
        ropeway_topics,
        state_topic(sink.parents[0]),
        {
            '[["k", 1], 20, 30]': '{"state": {"count": 3}, "has_news": true}',
            '[["k", 1], 30, 40]': '{"state": {"count": 1}, "has_news": false}',
        },
    )
    second, states = restore.read(topology, options)
    assert sorted(second[through.name].offsets["orders"][source].values()) == [0, 4]
    assert second["sink"].watermarks == {sink.parents[0].name: 20}
    ((key, state),) = states[sink.parents[0].name]
    assert load(key) == ("k", 1)
    assert sorted(load(state)) == [
        (20, 30, {"count": 3}, True),
        (30, 40, {"count": 1}, False),
    ]
    restore.announce(topology, options, second)
    with pytest.raises(
        TopologyError, match="has gone on from another checkpoint, as s"
    ):
        restore.check(topology, options, first)


def test_a_batch_that_was_on_its_way_is_delivered_before_it_is_read(
    ropeway_topics: Topics,
) -> None:
    topology, options = prepared(ropeway_topics)
    first, _ = restore.read(topology, options)
    restore.announce(topology, options, first)
    offsets = offset_topic(topology.job_id)
    step = topology.queries[1].parents[0].name

    async def commit(number: int = 0, body: bytes = b"7") -> bool:
        async with BatchProducer(
            ropeway_topics.name_server,
            first["sink"].producer_id,
            config=PATIENT_PRODUCER,
        ) as producer:
            queue = (await producer.queues(offsets))[0]
            message = Message(offsets, body, keys=(told("sink", step),))
            staged = await producer.stage(queue, [message])
            return await producer.commit(number, [staged])

    assert asyncio.run(commit())
    second, _ = restore.read(topology, options)
    assert second["sink"].watermarks == {step: 7}
    assert second["sink"].producer_id != first["sink"].producer_id
    # What the one before has on its way comes too late.
    for number in (1, 2):
        assert not asyncio.run(commit(number, b"8"))
    third, _ = restore.read(topology, options)
    assert third["sink"].watermarks == {step: 7}
