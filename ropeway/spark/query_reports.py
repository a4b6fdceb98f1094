"""Running queries as a consumer: brokers, commands and the page see what they do."""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ropeway.client import RemotingError
from ropeway.client.query_consumer import QueryConsumer
from ropeway.client.running_queries import Batch, Query
from ropeway.client.sync import LoopThread
from ropeway.spark.options import read_options
from ropeway.spark.progress import ends, lag, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ropeway.client import MessageQueue
    from ropeway.spark.options import Options

_log = logging.getLogger(__name__)

_LOOK_S = 2.0
_BATCHES = 60
"""Of each query are told: a minute or more, and some kilobytes."""


@contextmanager
def reported(spark: SparkSession, options: Mapping[str, str]) -> Iterator[None]:
    """Have the queries of a session be seen as a consumer, while a block runs.

    It is a client of the option `group`, whose offsets the queries store; without that
    option there is none.

    Args:
        spark: The session; all of its queries are told of.
        options: Of the data source.
    """
    given = read_options(options)
    if given.group is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(
        target=_report, args=[spark, given, over], name="query-reports", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _report(spark: SparkSession, options: Options, over: threading.Event) -> None:
    assert options.group is not None
    loop = LoopThread("query-reports")
    history = History()
    try:
        consumer = QueryConsumer(
            options.name_server, options.group, config=options.client_config()
        )
        loop.call(consumer.start())
        try:
            while not over.wait(_LOOK_S):
                try:
                    history.look(spark.streams.active)
                    loop.call(consumer.tell(history.queries, history.offsets))
                except RemotingError as error:
                    _log.info("queries are not told of: %s", error)
                except Exception as error:  # noqa: BLE001 - Spark's, of what ends just now
                    _log.info("queries do not say what they do: %s", error)
        finally:
            loop.call(consumer.close())
    finally:
        loop.stop()


class History:
    """The last batches of queries."""

    def __init__(self) -> None:
        self._batches: dict[str, deque[Batch]] = {}
        self._seen: dict[str, str] = {}
        self.offsets: dict[MessageQueue, int] = {}
        """Where their last batches end."""

    def look(self, queries: Iterable[StreamingQuery]) -> None:
        """Take in what is new; of queries that have ended nothing stays."""
        running: set[str] = set()
        for query in queries:
            name = query.name or str(query.id)
            running.add(name)
            last = query.lastProgress
            if last is not None and last["timestamp"] > self._seen.get(name, ""):
                self.add(name, query.recentProgress)
        for name in self._batches.keys() - running:
            del self._batches[name]

    def add(self, name: str, progress: Iterable[Mapping[str, Any]]) -> None:
        """Take in what is new of one query.

        Args:
            name: The query's.
            progress: Its reports, in order.
        """
        batches = self._batches.setdefault(name, deque(maxlen=_BATCHES))
        for one in progress:
            # An idle query reports the number of its next batch, which comes again.
            if one["timestamp"] > self._seen.get(name, ""):
                self._seen[name] = one["timestamp"]
                batches.append(_batch(one))
                self.offsets |= ends(one)

    @property
    def queries(self) -> list[Query]:
        """All that run."""
        return [Query(name, [*one]) for name, one in sorted(self._batches.items())]


def _batch(progress: Mapping[str, Any]) -> Batch:
    began = datetime.fromisoformat(progress["timestamp"])
    took_ms: int = progress["durationMs"].get("triggerExecution", 0)
    return Batch(
        ended_ms=int(began.timestamp() * 1000) + took_ms,
        number=progress["batchId"],
        rows_in=progress["numInputRows"],
        rows_out=written(progress),
        took_ms=took_ms,
        lag=lag(progress),
    )
