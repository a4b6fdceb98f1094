"""Half messages are stored where nobody sees them, with what ends them later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.common.clock import now_ms
from ropeway.gateway.node.transactions import half_message as half_messages
from ropeway.gateway.node.transactions import records
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import SendReply
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    from tests.frames import Frame

HALF = "RMQ_SYS_TRANS_HALF_TOPIC"


async def stored(app, offset: int) -> message.Message:
    partition = app.node.topics.get(HALF).partitions[0]
    chunk = await partition.read(offset, 1, 1)
    return message.decode(chunk.data[0])


@looped
@pytest.mark.parametrize("last", [properties.VALUE_END, ""])
async def test_both_headers_are_stored_alike(tmp_path: Path, last: str):
    async with running(tmp_path) as (app, client):
        pairs = {"UNIQ_KEY": "u", "TRAN_MSG": "true", "PGROUP": "g", "KEYS": "a b"}
        text = properties.dump(pairs) + f"TAGS\x01t{last}"
        changes = {"sys_flag": 5, "flag": 3, "queue_id": 1, "properties": text}
        # The first makes the topics; then both forms of the header.
        for v2 in (True, False, True):
            answer = await client.ask(sending("orders", v2=v2, **changes), b"body")
            assert answer.read(SendReply).queue_id == 1
        one, two = await stored(app, 1), await stored(app, 2)
        assert properties.parse(one.properties) == properties.parse(two.properties)
        for name in one.__struct_fields__:
            if name not in ("queue_offset", "message_id", "store_ms", "properties"):
                assert getattr(one, name) == getattr(two, name), name
        two = await stored(app, 2)
        recent = app.node.transactions.find_now(2)
        assert recent == half_messages.read(message.encode(two))
        committed = records.committed_pairs(recent)
        assert committed == {
            name: value
            for name, value in properties.parse(two.properties).items()
            if name not in ("REAL_TOPIC", "REAL_QID")
        }
        again = app.node.transactions.find_now(2)
        assert again == recent


@looped
@pytest.mark.parametrize(
    "text",
    [
        "UNIQ_KEY\x01u\x02XTRAN_MSG\x01true\x02PGROUP\x01g\x02",
        "UNIQ_KEY\x01u\x02TRAN_MSG\x01true\x02XPGROUP\x01h\x02PGROUP\x01g\x02",
        "XUNIQ_KEY\x01v\x02UNIQ_KEY\x01u\x02TRAN_MSG\x01true\x02PGROUP\x01g\x02",
        "UNIQ_KEY\x01v\x02UNIQ_KEY\x01u\x02TRAN_MSG\x01true\x02PGROUP\x01g\x02",
        "UNIQ_KEY\x01u\x02TRAN_MSG\x01true\x02PGROUP\x01g\x02REAL_TOPIC\x01no\x02",
        "UNIQ_KEY\x01u\x02PGROUP\x01g",
        "UNIQ_KEY\x01u\x02PGROUP\x01g\x02TRAN_MSG\x01true",
        "UNIQ_KEY\x01u\x02TRAN_MSG\x01true\x02",
        "KEYS\x01v\x02UNIQ_KEY\x01v\x02UNIQ_KEY\x01u\x02TRAN_MSG\x01true\x02PGROUP\x01g\x02",
        "TRAN_MSG\x01true\x02UNIQ_KEY\x01u\x02PGROUP\x01g\x02",
        (
            "CHECK_IMMUNITY_TIME_IN_SECONDS\x0160\x02TRAN_MSG\x01true\x02"
            "UNIQ_KEY\x01u\x02PGROUP\x01g\x02"
        ),
    ],
)
async def test_properties_that_look_like_others_are_kept(tmp_path: Path, text: str):
    async with running(tmp_path) as (app, client):
        for _ in range(2):
            asked = sending("orders", sys_flag=4, producer_group="g", properties=text)
            answer = await client.ask(asked, b"x")
            assert answer.read(SendReply).transaction_id == "u"
        found = properties.parse((await stored(app, 1)).properties)
        sent = properties.parse(text)
        sent.pop("REAL_TOPIC", None)
        assert sent.items() <= found.items()
        assert (found["PGROUP"], found["UNIQ_KEY"]) == ("g", "u")
        assert (found["REAL_TOPIC"], found["REAL_QID"]) == ("orders", "0")
        assert found["__transactionId__"] == "u"
        chunk = await app.node.topics.get(HALF).partitions[0].read(1, 1, 1)
        assert app.node.transactions.find_now(1) == half_messages.read(chunk.data[0])


@looped
@pytest.mark.parametrize("text", ["", "TRAN_MSG\x01true\x02PGROUP\x01producers\x02"])
async def test_a_half_message_without_unique_key_gets_one(tmp_path: Path, text: str):
    async with running(tmp_path) as (app, client):
        for _ in range(2):
            asked = sending("orders", sys_flag=4, properties=text)
            answer = await client.ask(asked, b"x")
        key = answer.read(SendReply).transaction_id
        assert len(key) == 32
        found = properties.parse((await stored(app, 1)).properties)
        assert found["UNIQ_KEY"] == found["__transactionId__"] == key
        assert found["PGROUP"] == "producers"


@looped
async def test_a_half_message_leaves_room_for_its_copies(tmp_path: Path):
    """One that does not could not be kept, and its producer never be asked."""
    async with running(tmp_path) as (app, client):

        async def send(size: int) -> Frame:
            pairs = {"UNIQ_KEY": "u", "TRAN_MSG": "true", "PGROUP": "g"}
            text = properties.dump({**pairs, "PAD": "x" * size})
            asked = sending("orders", sys_flag=4, properties=text)
            return await client.ask(asked, b"x")

        await send(1)
        own = len((await stored(app, 0)).properties) - 1
        most = message.MAX_PROPERTIES_BYTES - records.COPY_ROOM_BYTES - own
        assert (await send(most)).code == 0
        half = half_messages.read((await app.node.transactions.find(1)).data)
        half_topic = app.node.topics.get(HALF)
        assert records.copy(half, half_topic, 1, checks=2**31)
        for size in (most + 1, most + records.COPY_ROOM_BYTES):
            refused = await send(size)
            assert refused.code == ResponseCode.MESSAGE_ILLEGAL
            assert "of a half message" in refused.remark


@looped
@pytest.mark.parametrize(
    ("immunity", "born_in_ms", "code"),
    [
        ("3600", 0, 0),
        (str(72 * 3600), -1000, 0),
        (str(73 * 3600), 0, ResponseCode.MESSAGE_ILLEGAL),
        ("9" * 18, 0, ResponseCode.MESSAGE_ILLEGAL),
        ("0", 1 << 62, ResponseCode.MESSAGE_ILLEGAL),
        # No number: its producer is asked as usual.
        ("9" * 5000, 0, 0),
    ],
)
async def test_a_producer_cannot_have_its_message_kept_for_ever(
    tmp_path: Path, immunity: str, born_in_ms: int, code: int
):
    """It was stored again every check interval, and given up never."""
    async with running(tmp_path) as (_, client):
        pairs = {"TRAN_MSG": "true", "CHECK_IMMUNITY_TIME_IN_SECONDS": immunity}
        born_ms = now_ms() + born_in_ms
        half = sending("orders", sys_flag=4, pairs=pairs, born_timestamp=born_ms)
        assert (await client.ask(half, b"x")).code == code
