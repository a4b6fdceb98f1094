"""Running a topology: the third build, which lays it out on Spark."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from ropeway.spark import register
from ropeway.spark.options import EARLIEST, read_options
from ropeway.spark.query_runner import Running
from ropeway.spark.query_start import start_query
from ropeway.spark.session import STATE
from ropeway.streams import headers, records
from ropeway.streams.carried import TRACKED
from ropeway.streams.checkpoint import Checkpoint
from ropeway.streams.dead_letters import DeadLetters, LateLetters
from ropeway.streams.mirror_job import Mirroring
from ropeway.streams.nodes import Node, Operator, TopologyError
from ropeway.streams.preflight import prepare
from ropeway.streams.sinks import WRITING
from ropeway.streams.spark_plan import MAPPING, Frame, Site, tick_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ropeway.streams.records import Incoming
    from ropeway.streams.topology import Topology

_TURN_S = 1
_TOPOLOGY = "topology"
_MESSAGES = "value binary, timestamp timestamp"


class RopewayStream:
    """A job that runs.

    Args:
        topology: What it does.
        spark: Where it runs.
        options: Of the data source, for sources and sinks alike; `nameServer` is
            `host:port`, several joined by semicolons. Topics are read from their first
            message, unless `startingOffsets` says otherwise.
        checkpoint: A folder, on any storage that Spark knows, which the job goes on
            from; one a job.
        dead_letters: The topic where messages go that a step fails at; without, such
            a step ends its query.
        is_mirrored: Whether state and offsets are in topics, too, which a job without a
            checkpoint goes on from.
    """

    def __init__(
        self,
        topology: Topology,
        spark: SparkSession,
        options: Mapping[str, str],
        *,
        checkpoint: str,
        dead_letters: str | None = None,
        is_mirrored: bool = False,
    ) -> None:
        self._topology = topology
        self._spark = spark
        self._checkpoint = Checkpoint(spark, checkpoint)
        self._options = {"startingOffsets": EARLIEST, **options}
        self._dead_letters = dead_letters
        self._is_mirrored = is_mirrored
        self._running: list[Running] = []

    def start(self, *, available_now: bool = False) -> None:
        """Start all queries of the job.

        Args:
            available_now: End when all is done that was there at the start.

        Raises:
            TopologyError: The checkpoint is of another topology, or a topic is not
                there, or the job cannot be run so.
            RemotingError: No name server answers.
        """
        register(self._spark)
        for name, value in STATE.items():
            self._spark.conf.set(name, value)
        options = read_options(self._options)
        if available_now:
            self._check_ends()
        is_new = self._check_checkpoint()
        mirroring = None
        if self._is_mirrored:
            mirroring = Mirroring(
                self._topology, self._spark, self._checkpoint, options
            )
        topics = () if mirroring is None else mirroring.topics
        prepare(self._topology, options, self._dead_letters, topics)
        if mirroring is not None:
            mirroring.begin(is_new=is_new)
        # All are laid out before any starts: what cannot be shows there.
        writers = self._lay_out(mirroring)
        if is_new:
            self._checkpoint.write(_TOPOLOGY, self._fingerprint)
        for node, writer in writers.items():
            self._start(node, writer, available_now=available_now)

    def _start(
        self, node: Node, writer: DataStreamWriter, *, available_now: bool
    ) -> None:
        writer = writer.queryName(node.name)
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif ticks := self._ticks_ms(node):
            # Without, Spark would run one batch behind the other.
            writer = writer.trigger(processingTime=f"{min(ticks)} milliseconds")
        checkpoint = self._checkpoint.path(node.name)
        running = Running(lambda: start_query(self._spark, writer, checkpoint))
        self._running.append(running)
        if available_now and node.operator is Operator.THROUGH:
            # Who reads the topic ends with what is there at its own start.
            running.wait()

    @property
    def queries(self) -> list[StreamingQuery]:
        """Spark's queries as they run now, one for each sink, foreach and print."""
        return [running.query for running in self._running]

    def wait(self, timeout_s: int | None = None) -> bool:
        """Wait until all queries have ended; returns whether they have.

        A query whose Python source took Spark too long to start is started again.

        Args:
            timeout_s: How long, about.

        Raises:
            StreamingQueryException: One has failed; says in which step and why.
        """
        deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while True:
            # All in turn, since one that fails must not wait for one that goes on.
            have_ended = [running.wait(_TURN_S) for running in self._running]
            if all(have_ended):
                return True
            if time.monotonic() >= deadline_s:
                return False

    def stop(self) -> None:
        """Stop all queries; a later start goes on from there."""
        for running in self._running:
            running.stop()
        self._running = []

    def _lay_out(self, mirroring: Mirroring | None) -> dict[Node, DataStreamWriter]:
        frames: dict[Node, Frame] = {}
        writers: dict[Node, DataStreamWriter] = {}
        for query in self._topology.queries:
            site = self._site(query, mirroring)
            sink_options = self._options
            if mirroring is not None:
                # What is read begins as the query does, and is told of by it.
                frames = {}
                producer_id = mirroring.producer_id(query)
                sink_options = {**sink_options, "producerId": producer_id}
            for node in self._topology.part(query):
                if node is query:
                    frame = frames[node.parents[0]]
                    writers[node] = WRITING[node.operator](node, frame, sink_options)
                elif node not in frames:
                    parents = [frames[one] for one in node.parents if one in frames]
                    frames[node] = MAPPING[node.operator](node, parents, site)
        return writers

    def _site(self, query: Node, mirroring: Mirroring | None) -> Site:
        options = read_options(self._options)
        dead = self._dead_letters and DeadLetters(options, self._dead_letters)

        def late(topic: str) -> LateLetters:
            return LateLetters(options, topic)

        def open_topic(node: Node, **more: str) -> Frame:
            table = self._stream(node, _MESSAGES, **more)
            return Frame(table, _incoming(node), dead=dead or None)

        if mirroring is None:
            return Site(open_topic, late)

        def open_tracked(node: Node, **_more: str) -> Frame:
            starting = mirroring.starting(query, node)
            table = self._stream(node, TRACKED, startingOffsets=starting)
            split = mirroring.tracking(query, node)
            return Frame(table, _incoming(node), dead=dead or None, split=split)

        return Site(open_tracked, late, mirroring.mirror, mirroring.initial)

    def _stream(self, node: Node, columns: str, **more: str) -> DataFrame:
        """What a node reads.

        Args:
            node: Which one.
            columns: What its records are made of.
            more: Options that come before all others.
        """
        options = {**self._options, **node.arguments.get("options", {}), **more}
        if "startingOffsets" in more:
            options.pop("startingTimestamp", None)
        if node.arguments.get("with_header"):
            columns = f"{columns}, {headers.COLUMNS}"
        return (
            self._spark.readStream.format("ropeway")
            .schema(columns)
            .options(**{**options, "topic": node.arguments["topic"]})
            .load()
        )

    def _ticks_ms(self, query: Node) -> list[int]:
        ticks = [tick_ms(node) for node in self._topology.part(query)]
        return [one for one in ticks if one is not None]

    @property
    def _fingerprint(self) -> str:
        told = " mirrored" if self._is_mirrored else ""
        return f"{self._topology.fingerprint}{told}"

    def _check_checkpoint(self) -> bool:
        """Refuse to go on from what another topology has left; tells if it is new."""
        found = self._checkpoint.read(_TOPOLOGY)
        if found not in (None, self._fingerprint):
            raise TopologyError(
                f"checkpoint {self._checkpoint.folder} is of another topology than job "
                f"{self._topology.job_id!r} has now; allowed: the same, or a new "
                "folder"
            )
        return found is None

    def _check_ends(self) -> None:
        for node in self._topology.nodes:
            if tick_ms(node) is not None:
                raise TopologyError(
                    f"step {node.name!r} fires by the clock, which has no end; allowed "
                    "with available_now: windows without early and idle fire"
                )


def _incoming(node: Node) -> Incoming:
    """How the messages are read that a node opens."""
    if node.arguments.get("with_header"):
        return headers.from_messages_with_headers
    return records.from_messages
