"""mqadmin shows lite topics, who subscribes to them, and who is behind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.clients.grpc_clients import JAVA_GRPC
from tests.clients.harness import Session
from tests.clients.test_connections import certificate
from tests.clients.test_grpc import set_up
from tests.system.administration import TIMEOUT_S, MqAdmin
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.clients.fixtures import Agents

pytestmark = pytest.mark.jvm


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Ropeway]:
    tls = certificate(tmp_path)
    server = Ropeway(tmp_path / "server", options=["--grpc"], tls=tls)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def mqadmin(gateway: Ropeway, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    with MqAdmin(tmp_path) as admin:
        yield lambda line: admin(line, gateway.name_server)


def row(printed: str, first: str) -> list[str]:
    """The words of the one line that begins with a word, or has a number before it."""
    lines = [line.split() for line in printed.splitlines()]
    (found,) = [
        words for words in lines if words[:1] == [first] or words[1:2] == [first]
    ]
    return found


@pytest.mark.mqadmin(
    "getBrokerLiteInfo",
    "getParentTopicInfo",
    "getLiteTopicInfo",
    "getLiteClientInfo",
    "getLiteGroupInfo",
    "triggerLiteDispatch",
)
def test_lite_topics_their_clients_and_groups_are_shown(
    gateway: Ropeway,
    mqadmin: Callable[[str], str],
    agents: Agents,
    topic: str,
    group: str,
) -> None:
    set_up(gateway, topic, group, "LITE", attributes={"+lite.bind.topic": topic})
    ours = Session(agents.of(JAVA_GRPC), gateway.name_server)

    def send(name: str, *texts: str) -> None:
        ours.produce(topic, [{"body": text, "lite_topic": name} for text in texts])

    def until_lag(count: int) -> str:
        """What is shown of the group when it is behind by so many."""
        give_up = time.monotonic() + TIMEOUT_S
        wanted = f"Total Lag Count: {count}\n"
        while wanted not in (
            shown := mqadmin(f"getLiteGroupInfo -p {topic} -g {group}")
        ):
            assert time.monotonic() < give_up, shown
        return shown

    consumer = ours.start("consume_lite", topic=topic, group=group)
    for name in ("a", "b"):
        ours.ask("subscribe_lite", "subscribed", target=consumer.id, lite_topic=name)
    send("a", "a0", "a1", "a2")
    send("b", "b0")
    consumer.wait_for(4)
    assert "TopK" in until_lag(0)
    ours.ask("unsubscribe_lite", "subscribed", target=consumer.id, lite_topic="b")
    send("b", "b1", "b2")
    shown = until_lag(2)
    for part in shown.split("------TopK by ")[1:]:
        assert row(part, "b")[:3] == ["1", "b", "2"]
    one = mqadmin(f"getLiteGroupInfo -p {topic} -g {group} -l b")
    assert row(one, "broker-0")[1:4] == ["3", "1", "2"]
    assert "Total Lag Count: 2\n" in one

    parent = row(mqadmin(f"getParentTopicInfo -p {topic}"), "broker-0")
    assert parent[1:] == ["-1", "2", "2", f"[{group}]"]
    lite = mqadmin(f"getLiteTopicInfo -p {topic} -l a -s")
    words = row(lite, "broker-0")
    assert (words[1:3], words[-2:]) == (["0", "3"], ["true", "1"])
    (client_id,) = [
        line.strip("[]").removesuffix(f"@{group}")
        for line in lite.splitlines()
        if line.endswith(f"@{group}]")
    ]
    nobody = row(mqadmin(f"getLiteTopicInfo -p {topic} -l b"), "broker-0")
    assert nobody[-2:] == ["true", "0"]
    client = f"getLiteClientInfo -p {topic} -g {group} -c {client_id} -s"
    shown = mqadmin(client)
    assert row(shown, "broker-0")[1] == "1"
    assert f"Lite Topics: [%LMQ%${topic}$a]" in shown
    broker = mqadmin(f"getBrokerLiteInfo -b {gateway.name_server} -d")
    assert row(broker, gateway.name_server)[1:5] == ["default", "100000", "2", "1"]
    assert f'Topic Meta: {{"{topic}":-1}}' in broker
    assert f'Group Meta: {{"{topic}":["{group}"]}}' in broker
    trigger = mqadmin(f"triggerLiteDispatch -p {topic} -g {group} -c {client_id}")
    assert row(trigger, "broker-0") == ["broker-0", "dispatched"]
    consumer.stop()
