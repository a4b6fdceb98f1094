"""Request and reply: a producer that waits for what a consumer answers."""

from collections.abc import Callable

import pytest

from tests.clients.harness import Session, bodies, numbered
from tests.clients.programs import GO, JAVA_4, JAVA_5, Client, each

Open = Callable[[Client], Session]


@each(JAVA_5, JAVA_4, GO)
@pytest.mark.compatibility("request and reply")
def test_a_request_gets_the_reply_of_its_consumer(
    client: Client, session: Open, topic: str, group: str
) -> None:
    agent = session(client)
    # The answering consumer finds the topic at its start.
    session(JAVA_5).ask("create_topic", "done", topic=topic, queues=1)
    answering = agent.start("answer", topic=topic, group=group)
    messages = numbered(3)
    asked = agent.call("request", topic=topic, messages=messages)
    replies = asked.wait(lambda events: len(events) == len(messages), "replied")
    expected = [f"re: {body}" for body in bodies(messages)]
    assert [one["reply"] for one in replies] == expected
    assert {one["topic"] for one in replies} == {"DefaultCluster_REPLY_TOPIC"}
    assert all(one["properties"]["PUSH_REPLY_TIME"] for one in replies)
    # Replies are kept besides, each once.
    sent = answering.wait(lambda events: len(events) == len(messages), "sent")
    kept = session(JAVA_5).ask(
        "pull", "received", topic="DefaultCluster_REPLY_TOPIC", group=f"{group}-kept"
    )
    ids = {one["offset_msg_id"]: one["body"] for one in kept}
    # A reply is passed on before it is stored, and its queue may have to be opened.
    assert sorted(one["body"] for one in sent) == expected
    assert [ids[one["offset_msg_id"]] for one in sent] == [one["body"] for one in sent]
    answering.stop()
