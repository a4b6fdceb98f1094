"""Users and their policies, on the page."""

from tests.gateway.http.signed import guarded_site, sign_in
from tests.gateway.http.site import serving
from tests.guarded import ALICE, ROOT, allow
from tests.remoting import looped


@looped
async def test_users_and_policies_are_shown_to_who_may_look(tmp_path):
    async with guarded_site(tmp_path, allow("Topic:orders", "Pub", "Sub")) as site:
        await sign_in(site, ROOT)
        found = await site.get("users")
        assert {one["user"] for one in found["users"]} == {ROOT, ALICE, "nobody"}
        (policy,) = found["policies"]
        assert (policy["user"], policy["resource"]) == (ALICE, "Topic:orders")
        assert {one.lower() for one in policy["actions"]} == {"pub", "sub"}
        assert "hush" not in str(found)
        await sign_in(site, ALICE)
        refused = await site.get("users")
        assert (refused["users"], refused["policies"]) == ([], [])
        assert refused["reason"]
        assert refused["offered"] == []


@looped
async def test_without_access_control_there_are_no_users(tmp_path):
    async with serving(tmp_path) as site:
        assert "off" in (await site.get("users"))["reason"]
