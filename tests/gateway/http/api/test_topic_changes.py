"""Topics that the page makes, changes and deletes, and messages that it sends."""

import pytest

from tests.audited import audited, changes
from tests.gateway.http.api.changing import WRITABLE, change
from tests.gateway.http.signed import guarded_site, sign_in
from tests.gateway.http.site import send, serving
from tests.guarded import ALICE, allow
from tests.remoting import looped


@looped
async def test_a_topic_is_made_changed_and_deleted(tmp_path):
    async with serving(tmp_path, WRITABLE, audit=audited(tmp_path)) as site:
        made = await change(site, "POST", "topics", name="orders", queues=2)
        assert (made.status, made.json) == (201, {"name": "orders"})
        again = await change(site, "POST", "topics", name="orders", queues=2)
        assert (again.status, again.json["error"]) == (
            409,
            "topic orders exists already",
        )
        wanted = {"queues": 3, "permissions": ["read"]}
        assert (await change(site, "PUT", "topics/orders", **wanted)).status == 200
        found = await site.get("topics/orders")
        assert (found["queues"], found["permissions"]) == (3, ["read"])
        assert found["offered"] == ["update", "delete", "send"]
        assert (await change(site, "DELETE", "topics/orders")).status == 200
        await site.refused("topics/orders", 404)
    for line in changes(tmp_path, "TOPIC"):
        assert (line["channel"], line["address"]) == ("http", "127.0.0.1")
        assert line["resource"] == "Topic:orders"


@looped
async def test_a_message_is_sent_and_the_audit_log_has_who_sent_it(tmp_path):
    async with serving(tmp_path, WRITABLE, audit=audited(tmp_path)) as site:
        await send(site.client, "orders", 1)
        wanted = {"body": "two coffees", "tag": "paid", "keys": ["k7"]}
        sent = await change(site, "POST", "topics/orders/messages", **wanted)
        assert sent.status == 201, sent
        (found,) = (await site.get("messages", topic="orders", key="k7"))["messages"]
        assert found["key_id"] == sent.json["key_id"]
        assert (found["start"], found["tag"]) == ("two coffees", "paid")
    (line,) = changes(tmp_path, "PAGE_SEND")
    assert line["resource"] == f"Topic:orders Message:{sent.json['key_id']}"
    assert line["channel"] == "http"


@looped
@pytest.mark.parametrize(
    ("method", "path", "wanted", "status"),
    [
        ("POST", "topics", {"name": "a b", "queues": 1}, 400),
        ("POST", "topics", {"name": "stock", "queues": 0}, 400),
        ("POST", "topics", {"name": "stock", "queues": 1, "permissions": ["x"]}, 400),
        ("PUT", "topics/nosuch", {"queues": 1}, 404),
        ("DELETE", "topics/nosuch", {}, 404),
        ("POST", "topics/nosuch/messages", {"body": "x"}, 404),
        ("POST", "topics/orders/messages", {"body": ""}, 400),
        ("POST", "topics/orders/messages", {"body": "x", "more": 1}, 400),
        ("DELETE", "topics/TBW102", {}, 400),
    ],
)
async def test_what_makes_no_sense_is_refused(tmp_path, method, path, wanted, status):
    async with serving(tmp_path, WRITABLE) as site:
        await send(site.client, "orders", 1)
        answer = await change(site, method, path, **wanted)
        assert answer.status == status, answer
        assert answer.json["error"]


@looped
async def test_a_page_that_only_shows_changes_and_offers_nothing(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 1)
        for method, path in (("POST", "topics"), ("DELETE", "topics/orders")):
            assert (await change(site, method, path)).status == 403
        assert (await site.get("topics/orders"))["offered"] == []


@looped
async def test_rights_decide_and_what_is_only_shown_is_no_attempt(tmp_path):
    rules = allow("Topic:orders", "Get", "Pub", "Create"), allow("Cluster:*", "Get")
    log = audited(tmp_path)
    async with guarded_site(tmp_path, *rules, http=WRITABLE, audit=log) as site:
        await sign_in(site, ALICE)
        before = site.app.node.audit.counts["attempt"]
        assert (await site.get("topics/orders"))["offered"] == ["update", "send"]
        assert site.app.node.audit.counts["attempt"] == before
        assert (await change(site, "DELETE", "topics/orders")).status == 403
        wanted = {"queues": 2}
        assert (await change(site, "PUT", "topics/orders", **wanted)).status == 200
        wanted = {"body": "x"}
        sent = await change(site, "POST", "topics/orders/messages", **wanted)
        assert sent.status == 201
    for request in ("UPDATE_AND_CREATE_TOPIC", "PAGE_SEND"):
        *_, line = changes(tmp_path, request)
        assert (line["principal"], line["channel"]) == (f"users:{ALICE}", "http")
