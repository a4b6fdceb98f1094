"""What a consumer says of itself when a broker asks: ConsumerRunningInfo.

Source: ConsumerRunningInfo.java, ProcessQueueInfo.java, ConsumeStatus.java and
ConsumerStatsManager.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ropeway.gateway.wire import bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ropeway.client.message import MessageQueue
    from ropeway.client.process_queue import ProcessQueue

_BUCKET_S = 10.0
_BUCKETS = 6
_MIB = 1 << 20


class _Bucket(Struct):
    """What was done of a topic in ten seconds."""

    number: int
    pulled: int = 0
    ok: int = 0
    failed: int = 0
    calls: int = 0
    took_s: float = 0.0


class Rates:
    """What a consumer did of each topic in the last minute.

    Args:
        clock_s: Seconds that only go forward.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._topics: defaultdict[str, deque[_Bucket]] = defaultdict(
            lambda: deque(maxlen=_BUCKETS)
        )

    def pulled(self, topic: str, count: int) -> None:
        """Count messages that a broker gave."""
        self._bucket(topic).pulled += count

    def handled(self, topic: str, count: int, took_s: float, *, failed: bool) -> None:
        """Count messages that one call of a handler took, and how long it took."""
        bucket = self._bucket(topic)
        bucket.calls += 1
        bucket.took_s += took_s
        if failed:
            bucket.failed += count
        else:
            bucket.ok += count

    def status(self, topic: str) -> dict[str, float]:
        """A ConsumeStatus: messages a second, and milliseconds of a call."""
        oldest = int(self._clock_s() / _BUCKET_S) - _BUCKETS
        buckets = [one for one in self._topics.get(topic, ()) if one.number > oldest]
        calls = sum(one.calls for one in buckets)
        minute_s = _BUCKET_S * _BUCKETS
        return {
            "pullRT": 0.0,
            "pullTPS": sum(one.pulled for one in buckets) / minute_s,
            "consumeRT": 1000 * sum(one.took_s for one in buckets) / max(calls, 1),
            "consumeOKTPS": sum(one.ok for one in buckets) / minute_s,
            "consumeFailedTPS": sum(one.failed for one in buckets) / minute_s,
            "consumeFailedMsgs": sum(one.failed for one in buckets),
        }

    def _bucket(self, topic: str) -> _Bucket:
        number = int(self._clock_s() / _BUCKET_S)
        buckets = self._topics[topic]
        if not buckets or buckets[-1].number != number:
            buckets.append(_Bucket(number))
        return buckets[-1]


def encode(
    data: bodies.ConsumerData,
    queues: Mapping[MessageQueue, Mapping[str, Any]],
    rates: Rates,
    *,
    stack: bool,
    properties: Mapping[str, str] | None = None,
) -> bytes:
    """Encode a ConsumerRunningInfo, as fastjson writes one.

    Args:
        data: What the group's heartbeats say.
        queues: Those that are read now, each with what `process_queue` gives.
        rates: What was done of them.
        stack: With the stacks of all threads.
        properties: More of them.
    """
    parts = {
        "properties": bodies.encode(
            {
                "PROP_CONSUME_TYPE": data.consume_type,
                "PROP_CLIENT_LANGUAGE": "PYTHON",
                **(properties or {}),
            }
        ),
        "subscriptionSet": bodies.encode(data.subscription_data_set),
        # A map whose keys are objects: JSON has none, and fastjson writes them so.
        "mqTable": b"{%b}"
        % b",".join(
            b"%b:%b" % (_key(queue), bodies.encode(dict(state)))
            for queue, state in sorted(queues.items())
        ),
        "statusTable": bodies.encode(
            {
                wanted.topic: rates.status(wanted.topic)
                for wanted in data.subscription_data_set or ()
            }
        ),
    }
    if stack:
        parts["jstack"] = msgspec.json.encode(stacks())
    return b"{%b}" % b",".join(
        b'"%b":%b' % (name.encode(), value) for name, value in parts.items()
    )


def _key(queue: MessageQueue) -> bytes:
    return bodies.encode(
        bodies.MessageQueue(
            topic=queue.topic,
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
        )
    )


def process_queue(messages: ProcessQueue, *, is_locked: bool) -> dict[str, Any]:
    """A ProcessQueueInfo."""
    return {
        "commitOffset": messages.safe_offset,
        "cachedMsgMinOffset": messages.safe_offset,
        "cachedMsgMaxOffset": max(messages.next_offset - 1, 0),
        "cachedMsgCount": len(messages),
        "cachedMsgSizeInMiB": messages.held_bytes // _MIB,
        "locked": is_locked,
        "droped": messages.dropped,
    }


def stacks() -> str:
    """The stacks of all threads, with their names."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"{names.get(ident, ident)}\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()  # noqa: SLF001 - the only way
    )
