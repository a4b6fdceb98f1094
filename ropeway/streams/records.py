"""Records between operators: key, value and time; in Spark three columns of bytes.

Keys are pickled without Pickle's memory of repeated objects, so that equal keys have
equal bytes and Spark can group by them.
"""

from __future__ import annotations

import io
import json
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Record = tuple[Any, Any, int]
    """Key, value, and time in milliseconds since 1970."""
    Step = Callable[[Any, Any, int], Iterable[Record]]
    Incoming = Callable[[pa.RecordBatch], Iterator[Record]]
    Outgoing = Callable[[list[Record]], pa.RecordBatch]
    Dead = Callable[[list[tuple[Record, "StepError"]]], object]
    """Takes records that a step failed at, as the first step had them, and why."""
    Split = Callable[[pa.RecordBatch], tuple[pa.RecordBatch, pa.RecordBatch]]
    Carry = Callable[[pa.RecordBatch], pa.RecordBatch]

_KEYS = (str, bytes, int, float)
MICROSECONDS = 1000
_PARTS = 3
"""Of a record."""
_FARTHEST_MS = 253_402_300_799_999
"""The end of the year 9999, and of what Python calls a time."""
TIME = pa.timestamp("us", tz="UTC")

RECORDS = "key binary, value binary, ts timestamp"
"""The columns of records."""


class StepError(Exception):
    """A user's function failed, or gave what it may not; names the step."""


def dump_key(key: Any) -> bytes:
    """The bytes of a key.

    Raises:
        TypeError: It is not of a kind that keys may be of.
    """
    check_key(key)
    target = io.BytesIO()
    pickler = pickle.Pickler(target, protocol=5)
    pickler.fast = True
    pickler.dump(key)
    return target.getvalue()


def check_key(key: Any) -> None:
    """Refuse a key that is not of a kind that keys may be of.

    Raises:
        TypeError: Says what it is.
    """
    if isinstance(key, tuple):
        for part in key:
            check_key(part)
    elif not isinstance(key, _KEYS):
        raise TypeError(
            f"key is {key!r:.200}; allowed: text, bytes, numbers, tuples of those"
        )


def dump_value(value: Any) -> bytes:
    """The bytes of any value."""
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        # Of a class that only the job's own file has.
        return cloudpickle.dumps(value)  # type: ignore[no-any-return, no-untyped-call]


load = pickle.loads
"""A key or a value from its bytes, which only a job's own steps have made."""


def named(name: str, step: Step) -> Step:
    """A step that says its name when it fails."""

    def run(key: Any, value: Any, time_ms: int) -> Iterable[Record]:
        try:
            made = step(key, value, time_ms)
            return made if type(made) is list else list(made)
        except Exception as error:
            raise failed_at(name, value, error) from error

    return run


def failed_at(name: str, value: Any, error: Exception) -> StepError:
    """What is said of a step that failed."""
    return StepError(
        f"step {name!r} failed at {value!r:.200}: {type(error).__name__}: {error}"
    )


def timed(select: Callable[[Any], Any], max_ahead_ms: int | None) -> Step:
    """A step that gives records other times, which Spark can have.

    Args:
        select: Gives milliseconds since 1970.
        max_ahead_ms: How far they may be ahead of those before; None for any.
    """

    def step(key: Any, value: Any, time_ms: int) -> list[Record]:
        chosen_ms = select(value)
        if not isinstance(chosen_ms, int) or abs(chosen_ms) > _FARTHEST_MS:
            raise ValueError(
                f"time is {chosen_ms!r:.200}; allowed: milliseconds since 1970, whole, "
                f"up to {_FARTHEST_MS}"
            )
        if max_ahead_ms is not None and chosen_ms - time_ms > max_ahead_ms:
            raise ValueError(
                f"time {chosen_ms} is {chosen_ms - time_ms} ms ahead; allowed: "
                f"max_ahead_ms, {max_ahead_ms}"
            )
        return [(key, value, chosen_ms)]

    return step


def arrow_function(
    incoming: Incoming,
    steps: Iterable[Step],
    outgoing: Outgoing,
    dead: Dead | None = None,
    aside: tuple[Split, Carry] | None = None,
    *,
    at_once_bytes: int = 0,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow` that runs steps one behind the other.

    Args:
        incoming: Reads records.
        steps: What is done with each.
        outgoing: Writes records.
        dead: Takes what a step failed at; without, the function fails.
        aside: Tells what travels with the records, and writes that.
        at_once_bytes: Records are written together that come of so many bytes read.
    """
    all_steps = tuple(steps)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[Record] = []
        held_bytes = 0
        for given in batches:
            batch = given
            if aside is not None:
                split, carry = aside
                batch, carried = split(given)
                if carried.num_rows:
                    yield carry(carried)
            held += _made(list(incoming(batch)), all_steps, dead)
            held_bytes += batch.nbytes
            if held_bytes >= at_once_bytes:
                yield outgoing(held)
                held, held_bytes = [], 0
        if held:
            yield outgoing(held)

    return run


def _through(records: list[Record], steps: Sequence[Step]) -> list[Record]:
    for step in steps:
        records = [made for one in records for made in step(*one)]
    return records


def _made(
    records: list[Record], steps: Sequence[Step], dead: Dead | None
) -> list[Record]:
    """What steps make of records; where some fail, of the others."""
    try:
        return _through(records, steps)
    except StepError:
        if dead is None:
            raise
    made: list[Record] = []
    failed: list[tuple[Record, StepError]] = []
    for one in records:
        try:
            made += _through([one], steps)
        except StepError as error:
            failed.append((one, error))
    dead(failed)
    return made


def from_messages(batch: pa.RecordBatch) -> Iterator[Record]:
    """Messages as records: no key yet, and the body as value."""
    for body, time_ms in zip(
        batch.column("value").to_pylist(),
        _times_ms(batch, "timestamp"),
        strict=True,
    ):
        yield None, body, time_ms


def from_records(batch: pa.RecordBatch) -> Iterator[Record]:
    """Records as an earlier operator left them."""
    for key, value, time_ms in zip(
        batch.column("key").to_pylist(),
        batch.column("value").to_pylist(),
        _times_ms(batch, "ts"),
        strict=True,
    ):
        yield None if key is None else load(key), load(value), time_ms


def _times_ms(batch: pa.RecordBatch, name: str) -> list[int]:
    micros = batch.column(name).cast(pa.int64()).to_pylist()
    return [one // MICROSECONDS for one in micros]


def to_records(records: list[Record]) -> pa.RecordBatch:
    """Records for a later operator."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array(
                [None if key is None else dump_key(key) for key, _, _ in records],
                pa.binary(),
            ),
            pa.array([dump_value(value) for _, value, _ in records], pa.binary()),
            pa.array([time_ms * MICROSECONDS for _, _, time_ms in records], TIME),
        ],
        names=["key", "value", "ts"],
    )


def to_json(key: Any, value: Any, time_ms: int) -> bytes:
    """A record for a topic that others read.

    Raises:
        TypeError: JSON has no such key or value.
    """
    return json.dumps([key, value, time_ms]).encode()


def from_json(body: bytes) -> Record:
    """The record again; lists in keys are tuples.

    Raises:
        ValueError: It is no record.
        TypeError: It has no key, or one that is not of a kind that keys may be of.
    """
    found = json.loads(body)
    if not isinstance(found, list) or len(found) != _PARTS:
        raise ValueError(f"{body!r:.200} came; allowed: [key, value, time in ms]")
    key, value, time_ms = found
    key = hashable(key)
    check_key(key)
    return key, value, time_ms


def hashable(key: Any) -> Any:
    """A key as JSON has it, with tuples instead of lists."""
    return tuple(map(hashable, key)) if isinstance(key, list) else key
