"""Jobs begin with names and sources that can be."""

from __future__ import annotations

import pytest

from ropeway.streams import StreamBuilder, TopologyError


def test_a_job_has_a_name_that_topics_could_have() -> None:
    with pytest.raises(TopologyError, match="job_id is 'word count'; allowed: letters"):
        StreamBuilder("word count")


def test_lateness_is_not_below_zero() -> None:
    with pytest.raises(
        TopologyError, match="source 'lines': allowed_lateness_ms is -1"
    ):
        StreamBuilder("job").source("lines", allowed_lateness_ms=-1)


def test_a_job_that_ends_nowhere_is_refused() -> None:
    builder = StreamBuilder("job")
    builder.source("lines").map(str)
    with pytest.raises(TopologyError, match="job 'job' ends nowhere; allowed: sink"):
        builder.build()
