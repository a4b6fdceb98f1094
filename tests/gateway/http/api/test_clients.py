"""Clients that are connected."""

from urllib.parse import quote

from ropeway.client import MessageQueue, PushConsumer
from ropeway.client.query_consumer import QueryConsumer
from ropeway.client.running_queries import Batch, Query
from tests.gateway.http.site import send, serving
from tests.remoting import beat, looped


@looped
async def test_consumers_and_producers_are_shown_by_group(tmp_path):
    async with serving(tmp_path) as site:
        await beat(site.client, "me@host", "readers", producers=("billing", "stock"))
        (group,) = (await site.get("clients"))["groups"]
        assert group["group"] == "readers"
        assert [one["id"] for one in group["members"]] == ["me@host"]
        found = await site.get("clients", kind="producers", search="bill")
        assert found["total"] == 1
        (producer,) = found["groups"][0]["members"]
        assert (producer["id"], producer["language"]) == ("me@host", "JAVA")
        assert not producer["address"].startswith("/")


@looped
async def test_groups_without_clients_are_left_out(tmp_path):
    async with serving(tmp_path) as site:
        for number in range(60):
            await site.app.node.groups.ensure(f"a-sleeper-{number}")
        await beat(site.client, "me@host", "readers")
        found = await site.get("clients")
        assert [one["group"] for one in found["groups"]] == ["readers"]
        assert found["total"] == 1


@looped
async def test_a_consumer_says_its_queues_and_what_its_threads_do(tmp_path):
    async def handler(_: object) -> None: ...

    async with serving(tmp_path) as site:
        await send(site.client, "orders", 1)
        consumer = PushConsumer(
            site.app.server.listeners[0].advertised,
            "readers",
        )
        consumer.subscribe("orders", "*", handler)
        async with consumer:
            path = f"clients/{quote(consumer.client_id)}"
            found = {"queues": []}
            while not found["queues"]:
                found = await site.get(path, group="readers")
            assert "orders" in {one["topic"] for one in found["queues"]}
            assert "MainThread" in found["stack"]
            assert (found["answers"], found["id"]) == (True, consumer.client_id)
            assert found["queries"] == []


@looped
async def test_a_consumer_that_runs_queries_says_their_batches(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 1)
        address = site.app.server.listeners[0].advertised
        async with QueryConsumer(address, "readers") as consumer:
            query = Query("counts", [Batch(2_000, 7, 9, None, 250, 3)])
            await consumer.tell([query], {MessageQueue("orders", "broker-0", 0): 1})
            path = f"clients/{quote(consumer.client_id)}"
            found = await site.get(path, group="readers")
        (told,) = found["queries"]
        assert told["name"] == "counts"
        assert told["batches"] == [
            {
                "ended_ms": 2_000,
                "batch": 7,
                "rows_in": 9,
                "rows_out": None,
                "batch_ms": 250,
                "lag": 3,
            }
        ]


@looped
async def test_a_consumer_that_is_silent_or_gone_is_told_apart(tmp_path):
    async with serving(tmp_path) as site:
        await beat(site.client, "me@silent", "readers")
        silent = await site.get("clients/me@silent", group="readers")
        assert (silent["answers"], silent["queues"]) == (False, None)
        gone = await site.get("clients/me@gone", group="readers")
        assert (gone["answers"], gone["stack"]) == (True, None)
