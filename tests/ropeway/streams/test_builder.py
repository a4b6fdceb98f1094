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


def test_a_source_refuses_options_of_whole_jobs_and_headers_for_nobody() -> None:
    builder = StreamBuilder("job")
    with pytest.raises(TopologyError, match="'lines': option nameServer is given; all"):
        builder.source("lines", options={"nameServer": "127.0.0.1:9876"})
    with pytest.raises(TopologyError, match="with_header is given without a deseria"):
        builder.source("lines", with_header=True)
