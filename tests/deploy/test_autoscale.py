"""KEDA's query, asked of what nodes tell by the engine that Prometheus asks it with.

KEDA's Prometheus scaler asks a query at a moment, takes no answer but one number, and
wants as many consumers as that number has thresholds in it, rounded up.
Source: pkg/scalers/prometheus_scaler.go, KEDA 2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import yaml
from msgspec.structs import replace

from tests.deploy.test_alerts import firing
from tests.gateway.http.site import send, serving
from tests.guides import FILES
from tests.remoting import looped
from tests.requests import committing

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.http.site import Site

pytestmark = pytest.mark.go

(TRIGGER,) = yaml.safe_load(FILES["kitchen-scaler.yaml"])["spec"]["triggers"]
QUERY, THRESHOLD = TRIGGER["metadata"]["query"], float(TRIGGER["metadata"]["threshold"])

COMMITS = (("orders", "kitchen", 1), ("prices", "kitchen", 0), ("orders", "readers", 0))


async def told(site: Site, broker: str) -> list[str]:
    """What a node's page has, as series; of a broker of this name."""
    text = (await site.ask("/metrics")).body.decode()
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [one.replace('"broker-0"', f'"{broker}"') for one in lines]


def consumers(path: Path, *cases: list[str]) -> list[list[str]]:
    """How many consumers KEDA would want in each case; `one` where it is answered."""
    rules = [
        {"alert": f"{count}", "expr": f"ceil(({QUERY}) / {THRESHOLD:g}) == {count}"}
        for count in range(4)
    ]
    rules.append({"alert": "one", "expr": f"count({QUERY}) == 1"})
    path.write_text(yaml.safe_dump({"groups": [{"name": "keda", "rules": rules}]}))
    return firing(*cases, rules=path)


@looped
async def test_as_many_consumers_are_wanted_as_the_lag_of_all_brokers_needs(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as site:
        client = site.client
        none = await told(site, "broker-0")
        for topic in ("orders", "prices"):
            await send(client, topic, 3)
        for topic, group, at in COMMITS:
            commit = replace(committing(topic, 0, at), consumer_group=group)
            assert (await client.ask(commit)).code == 0
        few = await told(site, "broker-0")
        commit = replace(committing("orders", 0, 3), consumer_group="kitchen")
        assert (await client.ask(commit)).code == 0
        done = await told(site, "broker-0")
    lag = next(
        one
        for one in few
        if one.startswith("rocketmq_consumer_lag_messages{")
        and 'consumer_group="kitchen"' in one
        and 'topic="orders"' in one
    )
    assert lag.endswith(" 2")
    many = [one.replace(lag, f"{lag[:-2]} 1001") for one in few]
    other = [one.replace('"broker-0"', '"broker-1"') for one in many]
    found = consumers(tmp_path / "keda.yaml", none, few, done, many, [*many, *other])
    assert found == [[], ["1", "one"], ["0", "one"], ["2", "one"], ["3", "one"]]
    assert math.ceil(2 * 1001 / THRESHOLD) == 3
