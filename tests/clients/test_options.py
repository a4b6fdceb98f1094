"""What a Java client can be set to: namespace, unit, trace, more topics."""

from collections.abc import Callable

import pytest

from tests.clients.asking import lag, tags
from tests.clients.fixtures import Server
from tests.clients.harness import Session, bodies, numbered
from tests.clients.programs import JAVA_4, JAVA_5, Client, each
from tests.clients.test_consuming import wait_for_topic
from tests.waiting import until

Open = Callable[[Client], Session]


@each(JAVA_5, JAVA_4)
@pytest.mark.parametrize(
    "options", [{"namespace": "MQ_INST_1"}, {"unit": "east"}], ids=["namespace", "unit"]
)
@pytest.mark.compatibility("namespaces and units, with retry and dead letters")
def test_a_client_of_a_namespace_or_unit_gets_its_messages_retries_and_dead_letters(
    client: Client, options: dict[str, str], session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    agent.produce(topic, numbered(1), **options)
    consumer = agent.start(
        "consume",
        topic=topic,
        group=group,
        fail=99,
        delay_level=1,
        max_reconsume_times=1,
        **options,
    )
    first, again = consumer.wait_for(2)
    assert (first["topic"], again["topic"]) == (topic, topic)
    assert (first["reconsume_times"], again["reconsume_times"]) == (0, 1)
    whole = f"{options['namespace']}%{group}" if "namespace" in options else group
    letters = agent.start("consume", topic=f"%DLQ%{whole}", group=f"{group}-dead")
    (letter,) = letters.wait_for(1)
    letters.stop()
    assert letter["body"] == "message 0"
    assert len(consumer.stop()) == 2


@each(JAVA_5, JAVA_4)
@pytest.mark.parametrize("own_topic", [False, True], ids=["usual", "own"])
@pytest.mark.compatibility("message trace, to the usual topic or to one of its own")
def test_a_trace_of_a_message_is_kept(
    client: Client, own_topic: bool, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    where = f"{topic}-traces" if own_topic else "RMQ_SYS_TRACE_TOPIC"
    options = {"trace": True, **({"trace_topic": where} if own_topic else {})}
    sent = agent.produce(topic, numbered(1), **options)[0]
    consumer = agent.start("consume", topic=topic, group=group, **options)
    consumer.wait_for(1)
    wait_for_topic(agent, where)
    traces = agent.start("consume", topic=where, group=f"{group}-t")
    found = traces.wait(
        lambda events: (
            {"Pub", "SubBefore", "SubAfter"}
            <= {
                line.split("\x01")[0]
                for event in events
                for line in event["body"].split("\x02")
                if sent["msg_id"] in line
            }
        )
    )
    assert any(sent["msg_id"] in (one["keys"] or "").split() for one in found)
    traces.stop()
    consumer.stop()


@each(JAVA_5, JAVA_4)
@pytest.mark.compatibility("subscriptions that change while the consumer runs")
def test_a_running_consumer_may_want_another_topic_and_other_tags(
    client: Client, session: Open, server: Server, topic: str, group: str
) -> None:
    agent = session(client)
    other = f"{topic}-other"
    agent.produce(topic, numbered(1, "first", tags="A"))
    agent.produce(other, numbered(4, "other"))
    consumer = agent.start("consume", topic=topic, group=group, tags="A")
    consumer.wait_for(1)
    agent.call("subscribe", target=consumer.id, topic=other).finish()
    agent.call("subscribe", target=consumer.id, topic=topic, tags="B").finish()
    # Its heartbeat is left out where another one is under way, until the next one. And
    # the client drops what a pull brings that it asked for with the old tags.
    until(lambda: tags(server, group, topic) == ["B"])
    agent.produce(topic, numbered(8, "a", tags="A"))
    until(lambda: lag(server, group, topic) == 0)
    agent.produce(topic, numbered(8, "b", tags="B"))
    wanted = bodies(numbered(8, "b") + numbered(4, "other"))
    received = consumer.wait_for_bodies(wanted)
    consumer.stop()
    assert sorted(bodies(received)) == sorted([*wanted, "first 0"])
