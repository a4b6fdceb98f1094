"""Streams: RocketMQ's own DSL (RIP-58), run by Spark's Structured Streaming.

A `StreamBuilder` takes down what is wanted as *logical nodes*; `build` makes them a
`Topology`, which can be looked at; `RopewayStream` lays that out on Spark and runs it.
`mapping` says for each operator what it becomes there.
"""

from ropeway.streams.aggregates import Accumulator
from ropeway.streams.builder import StreamBuilder
from ropeway.streams.headers import Header
from ropeway.streams.job import RopewayStream
from ropeway.streams.nodes import TopologyError
from ropeway.streams.records import StepError
from ropeway.streams.rstream import GroupedStream, JoinedStream, RStream, WindowStream
from ropeway.streams.topology import Topology
from ropeway.streams.windows import Session, Sliding, Tumbling, Windowed

__all__ = [
    "Accumulator",
    "GroupedStream",
    "Header",
    "JoinedStream",
    "RStream",
    "RopewayStream",
    "Session",
    "Sliding",
    "StepError",
    "StreamBuilder",
    "Topology",
    "TopologyError",
    "Tumbling",
    "WindowStream",
    "Windowed",
]
