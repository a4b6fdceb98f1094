"""What access control would decide, on the page."""

from tests.gateway.http.signed import guarded_site, sign_in
from tests.gateway.http.site import serving
from tests.guarded import ALICE, ROOT, allow
from tests.remoting import looped


@looped
async def test_a_decision_is_explained(tmp_path):
    async with guarded_site(tmp_path, allow("Topic:orders", "Pub")) as site:
        await sign_in(site, ROOT)
        asked = {"principal": ALICE, "name": "orders"}
        found = await site.get("access", **asked)
        assert found["allowed"] is True
        assert found["hook"] == "users"
        assert found["principal"] == "users:alice"
        assert "orders" in found["rule"]
        found = await site.get("access", action="sub", **asked)
        assert found["allowed"] is False
        found = await site.get("access", principal="mallory", name="orders")
        assert found["principal"] is None


@looped
async def test_what_cannot_be_asked_says_why(tmp_path):
    async with guarded_site(tmp_path) as site:
        await sign_in(site, ROOT)
        asked = {"principal": ALICE, "name": "orders"}
        assert "principal is missing" in await site.refused("access", name="x")
        assert "an IP address" in await site.refused("access", **asked, **{"from": "x"})
        assert "allowed: topic" in await site.refused("access", **asked, kind="x") or (
            "allowed: cluster" in await site.refused("access", **asked, kind="x")
        )


@looped
async def test_where_it_is_off_that_is_told(tmp_path):
    async with serving(tmp_path) as site:
        told = await site.refused("access", 409, principal="x", name="y")
        assert "access control is off" in told
