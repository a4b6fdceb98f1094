"""Messages with a delivery time, as the differential tests send them to both."""

import time

from tests.clients.harness import Session
from tests.system.scenarios import on_queue
from tests.system.transcript import Transcript

WAIT_MS = 9000
"""So that it is sent before its time on a machine that stands still, too."""
ROUNDED_MS = 1000
"""A RocketMQ broker takes times down to whole seconds, so its timer is early, too."""


def timers(session: Session, topic: str) -> object:
    """What a message looks like that comes at its time, and when."""
    session.produce(topic, on_queue(0, 1, "first"), mode="ordered")
    due_ms = int(time.time() * 1000) + WAIT_MS
    session.produce(
        topic,
        [
            {"body": "at", "deliver_ms": due_ms, "shard": 1, "tags": "T", "keys": "k"},
            {"body": "past", "deliver_ms": due_ms - 3_600_000, "shard": 2},
        ],
        mode="ordered",
    )
    consumer = session.start("consume", topic=topic, group=topic)
    consumer.wait_for_bodies(["first 0", "at", "past"])
    received = consumer.stop()
    (timed,) = [one for one in received if one["body"] == "at"]
    pairs = timed["properties"]
    times = ["TIMER_ENQUEUE_MS", "TIMER_OUT_MS", "TIMER_DEQUEUE_MS"]
    enqueued, due, dequeued = [int(pairs[name]) for name in times]
    came_in_order = [
        timed["born_ms"] - ROUNDED_MS <= enqueued <= due,
        due_ms - ROUNDED_MS <= due <= due_ms,
        due <= dequeued <= timed["stored_ms"],
    ]
    for one in received:
        for name in (*times, "TIMER_DELIVER_MS"):
            if name in one["properties"]:
                one["properties"][name] = "a time"
    return [came_in_order, Transcript().of_messages(received)]
