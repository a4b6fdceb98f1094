"""What a mirror says of a job, and which jobs can have one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.spark.options import read_options
from ropeway.streams import StreamBuilder, TopologyError, Tumbling
from ropeway.streams.carried import row_key
from ropeway.streams.mirror import StateMirror, check_options, mirrored, state_topic
from ropeway.streams.records import StepError

if TYPE_CHECKING:
    from collections.abc import Callable

MIRROR = StateMirror("step", "states", "offsets", "sink")


def test_topics_are_named_as_in_the_rip() -> None:
    builder = StreamBuilder("job")
    keyed = builder.source("a").key_by(str)
    keyed.count().sink("b")
    keyed.through("mine").sum(len).sink("c")
    names = {node.name: state_topic(node) for node in mirrored(builder.build())}
    assert names == {
        "job-ROPEWAY-COUNT-1": "job-ROPEWAY-COUNT-1-shuffleTopic-stateTopic",
        "job-ROPEWAY-SUM-1": "mine-stateTopic",
    }


def test_a_state_is_json_by_its_key() -> None:
    key, body = MIRROR.message("word", {"value": 2, "state": {"count": 2}})
    assert key == row_key("states", '"word"')
    assert json.loads(body) == {"value": 2, "state": {"count": 2}}
    assert MIRROR.message((("a", 1), 0, 10), None) == (
        row_key("states", '[["a", 1], 0, 10]'),
        b"",
    )
    assert MIRROR.watermark(5) == (row_key("offsets", '["sink", "step"]'), b"5")


@pytest.mark.parametrize(
    "state", [{"times": (1, 2)}, {1: "a"}, {1, 2}, b"bytes", float("nan"), object()]
)
def test_what_json_would_change_is_refused(state: Any) -> None:
    with pytest.raises(StepError, match=r"step 'step' has state .*; allowed in a mi"):
        MIRROR.message("word", {"state": state})
    with pytest.raises(StepError, match="step 'step' has key b'word'"):
        MIRROR.message(b"word", None)


def printed(builder: StreamBuilder) -> None:
    builder.source("a").key_by(str).count().print()


def joined_in_windows(builder: StreamBuilder) -> None:
    joined = builder.source("a").join(builder.source("b"))
    joined.where(str).equal_to(str).window(Tumbling(5)).apply(max).sink("c")


def twice(builder: StreamBuilder) -> None:
    counted = builder.source("a").key_by(str).count()
    counted.sink("b")
    counted.sink("c")


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (printed, "step 'job-ROPEWAY-PRINT-1' is a print; allowed with a mirror: sink"),
        (joined_in_windows, "step 'job-ROPEWAY-INNER-JOIN-1' is a join in windows; al"),
        (twice, "step 'job-ROPEWAY-COUNT-1' leads to 'job-ROPEWAY-SINK-1' and to 'job"),
    ],
)
def test_jobs_that_cannot_be_mirrored_are_refused(
    build: Callable[[StreamBuilder], None], complaint: str
) -> None:
    builder = StreamBuilder("job")
    build(builder)
    with pytest.raises(TopologyError, match=complaint):
        mirrored(builder.build())


def test_results_and_state_are_sent_as_one() -> None:
    given = {"nameServer": "a:1", "guarantee": "at-least-once"}
    with pytest.raises(TopologyError, match="guarantee is 'at-least-once'; allowed wi"):
        check_options(read_options(given))
