"""Sends that another node sent on wait for a quota themselves, while they may."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.acl.administration import Rules
from ropeway.acl.api import Principal
from ropeway.gateway.node import accounts
from ropeway.gateway.processors import throttling
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.quotas import DeleteQuota, SetQuota
from ropeway.gateway.wire.frame import FrameReader, decode_envelope, encode_frame
from ropeway.gateway.wire.header import row_of, to_fields
from tests.forwards import signed
from tests.gateway.processors.test_throttling import BODY, FOREVER, throttled
from tests.guarded import ALICE, ROOT, allow, ask, guarded
from tests.remoting import TIMEOUT_S, looped, until
from tests.requests import batch_of, sending

if TYPE_CHECKING:
    from ropeway.gateway.app import App
    from ropeway.gateway.wire.commands.forward import Forward
    from ropeway.gateway.wire.commands.send import SendMessage
    from tests.remoting import Frame


@pytest.fixture(autouse=True)
def _no_debt_is_forgiven(monkeypatch):
    """While a test runs, however slow the machine is."""
    monkeypatch.setattr(accounts, "MAX_DEBT_S", 1e9)


def sent_on(app: App, body: bytes, header: SendMessage) -> tuple[Forward, bytes]:
    """A send of ALICE's, as another node sends it on."""
    code = int(row_of(type(header)).code)
    frame = encode_frame(code, 7, fields=to_fields(header), body=body)
    who = msgspec.json.encode(Principal(ALICE, "users")).decode()
    here = app.server.listeners[0].advertised
    return signed(app.node, here, "127.0.0.1:1", frame, principal=who), frame


async def told(answer: asyncio.Future[Frame]) -> int:
    """The code that a node answers another with for its client."""
    (frame,) = FrameReader().feed((await asyncio.wait_for(answer, TIMEOUT_S)).body)
    return decode_envelope(frame.serialize_type, frame.header).code


@looped
async def test_who_may_no_longer_send_is_refused_while_its_send_waits(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(throttling, "FORWARDED_S", 600.0)
    async with guarded(tmp_path, allow("Topic:orders", "Pub")) as (app, client):
        assert (await ask(client, ROOT, sending("orders"), BODY)).code == 0
        limits = SetQuota("topic", "orders", send_bytes_per_s=FOREVER)
        assert (await ask(client, ROOT, limits)).code == 0
        assert await told(client.send(*sent_on(app, BODY, sending("orders")))) == 0
        late = client.send(*sent_on(app, BODY, sending("orders")))
        await until(lambda: throttled(app) == 1)
        await app.node.guard.administration.delete_rules(f"User:{ALICE}")
        assert await told(late) == ResponseCode.NO_PERMISSION
        # Nobody is kept from going on by the one that has left.
        await app.node.guard.administration.add_rules(
            Rules(f"User:{ALICE}", (allow("Topic:orders", "Pub"),))
        )
        last = client.send(*sent_on(app, BODY, sending("orders")))
        await until(lambda: throttled(app) == 2)
        gone = DeleteQuota("topic", "orders")
        assert (await ask(client, ROOT, gone)).code == 0
        assert await told(last) == 0


@looped
async def test_a_large_batch_that_waits_for_a_quota_is_charged_once(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(throttling, "FORWARDED_S", 0.05)
    batch, taken = batch_of(*[b"x"] * 5000), []
    async with guarded(tmp_path, allow("Topic:orders", "Pub")) as (app, client):
        assert (await ask(client, ROOT, sending("orders"), BODY)).code == 0
        limits = SetQuota("topic", "orders", send_bytes_per_s=FOREVER)
        assert (await ask(client, ROOT, limits)).code == 0
        assert await told(client.send(*sent_on(app, BODY, sending("orders")))) == 0
        account = app.node.quotas.sends["orders"]
        take = account.take

        def noted(requests: int, size_bytes: int) -> None:
            taken.append((requests, size_bytes))
            take(requests, size_bytes)

        monkeypatch.setattr(account, "take", noted)
        header = sending("orders", batch=True)
        assert await told(client.send(*sent_on(app, batch, header))) == 0
        assert taken == [(1, len(batch))]
        assert account.throttled == 1
