"""docker-compose.yml in real containers: served, through a kill and an upgrade."""

from __future__ import annotations

import itertools
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.clients.harness import AgentError, Session, bodies, numbered
from tests.clients.programs import JAVA_5
from tests.system.container_images import COMPOSER, PULSAR, ZOOKEEPER, lacking
from tests.system.containers import COMPOSE, Containers, base, name
from tests.system.deployment import understood
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.fixtures import Agents

NAME_SERVER = "127.0.0.1:9876;127.0.0.1:9877"
READY_S = 400
STOP_S = 30
NODES = ("ropeway-1", "ropeway-2")
SERVICES = ("zookeeper", "pulsar", *NODES)
EARLIER, NEWER = "localhost/ropeway:earlier", "localhost/ropeway:newer"
IMAGE_MB = 150
"""What the image may add to the one that it is made from."""
pytestmark = [pytest.mark.containers, pytest.mark.jvm, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    if (why := lacking(base(), ZOOKEEPER, PULSAR, COMPOSER)) is not None:
        pytest.skip(why)
    made = Containers(tmp_path_factory.mktemp("podman"))
    services = understood("compose", COMPOSE)["services"]
    made.build_ours(*{services[one]["image"] for one in NODES})
    made.tag(ZOOKEEPER, services["zookeeper"]["image"])
    made.tag(PULSAR, services["pulsar"]["image"])
    with made.up():
        for service in SERVICES:
            until(lambda service=service: made.healthy(service), READY_S)
        yield made


def accepted(session: Session, topic: str, message: dict[str, object]) -> bool:
    """Send a message once: refused until another node has taken over."""
    with suppress(AgentError):
        session.produce(topic, [message])
        return True
    return False


@pytest.mark.parametrize("service", NODES)
def test_a_node_has_no_rights_and_writes_nowhere_but_in_its_volume(
    containers: Containers, service: str
) -> None:
    assert containers.inside(service, "id", "-u") == "10876"
    status = containers.inside(service, "cat", "/proc/self/status")
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
    found = containers.inside(
        service, "sh", "-c", "touch /usr/x 2>&1; touch /data/x && echo written"
    )
    assert "Read-only file system" in found
    assert found.endswith("written")


def test_the_image_is_little_more_than_the_one_that_it_is_made_from(
    containers: Containers,
) -> None:
    added_mb = containers.image_mb("ropeway-1")
    print(f"the image adds {added_mb:.0f} MB")
    assert added_mb < IMAGE_MB


def test_a_java_client_goes_on_when_a_node_is_killed_and_nothing_is_lost(
    containers: Containers, agents: Agents
) -> None:
    session = Session(agents.of(JAVA_5), NAME_SERVER)
    containers.inside(
        *("ropeway-1", "ropeway", "topic", "create", "orders"),
        *("--name-server", "127.0.0.1:9875"),
    )
    first, second = numbered(20, "first"), numbered(20, "second")
    session.produce("orders", first)
    consumer = session.start("consume", topic="orders", group="readers")
    consumer.wait_for_bodies(bodies(first))
    containers.run("podman", "kill", "--signal=KILL", name("ropeway-1"))
    for message in second:
        until(lambda message=message: accepted(session, "orders", message), READY_S)
    received = consumer.wait_for_bodies(bodies([*first, *second]))
    assert {*bodies(received)} == {*bodies([*first, *second])}
    consumer.stop()
    containers.run("podman", "start", name("ropeway-1"))
    until(lambda: containers.healthy("ropeway-1"), READY_S)


def test_nodes_are_upgraded_and_taken_back_one_by_one_while_a_client_goes_on(
    containers: Containers, agents: Agents
) -> None:
    session = Session(agents.of(JAVA_5), NAME_SERVER)
    image = understood("compose", COMPOSE)["services"][NODES[0]]["image"]
    containers.tag(image, NEWER)
    containers.build_earlier(EARLIER, NEWER)
    consumer = session.start(
        "consume", topic="upgraded", group="keepers", **{"from": "FIRST_OFFSET"}
    )
    sent: list[dict[str, object]] = []
    sent_s: list[float] = []
    with ThreadPoolExecutor(1) as beside:
        for version, service in itertools.product((EARLIER, NEWER), NODES):
            containers.tag(version, image)
            replacing = beside.submit(containers.replace, service)
            while not (replacing.done() and containers.healthy(service)):
                message = {"body": f"message {len(sent)}"}
                until(partial(accepted, session, "upgraded", message), READY_S)
                sent.append(message)
                sent_s.append(time.monotonic())
            replacing.result()
            runs = containers.inside(service, "sh", "-c", "echo $PYTHONPATH")
            assert runs == ("/earlier" if version == EARLIER else "")
    gap_s = max(after - before for before, after in itertools.pairwise(sent_s))
    print(f"{len(sent)} messages were sent, {gap_s:.2f} s apart at most")
    received = consumer.wait_for_bodies(bodies(sent))
    assert {*bodies(received)} >= {*bodies(sent)}
    consumer.stop()


def test_a_node_ends_by_itself_at_sigterm(containers: Containers) -> None:
    containers.run("podman", "stop", f"--time={STOP_S}", name("ropeway-2"))
    state = containers.inspect("ropeway-2")["State"]
    assert state["ExitCode"] == 0
    containers.run("podman", "start", name("ropeway-2"))
    until(lambda: containers.healthy("ropeway-2"), READY_S)
