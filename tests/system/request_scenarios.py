"""Requests and replies, as the differential tests do them on both brokers."""

import re
import time
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter

from tests.clients.harness import WAIT_SECONDS, Event, Session, bodies, numbered
from tests.system.transcript import Transcript

REPLIES = "DefaultCluster_REPLY_TOPIC"
IDS = ("CORRELATION_ID", "REPLY_TO_CLIENT")
TIMES = ("PUSH_REPLY_TIME", "ARRIVE_TIME")
PATIENCE_MS = 5000
ADDRESS = re.compile(r"<[^<>]*@[^<>]*>|127\.0\.0\.1:\d+")


def requests(session: Session, topic: str) -> object:
    """What they see who ask, who answer, and who read the topic of replies."""
    session.call("create_topic", topic=topic, queues=1).finish()
    answering = session.start("answer", topic=topic, group=topic)
    messages = numbered(2, "ask", tags="T", keys="k", properties={"user": "value"})
    replied = session.ask("request", "replied", topic=topic, messages=messages)
    sent = answering.wait_for(len(messages), "sent")
    answering.stop()
    asked = session.ask("pull", "received", topic=topic, group=f"{topic}-asked")
    kept = replies(session, topic, asked)
    # Both are answered at the same time: which comes first is chance.
    answers = [sorted(each, key=itemgetter("body")) for each in (replied, sent, kept)]
    return comparable([*asked, *chain(*answers)])


def requests_of_who_is_gone(session: Session, topic: str) -> object:
    """Nobody answers until who asked has given up, and left."""
    session.call("create_topic", topic=topic, queues=1).finish()
    asking = session.call(
        "request",
        topic=topic,
        messages=numbered(1, "ask"),
        producer_group=f"{topic}-askers",
        timeout_ms=PATIENCE_MS,
        leave=True,
    )
    (gave_up,) = asking.wait(bool, "error")
    answering = session.start("answer", topic=topic, group=topic)
    (failed,) = answering.wait_for(1, "failed")
    answering.stop()
    assert not asking.events("replied")
    asked = session.ask("pull", "received", topic=topic, group=f"{topic}-asked")
    return [
        (gave_up["type"], gave_up["code"]),
        (failed["type"], failed["code"], ADDRESS.sub("<address>", failed["cause"])),
        comparable([*asked, *replies(session, topic, asked)]),
    ]


def replies(session: Session, topic: str, asked: Sequence[Event]) -> list[Event]:
    """What the topic of replies keeps of those to some messages.

    A real broker gives messages to consumers a moment after it has them.
    """
    ids = {one["properties"]["CORRELATION_ID"] for one in asked}
    give_up = time.monotonic() + WAIT_SECONDS
    while True:
        kept = session.ask("pull", "received", topic=REPLIES, group=f"{topic}-kept")
        found = [one for one in kept if one["properties"].get("CORRELATION_ID") in ids]
        if len(found) >= len(asked) or time.monotonic() > give_up:
            return found
        time.sleep(0.1)


def comparable(events: Sequence[Event]) -> list[Event]:
    """Events with names for what is made anew each time, and without chance."""
    names: dict[str, str] = {}
    named = []
    for event in events:
        pairs = dict(event.get("properties", {}))
        for name in IDS:
            if name in pairs:
                pairs[name] = names.setdefault(pairs[name], f"{name} {len(names)}")
        for name in TIMES:
            if name in pairs:
                assert pairs[name].isdecimal(), pairs
                pairs[name] = "a time"
        one = {**event, "properties": pairs}
        if event["topic"] == REPLIES:
            # The client chooses a queue of it, which others write to as well.
            one |= {"queue": None, "offset": None}
        named.append(one)
    assert bodies(named)
    return Transcript().of(named)


REQUESTS = [requests, requests_of_who_is_gone]
