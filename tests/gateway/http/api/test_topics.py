"""Topics: the list and one of them."""

import pytest

from ropeway.gateway.http.api import paging
from tests.gateway.http.site import send, serving
from tests.remoting import looped
from tests.requests import committing


@looped
async def test_the_list_has_users_topics_with_rates(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        found = await site.get("topics")
        (orders,) = found["topics"]
        assert found["total"] == 1
        assert orders.pop("in_rate") > 0
        size = orders.pop("in_bytes_day")
        assert size > 3 * 91
        assert orders.pop("approx_bytes") == size
        assert orders.pop("in_bytes_rate") > orders.pop("in_day") == 3
        assert orders == {
            "name": "orders",
            "kind": "normal",
            "brokers": ["broker-0"],
            "queues": 4,
            "read_queues": 4,
            "permissions": ["read", "write"],
            "order": False,
            "attributes": {},
            "messages": 3,
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
        (group,) = found["groups"]
        assert group.pop("approx_lag_bytes") * 3 == pytest.approx(found["approx_bytes"])
        assert group == {"name": "readers", "lag": 1}
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


@looped
async def test_topics_are_sorted_by_what_they_hold_with_the_sums_of_all(tmp_path):
    async with serving(tmp_path) as site:
        for number, topic in enumerate(("a", "b", "c"), 1):
            await send(site.client, topic, 3 * number % 7)
        found = await site.get("topics", sort="messages", limit="2")
        assert [(one["name"], one["messages"]) for one in found["topics"]] == [
            ("b", 6),
            ("a", 3),
        ]
        assert (found["total"], found["totals"]["messages"]) == (3, 11)
        rest = await site.get("topics", sort="messages", limit="2", offset="2")
        assert [one["name"] for one in rest["topics"]] == ["c"]
        by_name = await site.get("topics", limit="2")
        assert (by_name["total"], by_name["totals"]) == (3, None)
        assert (
            "in_rate, in_bytes_rate, in_day, in_bytes_day, messages, approx_bytes"
            in await site.refused("topics", sort="size")
        )


@looped
async def test_too_many_topics_to_sort_are_refused_until_somebody_searches(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(paging, "MOST_SORTED", 2)
    async with serving(tmp_path) as site:
        for topic in ("a1", "a2", "b1"):
            await send(site.client, topic, 1)
        assert "search first" in await site.refused("topics", sort="in_rate")
        found = await site.get("topics", sort="in_rate", search="a")
        assert found["total"] == 2
