"""Dead letters: shown, and given back to their group."""

import msgspec
import pytest

from ropeway.gateway.config import HttpConfig
from tests.gateway.http.site import bury, send, serving
from tests.remoting import looped, until
from tests.requests import pulling

WRITABLE = HttpConfig(port=0, writable=True)
HEADERS = {"X-Ropeway": "page"}
REPLAY = "/api/dead-letters/readers/replay"


@looped
async def test_dead_letters_are_shown_the_newest_first(tmp_path):
    async with serving(tmp_path) as site:
        assert (await site.get("dead-letters"))["groups"] == []
        await send(site.client, "orders", 3)
        await bury(site.client, "orders", "readers", 2)
        assert (await site.get("dead-letters"))["groups"] == [
            {"group": "readers", "messages": 2}
        ]
        found = await site.get("dead-letters/readers")
        assert found["total"] == 2
        assert [one["start"] for one in found["messages"]] == ["1", "0"]
        assert {one["topic"] for one in found["messages"]} == {"orders"}
        assert len((await site.get("dead-letters/readers", limit="1"))["messages"]) == 1


@looped
async def test_what_is_given_back_comes_to_the_group_once_more(tmp_path):
    async with serving(tmp_path, WRITABLE, delay_levels="1s") as site:
        await send(site.client, "orders", 2)
        await bury(site.client, "orders", "readers", 2)
        letters = (await site.get("dead-letters/readers"))["messages"]
        body = msgspec.json.encode({"messages": [letters[0]["id"], "nonsense"]})
        answer = await site.ask(REPLAY, "POST", data=body, headers=HEADERS)
        assert answer.status == 200
        assert [one["error"] for one in answer.json["results"]] == [
            None,
            "there is no such dead letter",
        ]
        topics = site.app.node.topics
        await until(lambda: topics.get("%RETRY%readers").partitions[0].end == 1)
        asked = pulling("%RETRY%readers", group="readers")
        (again,) = (await site.client.ask(asked)).messages()
        assert again.body == b"1"
        assert "RETRY_TOPIC\x01orders" in again.properties
        # The letter itself stays.
        assert (await site.get("dead-letters/readers"))["total"] == 2


@looped
@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"messages": []}', b'{"messages": [1]}', b"\xff", b"[]"]
)
async def test_a_body_that_is_none_is_refused_with_what_it_should_be(tmp_path, body):
    async with serving(tmp_path, WRITABLE) as site:
        await site.app.node.topics.ensure_derived("%DLQ%readers", 1)
        answer = await site.ask(REPLAY, "POST", data=body, headers=HEADERS)
        assert answer.status == 400
        assert "allowed: " in answer.json["error"]
