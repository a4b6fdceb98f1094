"""Groups: the list and one of them."""

from msgspec import structs

from ropeway.gateway.node import names
from tests.gateway.http.site import send, serving
from tests.remoting import beat, looped
from tests.requests import committing, pulling


@looped
async def test_the_list_has_lags_and_who_is_there(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        await site.client.ask(pulling("orders"))
        await site.client.ask(committing("orders", 0, 1))
        await beat(site.client, "me@host", "readers")
        found = await site.get("groups")
        assert found["totals"].pop("out_rate") > 0
        assert found["groups"][0].pop("out_rate") > 0
        assert found == {
            "total": 1,
            "offset": 0,
            "totals": {"lag": 2, "consumers": 1},
            "groups": [
                {
                    "name": "readers",
                    "topics": 1,
                    "lag": 2,
                    "consumers": 1,
                    "model": "clustering",
                    "type": "push",
                }
            ],
        }


@looped
async def test_a_group_is_shown_with_its_queues_clients_and_history(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        await site.client.ask(committing("orders", 0, 1))
        await beat(site.client, "me@host", "readers")
        found = await site.get("groups/readers")
        assert found["queues"][0] == {
            "topic": "orders",
            "broker": "broker-0",
            "queue_id": 0,
            "done": 1,
            "end": 3,
            "lag": 2,
        }
        assert [point[1:] for point in found["history"]] == [[2, 1]]
        assert [one["id"] for one in found["members"]] == ["me@host"]
        assert found["subscriptions"] == [
            {"topic": "orders", "expression": "*", "type": "TAG"}
        ]


@looped
async def test_groups_are_sorted_by_lag_with_the_sum_of_all(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 9)
        for group, done in (("a", 8), ("b", 2), ("c", 5)):
            header = structs.replace(
                committing("orders", 0, done), consumer_group=group
            )
            await site.client.ask(header)
        found = await site.get("groups", sort="lag")
        assert [(one["name"], one["lag"]) for one in found["groups"]] == [
            *(("b", 7), ("c", 4), ("a", 1))
        ]
        assert found["totals"]["lag"] == 12


@looped
async def test_the_group_of_replays_has_no_lag_to_show(tmp_path):
    async with serving(tmp_path) as site:
        for group in ("readers", names.REPLAY_GROUP):
            await site.app.node.groups.ensure(group)
        found = await site.get("groups")
        assert [one["name"] for one in found["groups"]] == ["readers"]
        assert (await site.get("overview"))["groups"] == 1
