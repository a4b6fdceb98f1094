"""What the differential tests do on both brokers, and what they note of it."""

import base64
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.clients.harness import AgentError, Event, Session, numbered
from tests.system.transcript import Transcript

Scenario = Callable[[Session, str], object]


def on_queue(shard: int, count: int, prefix: str, **more: Any) -> list[Event]:
    """Messages for one queue, if they are sent in ordered mode."""
    return numbered(count, prefix, shard=shard, **more)


def code_of(session: Session, do: str, **arguments: Any) -> object:
    """How a command fails: kind and code of the error, or what it answered."""
    try:
        call = session.call(do, **arguments).finish()
    except AgentError as error:
        return error.code
    return [one["code"] for one in call.events("failed")] or "done"


def sends(session: Session, topic: str) -> object:
    """Results of each way of sending."""
    seen = Transcript()
    everything = on_queue(0, 3, "a") + on_queue(1, 2, "b", tags="T", keys="k1 k2")
    return [
        seen.of(session.produce(topic, everything, mode="ordered")),
        seen.of(session.produce(topic, on_queue(2, 3, "c"), mode="ordered")),
        # Which queue takes a batch is the client's choice, at random.
        [
            {**one, "queue": None, "offset": None}
            for one in seen.of(session.produce(topic, numbered(3, "d"), mode="batch"))
        ],
    ]


def pushes(session: Session, topic: str) -> object:
    """Everything a push consumer sees of its messages."""
    more = {"tags": "T", "keys": "k1 k2", "properties": {"user": "value"}}
    session.produce(topic, on_queue(0, 3, "a", **more), mode="ordered")
    session.produce(topic, on_queue(3, 1, "long " * 2000), mode="ordered")
    consumer = session.start("consume", topic=topic, group=topic)
    consumer.wait_for(4)
    return Transcript().of_messages(consumer.stop())


def pulls(session: Session, topic: str) -> object:
    """Pulls inside the queue, at its end and beyond it, with and without a filter."""
    session.produce(topic, on_queue(0, 6, "a", tags="A"), mode="ordered")
    session.produce(topic, on_queue(0, 6, "b", tags="B"), mode="ordered")
    wait_for_offsets(session, topic, 12)
    seen = Transcript()
    answers = []
    for tags in ("*", "B", "C", "A || B"):
        for offset in (0, 5, 11, 12, 13, 1000):
            call = session.call(
                "pull",
                topic=topic,
                group=topic,
                queue=0,
                offset=offset,
                tags=tags,
            ).finish()
            answers.append(
                [seen.of(call.events("received")), seen.of(call.events("pulled"))]
            )
    return answers


def retries(session: Session, topic: str) -> object:
    """Each attempt at a message that is refused, and its dead letter."""
    more = {"tags": "T", "keys": "k"}
    group = f"{topic}-group"
    session.introduce(topic, group)
    sent = session.produce(topic, on_queue(0, 1, "a", **more), mode="ordered")
    consumer = session.start(
        "consume",
        topic=topic,
        group=group,
        fail=99,
        delay_level=1,
        max_reconsume_times=2,
    )
    attempts = consumer.wait_for(3)
    offsets = wait_for_offsets(session, f"%DLQ%{group}")
    letters = session.ask(
        "pull", "received", topic=f"%DLQ%{group}", group=f"{group}-dead"
    )
    consumer.stop()
    seen = Transcript()
    retry_offsets = session.ask("offsets", "offsets", topic=f"%RETRY%{group}")
    return [
        seen.of(sent),
        seen.of(attempts),
        seen.of(letters),
        seen.of(offsets),
        seen.of(retry_offsets),
    ]


def transactions(session: Session, topic: str) -> dict[str, list[Event]]:
    """What a producer is told and asked, and what a consumer gets of it.

    A real broker writes down what has ended after 3 s, and asks about it till then: a
    message is stored again with each answer. So `repeats` is apart, and offsets are
    those that messages have without repeats before them.
    """
    session.call("create_topic", topic=topic, queues=1).finish()
    more = {"tags": "T", "keys": "k1 k2"}
    consumer = session.start("consume", topic=topic, group=topic)
    producer = session.start(
        "transact",
        topic=topic,
        group=f"{topic}-producers",
        messages=[
            {"body": "committed", **more, "properties": {"local": "commit"}},
            {"body": "rolled back", **more, "properties": {"local": "rollback"}},
            {"body": "asked", **more, "properties": {"check": "commit"}},
        ],
    )
    consumer.wait_for_bodies(["committed", "asked"])
    producer.stop()
    seen = Transcript()
    # Half messages of all tests are in one queue, and how often a producer was asked
    # before its first heartbeat is chance.
    sent = [{**one, "offset": None} for one in producer.events("sent")]
    asked = next(one for one in producer.events("checked") if one["body"] == "asked")
    asked["offset"] = None
    received = consumer.stop()
    for one in [asked, *received]:
        chance = ("TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET")
        for name in chance:
            one["properties"].pop(name, None)
    received, repeats = without_repeats(received)
    return {
        "sent": seen.of(sent),
        "checked": seen.of([asked]),
        "received": seen.of(received),
        "repeats": seen.of(repeats),
    }


def without_repeats(received: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """Messages of one queue, and those that are there again."""
    kept: dict[str, Event] = {}
    repeats = []
    for one in sorted(received, key=lambda one: one["offset"]):
        if one["msg_id"] in kept:
            repeats.append(one)
        else:
            kept[one["msg_id"]] = {**one, "offset": one["offset"] - len(repeats)}
    return list(kept.values()), repeats


def default_retry_level(session: Session, topic: str) -> object:
    """The delay of a first retry where the client does not choose it: 10 s."""
    session.introduce(topic, topic)
    session.produce(topic, on_queue(0, 1, "a"), mode="ordered")
    consumer = session.start("consume", topic=topic, group=topic, fail=1)
    first, again = consumer.wait_for(2)
    consumer.stop()
    waited_seconds = (again["at_ms"] - first["at_ms"]) / 1000
    return [waited_seconds >= 10, Transcript().of([first, again])]


def wait_for_offsets(session: Session, topic: str, count: int = 1) -> list[Event]:
    """The offsets of a topic, as soon as so many messages can be pulled from it.

    A real broker gives messages to consumers a moment after it has them.
    """
    give_up = time.monotonic() + 120
    while time.monotonic() < give_up:
        try:
            offsets = session.ask("offsets", "offsets", topic=topic)
        except AgentError:
            offsets = []
        if sum(one["max"] for one in offsets) >= count:
            return offsets
        time.sleep(0.1)
    raise TimeoutError(topic)


def delays(session: Session, topic: str) -> object:
    """What a delayed message looks like when it comes."""
    session.produce(topic, on_queue(0, 1, "first"), mode="ordered")
    sent = session.produce(
        topic,
        [
            {"body": f"level {level}", "delay_level": level, "shard": 1, "tags": "T"}
            for level in (1, 2)
        ],
        mode="ordered",
    )
    consumer = session.start("consume", topic=topic, group=topic)
    consumer.wait_for_bodies(["level 1", "level 2"])
    received = sorted(
        (one for one in consumer.stop() if one["body"].startswith("level")),
        # The consumer has threads: a late pull's messages go to several at once.
        key=lambda one: one["body"],
    )
    # A busy machine may be late; nobody may be early.
    is_early = [
        one["at_ms"] - one["born_ms"] < wanted_ms
        for one, wanted_ms in zip(received, (1000, 5000), strict=True)
    ]
    seen = Transcript()
    # The offset of a delayed message's send is one in the timer's own queues.
    answers = [{**one, "offset": None} for one in seen.of(sent)]
    return [answers, seen.of(received), is_early]


def committed(session: Session, topic: str) -> object:
    """Offsets of a group after its consumers stopped."""
    for shard in range(4):
        session.produce(topic, on_queue(shard, shard + 1, f"q{shard}"), mode="ordered")
    answers = []
    for do in ("consume", "poll"):
        consumer = session.start(do, topic=topic, group=f"{topic}-{do}")
        consumer.wait_for(10)
        consumer.stop()
        answers.append(Transcript().of(wait_for_committed(session, topic, do, 10)))
    return answers


def wait_for_committed(
    session: Session, topic: str, do: str, messages: int
) -> list[Event]:
    """A group's offsets when they have come: clients send them one-way at their end."""
    give_up = time.monotonic() + 120
    while True:
        offsets = session.ask(
            "committed", "committed", topic=topic, group=f"{topic}-{do}"
        )
        if sum(one["offset"] for one in offsets) >= messages:
            return offsets
        if time.monotonic() > give_up:
            return offsets
        time.sleep(0.1)


def broadcast(session: Session, topic: str) -> object:
    """A broadcast group keeps its offsets itself: the broker has none for it."""
    session.produce(topic, on_queue(0, 3, "a"), mode="ordered")
    consumer = session.start("consume", topic=topic, group=topic, broadcasting=True)
    consumer.wait_for(3)
    received = consumer.stop()
    stored = session.ask("committed", "committed", topic=topic, group=topic)
    seen = Transcript()
    # A new group on a queue that begins at 0: see DIFFERENCES in test_differential.py.
    return [seen.of_messages(received), seen.of(stored)[:1]]


def offsets(session: Session, topic: str) -> object:
    """First, end and by time, of queues with and without messages."""
    before_ms = int(time.time() * 1000) - 1000
    session.produce(topic, on_queue(0, 3, "a"), mode="ordered")
    wait_for_offsets(session, topic, 3)
    stored = session.ask("pull", "received", topic=topic, group=topic)
    times = [one["stored_ms"] for one in stored]
    seen = Transcript()
    answers = [
        seen.of(session.ask("offsets", "offsets", topic=topic, timestamp_ms=when))
        for when in (0, before_ms, times[0], times[-1] + 1)
    ]
    earliest = session.ask("offsets", "offsets", topic=topic)[0]["earliest_ms"]
    return [answers, earliest == times[0]]


def queries(session: Session, topic: str) -> object:
    """Messages by key, by unique key and by offset message id; and none."""
    sent = session.produce(
        topic, on_queue(0, 2, "a", keys="k1 k2", tags="T"), mode="ordered"
    )
    seen = Transcript()
    by_key = [
        seen.of_messages(found(session, "query", 2, topic=topic, key=key))
        for key in ("k1", "k2")
    ]
    by_id = [
        seen.of(found(session, "view", 1, topic=topic, message_id=sent[1][name]))
        for name in ("msg_id", "offset_msg_id")
    ]
    missing = sent[0]["offset_msg_id"][:16] + "0FFFFFFFFFFFFFFF"
    return [
        seen.of(sent),
        by_key,
        by_id,
        code_of(session, "query", topic=topic, key="none"),
        code_of(session, "view", topic=topic, message_id=missing),
    ]


def found(session: Session, do: str, count: int, **arguments: Any) -> list[Event]:
    """What a query finds, as soon as the index has it."""
    give_up = time.monotonic() + 120
    while time.monotonic() < give_up:
        try:
            events = session.ask(do, "received", **arguments)
        except AgentError:
            events = []
        if len(events) >= count:
            return events
        time.sleep(0.1)
    raise TimeoutError(f"{do} {arguments}")


def incompressible(size_bytes: int) -> str:
    """Text that a client cannot make much smaller; the same each time."""
    return base64.b64encode(random.Random(0).randbytes(size_bytes * 3 // 4)).decode()


def illegal_sends(session: Session, topic: str) -> object:
    """Codes for messages that no broker takes."""
    session.produce(topic, [{"body": "first"}])

    def send(to: str, **message: Any) -> object:
        return code_of(
            session,
            "produce",
            topic=to,
            messages=[{"body": "x", "shard": 1, **message}],
            mode="ordered",
            retries=0,
            max_message_bytes=32 << 20,
        )

    return {
        # The client compresses: what counts is what is left of it.
        "body of 5 MiB, compressible": send(topic, body="x" * (5 << 20)),
        "body of 3 MiB": send(topic, body=incompressible(3 << 20)),
        "body of 8 MiB": send(topic, body=incompressible(8 << 20)),
        "properties of 40 KB": send(topic, properties={"p": "x" * 40_000}),
        "properties of 32,000 B": send(topic, properties={"p": "x" * 32_000}),
        "topic of 128 characters": send("t" * 128),
        "topic of 127 characters": send("t" * 127),
        "illegal characters": send("a b"),
        "empty topic": send(""),
        "system topic": send("SCHEDULE_TOPIC_XXXX"),
        "TBW102": send("TBW102"),
        "retry topic of nobody": send(f"%RETRY%{topic}-nobody"),
        "delay level above the last": send(topic, delay_level=19),
        "tag with a bar": send(topic, tags="a||b"),
    }


def illegal_reads(session: Session, topic: str) -> object:
    """Codes for reads of what does not exist."""
    session.produce(topic, [{"body": "first"}])
    return {
        "unknown topic": code_of(session, "pull", topic=f"{topic}-no", group=topic),
        "offsets of an unknown topic": code_of(session, "offsets", topic=f"{topic}-no"),
        "illegal group": code_of(session, "consume", topic=topic, group="a b"),
        "system group": code_of(
            session, "consume", topic=topic, group="DEFAULT_CONSUMER"
        ),
        "illegal filter": code_of(
            session, "pull", topic=topic, group=topic, tags="||", queue=0, offset=0
        ),
        "negative offset": code_of(
            session, "pull", topic=topic, group=topic, queue=0, offset=-1
        ),
    }


SCENARIOS: list[Scenario] = [
    sends,
    pushes,
    pulls,
    retries,
    default_retry_level,
    delays,
    broadcast,
    offsets,
    queries,
    illegal_sends,
    illegal_reads,
]
