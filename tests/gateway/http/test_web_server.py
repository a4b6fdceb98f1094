"""The site: what is answered to what nobody should ask, TLS, and failures."""

from __future__ import annotations

import ssl
from urllib.parse import quote

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropeway.client.errors import BadResponseError, ConnectionFailedError, ResponseError
from ropeway.gateway.app import App
from ropeway.gateway.config import ConfigError, HttpConfig, ListenerConfig, TlsConfig
from ropeway.gateway.http.setup import site
from tests.gateway.http.site import send, serving
from tests.gateway.test_tls import issue
from tests.remoting import config, looped

ADDRESSES = [
    "overview",
    "topics",
    "topics/orders",
    "groups",
    "groups/readers",
    "clients",
    "messages",
    "messages/x",
    "dead-letters",
    "dead-letters/readers",
    "dead-letters/readers/replay",
    "routes/orders",
]
PARAMETERS = ["search", "offset", "limit", "kind", "topic", "key", "id", "begin", "end"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TELLTALE = (
    "Traceback",
    "Error(",
    'File "',
    "NoneType",
    "msgspec",
    "aiohttp",
    "object at",
)
"""What texts of Python's would have."""


@looped
@pytest.mark.parametrize(
    ("path", "method", "status", "sentence"),
    [
        ("/nope", "GET", 404, "there is nothing at '/nope'; the page is at /"),
        ("/api/nope", "GET", 404, "there is nothing at '/api/nope'"),
        ("/api/topics", "POST", 403, "this page only shows"),
        ("/metrics", "POST", 405, "'/metrics' takes no POST; allowed: GET, HEAD"),
        ("/readyz?x=1", "GET", 400, "unknown parameter 'x'; allowed: none"),
        ("/api/topics/none", "GET", 404, "there is no topic 'none'"),
        ("/api/groups/none", "GET", 404, "there is no group 'none'"),
        ("/api/messages", "GET", 400, "topic is missing"),
        ("/../../etc/passwd", "GET", 404, "there is nothing at"),
        ("/vendor/%2e%2e/file.py", "GET", 404, "there is nothing at"),
    ],
)
async def test_what_is_not_there_is_refused_with_a_sentence(
    tmp_path, path, method, status, sentence
):
    async with serving(tmp_path) as site:
        answer = await site.ask(path, method)
        assert answer.status == status
        assert sentence in answer.json["error"]


@looped
async def test_no_nonsense_gets_more_than_a_sentence(tmp_path):
    http = HttpConfig(port=0, writable=True)
    async with serving(tmp_path, http) as site:
        await send(site.client, "orders", 2)
        asked = []

        @settings(max_examples=300)
        @given(
            st.sampled_from(ADDRESSES) | TEXT,
            st.dictionaries(
                st.sampled_from(PARAMETERS) | TEXT,
                st.sampled_from(["orders", "0", "1", "all", ""])
                | st.integers().map(str)
                | TEXT,
                max_size=4,
            ),
            st.none() | st.binary(max_size=60),
        )
        def collect(path, params, body):
            asked.append((path, params, body))

        collect()
        for path, params, body in asked:
            headers = {"X-Ropeway": "page"}
            method = "GET" if body is None else "POST"
            answer = await site.ask(
                f"/api/{quote(path)}", method, params=params, data=body, headers=headers
            )
            assert answer.status < 500, (path, params, answer)
            if answer.json is not None and answer.status != 200:
                assert answer.json.keys() == {"error"}
            assert not any(mark in answer.body.decode() for mark in TELLTALE), answer


@looped
@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (ValueError("secret detail"), 500, "the gateway failed; its log says why"),
        (ConnectionFailedError("h:1", "x"), 503, "the broker at h:1 does not answer"),
        (ResponseError(1, "full", "h:1"), 502, "the broker at h:1 answered: full"),
        (BadResponseError("x"), 502, "a broker's answer was not understood"),
    ],
)
async def test_failures_are_told_without_their_own_words(
    tmp_path, monkeypatch, error, status, sentence
):
    async with serving(tmp_path) as site:

        async def fail(_):
            raise error

        monkeypatch.setattr("ropeway.gateway.http.console.Console.cluster_info", fail)
        answer = await site.ask("/api/overview")
        assert answer.status == status
        assert answer.json == {"error": sentence}


@looped
async def test_a_body_that_is_too_long_is_refused(tmp_path):
    http = HttpConfig(port=0, writable=True)
    async with serving(tmp_path, http) as site:
        await site.app.node.topics.ensure_derived("%DLQ%readers", 1)
        answer = await site.ask(
            "/api/dead-letters/readers/replay",
            "POST",
            data=b"x" * 100_000,
            headers={"X-Ropeway": "page"},
        )
        assert answer.status == 413
        assert "error" in answer.json


@looped
async def test_the_site_speaks_tls_and_asks_brokers_by_it(tmp_path):
    # By the address that it advertises, which its certificate has to name.
    own = issue(tmp_path, "localhost")
    listener = ListenerConfig(port=0, advertised_host="localhost")
    context = ssl.create_default_context(cafile=own.certificate)
    context.check_hostname = False
    http = HttpConfig(port=0, tls=True)
    tls = TlsConfig(own.certificate, own.key, required=True)
    async with (
        App(config(tmp_path, http=http, tls=tls, listeners=(listener,))) as app,
        site(app) as address,
        aiohttp.ClientSession() as session,
        session.get(f"{address}/api/overview", ssl=context) as answer,
    ):
        assert address.startswith("https://")
        assert (await answer.json())["brokers"][0]["error"] is None


@looped
async def test_tls_without_a_certificate_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"http\.tls is true; it needs the table tls"):
        # gRPC's clients get one that proves nothing: browsers would not take it.
        async with serving(tmp_path, HttpConfig(port=0, tls=True), grpc=True):
            pass
