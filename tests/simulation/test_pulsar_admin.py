"""The model of Pulsar's admin REST answers what a real one does."""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest

from ropeway.storage.pulsar.owner import PREFIX
from ropeway.storage.pulsar.pulsar_id import definition
from ropeway.storage.pulsar.selftest import POLICIES
from tests import chance
from tests.simulation import pulsar_admin
from tests.simulation.loop import SimulatedLoop
from tests.simulation.network import Network
from tests.simulation.pulsar_admin import Answer, Asked, answered
from tests.simulation.pulsar_brokers import Pulsar as Model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.system.pulsar import Pulsar

SEEDS = range(4)
STEPS = 120
TIMEOUT_S = 120.0
SHOWN_S = 30.0
"""A real broker answers from caches for a moment."""
TOPICS = ("plain", "parts", "more")
MOST_PARTITIONS = 4
CONTENT = {
    False: "application/json",
    True: "application/vnd.partitioned-topic-metadata+json",
}


class Step(NamedTuple):
    """A request; `SPACE` in its path is a namespace of its own."""

    method: str
    path: str
    body: Any = None


def steps(seed: int) -> Iterator[Step]:
    """Requests that are made from a seed."""
    draw = random.Random(f"{seed}/admin")

    def topic() -> str:
        return f"persistent/SPACE/{draw.choice(TOPICS)}"

    def partition() -> str:
        return f"{topic()}-partition-{draw.randrange(MOST_PARTITIONS)}"

    def either() -> str:
        return draw.choice([topic, partition])()

    def schema() -> str:
        return f"schemas/SPACE/{draw.choice(TOPICS)}/schema"

    def policy() -> Step:
        one = draw.choice(POLICIES)
        return Step("POST", f"namespaces/SPACE/{one.path}", one.value)

    def partitioned() -> Step:
        count = draw.randint(1, MOST_PARTITIONS)
        body = draw.choice([count, {"partitions": count, "properties": {"a": "b"}}])
        return Step("PUT", f"{topic()}/partitions", body)

    def defined() -> Step:
        text = definition(f"{draw.randrange(3)}")
        return Step(
            "POST", schema(), {"type": "AVRO", "schema": text, "properties": {}}
        )

    key = f"{PREFIX}1f2e"
    kinds: list[Callable[[], Step]] = [
        lambda: Step("PUT", "namespaces/SPACE", {}),
        lambda: Step("PUT", "namespaces/nobody/here", {}),
        lambda: Step("GET", "namespaces/SPACE"),
        policy,
        lambda: Step("PUT", "namespaces/SPACE/properties", {key: str(draw.random())}),
        lambda: Step("DELETE", f"namespaces/SPACE/property/{key}"),
        lambda: Step("GET", "persistent/SPACE"),
        lambda: Step("GET", "persistent/SPACE"),
        *[partitioned] * 6,
        *[lambda: Step("GET", f"{either()}/partitions")] * 3,
        *[lambda: Step("POST", f"{topic()}/partitions", draw.randint(1, 4))] * 2,
        lambda: Step("POST", f"{topic()}/createMissedPartitions"),
        lambda: Step("DELETE", f"{topic()}/partitions?force=true"),
        lambda: Step("PUT", topic(), {}),
        lambda: Step("DELETE", f"{topic()}?force=true"),
        *[lambda: Step("DELETE", f"{partition()}?force=true")] * 2,
        lambda: Step("GET", schema()),
        defined,
        lambda: Step("GET", f"{either()}/internalStats"),
        lambda: Step("GET", f"{partition()}/compaction"),
        lambda: Step("PUT", f"{partition()}/unload"),
    ]
    yield Step("GET", "persistent/SPACE")
    yield policy()
    yield Step("PUT", "namespaces/SPACE", {})
    for _ in range(STEPS):
        yield draw.choice(kinds)()


def plain(step: Step, status: int, content: Any) -> tuple[Any, ...]:
    """What of an answer both have to say."""
    if step.method != "GET" or status != HTTPStatus.OK:
        return (status,)
    if step.path.endswith("/schema"):
        return status, content["data"]
    if step.path.endswith("/partitions"):
        return status, content["partitions"], content.get("properties") or {}
    if step.path.startswith("namespaces/"):
        names = ("properties", *pulsar_admin.POLICIES.values())
        return status, {name: content.get(name) or None for name in names}
    if step.path.endswith("/internalStats"):
        entries = [one["entries"] for one in content["ledgers"]]
        return status, entries, content["currentLedgerEntries"]
    return status, content


def modelled(seed: int, space: str) -> list[tuple[Step, tuple[Any, ...]]]:
    """What the model answers."""
    loop = SimulatedLoop()
    model = Model(Network(loop, random.Random(seed)), random.Random(seed), 1)
    lines = []
    for step in steps(seed):
        path, _, query = step.path.replace("SPACE", space).partition("?")
        given = dict(one.split("=") for one in query.split("&") if one)
        answer: Answer = answered(
            model.brokers[0], Asked(step.method, path, given, step.body)
        )
        content = json.loads(msgspec.json.encode(answer.content))
        lines.append((step, plain(step, answer.status, content)))
    loop.close()
    return lines


def real(pulsar: Pulsar, space: str, step: Step) -> tuple[Any, ...]:
    """What a real server answers."""
    has_properties = step.path.endswith("/partitions") and isinstance(step.body, dict)
    request = urllib.request.Request(
        f"{pulsar.admin_url}/admin/v2/{step.path.replace('SPACE', space)}",
        method=step.method,
        data=None if step.body is None else json.dumps(step.body).encode(),
        headers={"Content-Type": CONTENT[has_properties]},
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
            text, status = reply.read(), reply.status
    except urllib.error.HTTPError as error:
        with error:
            return (error.code,)
    return plain(step, status, json.loads(text) if text[:1] in b"{[" and text else None)


def compare(pulsar: Pulsar, space: str, seed: int) -> None:
    """Have a real server do what the model has done."""
    for number, (step, expected) in enumerate(modelled(seed, space)):
        until_s = time.monotonic() + SHOWN_S
        while (found := real(pulsar, space, step)) != expected:
            if step.method != "GET" or time.monotonic() > until_s:
                break
            time.sleep(0.05)
        assert found == expected, (
            f"seed {seed}, step {number}: {step}\nmodel {expected}\nreal  {found}"
        )


@pytest.mark.jvm
@pytest.mark.server
@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_answers_what_a_real_server_does(pulsar: Pulsar, seed: int) -> None:
    compare(pulsar, f"public/admin-{seed}", seed)


@pytest.mark.jvm
@pytest.mark.server
def test_the_model_answers_fresh_requests_as_a_real_server_does(pulsar: Pulsar) -> None:
    seed = chance.seed()
    compare(pulsar, f"public/admin-fresh-{seed}", seed)
