"""Messages: looked up in each way, and one with its trace."""

import time

import pytest
from msgspec import structs

from ropeway.gateway.wire.message_id import format_offset_msg_id
from ropeway.gateway.wire.trace import TRACE_TOPIC
from tests.gateway.http.site import send, serving
from tests.remoting import beat, looped
from tests.requests import committing, sending


def bodies(found) -> list[str]:
    return [one["start"] for one in found["messages"]]


@looped
async def test_messages_are_found_by_time_key_and_either_id(tmp_path):
    async with serving(tmp_path) as site:
        before_ms = time.time_ns() // 1_000_000
        await send(site.client, "orders", 3)
        await send(site.client, "orders", 2, queue_id=1)
        newest = await site.get("messages", topic="orders")
        assert bodies(newest) == ["1", "0", "2", "1", "0"]
        assert bodies(await site.get("messages", topic="orders", limit="2")) == [
            *("1", "0")
        ]
        now = await site.get("messages", topic="orders", begin=str(before_ms))
        assert len(now["messages"]) == 5
        gone = await site.get("messages", topic="orders", end=str(before_ms - 1))
        assert gone["messages"] == []
        assert bodies(await site.get("messages", topic="orders", key="k2")) == ["2"]
        one = newest["messages"][2]
        for identity in (one["id"], one["key_id"]):
            found = await site.get("messages", topic="orders", id=identity)
            assert bodies(found) == ["2"]
        missing = await site.get("messages", topic="orders", id="F" * 32)
        assert missing["messages"] == []


@looped
@pytest.mark.parametrize(
    ("params", "status", "sentence"),
    [
        ({"topic": "none"}, 404, "there is no topic 'none'"),
        ({"topic": "orders", "begin": "9", "end": "8"}, 400, "begin is 9; allowed"),
        ({"topic": "orders", "limit": "201"}, 400, "from 1 to 200"),
    ],
)
async def test_what_cannot_be_looked_for_is_refused(tmp_path, params, status, sentence):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 1)
        assert sentence in await site.refused("messages", status, **params)


@looped
async def test_an_id_does_not_choose_whom_the_gateway_connects_to(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 1)
        elsewhere = format_offset_msg_id("203.0.113.9", 80, 0)
        reason = await site.refused(f"messages/{elsewhere}", 404, topic="orders")
        assert reason == "there is no such message in topic orders"
        assert site.app.node.config.http is not None


@looped
async def test_a_message_is_shown_with_what_clients_wrote_down_of_it(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 2)
        (one,) = (await site.get("messages", topic="orders", key="k1"))["messages"]
        identity = one["key_id"]
        plain = await site.get(f"messages/{one['id']}", topic="orders")
        assert (plain["body"], plain["trace"]) == ("1", [])
        assert plain["properties"]["KEYS"] == "k1"
        after = ["SubAfter", "R", identity, "5", "true", "k1", "0", "20", "readers"]
        before = ["SubBefore", "10", "region", "readers", "R", identity, "0", "k1"]
        other = ["SubBefore", "15", "region", "readers", "S", "another", "0", "k1"]
        text = "".join(
            "\x01".join(fields) + "\x02" for fields in (after, before, other)
        )
        keys = {"KEYS": identity}
        await site.client.ask(sending(TRACE_TOPIC, pairs=keys), text.encode())
        traced = await site.get(f"messages/{identity}", topic="orders")
        assert [step["kind"] for step in traced["trace"]] == ["SubBefore", "SubAfter"]
        assert traced["trace"][1]["ok"] is True


@looped
async def test_what_each_group_has_to_do_with_a_message_is_explained(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        for group in ("readers", "idle"):
            header = committing("orders", 0, 2)
            await site.client.ask(structs.replace(header, consumer_group=group))
        for number, code in ((1, "passed"), (2, "behind")):
            path = f"messages/{number:032X}/groups"
            found = await site.get(path, topic="orders")
            groups = {one["group"]: one for one in found["groups"]}
            assert groups.keys() == {"readers", "idle"}
            assert [one["error"] for one in groups.values()] == [None, None]
            codes = [one["code"] for one in groups["idle"]["findings"]]
            assert code in codes
            assert all(one["text"] for one in groups["idle"]["findings"])
        path = f"messages/{'F' * 32}/groups"
        assert "no such message" in await site.refused(path, 404, topic="orders")
        elsewhere = format_offset_msg_id("203.0.113.9", 80, 0)
        path = f"messages/{elsewhere}/groups"
        assert "no such message" in await site.refused(path, 404, topic="orders")


@looped
async def test_a_consumer_that_never_answers_is_named_beside_what_is_known(tmp_path):
    async with serving(tmp_path) as site:
        await send(site.client, "orders", 3)
        await site.client.ask(committing("orders", 0, 2))
        await beat(site.client, "me@silent", "readers")
        found = await site.get(f"messages/{2:032X}/groups", topic="orders")
        (group,) = found["groups"]
        codes = [one["code"] for one in group["findings"]]
        assert codes == ["client-silent", "with-a-consumer"]
        assert group["error"] is None
