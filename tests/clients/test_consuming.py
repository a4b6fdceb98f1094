"""Push consumers of each client: models, order, filters, retries, sharing of queues."""

import asyncio
import time
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace

import pytest

from ropeway.gateway.wire.commands.offsets import QueryConsumerOffset
from tests.clients.asking import lag
from tests.clients.fixtures import Agents, Server
from tests.clients.harness import WAIT_SECONDS, AgentError, Session, bodies, numbered
from tests.clients.programs import CLIENTS, CPP, GO, JAVA_4, JAVA_5, Client, each
from tests.remoting import Remoting, connect
from tests.waiting import until

Open = Callable[[Client], Session]
QUEUES = 4
"""What each client asks for when its first message makes the topic."""


def fill(agent: Session, topic: str, prefix: str, **more: object) -> list[str]:
    """Send one message to each queue; returns the bodies."""
    messages = numbered(QUEUES, prefix, **more)
    for shard, message in enumerate(messages):
        message["shard"] = shard
    agent.produce(topic, messages, mode="ordered")
    return bodies(messages)


def wait_for_topic(agent: Session, topic: str) -> None:
    """Return when a topic has a route: a consumer started before looks every 30 s."""
    give_up = time.monotonic() + 60
    while True:
        try:
            agent.ask("offsets", "offsets", topic=topic)
        except AgentError:
            assert time.monotonic() < give_up
            time.sleep(0.1)
        else:
            return


def wait_for_commit(server: Server, topic: str, group: str) -> list[tuple[int, int]]:
    """Each queue with the offset that a group has committed, once there is one."""

    async def ask() -> list[tuple[int, int]]:
        place = SimpleNamespace(host="127.0.0.1", port=server.broker_port)
        async with connect(place) as remoting:
            return [
                (queue, await committed(remoting, topic, group, queue))
                for queue in range(QUEUES)
            ]

    give_up = time.monotonic() + WAIT_SECONDS
    while True:
        offsets = asyncio.run(ask())
        if any(offset for _, offset in offsets):
            return offsets
        assert time.monotonic() < give_up
        time.sleep(0.1)


async def committed(remoting: Remoting, topic: str, group: str, queue: int) -> int:
    header = QueryConsumerOffset(consumer_group=group, topic=topic, queue_id=queue)
    answer = await remoting.ask(header)
    return int(answer.fields["offset"]) if answer.code == 0 else 0


@each(*CLIENTS)
@pytest.mark.compatibility("push consumer, concurrent")
def test_messages_come_while_the_consumer_runs(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    first = fill(agent, topic, "first")
    consumer = agent.start("consume", topic=topic, group=group)
    consumer.wait_for_bodies(first)
    messages = numbered(50)
    agent.produce(topic, messages)
    received = consumer.wait_for_bodies(bodies(messages))
    consumer.stop()
    assert sorted(bodies(received)) == sorted(first + bodies(messages))


@each(*CLIENTS)
@pytest.mark.compatibility("push consumer, continues where its group stopped")
def test_a_group_continues_where_it_stopped(
    client: Client, session: Open, server: Server, topic: str, group: str
) -> None:
    agent = session(client)
    first = [fill(agent, topic, f"first {number}") for number in range(5)]
    consumer = agent.start("consume", topic=topic, group=group)
    consumer.wait_for_bodies([body for batch in first for body in batch])
    consumer.stop()
    # A listener may be stopped before its last messages count as consumed.
    stopped_at = wait_for_commit(server, topic, group)
    open_still = {
        batch[queue] for queue, offset in stopped_at for batch in first[offset:]
    }
    later = fill(agent, topic, "later")
    consumer = agent.start("consume", topic=topic, group=group)
    received = set(bodies(consumer.wait_for_bodies(later)))
    consumer.stop()
    assert set(later) <= received <= set(later) | open_still


@each(*CLIENTS)
@pytest.mark.compatibility("push consumer, orderly")
def test_messages_of_a_queue_come_in_order_also_when_refused(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    messages = numbered(24)
    for number, message in enumerate(messages):
        message["shard"] = number % 2
    agent.produce(topic, messages, mode="ordered")
    # The C++ client does not count how often it refused a message of its queue.
    refused = 0 if client is CPP else 1
    consumer = agent.start(
        "consume", topic=topic, group=group, orderly=True, fail=refused
    )
    consumer.wait(lambda events: sum(one["accepted"] for one in events) >= 24)
    received = consumer.stop()
    for parity in range(2):
        sent = bodies(messages[parity::2])
        accepted = [one for one in received if one["accepted"] and one["body"] in sent]
        assert bodies(accepted) == sent
        assert len({one["queue"] for one in accepted}) == 1
    assert sum(not one["accepted"] for one in received) == refused * len(messages)


@each(*CLIENTS)
@pytest.mark.compatibility("push consumer, broadcasting")
def test_each_broadcast_consumer_receives_everything(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    sent = fill(agent, topic, "first")
    consumers = [
        agent.start(
            "consume", topic=topic, group=group, broadcasting=True, instance=name
        )
        for name in (f"{topic}-a", f"{topic}-b")
    ]
    # Without a stored offset C++ starts at the end, which it may look up late.
    for number in count():
        if all(set(sent) <= set(bodies(one.events("received"))) for one in consumers):
            break
        assert number < 600
        if client is CPP:
            sent = fill(agent, topic, f"again {number}")
        time.sleep(0.1)
    later = fill(agent, topic, "later")
    for consumer in consumers:
        received = consumer.wait_for_bodies(later)
        consumer.stop()
        assert sorted(set(bodies(received)) & set(later)) == later


@each(JAVA_5, JAVA_4, GO)
@pytest.mark.compatibility("push consumer, broadcasting, continues where it stopped")
def test_a_broadcast_consumer_has_offsets_of_its_own(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    first = [fill(agent, topic, f"first {number}") for number in range(5)]
    everything = {"topic": topic, "group": group, "broadcasting": True}
    one = agent.start("consume", **everything, instance=f"{topic}-one")
    one.wait_for_bodies([body for batch in first for body in batch])
    one.stop()
    later = fill(agent, topic, "later")
    again = agent.start("consume", **everything, instance=f"{topic}-one")
    other = agent.start("consume", **everything, instance=f"{topic}-other")
    received = set(bodies(again.wait_for_bodies(later)))
    other.wait_for_bodies([body for batch in [*first, later] for body in batch])
    again.stop()
    other.stop()
    # The listener may be stopped before its last messages count as consumed.
    assert received >= set(later)
    assert not received & set(first[0])


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("push consumer, orderly, gives up a message in the end")
def test_an_ordered_message_refused_too_often_makes_way_for_the_next(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    agent.introduce(topic, group)
    agent.produce(topic, numbered(2, shard=1), mode="ordered")
    consumer = agent.start(
        "consume",
        topic=topic,
        group=group,
        orderly=True,
        fail=99,
        max_reconsume_times=1,
    )
    received = consumer.wait_for(4)
    tries = [(one["body"], one["reconsume_times"]) for one in received]
    assert tries == [
        (f"message {number}", times) for number in range(2) for times in range(2)
    ]
    wait_for_topic(agent, f"%DLQ%{group}")
    letters = agent.start("consume", topic=f"%DLQ%{group}", group=f"{group}-dead")
    letters.wait_for_bodies(["message 0", "message 1"])
    letters.stop()
    consumer.stop()


@each(*CLIENTS)
@pytest.mark.compatibility("push consumer, tag filter")
def test_a_tag_filter_lets_its_tags_through_only(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    # AaAa and BBBB have one hash code: only the exact comparison tells them apart.
    for tags in ("AaAa", "TagB", "BBBB", "TagC"):
        agent.produce(topic, numbered(5, tags, tags=tags))
    agent.produce(topic, numbered(5, "none"))
    consumer = agent.start("consume", topic=topic, group=group, tags="AaAa || TagB")
    wanted = bodies(numbered(5, "AaAa") + numbered(5, "TagB"))
    consumer.wait_for_bodies(wanted)
    # What came last: after it, nothing that was sent before is still to come.
    last = fill(agent, topic, "last", tags="TagB")
    consumer.wait_for_bodies(last)
    assert sorted(bodies(consumer.stop())) == sorted(wanted + last)


@each(*CLIENTS)
@pytest.mark.compatibility("push consumer, retry")
def test_a_refused_message_comes_again(
    client: Client, session: Open, server: Server, topic: str, group: str
) -> None:
    agent = session(client)
    agent.introduce(topic, group)
    if lag(server, group, topic):
        # Go's client may end before it commits: then it would refuse the introduction.
        consumer = agent.start("consume", topic=topic, group=group)
        until(lambda: lag(server, group, topic) == 0)
        consumer.stop()
    agent.produce(topic, numbered(1, tags="TagA", keys="key"))
    consumer = agent.start("consume", topic=topic, group=group, fail=1, delay_level=1)
    # Should its refusal not get through in time, a client tries itself once more.
    found = consumer.wait(lambda found: any(one["accepted"] for one in found))
    first, again = found[0], found[-1]
    consumer.stop()
    assert (first["accepted"], again["accepted"]) == (False, True)
    assert (first["reconsume_times"], again["reconsume_times"]) == (0, 1)
    assert again["body"] == first["body"] == "message 0"
    assert (again["topic"], again["tags"], again["keys"]) == (topic, "TagA", "key")
    assert again["properties"]["RETRY_TOPIC"] == topic
    assert again["at_ms"] - first["at_ms"] >= 1_000


@each(*CLIENTS)
@pytest.mark.compatibility("push consumer, dead-letter queue")
def test_a_message_refused_too_often_goes_to_the_dead_letter_queue(
    client: Client, session: Open, topic: str, group: str
) -> None:
    client.require("max_reconsume_times")
    agent = session(client)
    agent.introduce(topic, group)
    agent.produce(topic, numbered(1))
    consumer = agent.start(
        "consume",
        topic=topic,
        group=group,
        fail=99,
        delay_level=1,
        max_reconsume_times=2,
    )
    received = consumer.wait(
        lambda events: any(one["reconsume_times"] == 2 for one in events)
    )
    # A client that balances queues meanwhile may receive one of them twice.
    assert list(dict.fromkeys(one["reconsume_times"] for one in received)) == [0, 1, 2]
    dead = session(JAVA_5)
    wait_for_topic(dead, f"%DLQ%{group}")
    letters = dead.start("consume", topic=f"%DLQ%{group}", group=f"{group}-dead")
    # An introduction that came again was refused, too.
    found = letters.wait_for_bodies(["message 0"])
    letters.stop()
    letter = next(one for one in found if one["body"] == "message 0")
    assert letter["properties"]["RETRY_TOPIC"] == topic
    assert {one["reconsume_times"] for one in consumer.stop()} == {0, 1, 2}


@each(JAVA_5, JAVA_4, GO, CPP)
@pytest.mark.compatibility("push consumer, from first, last or timestamp")
@pytest.mark.parametrize("start", ["FIRST_OFFSET", "LAST_OFFSET", "TIMESTAMP"])
def test_a_consumer_starts_where_it_was_told(
    client: Client, start: str, session: Open, topic: str, group: str
) -> None:
    client.require("from")
    agent = session(client)
    old = fill(agent, topic, "old")
    # A time to start at is given in whole seconds.
    between = int(time.time()) + 1
    while time.time() < between + 0.1:
        time.sleep(0.05)
    new = fill(agent, topic, "new")
    # Broadcasting, because a broker gives a new group offset 0 while it has it.
    consumer = agent.start(
        "consume",
        topic=topic,
        group=group,
        broadcasting=True,
        timestamp=time.strftime("%Y%m%d%H%M%S", time.gmtime(between)),
        **{"from": start},
    )
    sent: list[str] = []
    for number in count():
        if sent and set(sent) <= set(bodies(consumer.events("received"))):
            break
        assert number < 600
        sent = fill(agent, topic, f"probe {number}")
        time.sleep(0.1)
    received = set(bodies(consumer.stop()))
    expected = {"FIRST_OFFSET": old + new, "LAST_OFFSET": [], "TIMESTAMP": new}
    assert received & {*old, *new} == set(expected[start])


@each(*CLIENTS)
@pytest.mark.parametrize("leave", ["stop", "kill"])
@pytest.mark.compatibility("push consumer, two of a group share the queues")
def test_consumers_of_a_group_share_queues_and_take_over(
    client: Client,
    leave: str,
    session: Open,
    agents: Agents,
    server: Server,
    topic: str,
    group: str,
) -> None:
    agent = session(client)
    sent = fill(agent, topic, "first")
    staying = agent.start("consume", topic=topic, group=group)
    staying.wait_for_bodies(sent)
    other = agents.another(client)
    leaving = Session(other, server.name_server).start(
        "consume", topic=topic, group=group
    )

    def send_until_queues(call: str, queues: dict[str, int]) -> None:
        calls = {"staying": staying, "leaving": leaving}
        for number in count():
            batch = fill(agent, topic, f"{call} {number}")
            sent.extend(batch)
            give_up = time.monotonic() + 1
            while time.monotonic() < give_up:
                took = {
                    name: {
                        one["queue"]
                        for one in calls[name].events("received")
                        if one["body"] in batch
                    }
                    for name in queues
                }
                if {name: len(taken) for name, taken in took.items()} == queues:
                    return
                time.sleep(0.02)
            assert number < WAIT_SECONDS, took

    send_until_queues("both", {"staying": 2, "leaving": 2})
    if leave == "stop":
        leaving.stop()
    else:
        other.kill()
    send_until_queues("one", {"staying": QUEUES})
    received = {
        *bodies(staying.events("received")),
        *bodies(leaving.events("received")),
    }
    assert received >= set(sent)
    staying.stop()
