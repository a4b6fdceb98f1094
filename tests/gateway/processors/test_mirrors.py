"""Messages of another cluster are stored as they are there, once each, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire import message
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateTopic
from ropeway.gateway.wire.commands.mirrors import MirrorMessages
from ropeway.gateway.wire.properties import dump
from tests.remoting import looped, running
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remoting import Remoting

TOPIC, AT = "orders", 5_000_000_000


def creating(begins: str | None = f"{AT},7", **changes) -> CreateTopic:
    fields = {
        "topic": TOPIC,
        "default_topic": "TBW102",
        "read_queue_nums": 2,
        "write_queue_nums": 2,
        "perm": 4,
        "begins": begins,
        **changes,
    }
    return CreateTopic(**fields)


def stored(*offsets: int, host: str = "10.0.0.9") -> bytes:
    """Messages as another broker has them."""
    return b"".join(
        message.encode(
            message.Message(
                topic=TOPIC,
                queue_id=0,
                queue_offset=offset,
                message_id=77,
                body=b"%d" % offset,
                properties=dump({"UNIQ_KEY": f"{offset:032}", "TAGS": "paid"}),
                born_ms=1000 + offset % 100,
                born_host=("10.0.0.7", 1234),
                store_ms=2000 + offset % 100,
                store_host=(host, 10911),
                reconsume_times=2,
            )
        )
        for offset in offsets
    )


async def pulled(client: Remoting, offset: int) -> list[message.Message]:
    answer = await client.ask(pulling(TOPIC, offset))
    assert answer.code == 0, answer.remark
    return [message.decode(one) for one in message.split(answer.body)]


@looped
async def test_each_keeps_its_place_its_properties_and_its_times(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        assert (await client.ask(creating())).code == 0
        for offsets in ([AT, AT + 1], [AT, AT + 1, AT + 2], [AT + 2]):
            reply = await client.ask(MirrorMessages(TOPIC, 0), stored(*offsets))
            assert reply.code == 0, reply.remark
            assert reply.fields["nextOffset"] == str(offsets[-1] + 1)
        found = await pulled(client, AT)
        assert [one.queue_offset for one in found] == [AT, AT + 1, AT + 2]
        for one, whole in zip(
            found, message.split(stored(AT, AT + 1, AT + 2)), strict=True
        ):
            theirs = message.decode(whole)
            for what in ("body", "properties", "born_ms", "born_host", "store_ms"):
                assert getattr(one, what) == getattr(theirs, what)
            assert one.reconsume_times == 2
            assert one.store_host[0] == "127.0.0.1"
        assert (await client.ask(pulling(TOPIC, 0))).code == (
            ResponseCode.PULL_OFFSET_MOVED
        )


@pytest.mark.parametrize(
    ("asked", "body", "code", "remark"),
    [
        (MirrorMessages(TOPIC, 0), stored(AT + 1), 1, f"up to offset {AT - 1}"),
        (MirrorMessages(TOPIC, 0), stored(AT, AT + 2), 1, "are missing"),
        (MirrorMessages(TOPIC, 2), stored(AT), 1, "queues 0 to 1"),
        (MirrorMessages(TOPIC, 0), stored(AT)[:-1], 13, "not whole"),
        (MirrorMessages("nosuch", 0), stored(AT), 17, "not exist"),
        (MirrorMessages("open", 0), stored(0), 1, "takes messages of clients"),
        (MirrorMessages("TBW102", 0), stored(0), 1, "broker's own"),
    ],
)
@looped
async def test_what_cannot_be_stored_is_refused(
    tmp_path: Path, asked, body, code, remark
):
    async with running(tmp_path) as (_, client):
        assert (await client.ask(creating())).code == 0
        assert (await client.ask(sending("open"), b"x")).code == 0
        reply = await client.ask(asked, body)
        expected = ResponseCode.INVALID_PARAMETER if code == 1 else code
        assert (reply.code, remark in reply.remark) == (expected, True), reply.remark
        answer = await client.ask(pulling(TOPIC, AT))
        assert answer.code == ResponseCode.PULL_NOT_FOUND


@pytest.mark.parametrize(
    "begins", ["", "1", "1,2,3", "1,-2", "1,x", "1,²", f"1,{1 << 52}"]
)
@looped
async def test_beginnings_that_cannot_be_are_refused(tmp_path: Path, begins: str):
    async with running(tmp_path) as (_, client):
        reply = await client.ask(creating(begins))
        assert reply.code in (
            ResponseCode.INVALID_PARAMETER,
            ResponseCode.MESSAGE_ILLEGAL,
        )
        assert "allowed: " in reply.remark
        assert (await client.ask(creating("1,2"))).code == 0
        reply = await client.ask(creating("1,3"))
        assert reply.code == ResponseCode.INVALID_PARAMETER
        assert "begins at offset 2; asked for: 3" in reply.remark
        assert (await client.ask(creating(None))).code == 0
