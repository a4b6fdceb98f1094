"""Moving a group's offsets from the page."""

import json

import pytest

from ropeway.gateway.config import HttpConfig
from tests.audited import audited, changes
from tests.gateway.http.signed import HEADERS, guarded_site, sign_in
from tests.gateway.http.site import send, serving
from tests.guarded import ALICE, ROOT, allow
from tests.remoting import looped
from tests.requests import committing

WRITABLE = HttpConfig(port=0, writable=True)
PATH = "/api/groups/readers/offsets"


async def move(site, **wanted):
    body = {"topic": "orders", "to": "latest", **wanted}
    return await site.ask(PATH, "POST", data=json.dumps(body), headers=HEADERS)


async def lag(site) -> int:
    queues = (await site.get("groups/readers"))["queues"]
    return sum(one["lag"] for one in queues)


@looped
async def test_a_group_is_moved_after_a_look_at_what_would_be(tmp_path):
    async with serving(tmp_path, WRITABLE) as site:
        await send(site.client, "orders", 5)
        await site.app.node.groups.ensure("readers")
        await site.client.ask(committing("orders", 0, 1))
        planned = await move(site)
        assert planned.status == 200, planned
        assert planned.json["dry_run"]
        first = {"broker": "broker-0", "queue_id": 0, "before": 1, "after": 5}
        assert first in planned.json["moved"]
        assert await lag(site) == 4
        done = await move(site, dry_run=False)
        assert first in done.json["moved"]
        assert await lag(site) == 0
        await move(site, to=0, dry_run=False)
        assert await lag(site) == 5


@looped
@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"to": "nowhere"}, 400),
        ({"to": -1}, 400),
        ({"more": 1}, 400),
        ({"topic": "nosuch"}, 404),
    ],
)
async def test_what_makes_no_sense_is_refused(tmp_path, wanted, status):
    async with serving(tmp_path, WRITABLE) as site:
        await send(site.client, "orders", 1)
        answer = await move(site, **wanted)
        assert answer.status == status
        assert answer.json["error"]


@looped
async def test_a_page_that_only_shows_moves_nothing(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 1)
        assert (await move(site)).status == 403


@looped
async def test_rights_decide_and_the_audit_log_has_who_did_it(tmp_path):
    rules = allow("Topic:orders", "Get"), allow("Group:readers", "Get")
    async with guarded_site(
        tmp_path, *rules, http=WRITABLE, audit=audited(tmp_path)
    ) as site:
        await site.app.node.groups.ensure("readers")
        await sign_in(site, ALICE)
        assert (await move(site, dry_run=False)).status == 403
        await sign_in(site, ROOT)
        assert (await move(site, dry_run=False)).status == 200
    (line,) = changes(tmp_path, "RESET")
    assert (line["principal"], line["address"]) == (f"users:{ROOT}", "127.0.0.1")
    assert line["channel"] == "http"
