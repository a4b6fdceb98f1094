"""Signing in to the page: who gets in, what they see, and how it ends."""

from __future__ import annotations

import base64

import pytest

from ropeway.gateway.config import HttpConfig
from ropeway.gateway.http import sessions
from ropeway.gateway.http.attempts import FREE, Attempts
from ropeway.gateway.node import names
from ropeway.routing.api import Group
from tests.gateway.http.signed import HEADERS, guarded_site, sign_in
from tests.gateway.http.site import serving
from tests.guarded import ALICE, NOBODY, PASSWORD, ROOT, allow, ask
from tests.remoting import looped
from tests.requests import sending

EXPLAINED = "access?principal=alice&action=pub&kind=topic&name=orders"
ADDRESSES = [
    "overview",
    "topics",
    "topics/orders",
    "groups",
    "groups/readers",
    "clients",
    "clients?kind=producers",
    "messages?topic=orders",
    "messages/x?topic=orders",
    "dead-letters",
    "dead-letters/readers",
    "routes/orders",
    "access?principal=alice&name=orders",
]


@looped
async def test_without_signing_in_probes_and_metrics_alone_are_answered(tmp_path):
    async with guarded_site(tmp_path) as site:
        for path in ADDRESSES:
            answer = await site.ask(f"/api/{path}")
            assert answer.status == 401, path
            assert "sign in first" in answer.json["error"]
        for path in ("/", "/healthz", "/readyz", "/metrics"):
            assert (await site.ask(path)).status == 200, path
        known = {"needed": True, "name": None, "writable": False}
        assert await site.get("session") == known


@looped
@pytest.mark.parametrize(
    ("who", "password"),
    [
        (ALICE, "wrong"),
        (ALICE, ""),
        ("mallory", PASSWORD),
        ("\u0430lice", PASSWORD),
        ("x" * 8192, PASSWORD),
    ],
)
async def test_wrong_credentials_do_not_get_in_and_are_not_told_apart(
    tmp_path, who, password
):
    async with guarded_site(tmp_path) as site:
        answer = await sign_in(site, who, password)
        assert answer.status == 401
        assert answer.json["error"] == "the access key, signature or token is not valid"
        assert "Set-Cookie" not in answer.headers


@looped
@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b'{"access_key": 1}', b'{"access_key": ""}', b"\xff"],
)
async def test_what_is_no_sign_in_is_refused(tmp_path, body):
    async with guarded_site(tmp_path) as site:
        answer = await site.ask("/api/session", "POST", data=body, headers=HEADERS)
        assert answer.status == 400
        assert "allowed" in answer.json["error"]


@looped
async def test_a_foreign_page_cannot_sign_anybody_in(tmp_path):
    async with guarded_site(tmp_path) as site:
        body = {"access_key": ROOT, "secret_key": PASSWORD}
        for headers in ({}, {**HEADERS, "Origin": "http://evil.example"}):
            answer = await site.ask("/api/session", "POST", json=body, headers=headers)
            assert answer.status == 403


@looped
async def test_a_superuser_sees_everything_and_no_script_reads_the_cookie(tmp_path):
    async with guarded_site(tmp_path) as site:
        answer = await sign_in(site, ROOT)
        assert answer.status == 200
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "Path=/api" in cookie
        assert PASSWORD not in cookie
        assert (await site.get("session"))["name"] == ROOT
        overview = await site.get("overview")
        assert overview["brokers"][0]["error"] is None
        assert overview["topics"] == 1
        assert [one["name"] for one in (await site.get("topics"))["topics"]] == [
            "orders"
        ]
        assert (await site.get("topics/orders"))["groups"] == []
        assert (await site.get("messages", topic="orders"))["messages"] == []
        assert (await site.get("routes/orders"))["topic"] == "orders"


@looped
async def test_brokers_refuse_on_the_page_what_they_refuse_elsewhere(tmp_path):
    rules = allow("Cluster:*", "Get"), allow("Topic:payments", "Get")
    async with guarded_site(tmp_path, *rules) as site:
        await sign_in(site, ALICE)
        assert (await site.get("overview"))["brokers"][0]["error"] is None
        for path in ("topics/orders", "routes/orders", "topics"):
            assert "alice may not" in await site.refused(path, 403)
        assert "alice may not Sub or Get" in await site.refused(
            "messages", 403, topic="orders"
        )
        assert "alice may not" in await site.refused("groups", 403)
        # It may look at this one, which is not there.
        assert "there is no topic" in await site.refused("topics/payments", 404)
        # The page itself knows nothing of these: brokers refuse who looks.
        await sign_in(site, NOBODY)
        for path in ("overview", "clients?kind=producers", EXPLAINED):
            assert "nobody may not Get Cluster:" in await site.refused(path, 403)


@looped
async def test_who_has_no_permission_sees_nothing(tmp_path):
    async with guarded_site(tmp_path) as site:
        await sign_in(site, NOBODY)
        for path in ADDRESSES:
            answer = await site.ask(f"/api/{path}")
            assert answer.status in (403, 404), (path, answer)
            assert "orders" not in answer.json["error"] or answer.status == 403


@looped
async def test_who_may_not_see_a_name_is_not_told_whether_it_is_there(tmp_path):
    """As with brokers: the same status and the same sentence."""
    there, absent = "there", "absent"
    async with guarded_site(tmp_path) as site:
        node = site.app.node
        await node.groups.put(Group(name=there))
        for name in (there, names.dlq_topic(there), names.retry_topic(there)):
            await node.topics.ensure_derived(name, 1)
        await sign_in(site, NOBODY)
        for path in (
            "topics/NAME",
            "groups/NAME",
            "routes/NAME",
            "dead-letters/NAME",
            "messages?topic=NAME",
            "messages/x?topic=NAME",
            "topics/%25DLQ%25NAME",
            "topics/%25RETRY%25NAME",
        ):
            told = [
                (answer.status, answer.json["error"].replace(name, "NAME"))
                for name in (there, absent)
                for answer in [await site.ask(f"/api/{path.replace('NAME', name)}")]
            ]
            assert told[0] == told[1], path
        replays = [
            await site.ask(
                f"/api/dead-letters/{name}/replay",
                "POST",
                json={"messages": ["x"]},
                headers=HEADERS,
            )
            for name in (there, absent)
        ]
        assert [one.status for one in replays] == [403, 403]


@looped
async def test_who_is_disabled_or_signs_out_is_out_at_once(tmp_path):
    async with guarded_site(tmp_path, allow("Cluster:*", "Get")) as site:
        await sign_in(site, ALICE)
        await site.get("overview")
        users = site.app.node.guard.administration
        await users.update_user(ALICE, enabled=False)
        await site.refused("overview", 401)
        await sign_in(site, ROOT)
        await site.get("overview")
        answer = await site.ask("/api/session", "DELETE", headers=HEADERS)
        assert answer.status == 200
        await site.refused("overview", 401)


@looped
async def test_where_access_control_is_off_nobody_signs_in(tmp_path):
    async with serving(tmp_path) as site:
        known = {"needed": False, "name": None, "writable": False}
        assert await site.get("session") == known
        answer = await sign_in(site, ROOT)
        assert answer.status == 409
        assert "access control is off" in answer.json["error"]


@looped
async def test_a_dry_run_asks_nobody_to_sign_in(tmp_path):
    async with guarded_site(tmp_path, dry_run=True) as site:
        assert (await site.get("session"))["needed"] is False
        await site.get("overview")


@looped
async def test_metrics_are_guarded_where_that_is_configured(tmp_path):
    http = HttpConfig(port=0, guard_metrics=True)

    def basic(who: str, password: str = PASSWORD) -> dict[str, str]:
        text = base64.b64encode(f"{who}:{password}".encode()).decode()
        return {"Authorization": f"Basic {text}"}

    async with guarded_site(tmp_path, http=http) as site:
        for headers, status in (
            ({}, 401),
            (basic(ROOT), 200),
            (basic(ROOT, "wrong"), 401),
            (basic(NOBODY), 403),
            ({"Authorization": "Basic !"}, 401),
            ({"Authorization": "Bearer root"}, 401),
            ({"Authorization": "Digest x"}, 401),
        ):
            answer = await site.ask("/metrics", headers=headers)
            assert answer.status == status, headers


@looped
async def test_guessing_is_slowed_down_and_the_metrics_are_no_way_around(
    tmp_path, monkeypatch
):
    # No pause is over before the next guess, however busy the machine is.
    monkeypatch.setattr(sessions, "Attempts", lambda _: Attempts(lambda: 0.0))
    http = HttpConfig(port=0, guard_metrics=True)
    async with guarded_site(tmp_path, http=http) as site:
        for _ in range(FREE):
            assert (await sign_in(site, ALICE, "wrong")).status == 401
        # Not even the right one is looked at meanwhile: it would tell.
        answer = await sign_in(site, ALICE, PASSWORD)
        assert answer.status == 429
        assert "try again in" in answer.json["error"]
        basic = base64.b64encode(f"{ALICE}:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"Basic {basic}"}
        assert (await site.ask("/metrics", headers=headers)).status == 429
        assert (await sign_in(site, ROOT)).status == 200


@looped
async def test_the_page_shows_no_system_topic_but_to_a_superuser(tmp_path):
    everything = (allow("Topic:*"), allow("Group:*"), allow("Cluster:*"))
    async with guarded_site(tmp_path, *everything) as site:
        topic = names.TRACE_TOPIC
        sent = await ask(site.client, ROOT, sending(topic), b"secret")
        paths = (f"topics/{topic}", f"messages?topic={topic}")
        for who, shown in ((ALICE, []), (ROOT, [topic])):
            await sign_in(site, who)
            seen = await site.get("topics", kind="system")
            listed = {one["name"] for one in seen["topics"]}
            assert listed & {topic} == set(shown)
            for path in (*paths, f"messages/{sent.fields['msgId']}?topic={topic}"):
                status = (await site.ask(f"/api/{path}")).status
                assert status == (200 if shown else 403)
