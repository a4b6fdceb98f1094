"""Groups that the page makes, changes and deletes."""

import pytest

from tests.audited import audited, changes
from tests.gateway.http.api.changing import WRITABLE, change
from tests.gateway.http.signed import guarded_site, sign_in
from tests.gateway.http.site import serving
from tests.guarded import ALICE, allow
from tests.remoting import looped


@looped
async def test_a_group_is_made_changed_and_deleted(tmp_path):
    async with serving(tmp_path, WRITABLE, audit=audited(tmp_path)) as site:
        made = await change(site, "POST", "groups", name="readers", retry_max_times=3)
        assert (made.status, made.json) == (201, {"name": "readers"})
        again = await change(site, "POST", "groups", name="readers")
        assert again.status == 409
        assert "exists already" in again.json["error"]
        wanted = {"consume_enable": False, "broadcast_enable": False}
        assert (await change(site, "PUT", "groups/readers", **wanted)).status == 200
        found = await site.get("groups/readers")
        assert (found["consume_enable"], found["retry_max_times"]) == (False, 16)
        assert found["offered"] == ["update", "delete", "move"]
        assert (await change(site, "DELETE", "groups/readers")).status == 200
        await site.refused("groups/readers", 404)
    lines = changes(tmp_path, "GROUP")
    assert len(lines) >= 3
    assert {line["channel"] for line in lines} == {"http"}


@looped
@pytest.mark.parametrize(
    ("method", "path", "wanted", "status"),
    [
        ("POST", "groups", {"name": "a b"}, 400),
        ("POST", "groups", {"name": "readers", "retry_max_times": -1}, 400),
        ("PUT", "groups/nosuch", {"retry_max_times": 1}, 404),
        ("DELETE", "groups/nosuch", {}, 404),
    ],
)
async def test_what_makes_no_sense_is_refused(tmp_path, method, path, wanted, status):
    async with serving(tmp_path, WRITABLE) as site:
        answer = await change(site, method, path, **wanted)
        assert answer.status == status, answer
        assert answer.json["error"]


@looped
async def test_who_may_only_look_is_offered_nothing_and_changes_nothing(tmp_path):
    rules = (allow("Group:readers", "Get"), allow("Cluster:*", "Get"))
    async with guarded_site(tmp_path, *rules, http=WRITABLE) as site:
        await site.app.node.groups.ensure("readers")
        await sign_in(site, ALICE)
        assert (await site.get("groups/readers"))["offered"] == []
        assert (await change(site, "DELETE", "groups/readers")).status == 403
        wanted = {"consume_enable": False}
        assert (await change(site, "PUT", "groups/readers", **wanted)).status == 403
