"""Delivery times of messages, by the producers that can ask for them, and recalls."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.clients.harness import AgentError, bodies
from tests.clients.programs import JAVA_5, Client, each

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.harness import Session


RECALLED_S, LAST_MS = 10, 12_000
"""A recall has to be there in time on a machine that stands still, too."""


@each(JAVA_5)
@pytest.mark.compatibility("producer, delivery times and recall")
def test_a_timed_message_comes_at_its_time_unless_it_is_recalled(
    client: Client, session: Callable[[Client], Session], topic: str, group: str
) -> None:
    agent = session(client)
    agent.produce(topic, [{"body": "first"}])
    consumer = agent.start("consume", topic=topic, group=group)
    consumer.wait_for_bodies(["first"])
    at_ms = int(time.time() * 1000) + LAST_MS
    sent = agent.produce(
        topic,
        [
            {"body": "at", "deliver_ms": at_ms, "tags": "TagA", "keys": "key"},
            {"body": "after", "delay_ms": 3210, "properties": {"user": "value"}},
            {"body": "recalled", "delay_sec": RECALLED_S},
            {"body": "past", "deliver_ms": at_ms - 3_600_000},
        ],
    )
    handles = {one["body"]: one.get("recall_handle") for one in sent}
    assert handles.pop("past") is None
    assert all(handles.values())
    (recalled,) = agent.ask(
        "recall", "recalled", topic=topic, handle=handles["recalled"]
    )
    assert recalled["msg_id"] == sent[2]["msg_id"]
    with pytest.raises(AgentError) as refused:
        agent.ask("recall", "recalled", topic="TBW102", handle=handles["at"])
    assert refused.value.code == 604
    received = consumer.wait_for_bodies(["past", "after", "at"])
    consumer.stop()
    # In any order where the machine stood still for the time between them.
    assert sorted(bodies(received)) == ["after", "at", "first", "past"]
    by_body = {one["body"]: one for one in received}
    assert by_body["after"]["stored_ms"] - by_body["after"]["born_ms"] >= 3210
    assert by_body["at"]["stored_ms"] >= at_ms
    assert by_body["at"]["at_ms"] - at_ms < 30_000, "generous to a loaded machine"
    assert (by_body["at"]["tags"], by_body["at"]["keys"]) == ("TagA", "key")
    assert by_body["after"]["properties"]["user"] == "value"
    for one in sent:
        if one["body"] != "recalled":
            assert by_body[one["body"]]["msg_id"] == one["msg_id"]
            assert by_body[one["body"]]["queue"] == one["queue"]
    print(by_body["at"]["properties"])


@each(JAVA_5)
def test_a_message_that_would_wait_too_long_is_refused(
    client: Client, session: Callable[[Client], Session], topic: str
) -> None:
    with pytest.raises(
        AgentError, match="should not be bigger than the max delay"
    ) as no:
        session(client).produce(topic, [{"body": "no", "delay_sec": 1_000_000_000}])
    assert no.value.code == 13
