"""What is stored of a transaction: nothing that was sent is lost on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node.transactions import half_message, records
from ropeway.gateway.wire import message, properties
from tests.gateway.node.transactions.place import GIVEN_UP, GROUP, HALF, place
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

KEY = "0" * 32
SENT = {"UNIQ_KEY": KEY, "PGROUP": GROUP, "TAGS": "t", "WAIT": "true", "KEYS": "a b"}


@pytest.mark.parametrize(
    ("pairs", "group", "more"),
    [
        ({"A": "1"}, "g", {"PGROUP": "g"}),
        ({"A": "1", "PGROUP": "mine"}, "g", {}),
        ({"A": "1", "REAL_TOPIC": "no", "REAL_QID": "9"}, "g", {"PGROUP": "g"}),
        ({"A": "1", "TRANSACTION_CHECK_TIMES": "9"}, "g", {"PGROUP": "g"}),
        ({"A": "1"}, "g\x02REAL_TOPIC\x01no", {"PGROUP": "g"}),
    ],
)
def test_a_half_message_knows_its_way(pairs: dict, group: str, more: dict):
    text = records.half_text(
        properties.dump(pairs), dict(pairs), "orders", 3, group, "u"
    )
    kept = {name: pairs[name] for name in ("A", "PGROUP") if name in pairs}
    assert properties.parse(text) == {
        **kept,
        **more,
        "__transactionId__": "u",
        "REAL_TOPIC": "orders",
        "REAL_QID": "3",
    }


@looped
async def test_it_is_the_same_message_all_the_way(tmp_path: Path):
    async with place(tmp_path) as one:
        await one.send_half(b"body", **SENT)
        chunk = await one.partition(HALF).read(0, 1, 1)
        first = half_message.read(chunk.data[0])
        half_topic = one.app.node.topics.get(HALF)
        orders = one.app.node.topics.get("orders")
        way = {"REAL_TOPIC": "orders", "REAL_QID": "0"}
        told = {**SENT, "__transactionId__": KEY}

        copy = half_message.read(records.copy(first, half_topic, 5, checks=3).data)
        assert (copy.offset, copy.origin, copy.checks) == (1, 0, 3)
        # Nobody finds a half message, by a tag or a key of the message that it is.
        stored = records.copy(first, half_topic, 5, checks=3)
        assert (stored.tag_hash, stored.keys) == (0, ())
        later = half_message.read(records.copy(copy, half_topic, 6, checks=4).data)
        assert (later.origin, later.checks) == (0, 4)
        again = half_message.read(records.begun_again(later, half_topic, 7).data)
        assert (again.origin, again.checks) == (again.offset, 0)

        shown = message.decode(records.for_producer(first))
        assert (shown.topic, shown.queue_id) == ("orders", 0)
        pairs = properties.parse(shown.properties)
        assert pairs == {**told, **way, "WAIT": "false"}

        for each, times in ((first, None), (later, "4")):
            data, tag_hash, keys = records.committed(each, orders, 0, 9, 77)
            stored = message.decode(data)
            assert (stored.topic, stored.queue_offset) == ("orders", 1)
            assert (stored.sys_flag, stored.prepared_transaction_offset) == (8, 77)
            assert (stored.body, stored.store_ms) == (b"body", 9)
            pairs = properties.parse(stored.properties)
            assert pairs.pop("TRANSACTION_CHECK_TIMES", None) == times
            assert pairs == told
            assert tag_hash == properties.tag_hash("t")
            assert keys == ["a", "b", KEY]

        given_up = await one.app.node.topics.ensure_derived(GIVEN_UP, 1)
        data, _, keys = records.given_up(later, given_up, 9)
        pairs = properties.parse(message.decode(data).properties)
        assert pairs.items() >= way.items()
        assert keys == ["a", "b", KEY]
