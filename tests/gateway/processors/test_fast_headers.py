"""A send whose header is read fast is stored, answered and refused as any other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.send_codec import read_send
from tests.guarded import ALICE, NOBODY, ROOT, allow, ask, guarded
from tests.remoting import looped, running, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path


class Readers:
    """Counts the requests whose headers were read fast, and the others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fast = self.others = 0

        def counted(*arguments):
            found = read_send(*arguments)
            self.fast += found is not None
            self.others += found is None
            return found

        monkeypatch.setattr("ropeway.gateway.connection.read_send", counted)


@looped
async def test_both_are_stored_and_answered_alike(tmp_path: Path, monkeypatch):
    readers = Readers(monkeypatch)
    async with running(tmp_path) as (_, client):
        pairs = {"TAGS": "t", "KEYS": "a b"}
        asked = sending("orders", queue_id=2, flag=7, sys_flag=1, pairs=pairs)
        first = (await client.ask(asked, b"body")).read(SendReply)
        assert readers.fast == 0
        second = (await client.ask(asked, b"body")).read(SendReply)
        assert readers.fast == 1
        assert (first.queue_offset, second.queue_offset) == (0, 1)
        assert first.transaction_id == second.transaction_id
        assert (first.queue_id, second.queue_id) == (2, 2)
        pulled = await client.ask(pulling("orders", queue_id=2))
        one, two = pulled.messages()
        alike = ("body", "flag", "sys_flag", "born_ms", "born_host", "store_host")
        for name in (*alike, "properties", "reconsume_times", "topic", "queue_id"):
            assert getattr(one, name) == getattr(two, name)


@looped
@pytest.mark.parametrize(
    "asked",
    [
        sending("unknown"),
        sending("orders", queue_id=99),
        sending("orders", sys_flag=message.TRANSACTION_MASK),
        sending("SCHEDULE_TOPIC_XXXX"),
        sending("%RETRY%g"),
        sending("orders", pairs={properties.DELAY: "1"}),
        sending("orders", pairs={"UNIQ_KEY": ""}),
    ],
)
async def test_whatever_a_send_asks_for_its_header_is_read_fast(
    tmp_path: Path, monkeypatch, asked
):
    readers = Readers(monkeypatch)
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"x")
        await client.ask(asked, b"x")
        assert (readers.fast, readers.others) == (1, 0)


@looped
async def test_a_full_log_refuses_it(tmp_path: Path, monkeypatch):
    readers = Readers(monkeypatch)
    limits = LimitsConfig(waiting_bytes=1000)
    async with running(tmp_path, limits=limits) as (_, client):
        await client.ask(sending("orders"), b"x")
        refused = await client.ask(sending("orders"), bytes(1000))
        assert refused.code
        assert "bytes wait for the disk; allowed: 1000" in refused.remark
        assert readers.fast == 1


DENIED = ResponseCode.NO_PERMISSION
SEND = sending("orders")


def slowly(answer):
    """The same answer, but later."""

    async def answer_later(*arguments):
        await asyncio.sleep(0)
        return await answer(*arguments)

    return answer_later


@looped
@pytest.mark.parametrize("slow", ["", "identify", "permit"])
async def test_it_is_let_in_as_any_other(tmp_path: Path, monkeypatch, slow):
    async with guarded(tmp_path, allow("Topic:orders", "Pub")) as (app, client):
        await ask(client, ROOT, sending("secret"), b"x")
        await ask(client, ROOT, SEND, b"x")
        if slow:
            guard = app.node.guard
            monkeypatch.setattr(guard, slow, slowly(getattr(guard, slow)))
        readers = Readers(monkeypatch)
        assert (await ask(client, ALICE, SEND, b"hello")).code == 0
        assert (await ask(client, ALICE, SEND, b"x", password="wrong")).code == DENIED
        assert (await ask(client, ALICE, sending("secret"), b"x")).code == DENIED
        assert (await ask(client, NOBODY, SEND, b"x")).code == DENIED
        assert (await client.ask(SEND, b"x")).code == DENIED
        assert (readers.fast, readers.others) == (5, 0)
        pulled = await ask(client, ROOT, pulling("orders"))
        assert [one.body for one in pulled.messages()] == [b"x", b"hello"]


@looped
@pytest.mark.parametrize("v2", [True, False])
async def test_who_may_no_longer_send_is_refused_while_the_topic_is_made(
    tmp_path: Path, monkeypatch, v2
):
    async with guarded(tmp_path, allow("Topic:orders", "Pub")) as (app, client):
        create, may_go_on = app.node.topics.auto_create, asyncio.Event()

        async def slow(*arguments):
            await may_go_on.wait()
            return await create(*arguments)

        monkeypatch.setattr(app.node.topics, "auto_create", slow)
        waits = asyncio.create_task(ask(client, ALICE, sending("orders", v2=v2), b"x"))
        await until(lambda: app.node.pending_sends.waiting)
        await app.node.guard.administration.delete_rules(f"User:{ALICE}")
        assert (await waits).code == DENIED
        may_go_on.set()
        await until(lambda: not app.node.pending_sends.waiting)
        pulled = await ask(client, ROOT, pulling("orders"))
        assert pulled.messages() == []
