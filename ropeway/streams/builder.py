"""Where a job begins: its sources, and its topology when all is said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from ropeway.streams.nodes import Graph, Operator, TopologyError
from ropeway.streams.rstream import RStream
from ropeway.streams.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

_OF_JOB = ("nameserver", "topic", "tier")
"""Options, in small letters, that a source has none of its own of."""
_JOB_ID = re.compile(r"[a-zA-Z0-9_-]+\Z").match


class StreamBuilder:
    """Takes down a job's streams.

    Args:
        job_id: The job's name: letters, digits, `_` and `-`.

    Raises:
        TopologyError: It is no such name.
    """

    def __init__(self, job_id: str) -> None:
        if not _JOB_ID(job_id):
            raise TopologyError(
                f"job_id is {job_id!r:.200}; allowed: letters, digits, _ and -"
            )
        self._graph = Graph(job_id)

    def source(
        self,
        topic: str,
        deserializer: Callable[..., tuple[Any, T]] | None = None,
        *,
        allowed_lateness_ms: int = 0,
        by_processing_time: bool = False,
        with_header: bool = False,
        options: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> RStream[T]:
        """The messages of a topic.

        Args:
            topic: Its name.
            deserializer: Makes key and value of a body; by default no key, and text.
            allowed_lateness_ms: How much earlier than the latest record one may be
                and still count for its window.
            by_processing_time: Whether records have the time of the batch that reads
                them, instead of that of their message's storing.
            with_header: Whether the deserializer is given the message's `Header`, too,
                behind the body.
            options: Of the data source, for this topic alone; they come before those
                of the job.
            name: The step's name.

        Raises:
            TopologyError: The lateness is below 0, there is nothing to give a header
                to, or the options say where the topic is.
        """
        given = dict(options or {})
        if refused := [name for name in given if name.lower() in _OF_JOB]:
            raise TopologyError(
                f"source {topic!r}: option {refused[0]} is given; allowed: for a whole "
                "job"
            )
        if with_header and deserializer is None:
            raise TopologyError(
                f"source {topic!r}: with_header is given without a deserializer; "
                "allowed: with one, of a body and its header"
            )
        if allowed_lateness_ms < 0:
            raise TopologyError(
                f"source {topic!r}: allowed_lateness_ms is {allowed_lateness_ms}; "
                "allowed: from 0"
            )
        node = self._graph.add(
            Operator.SOURCE,
            name=name,
            topic=topic,
            deserializer=deserializer,
            lateness_ms=allowed_lateness_ms,
            by_processing_time=by_processing_time,
            with_header=with_header,
            options=given,
        )
        return RStream(self._graph, node)

    def build(self) -> Topology:
        """The whole job.

        Raises:
            TopologyError: No stream ends in a sink, a foreach or a print.
        """
        return Topology(self._graph.job_id, tuple(self._graph.nodes))
