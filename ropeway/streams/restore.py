"""Where a mirrored job begins: what its topics have is read once, before it runs.

What is read goes into the checkpoint, so that a first batch that comes again begins
from the same. Whose batches a query commits is told in the topic of offsets, too: the
job is that of the checkpoint which was made last, and no other one goes on.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from ropeway.client import (
    Admin,
    BatchProducer,
    BulkReader,
    Message,
    Producer,
    select_by_keys,
)
from ropeway.spark import offset_options
from ropeway.spark.options import EARLIEST, Offsets
from ropeway.streams.carried import told
from ropeway.streams.mirror import mirrored, offset_topic, state_topic
from ropeway.streams.nodes import Node, Operator, TopologyError
from ropeway.streams.records import dump_key, dump_value, hashable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.spark.options import Options
    from ropeway.streams.topology import Topology

    States = dict[str, list[tuple[bytes, bytes]]]
    """Step to rows of key and state."""

_GROUP = "ropeway-streams"
_NO_MORE = 2**62
"""The number of a batch that none comes after."""


class Beginning(Struct):
    """Where one query begins."""

    producer_id: str
    """Whose its batches are."""
    offsets: dict[str, Offsets] = field(default_factory=dict)
    """Of each step that reads a topic."""
    watermarks: dict[str, int] = field(default_factory=dict)
    """How far time had come for each step with windows, in ms."""
    is_restored: bool = False


def read(topology: Topology, options: Options) -> tuple[dict[str, Beginning], States]:
    """Where the queries of a job begin, and with what state.

    A query that has no offsets in the mirror begins where its options say.

    Raises:
        RemotingError: A server cannot be reached.
    """
    return asyncio.run(_read(topology, options))


async def _read(
    topology: Topology, options: Options
) -> tuple[dict[str, Beginning], States]:
    known = await _offsets(topology, options)
    for query in topology.queries:
        if before := known.get((query.name,)):
            await _end(options, before)
    known = await _offsets(topology, options)
    beginnings: dict[str, Beginning] = {}
    baseline: dict[str, str] = {}
    for query in topology.queries:
        beginning = Beginning(f"streams-{uuid.uuid4().hex}")
        beginnings[query.name] = beginning
        beginning.is_restored = (query.name,) in known
        for source in topology.sources(query):
            if beginning.is_restored:
                parts = (query.name, source.name, source.arguments["topic"])
                offsets = _of_source(known, parts)
            else:
                offsets = await _resolved(source, options)
                baseline |= _told_offsets(query, source, offsets)
            beginning.offsets[source.name] = offsets
        beginning.watermarks = {
            parts[1]: int(body)
            for parts, body in known.items()
            if len(parts) == len(("query", "step")) and parts[0] == query.name
        }
    await _send(topology, options, baseline)
    states = {
        node.name: await _state(node, options)
        for node, query in mirrored(topology).items()
        if beginnings[query.name].is_restored
    }
    return beginnings, states


def announce(
    topology: Topology, options: Options, beginnings: Mapping[str, Beginning]
) -> None:
    """Tell that queries go on from here."""
    names = {told(name): one.producer_id for name, one in beginnings.items()}
    asyncio.run(_send(topology, options, names))


def check(
    topology: Topology, options: Options, beginnings: Mapping[str, Beginning]
) -> None:
    """Refuse to go on where the job has gone on from another checkpoint.

    Raises:
        TopologyError: It has; names the query.
        RemotingError: A server cannot be reached.
    """
    known = asyncio.run(_offsets(topology, options))
    for name, one in beginnings.items():
        found = known.get((name,))
        if found != one.producer_id:
            raise TopologyError(
                f"query {name!r} has gone on from another checkpoint, as {found}; "
                f"allowed: that one, or a new folder (this one is of {one.producer_id})"
            )


async def _offsets(topology: Topology, options: Options) -> dict[tuple[Any, ...], str]:
    async with (
        Admin(options.name_server, config=options.client_config()) as admin,
        admin.table(offset_topic(topology.job_id)) as table,
    ):
        return {tuple(json.loads(key)): body.decode() for key, body in table.items()}


async def _end(options: Options, producer_id: str) -> None:
    """Have a producer's last batch delivered on all brokers, and let none come after.

    What a killed job has sent may still be on its way.
    """
    async with BatchProducer(
        options.name_server, producer_id, config=options.producer_config()
    ) as producer:
        number = await producer.last()
        if number is None:
            number = -1
        else:
            await producer.commit(number, ())
        is_ours = False
        while not is_ours:
            # A batch that is there already is delivered everywhere by this.
            number += 1
            is_ours = await producer.commit(number, ())
        await producer.commit(_NO_MORE, ())


def _of_source(known: Mapping[tuple[Any, ...], str], parts: tuple[Any, ...]) -> Offsets:
    topic = parts[-1]
    return {topic: {key[-1]: int(at) for key, at in known.items() if key[:-1] == parts}}


async def _resolved(source: Node, options: Options) -> Offsets:
    where = options.starting or EARLIEST
    time_ms = options.starting_ms
    if source.operator is Operator.THROUGH:
        where, time_ms = EARLIEST, None
    config = options.client_config()
    async with BulkReader(options.name_server, _GROUP, config=config) as reader:
        queues = await reader.queues(source.arguments["topic"])
        return offset_options.dump(
            await offset_options.resolve(reader, queues, where, time_ms)
        )


def _told_offsets(query: Node, source: Node, offsets: Offsets) -> dict[str, str]:
    return {
        told(query.name, source.name, topic, queue): str(offset)
        for topic, queues in offsets.items()
        for queue, offset in queues.items()
    }


async def _send(
    topology: Topology, options: Options, bodies: Mapping[str, str]
) -> None:
    topic = offset_topic(topology.job_id)
    async with Producer(
        options.name_server, _GROUP, config=options.producer_config()
    ) as producer:
        for key, body in bodies.items():
            message = Message(topic, body.encode(), keys=(key,))
            await producer.send(message, selector=select_by_keys)


async def _state(node: Node, options: Options) -> list[tuple[bytes, bytes]]:
    async with (
        Admin(options.name_server, config=options.client_config()) as admin,
        admin.table(state_topic(node)) as table,
    ):
        found = {
            hashable(json.loads(key)): json.loads(body) for key, body in table.items()
        }
    if node.operator is Operator.WINDOW_AGGREGATE:
        windows: dict[Any, list[Any]] = {}
        for (key, begin_ms, end_ms), body in found.items():
            window = (begin_ms, end_ms, body["state"], body["has_news"])
            windows.setdefault(key, []).append(window)
        return [(dump_key(key), dump_value(one)) for key, one in windows.items()]
    return [(dump_key(key), dump_value(body["state"])) for key, body in found.items()]
