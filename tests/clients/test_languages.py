"""Each client reads what every other client sent."""

from collections.abc import Callable

import pytest

from tests.clients.harness import Event, Session, bodies
from tests.clients.programs import CLIENTS, Client, each

Open = Callable[[Client], Session]
TOPIC = "languages"
COMPRESSIBLE = "to be compressed by the client, " * 2_000


def messages_of(client: Client) -> list[Event]:
    """What one client sends: plain, beyond ASCII, and long enough to be compressed."""
    common = {"tags": "TagA", "keys": client.name.replace(" ", "-")}
    texts = ["plain", "Grüße, 你好", COMPRESSIBLE]
    return [{"body": f"{client.name}: {text}", **common} for text in texts]


@pytest.fixture(scope="module")
def sent(request: pytest.FixtureRequest) -> list[Event]:
    """What all clients together sent to one topic."""
    agents, server = map(request.getfixturevalue, ("agents", "server"))
    for client in CLIENTS:
        Session(agents.of(client), server.name_server).produce(
            TOPIC, messages_of(client)
        )
    return [message for client in CLIENTS for message in messages_of(client)]


@pytest.mark.jvm
@pytest.mark.go
@each(*CLIENTS)
@pytest.mark.compatibility("reads what every other client sent, compressed too")
def test_a_client_reads_what_every_other_client_sent(
    client: Client, sent: list[Event], session: Open, group: str
) -> None:
    consumer = session(client).start("consume", topic=TOPIC, group=group, tags="TagA")
    received = consumer.wait_for_bodies(bodies(sent))
    consumer.stop()
    assert sorted(bodies(received)) == sorted(bodies(sent))
    by_body = {one["body"]: one for one in received}
    for message in sent:
        assert by_body[message["body"]]["keys"] == message["keys"]
