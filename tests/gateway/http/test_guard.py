"""Who may see and change what."""

import pytest

from ropeway.gateway.config import HttpConfig
from tests.gateway.http.site import serving
from tests.remoting import looped

REPLAY = "/api/dead-letters/readers/replay"


@looped
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8080", 200),
        ("127.0.0.1", 200),
        ("[::1]:8080", 200),
        ("10.0.0.7:8080", 200),
        ("console.example", 200),
        ("evil.example:8080", 403),
        ("localhost.evil.example", 403),
    ],
)
async def test_data_is_shown_under_names_that_are_ours_alone(tmp_path, host, status):
    http = HttpConfig(port=0, names=("console.example",))
    async with serving(tmp_path, http) as site:
        answer = await site.ask("/api/overview", headers={"Host": host})
        assert answer.status == status
        # Prometheus and probes call a node by whatever name it has.
        assert (await site.ask("/metrics", headers={"Host": host})).status == 200


@looped
@pytest.mark.parametrize(
    ("writable", "headers", "complaint"),
    [
        (False, {"X-Ropeway": "page"}, "this page only shows"),
        (True, {}, "changes need the header X-Ropeway"),
        (True, {"X-Ropeway": "page", "Origin": "http://evil.example"}, "own page"),
        (True, {"X-Ropeway": "page", "Origin": "null"}, "own page"),
    ],
)
async def test_changes_are_refused_unless_allowed_and_from_our_page(
    tmp_path, writable, headers, complaint
):
    async with serving(tmp_path, HttpConfig(port=0, writable=writable)) as site:
        answer = await site.ask(REPLAY, "POST", data=b"{}", headers=headers)
        assert answer.status == 403
        assert complaint in answer.json["error"]


@looped
async def test_our_own_page_may_change_where_that_is_allowed(tmp_path):
    async with serving(tmp_path, HttpConfig(port=0, writable=True)) as site:
        headers = {"X-Ropeway": "page", "Origin": site.address}
        answer = await site.ask(REPLAY, "POST", data=b"{}", headers=headers)
        assert answer.status == 404
        assert answer.json["error"] == "there is no topic '%DLQ%readers'"
