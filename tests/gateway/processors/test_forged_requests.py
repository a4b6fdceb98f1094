"""Requests that say two things: what is judged is what is done, and nothing else."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import TYPE_CHECKING

import pytest

from ropeway.acl.administration import Rule
from ropeway.client.credentials import Credentials, signed
from ropeway.gateway.config import ListenerConfig
from ropeway.gateway.wire import recall
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import RecallMessage, SendReply
from ropeway.gateway.wire.frame import PREFIX, FrameReader, decode_envelope
from ropeway.gateway.wire.header import row_of, to_fields
from tests.guarded import ALICE, PASSWORD, ROOT, acl_of, allow, ask, guarded, populate
from tests.remoting import TIMEOUT_S, Remoting, looped, running, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.app import App
    from ropeway.gateway.wire.header import Header
    from tests.frames import Frame

MINE, BANK = "orders", "bank"
RULES = allow(f"Topic:{MINE}"), allow("Group:readers")
JSON, ROCKETMQ = 0, 1
CREDENTIALS = Credentials(access_key=ALICE, secret_key=PASSWORD)


def end(app: App, topic: str) -> int:
    """How many messages a topic has."""
    return sum(one.next_offset for one in app.node.topics.get(topic).partitions)


async def make_both(client: Remoting) -> None:
    for topic in (MINE, BANK):
        sent = sending(topic, queue_id=0, default_topic_queue_nums=1)
        assert (await ask(client, ROOT, sent, b"first")).code == 0


def with_both(
    header: Header,
    field: str,
    kind: int,
    *,
    mine_last: bool,
    mine: str = MINE,
    who: Credentials = CREDENTIALS,
) -> bytes:
    """A request whose topic is there twice, signed for the one or the other."""
    body = b"forged"
    pairs = list(signed(to_fields(header), body, who).items())
    other = BANK if dict(pairs)[field] == mine else mine
    twice = [(field, other), *pairs] if mine_last else [*pairs, (field, other)]
    code = int(row_of(type(header)).code)
    if kind == JSON:
        said = ",".join(f"{json.dumps(k)}:{json.dumps(v)}" for k, v in twice)
        data = f'{{"code":{code},"extFields":{{{said}}},"flag":0,"opaque":7}}'.encode()
    else:
        fields = b"".join(
            struct.pack(">H", len(k)) + k + struct.pack(">i", len(v)) + v
            for k, v in ((k.encode(), v.encode()) for k, v in twice)
        )
        front = struct.pack(">HBHiii", code, 0, 0, 7, 0, 0)
        data = front + struct.pack(">i", len(fields)) + fields
    length = 4 + len(data) + len(body)
    return PREFIX.pack(length, kind << 24 | len(data)) + data + body


def naming(topic: str) -> list[tuple[Header, str]]:
    """Requests, and the field that says which topic."""
    return [
        (sending(topic, queue_id=0), "b"),
        (sending(topic, queue_id=0, v2=False), "topic"),
        (pulling(topic), "topic"),
    ]


async def answered(port: int, request: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    frames, came = FrameReader(), []
    while not came:
        data = await reader.read(1 << 16)
        assert data, "closed without an answer"
        came = frames.feed(data)
    writer.close()
    kind, header, body = came[0]
    return decode_envelope(kind, header).code, body


@looped
@pytest.mark.parametrize("kind", [JSON, ROCKETMQ])
@pytest.mark.parametrize("mine_last", [False, True])
@pytest.mark.parametrize("signed_for", [MINE, BANK])
async def test_a_field_that_is_there_twice_opens_no_other_topic(
    tmp_path: Path, signed_for: str, mine_last: bool, kind: int
):
    async with guarded(tmp_path, *RULES) as (app, client):
        await make_both(client)
        for header, field in naming(signed_for):
            request = with_both(header, field, kind, mine_last=mine_last)
            _, body = await answered(app.server.listeners[0].port, request)
            assert BANK.encode() not in body
        assert end(app, BANK) == 1


async def victim(client: Remoting, app: App) -> str:
    """A message for the bank that waits; its recall handle."""
    pairs = {"TIMER_DELAY_MS": "3000", "UNIQ_KEY": "victim"}
    timed = sending(BANK, queue_id=0, pairs=pairs)
    handle = (await ask(client, ROOT, timed, b"kept")).read(SendReply).recall_handle
    async with asyncio.timeout(TIMEOUT_S):
        # Its time has come already where the machine stood still.
        while end(app, BANK) < 2:
            if await app.node.timer.count_waiting():
                break
            await asyncio.sleep(0.01)
    return handle


def forged_handles(handle: str, mine: str) -> list[str]:
    """Handles of one's own topic that would recall what a handle of the bank's does."""
    parts = recall.parse(handle)
    due = parts.deliver_ms
    return [
        recall.dump(recall.RecallHandle(mine, parts.broker, due, key)).decode()
        for key in (
            f"{BANK}+victim",
            f"x\x02TIMER_DEL_UNIQKEY\x01{BANK}+victim",
            f"x\x02TIMER_OUT_MS\x01{due}\x02TIMER_DEL_UNIQKEY\x01{BANK}+victim\x02",
        )
    ]


async def recalled(client: Remoting, topic: str, handle: str) -> Frame:
    asked = RecallMessage(topic=topic, recall_handle=handle)
    return await ask(client, ALICE, asked)


@looped
async def test_nobody_recalls_what_waits_for_another_topic(tmp_path: Path):
    async with guarded(tmp_path, *RULES) as (app, client):
        await make_both(client)
        handle = await victim(client, app)
        denied = await recalled(client, BANK, handle)
        assert denied.code == ResponseCode.NO_PERMISSION
        others = await recalled(client, MINE, handle)
        assert others.code == ResponseCode.ILLEGAL_OPERATION
        for forged in forged_handles(handle, MINE):
            await recalled(client, MINE, forged)
        await until(lambda: end(app, BANK) == 2)


HOW: list[dict[str, str]] = [
    {},
    {"DELAY": "1"},
    {"TIMER_DELAY_MS": "1"},
    {"TRAN_MSG": "false"},
]


def forged_pairs(handle: str, how: dict[str, str]) -> dict[str, str]:
    """Properties that brokers write, as if a message were the bank's, or ended one."""
    forged = {
        "REAL_TOPIC": BANK,
        "REAL_QID": "0",
        "RETRY_TOPIC": BANK,
        "INNER_MULTI_DISPATCH": f"{BANK},%LMQ%{BANK}",
        "INNER_MULTI_QUEUE_OFFSET": "0,0",
        "TIMER_DEL_UNIQKEY": f"{BANK}+victim",
        "ORIGIN_MESSAGE_ID": "0" * 32,
    }
    if "TIMER_DELAY_MS" not in how:
        forged["TIMER_OUT_MS"] = str(recall.parse(handle).deliver_ms)
    return {**how, **forged}


@looped
@pytest.mark.parametrize("how", HOW)
async def test_no_property_takes_a_message_to_another_topic(
    tmp_path: Path, how: dict[str, str]
):
    async with guarded(tmp_path, *RULES) as (app, client):
        await make_both(client)
        handle = await victim(client, app)
        sent = sending(MINE, queue_id=0, pairs=forged_pairs(handle, how))
        assert (await ask(client, ALICE, sent, b"forged")).code == 0
        await until(lambda: end(app, MINE) == 2)
        await until(lambda: end(app, BANK) == 2)
        found = await ask(client, ROOT, pulling(BANK))
        assert [one.body for one in found.messages()] == [b"first", b"kept"]


@looped
async def test_an_ipv4_address_is_one_on_a_socket_of_ipv6_too(tmp_path: Path):
    """A rule that denies 127.0.0.1 is not evaded as ::ffff:127.0.0.1."""
    listener = ListenerConfig("::", 0, "127.0.0.1")
    denied = Rule(f"Topic:{MINE}", ("All",), allowed=False, sources=("127.0.0.1",))
    acl = acl_of(tmp_path)
    async with running(tmp_path, acl=acl, listeners=(listener,)) as (app, _):
        await populate(app, allow("Topic:*"), denied)
        for host, code in (
            ("::1", ResponseCode.SUCCESS),
            ("127.0.0.1", ResponseCode.NO_PERMISSION),
        ):
            port = app.server.listeners[0].port
            client = Remoting(*await asyncio.open_connection(host, port))
            answer = await ask(client, ALICE, sending(MINE), b"x")
            assert answer.code == code, answer.remark
            await client.close()
