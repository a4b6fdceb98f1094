"""A mirrored job on Spark: what each query begins with, and what it tells of itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from ropeway.streams import restore
from ropeway.streams.carried import Tracking
from ropeway.streams.mirror import (
    StateMirror,
    check_options,
    mirrored,
    offset_topic,
    state_topic,
)
from ropeway.streams.restore import Beginning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ropeway.spark.options import Options
    from ropeway.streams.checkpoint import Checkpoint
    from ropeway.streams.nodes import Node
    from ropeway.streams.topology import Topology

_FILE = "mirror"
_STATE = "key binary, state binary"


class Mirroring:
    """The mirror of one job.

    Args:
        topology: What the job does.
        spark: Where it runs.
        checkpoint: Where it is noted how the job began.
        options: Of its sources and sinks.

    Raises:
        TopologyError: The job has a step that cannot be mirrored.
    """

    def __init__(
        self,
        topology: Topology,
        spark: SparkSession,
        checkpoint: Checkpoint,
        options: Options,
    ) -> None:
        check_options(options)
        self._topology = topology
        self._spark = spark
        self._checkpoint = checkpoint
        self._options = options
        self._steps = mirrored(topology)
        self._beginnings: dict[str, Beginning] = {}

    @property
    def topics(self) -> list[str]:
        """All that are wanted: one for offsets, and one for each step with state."""
        offsets = offset_topic(self._topology.job_id)
        return [offsets, *(state_topic(node) for node in self._steps)]

    def begin(self, *, is_new: bool) -> None:
        """Read where the job begins: in the mirror, or in the checkpoint.

        Args:
            is_new: Whether the checkpoint is.

        Raises:
            TopologyError: The job has gone on from another checkpoint.
            RemotingError: A server cannot be reached.
        """
        if is_new:
            self._beginnings, states = restore.read(self._topology, self._options)
            for step, rows in states.items():
                table = self._spark.createDataFrame(rows, _STATE)
                table.write.mode("overwrite").parquet(self._state_path(step))
            self._checkpoint.write(
                _FILE, msgspec.json.encode(self._beginnings).decode()
            )
            restore.announce(self._topology, self._options, self._beginnings)
        else:
            text = self._checkpoint.read(_FILE) or "{}"
            self._beginnings = msgspec.json.decode(text, type=dict[str, Beginning])
            restore.check(self._topology, self._options, self._beginnings)

    def starting(self, query: Node, source: Node) -> str:
        """The option that says where a source of a query begins."""
        return json.dumps(self._beginnings[query.name].offsets[source.name])

    def tracking(self, query: Node, source: Node) -> Tracking:
        """What tells how far a source of a query has come."""
        return Tracking(
            offset_topic(self._topology.job_id),
            query.name,
            source.name,
            source.arguments["topic"],
        )

    def producer_id(self, query: Node) -> str:
        """Whose the batches of a query are."""
        return self._beginnings[query.name].producer_id

    def mirror(self, node: Node) -> StateMirror:
        """What tells of the state of a step."""
        query = self._steps[node].name
        return StateMirror(
            node.name,
            state_topic(node),
            offset_topic(self._topology.job_id),
            query,
            self._beginnings[query].watermarks.get(node.name, 0),
        )

    def initial(self, node: Node) -> DataFrame | None:
        """What the state of a step begins with."""
        if not self._beginnings[self._steps[node].name].is_restored:
            return None
        return self._spark.read.schema(_STATE).parquet(self._state_path(node.name))

    def _state_path(self, step: str) -> str:
        return self._checkpoint.path(f"restored/{step}")
