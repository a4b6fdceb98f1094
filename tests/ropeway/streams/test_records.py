"""Records on their way through Spark: keys of equal bytes, values of any kind."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ropeway.streams import records
from ropeway.streams.records import StepError


def test_equal_keys_have_equal_bytes() -> None:
    word = "ab"
    assert records.dump_key((word, word)) == records.dump_key(("ab", "".join("ab")))
    for key in ("a", b"a", 1, 1.5, True, ("a", (1, b"c"))):
        assert records.load(records.dump_key(key)) == key


@pytest.mark.parametrize("key", [None, ["a"], {"a": 1}, ("a", None)])
def test_a_key_of_another_kind_is_refused(key) -> None:
    with pytest.raises(TypeError, match=r"key is .*; allowed: text, bytes, numbers"):
        records.dump_key(key)


def test_values_of_a_class_of_the_job_itself_travel_too() -> None:
    class Order:
        number = 7

    assert records.load(records.dump_value(Order())).number == 7


def test_steps_run_one_behind_the_other() -> None:
    first = records.named("split", lambda k, v, t: [(k, one, t) for one in v.split()])
    second = records.named("key", lambda _, v, t: [(v[0], v, t + 1)])
    run = records.arrow_function(
        records.from_messages, [first, second], records.to_records
    )
    messages = pa.RecordBatch.from_arrays(
        [pa.array(["a b"]), pa.array([5000], records.TIME)],
        names=["value", "timestamp"],
    )
    (batch,) = run(iter([messages]))
    assert list(records.from_records(batch)) == [("a", "a", 6), ("b", "b", 6)]


def test_records_of_several_batches_are_written_together() -> None:
    messages = [
        pa.RecordBatch.from_arrays(
            [pa.array([text]), pa.array([5000], records.TIME)],
            names=["value", "timestamp"],
        )
        for text in "abcde"
    ]
    size = messages[0].nbytes

    def rows(at_once_bytes: int) -> list[int]:
        """How many records each batch has that comes out."""
        run = records.arrow_function(
            records.from_messages,
            [],
            records.to_records,
            at_once_bytes=at_once_bytes,
        )
        return [one.num_rows for one in run(iter(messages))]

    assert rows(0) == rows(size) == [1] * 5
    assert rows(size + 1) == [2, 2, 1]
    assert rows(100 * size) == [5]


def test_a_step_that_fails_says_its_name_and_at_what() -> None:
    step = records.named("divide", lambda k, v, t: [(k, 1 / v, t)])
    with pytest.raises(StepError, match="step 'divide' failed at 0: ZeroDivisionError"):
        step(None, 0, 0)


def test_times_are_whole_and_not_too_far_ahead_of_those_before() -> None:
    step = records.named("time", records.timed(lambda value: value, 1000))
    assert step("k", 6000, 5000) == [("k", 6000, 6000)]
    with pytest.raises(StepError, match=r"'time' failed at 6001: .* 1001 ms ahead; al"):
        step("k", 6001, 5000)
    for wrong in (1.5, None, "7", 10**18):
        with pytest.raises(StepError, match=r"time is .*; allowed: milliseconds since"):
            records.named("time", records.timed(lambda _, it=wrong: it, None))(
                "k", 1, 2
            )
    assert records.timed(lambda _: 10**12, None)("k", 1, 2) == [("k", 1, 10**12)]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"[null, 1, 2]", "key is None; allowed: text, bytes, numbers"),
        (b'{"key": 1}', "allowed: .key, value, time in ms"),
        (b"no JSON", "Expecting value"),
    ],
)
def test_what_others_send_to_a_shuffle_is_looked_at(
    body: bytes, complaint: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=complaint):
        records.from_json(body)
    assert records.from_json(b'[["a", 1], {"n": 2}, 3]') == (("a", 1), {"n": 2}, 3)
