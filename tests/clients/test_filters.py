"""SQL92 filters, as each client asks for them, and how a malformed one is refused."""

from collections.abc import Callable

import pytest

from tests.clients.harness import AgentError, Event, Session, bodies
from tests.clients.programs import GO, JAVA_4, JAVA_5, Client, each

Open = Callable[[Client], Session]

SQL = "(price BETWEEN 100 AND 200 OR TAGS = 'vip') AND region IS NOT NULL"


def offers(prefix: str) -> tuple[list[Event], list[str]]:
    """Messages to send, and the bodies of those that `SQL` wants."""
    sent: list[Event] = []
    for number, (price, tags, region, _) in enumerate(CASES):
        pairs = {"price": price}
        if region:
            pairs["region"] = region
        sent.append(
            {
                "body": f"{prefix} {number}",
                "shard": number % 4,
                "tags": tags,
                "properties": pairs,
            }
        )
    wanted = [one["body"] for one, case in zip(sent, CASES, strict=True) if case[3]]
    return sent, wanted


CASES = [
    ("99", "plain", "eu", False),
    ("100", "plain", "eu", True),
    ("150", "plain", "", False),
    ("200", "plain", "eu", True),
    ("201", "plain", "eu", False),
    ("201", "vip", "eu", True),
    ("no number", "vip", "eu", False),
    ("150", "vip", "", False),
]
"""Price, tag, region, and whether it is wanted."""


@each(JAVA_5, JAVA_4, GO)
@pytest.mark.compatibility("push consumer, SQL92 filter")
def test_a_push_consumer_gets_what_its_condition_wants(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    sent, wanted = offers("before")
    agent.produce(topic, sent, mode="ordered")
    consumer = agent.start("consume", topic=topic, group=group, sql=SQL)
    consumer.wait_for_bodies(wanted)
    # Now its pulls wait at the ends of the queues; what matches wakes them.
    sent, later = offers("later")
    agent.produce(topic, sent, mode="ordered")
    consumer.wait_for_bodies(later)
    assert sorted(bodies(consumer.stop())) == sorted(wanted + later)


# Go's sends the condition with each pull, and says there that it were tags.
@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("pull consumer that polls assigned queues, SQL92 filter")
def test_a_polled_consumer_gets_what_its_condition_wants(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    sent, wanted = offers("offer")
    agent.produce(topic, sent, mode="ordered")
    consumer = agent.start("poll", topic=topic, group=group, sql=SQL)
    consumer.wait_for_bodies(wanted)
    assert sorted(bodies(consumer.stop())) == sorted(wanted)


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("push consumer, SQL92 filter that is malformed")
def test_a_malformed_condition_is_refused_when_the_consumer_starts(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    agent.produce(topic, [{"body": "makes the topic"}])
    with pytest.raises(AgentError, match="line 1, column 10") as refused:
        agent.start("consume", topic=topic, group=group, sql="price >  AND a = 1")
    assert refused.value.code == 23
