"""Messages for a delivery time, and messages that come again."""

import time

from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack
from tests.audited import audited, changes
from tests.gateway.http.api.changing import WRITABLE, change
from tests.gateway.http.signed import guarded_site, sign_in
from tests.gateway.http.site import send, serving
from tests.guarded import ALICE, allow
from tests.remoting import looped, until
from tests.requests import committing, pulling, sending


@looped
async def test_messages_that_wait_for_their_time_are_shown_those_due_first(tmp_path):
    async with serving(tmp_path) as site:
        now_ms = time.time_ns() // 1_000_000
        for number, later_ms in ((1, 7_200_000), (2, 3_600_000)):
            pairs = {
                "UNIQ_KEY": f"{number:032X}",
                "TIMER_DELIVER_MS": str(now_ms + later_ms),
            }
            answer = await site.client.ask(sending("orders", pairs=pairs), b"x")
            assert answer.code == 0
        found = []
        while len(found) < 2:
            found = (await site.get("waiting"))["messages"]
        assert [one["key_id"] for one in found] == [f"{2:032X}", f"{1:032X}"]
        assert abs(found[0]["deliver_ms"] - now_ms - 3_600_000) < 60_000
        assert (await site.get("waiting", topic="orders"))["messages"] == found
        (one,) = (await site.get("waiting", limit="1"))["messages"]
        assert one == found[0]
        assert "no topic" in await site.refused("waiting", 404, topic="nosuch")


@looped
async def test_messages_at_delay_levels_are_shown_among_those_with_a_time(tmp_path):
    async with serving(tmp_path) as site:
        for number, how in ((1, {"DELAY": "18"}), (2, {"TIMER_DELAY_SEC": "3600"})):
            pairs = {"UNIQ_KEY": f"{number:032X}", **how}
            answer = await site.client.ask(sending("orders", pairs=pairs), b"x")
            assert answer.code == 0
        answered = {"messages": []}
        while len(answered["messages"]) < 2:
            answered = await site.get("waiting")
        timed, delayed = answered["messages"]
        assert answered["levels_shown"]
        assert (timed["key_id"], timed["delay_level"]) == (f"{2:032X}", None)
        assert timed["recall_handle"]
        assert delayed["deliver_ms"] - timed["deliver_ms"] > 3_000_000
        del delayed["deliver_ms"]
        assert delayed == {
            "topic": "orders",
            "key_id": f"{1:032X}",
            "delay_level": 18,
            "recall_handle": None,
        }


@looped
async def test_who_may_not_read_the_brokers_own_topic_sees_no_delay_levels(tmp_path):
    rules = allow("Topic:orders", "Get"), allow("Cluster:*", "Get")
    async with guarded_site(tmp_path, *rules) as site:
        await sign_in(site, ALICE)
        found = await site.get("waiting", topic="orders")
        assert found == {"messages": [], "levels_shown": False}


@looped
async def test_messages_that_come_again_are_counted_by_group(tmp_path):
    async with serving(tmp_path, delay_levels="1s") as site:
        await send(site.client, "orders", 3)
        assert (await site.get("retries"))["groups"] == []
        await site.client.ask(committing("orders", 0, 3))
        for one in (await site.client.ask(pulling("orders"))).messages()[:2]:
            back = ConsumerSendMsgBack(
                offset=one.message_id,
                group="readers",
                delay_level=1,
                origin_topic="orders",
            )
            assert (await site.client.ask(back)).code == 0
        retries = site.app.node.topics.get("%RETRY%readers")
        assert retries is not None
        await until(lambda: sum(one.last_end for one in retries.partitions) == 2)
        (found,) = (await site.get("retries"))["groups"]
        assert found == {"group": "readers", "messages": 2}


@looped
async def test_a_message_is_taken_back_before_its_time(tmp_path):
    async with serving(tmp_path, WRITABLE, audit=audited(tmp_path)) as site:
        pairs = {"UNIQ_KEY": "A" * 32, "TIMER_DELAY_MS": "3600000"}
        assert (await site.client.ask(sending("orders", pairs=pairs), b"x")).code == 0
        found = []
        while not found:
            found = (await site.get("waiting"))["messages"]
        wanted = {"recall_handle": found[0]["recall_handle"]}
        answer = await change(site, "POST", "waiting/recall", **wanted)
        assert (answer.status, answer.json) == (200, {"key_id": "A" * 32})
        while found:
            found = (await site.get("waiting"))["messages"]
        bad = await change(site, "POST", "waiting/recall", recall_handle="x")
        assert bad.status == 400
    (line,) = changes(tmp_path, "RECALL")
    assert line["channel"] == "http"


@looped
async def test_open_transactions_are_shown_the_oldest_first(tmp_path):
    async with serving(tmp_path) as site:
        assert (await site.get("transactions"))["transactions"] == []
        for number in (1, 2):
            pairs = {"TRAN_MSG": "true", "PGROUP": "shop", "UNIQ_KEY": str(number)}
            half = sending(
                "orders", pairs=pairs, sys_flag=4, born_timestamp=9_000 - number
            )
            assert (await site.client.ask(half, b"x")).code == 0
        found = (await site.get("transactions", topic="orders"))["transactions"]
        assert [(one["key_id"], one["born_ms"]) for one in found] == [
            ("2", 8_998),
            ("1", 8_999),
        ]
        assert {(one["producer_group"], one["checks"]) for one in found} == {
            ("shop", 0)
        }
        assert len((await site.get("transactions", limit="1"))["transactions"]) == 1
        assert "no topic" in await site.refused("transactions", 404, topic="nosuch")
