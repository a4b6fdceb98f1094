"""What is looked at before a job starts: its topics are there, or are made."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.client import Admin, BulkReader, ResponseError, TopicNotFoundError
from ropeway.streams.nodes import Operator, TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ropeway.spark.options import Options
    from ropeway.streams.topology import Topology

_GROUP = "ropeway-streams"
_QUEUES = 8
"""Of topics that are made, as RIP-58 has it."""
_PLAIN: Mapping[str, str] = {}
_COMPACTED = {"cleanup.policy": "COMPACTION"}


def prepare(
    topology: Topology,
    options: Options,
    dead_letters: str | None,
    mirror_topics: Sequence[str] = (),
) -> None:
    """Look for all topics of a job, and make those of its shuffles and its mirror.

    Args:
        topology: What the job does.
        options: How to reach the server.
        dead_letters: Where messages go that a step fails at.
        mirror_topics: Those of its mirror, which are compacted.

    Raises:
        TopologyError: One is not there; names the step.
        RemotingError: No name server answers.
    """
    asyncio.run(_prepare(topology, options, dead_letters, mirror_topics))


async def _prepare(
    topology: Topology,
    options: Options,
    dead_letters: str | None,
    mirror_topics: Sequence[str],
) -> None:
    sources = {
        f"step {node.name!r}"
        for node in topology.nodes
        if node.operator is Operator.SOURCE
    }
    made = dict.fromkeys(_shuffled(topology), _PLAIN)
    made |= dict.fromkeys(mirror_topics, _COMPACTED)
    config = options.client_config()
    async with BulkReader(options.name_server, _GROUP, config=config) as reader:
        for who, topic in _wanted(topology, dead_letters):
            try:
                queues = await reader.queues(topic)
                if who in sources:
                    # Who may only send knows of the queues, too.
                    await reader.begin_offset(queues[0])
            except TopicNotFoundError as error:
                raise TopologyError(
                    f"{who}: topic {topic!r} does not exist; allowed: topics that are "
                    "there"
                ) from error
            except ResponseError as error:
                raise TopologyError(
                    f"{who}: topic {topic!r}: {error}; allowed: topics that "
                    "this user may use so"
                ) from error
        missing = [topic for topic in made if not await _is_there(reader, topic)]
    if missing:
        async with Admin(options.name_server, config=config) as admin:
            for topic in missing:
                await admin.create_topic(topic, _QUEUES, attributes=made[topic])


def _wanted(topology: Topology, dead_letters: str | None) -> Iterator[tuple[str, str]]:
    for node in topology.nodes:
        if node.operator in (Operator.SOURCE, Operator.SINK):
            yield f"step {node.name!r}", node.arguments["topic"]
        if late_topic := node.arguments.get("late_topic"):
            yield f"step {node.name!r}", late_topic
    if dead_letters is not None:
        yield "dead_letters", dead_letters


def _shuffled(topology: Topology) -> list[str]:
    return [
        node.arguments["topic"]
        for node in topology.nodes
        if node.operator is Operator.THROUGH
    ]


async def _is_there(reader: BulkReader, topic: str) -> bool:
    try:
        await reader.queues(topic)
    except TopicNotFoundError:
        return False
    return True
