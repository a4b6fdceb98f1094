"""Groups that are moved, and consumers that are asked, while clients run and do not."""

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import pytest

from ropeway.client.admin_clients import read_running_info
from ropeway.gateway.wire import admin_bodies
from ropeway.gateway.wire.commands.admin import GetConsumerConnectionList
from ropeway.gateway.wire.commands.callbacks import (
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
)
from ropeway.gateway.wire.commands.group_admin import GetConsumerStatus, ResetOffset
from tests.clients.asking import ask, lag
from tests.clients.fixtures import Server
from tests.clients.harness import Event, Session, bodies, numbered
from tests.clients.programs import CLIENTS, CPP, GO, JAVA_4, JAVA_5, Client, each
from tests.waiting import until

Open = Callable[[Client], Session]
QUEUES = 4


def fill(agent: Session, topic: str, prefix: str, count: int = 3) -> list[Event]:
    """Send messages to each queue."""
    messages = numbered(QUEUES * count, prefix)
    for number, message in enumerate(messages):
        message["shard"] = number % QUEUES
    return agent.produce(topic, messages, mode="ordered")


def move(server: Server, group: str, topic: str, time_ms: int) -> dict[int, int]:
    """Move a group to a time; where each queue goes on."""
    answer = ask(
        server, ResetOffset(group=group, topic=topic, timestamp=time_ms, is_force=True)
    )
    assert answer.code == 0, answer.remark
    found = admin_bodies.read_object_map(answer.body)
    return {queue.queue_id: offset for queue, offset in found}


def came(times: int, sent: Sequence[str]) -> Callable[[list[Event]], bool]:
    """Whether each message has come so often."""
    return lambda events: all(
        Counter(bodies(events))[body] >= times for body in set(sent)
    )


@each(*CLIENTS)
@pytest.mark.compatibility("offsets reset, consumers connected")
def test_connected_consumers_go_back_and_catch_up(
    client: Client, session: Open, server: Server, topic: str, group: str
) -> None:
    agent = session(client)
    agent.introduce(topic, group)
    sent = bodies(fill(agent, topic, "before"))
    consumer = agent.start("consume", topic=topic, group=group)
    consumer.wait(came(1, sent))
    assert set(move(server, group, topic, 0).values()) == {0}
    consumer.wait(came(2, sent))
    later = bodies(fill(agent, topic, "later"))
    consumer.wait(came(1, later))
    # What they commit in the end is the end.
    until(lambda: lag(server, group, topic) == 0)
    received = Counter(bodies(consumer.stop()))
    assert max(received[body] for body in sent) == 2
    assert {received[body] for body in later} == {1}


@each(JAVA_5, GO, CPP)
@pytest.mark.compatibility("offsets reset, no consumer connected")
def test_a_group_that_was_moved_while_away_goes_on_there(
    client: Client, session: Open, server: Server, topic: str, group: str
) -> None:
    agent = session(client)
    agent.introduce(topic, group)
    first = bodies(fill(agent, topic, "first"))
    consumer = agent.start("consume", topic=topic, group=group)
    consumer.wait(came(1, first))
    until(lambda: lag(server, group, topic) == 0)
    consumer.stop()
    left_out = bodies(fill(agent, topic, "left out"))
    move(server, group, topic, -1)
    assert lag(server, group, topic) == 0
    later = bodies(fill(agent, topic, "later"))
    consumer = agent.start("consume", topic=topic, group=group)
    consumer.wait(came(1, later))
    assert set(bodies(consumer.stop())) == set(later)
    move(server, group, topic, 0)
    consumer = agent.start("consume", topic=topic, group=group)
    consumer.wait(came(1, first + left_out + later))
    consumer.stop()


@each(JAVA_5)
@pytest.mark.compatibility("offsets reset, pull consumer")
def test_a_pull_consumer_goes_back(
    client: Client, session: Open, server: Server, topic: str, group: str
) -> None:
    agent = session(client)
    agent.introduce(topic, group)
    sent = bodies(fill(agent, topic, "before"))
    consumer = agent.start("poll", topic=topic, group=group)
    consumer.wait(came(1, sent))
    move(server, group, topic, 0)
    consumer.wait(came(2, sent))
    consumer.stop()


@each(*CLIENTS)
@pytest.mark.compatibility("consumer running info")
def test_a_consumer_says_how_it_does(
    client: Client, session: Open, server: Server, topic: str, group: str
) -> None:
    agent = session(client)
    agent.introduce(topic, group)
    sent = bodies(fill(agent, topic, "before"))
    consumer = agent.start("consume", topic=topic, group=group)
    client_id = until_connected(server, group)
    asked = GetConsumerRunningInfo(
        consumer_group=group, client_id=client_id, jstack_enable=True
    )
    answer = ask(server, asked)
    assert answer.code == 0, answer.remark
    # C++'s may be asked before it has noted what it subscribes to.
    until(lambda: topic.encode() in ask(server, asked).body)
    said = read_running_info(answer.body)
    is_java = client in (JAVA_4, JAVA_5)
    assert ("java.lang.Thread" in (said.stack or "")) == is_java
    if client is not CPP:
        # What `ropeway client describe` prints, as soon as it has queues.
        until(
            lambda: (
                {
                    one.queue.queue_id
                    for one in read_running_info(ask(server, asked).body).queues
                    if one.queue.topic == topic
                }
                == set(range(QUEUES))
            )
        )
    status = ask(server, GetConsumerStatus(topic=topic, group=group))
    assert status.code == 0, status.remark
    # C++ does not know the request.
    assert (client_id.encode() in status.body) == (client is not CPP)
    # C++'s library ends its process where it is stopped while it still starts.
    consumer.wait(came(1, sent))
    consumer.stop()


def until_connected(server: Server, group: str) -> str:
    """The id of the group's one client, as soon as its heartbeat has come."""
    found: list[str] = []

    def look() -> bool:
        answer = ask(server, GetConsumerConnectionList(consumer_group=group))
        if answer.code == 0:
            connected = msgspec.json.decode(answer.body)["connectionSet"]
            found.extend(one["clientId"] for one in connected)
        return bool(found)

    until(look)
    return found[0]


@each(JAVA_5, JAVA_4, GO)
@pytest.mark.compatibility("a message consumed again, on demand")
def test_a_consumer_consumes_one_message_on_demand(
    client: Client, session: Open, server: Server, topic: str, group: str
) -> None:
    agent = session(client)
    sent = fill(agent, topic, "once")
    consumer = agent.start("consume", topic=topic, group=group)
    consumer.wait(came(1, bodies(sent)))
    again = sent[5]
    answer = ask(
        server,
        ConsumeMessageDirectly(
            consumer_group=group,
            client_id=until_connected(server, group),
            topic=topic,
            msg_id=again["offset_msg_id"],
        ),
    )
    assert answer.code == 0, answer.remark
    result = msgspec.json.decode(answer.body)["consumeResult"]
    assert result == ("CR_SUCCESS" if client is not GO else 0)
    received = Counter(bodies(consumer.stop()))
    assert received == {**Counter(bodies(sent)), again["body"]: 2}
