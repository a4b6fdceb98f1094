"""Transactions by real clients: only what was committed is received, whoever asks."""

from collections.abc import Callable

import pytest

from tests.clients.fixtures import Agents, Server
from tests.clients.harness import Event, Session, bodies
from tests.clients.programs import GO, JAVA_4, JAVA_5, Client, each

CHECK_MS = 1000
HOLD_MS = 5000
CLIENTS = (JAVA_5, JAVA_4, GO)


@pytest.fixture(scope="module")
def server(start_server: Callable[..., Server]) -> Server:
    """A server that asks producers soon."""
    return start_server(check_ms=CHECK_MS)


def message(body: str, **properties: str) -> Event:
    return {"body": body, "tags": "T", "keys": "k", "properties": properties}


@each(*CLIENTS)
@pytest.mark.compatibility("transactions: commit, rollback, and asking back")
def test_only_what_was_committed_is_received(
    client: Client, session: Callable[[Client], Session], topic: str, group: str
) -> None:
    agent = session(client)
    agent.produce(topic, [{"body": "first"}])
    consumer = agent.start("consume", topic=topic, group=group)
    consumer.wait_for_bodies(["first"])
    producer = agent.start(
        "transact",
        topic=topic,
        group=f"{group}-producers",
        messages=[
            message("committed", local="commit"),
            message("rolled back", local="rollback"),
            message("committed later", check="commit"),
            message("rolled back later", check="rollback"),
        ],
    )
    sent = {one["body"]: one for one in producer.events("sent")}
    assert [one["state"] for one in sent.values()] == [
        "COMMIT_MESSAGE",
        "ROLLBACK_MESSAGE",
        "UNKNOW",
        "UNKNOW",
    ]
    asked = producer.wait(
        lambda found: {"committed later", "rolled back later"} <= set(bodies(found)),
        "checked",
    )
    consumer.wait_for_bodies(["committed", "committed later"])
    # What comes last in its queue comes after all that may come before it.
    agent.produce(topic, [{"body": str(shard), "shard": shard} for shard in range(4)])
    consumer.wait_for_bodies(["0", "1", "2", "3"])
    producer.stop()
    received = [one for one in consumer.stop() if one.get("tags") == "T"]
    assert sorted(bodies(received)) == ["committed", "committed later"]
    for one in received:
        before = sent[one["body"]]
        assert (one["tags"], one["keys"], one["topic"]) == ("T", "k", topic)
        assert one["queue"] == before["queue"]
        assert one["msg_id"] == before["msg_id"] == before["transaction_id"]
    for one in asked:
        assert (one["topic"], one["tags"], one["keys"]) == (topic, "T", "k")
        assert one["properties"]["UNIQ_KEY"] == sent[one["body"]]["msg_id"]
        assert int(one["properties"]["TRANSACTION_CHECK_TIMES"]) >= 1


@pytest.fixture(scope="module")
def received_after_a_kill(agents: Agents, server: Server) -> list[str]:
    """What came of transactions of all clients that were open at a kill -9."""
    topic = "transactions-killed"
    sessions = [Session(agents.of(one), server.name_server) for one in CLIENTS]
    first = [{"body": "first", "shard": shard} for shard in range(4)]
    sessions[0].produce(topic, first, mode="ordered")
    consumer = sessions[0].start("consume", topic=topic, group=topic)
    consumer.wait_for(4)
    producers = [
        session.call(
            "transact",
            topic=topic,
            group=f"{topic}-{number}",
            messages=[
                message(f"asked {client.name}", check="commit"),
                message(f"rolled back {client.name}", local="rollback"),
                message(
                    f"held {client.name}",
                    local="commit",
                    hold_ms=str(HOLD_MS),
                    # Where the node is not back by then, its own commit is lost.
                    check="commit",
                ),
            ],
        )
        for number, (client, session) in enumerate(zip(CLIENTS, sessions, strict=True))
    ]
    for producer in producers:
        producer.wait_for(3, "executing")
    server.kill()
    server.start()
    wanted = [f"{what} {one.name}" for what in ("asked", "held") for one in CLIENTS]
    consumer.wait_for_bodies(wanted)
    for producer in producers:
        producer.finish().stop()
    return bodies(consumer.stop())


@each(*CLIENTS)
@pytest.mark.slow
@pytest.mark.compatibility("transactions: kill -9 between half message and end")
def test_open_transactions_survive_a_kill(
    client: Client, received_after_a_kill: list[str]
) -> None:
    mine = [body for body in received_after_a_kill if body.endswith(client.name)]
    # The kill may have come between the commit and its record.
    assert set(mine) == {f"asked {client.name}", f"held {client.name}"}
