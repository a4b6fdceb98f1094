"""Queries that Spark gave up too early are started again; others are not."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException

from ropeway.spark.query_runner import Running

SLOW = "terminated with exception: Python worker failed to connect back. SQLSTATE"


class Query:
    """Ends as it is told, as Spark's queries do."""

    def __init__(self, ending: str | bool | None) -> None:
        self.ending = ending
        self.is_stopped = False

    def awaitTermination(self, _timeout: int | None) -> bool | None:  # noqa: N802
        if isinstance(self.ending, str):
            raise StreamingQueryException(self.ending)
        return self.ending

    def stop(self) -> None:
        self.is_stopped = True


def test_a_query_whose_python_was_too_slow_is_started_again() -> None:
    queries = [Query(SLOW), Query(SLOW), Query(None)]
    running = Running(iter(queries).__next__)
    assert running.query is queries[0]
    assert running.wait()
    assert running.query is queries[2]
    running.stop()
    assert queries[2].is_stopped


def test_one_that_goes_on_is_waited_for_no_longer_than_wanted() -> None:
    assert not Running(lambda: Query(False)).wait(1)


@pytest.mark.parametrize(("ending", "starts"), [(SLOW, 5), ("step 'a' failed", 1)])
def test_one_that_fails_for_good_says_so(ending: str, starts: int) -> None:
    queries: list[Query] = []

    def start() -> Query:
        queries.append(Query(ending))
        return queries[-1]

    with pytest.raises(StreamingQueryException, match=ending):
        Running(start).wait()
    assert len(queries) == starts
