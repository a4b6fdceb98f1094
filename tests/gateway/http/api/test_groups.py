"""Groups: the list and one of them."""

from tests.gateway.http.site import send, serving
from tests.remoting import beat, committing, looped


@looped
async def test_the_list_has_lags_and_who_is_there(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        await site.client.ask(committing("orders", 0, 1))
        await beat(site.client, "me@host", "readers")
        assert await site.get("groups") == {
            "total": 1,
            "offset": 0,
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
