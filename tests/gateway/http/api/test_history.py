"""The last hours and the last day, as the page asks for them."""

import pytest

from tests.gateway.http.signed import guarded_site, sign_in
from tests.gateway.http.site import send, serving
from tests.guarded import ALICE, allow
from tests.remoting import looped
from tests.requests import committing


@looped
async def test_each_kind_has_its_measures_in_each_range(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        await site.client.ask(committing("orders", 0, 1))
        for kind, name, measures in (
            ("broker", "", {"in", "out", "send_ms"}),
            ("topic", "orders", {"in"}),
            ("group", "readers", {"lag", "out"}),
        ):
            for wanted, count in (("hours", 180), ("day", 144)):
                found = await site.get("history", kind=kind, name=name, range=wanted)
                assert found["broker"] == "broker-0"
                assert found["series"].keys() == measures
                assert len(found["times_ms"]) == count
                assert {len(one) for one in found["series"].values()} == {count}


@looped
@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"kind": "client"}, "broker, topic, group"),
        ({"kind": "topic"}, "name"),
        ({"kind": "broker", "range": "year"}, "hours, day"),
    ],
)
async def test_what_is_not_kept_is_refused(tmp_path, params, sentence):
    async with serving(tmp_path) as site:
        assert sentence in await site.refused("history", **params)


@looped
async def test_who_may_not_look_at_a_thing_is_not_told_of_its_past(tmp_path):
    async with guarded_site(tmp_path, allow("Topic:orders", "Get")) as site:
        await sign_in(site, ALICE)
        assert await site.get("history", kind="topic", name="orders")
        for kind, name in (("topic", "bills"), ("group", "readers"), ("broker", "")):
            await site.refused("history", 403, kind=kind, name=name)
