"""Topics: the list and one of them."""

import pytest

from tests.gateway.http.site import send, serving
from tests.remoting import committing, looped


@looped
async def test_the_list_has_users_topics_with_rates(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        found = await site.get("topics")
        (orders,) = found["topics"]
        assert found["total"] == 1
        assert orders.pop("in_rate") > 0
        assert orders == {
            "name": "orders",
            "kind": "normal",
            "brokers": ["broker-0"],
            "queues": 4,
            "read_queues": 4,
            "permissions": ["read", "write"],
            "order": False,
            "attributes": {},
        }


@looped
@pytest.mark.parametrize(
    ("kind", "there", "not_there"),
    [("system", "TBW102", "orders"), ("all", "orders", "x"), ("retry", None, "orders")],
)
async def test_other_kinds_are_shown_when_asked_for(tmp_path, kind, there, not_there):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 1)
        names = [one["name"] for one in (await site.get("topics", kind=kind))["topics"]]
        assert there is None or there in names
        assert not_there not in names


@looped
async def test_a_topic_is_shown_with_its_queues_and_groups(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        await site.client.ask(committing("orders", 0, 2))
        found = await site.get("topics/orders")
        assert found["groups"] == ["readers"]
        partitions = site.app.node.routes.topics["orders"].route["broker-0"]
        assert found["spans"] == [
            {
                "broker": "broker-0",
                "queue_id": number,
                "partition": partitions[number],
                "first": 0,
                "end": 0 if number else 3,
            }
            for number in range(4)
        ]
