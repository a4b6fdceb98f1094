"""Clients that are connected."""

from tests.gateway.http.site import serving
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
        await site.app.node.groups.ensure("sleepers")
        found = await site.get("clients")
        assert (found["total"], found["groups"]) == (1, [])
