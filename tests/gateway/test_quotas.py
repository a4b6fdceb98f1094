"""What clients may take, and how they are held back without losing anything."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.app import App
from ropeway.gateway.config import AclConfig, ConfigError, LimitsConfig, QuotaConfig
from ropeway.gateway.quotas import ClientAccount, Quotas, Share
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from tests.acl.pulsar.issuing import SECRET, token
from tests.remoting import config, connect, looped, until
from tests.requests import pulling, sending
from tests.system.process import free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remoting import Frame, Remoting


class Held:
    """A connection that its account holds back."""

    def __init__(self, account: ClientAccount) -> None:
        self.active = False
        self.share = Share(Quotas([], by_principal=False), "10.0.0.1", self)
        assert self.share._use(account)
        self.looked = 0

    def pause_or_resume(self) -> None:
        self.looked += 1

    @property
    def reading(self) -> bool:
        return not self.share.held_back


def limited(tmp_path: Path, *quotas: QuotaConfig, **limits: int) -> App:
    return App(config(tmp_path, quotas=quotas, limits=LimitsConfig(**limits)))


@looped
async def test_an_overdrawn_account_holds_its_connections_back_with_one_timer():
    account = ClientAccount("a", QuotaConfig(requests_per_s=20))
    one, other = Held(account), Held(account)
    one.share.charge(20, 0)
    assert one.reading
    for connection in (one, other, one):
        connection.share.charge(1, 0)
    due = account._due
    assert due is not None
    assert not one.reading
    assert not other.reading
    one.share.charge(0, 0)
    assert account._due is due
    await until(lambda: one.reading)
    assert other.reading
    assert account._due is None


@looped
async def test_who_leaves_takes_the_timer_along_but_not_the_debt():
    quotas = Quotas([QuotaConfig(requests_per_s=10)], by_principal=False)
    account = quotas.of_address("10.0.0.1")
    assert account is not None
    one = Held(account)
    one.share.charge(15, 0)
    one.share.leave()
    assert one.reading
    assert one.active
    assert account._due is None
    quotas.forget()
    assert quotas.of_address("10.0.0.1") is account

    def forgotten() -> bool:
        quotas.forget()
        return quotas.of_address("10.0.0.1") is not account

    await until(forgotten)


@looped
async def test_the_first_rule_that_means_a_client_is_its_quota():
    rules = [
        QuotaConfig(of="10.1.0.0/16", connections=1),
        QuotaConfig(of="2001:db8::1", connections=2),
        QuotaConfig(of="tokens:batch-*", connections=3),
        QuotaConfig(connections=4),
    ]
    by_address = Quotas(rules, by_principal=False)
    by_principal = Quotas(rules, by_principal=True)
    for host, most in (("10.1.2.3", 1), ("2001:db8::1", 2), ("10.2.0.1", 4)):
        assert by_address.of_address(host).quota.connections == most
    assert by_principal.of_address("10.1.2.3").quota.connections == 1
    assert by_principal.of_address("10.2.0.1") is None
    assert by_principal.of_principal("tokens:batch-7").quota.connections == 3
    assert by_principal.of_principal("tokens:web").quota.connections == 4
    assert Quotas(rules[:3], by_principal=True).of_principal("tokens:web") is None
    # A principal that is named like an address is no address.
    assert by_principal.of_principal("10.1.2.3").quota.connections == 4
    one, other = (by_address.of_address(f"10.2.0.{host}") for host in (1, 2))
    assert one is not other


@pytest.mark.parametrize("of", ["10.0.0.0/33", "10.0.0.300", "orders", ""])
def test_a_rule_that_means_nobody_is_refused(of: str):
    with pytest.raises(ConfigError, match="allowed: \\*, an address"):
        Quotas([QuotaConfig(of=of)], by_principal=True)


@looped
async def test_one_connection_too_many_is_closed_and_others_go_on(tmp_path: Path):
    async with limited(tmp_path, QuotaConfig(connections=2)) as app:
        listener = app.server.listeners[0]
        async with connect(listener) as one:
            async with connect(listener) as two:
                assert (await two.ask(GetAllTopicList())).code == 0
                async with connect(listener) as three:
                    await three.closed()
                assert (await one.ask(GetAllTopicList())).code == 0
            await until(lambda: len(listener.connections) == 1)
            async with connect(listener) as again:
                assert (await again.ask(GetAllTopicList())).code == 0


@looped
async def test_too_many_requests_are_all_answered_at_the_rate(tmp_path: Path):
    async with limited(tmp_path, QuotaConfig(requests_per_s=200)) as app:
        listener = app.server.listeners[0]
        async with connect(listener) as one, connect(listener) as other:
            await one.ask(sending("orders"), b"x")
            began = time.monotonic()
            for _ in range(3):
                both = [
                    client.send(sending("orders"), b"x")
                    for client in (one, other)
                    for _ in range(75)
                ]
                # So the next ones come in a read of their own.
                answers = await asyncio.gather(*both)
                assert {answer.code for answer in answers} == {0}
            # Who has overdrawn the account is held back, and that may be either.
            await asyncio.gather(
                *(each.ask(GetAllTopicList()) for each in (one, other))
            )
            # 450 and more at 200 a second, of which one second's were there.
            assert time.monotonic() - began > 1.0


@looped
async def test_bytes_count_both_ways(tmp_path: Path):
    quota = QuotaConfig(bytes_per_s=200_000)
    async with (
        limited(tmp_path, quota) as app,
        connect(app.server.listeners[0]) as client,
    ):
        await client.ask(sending("orders"), b"x" * 100_000)
        (connection,) = app.server.listeners[0].connections
        assert not connection.share._account.throttled
        began = time.monotonic()
        answers = [client.send(pulling("orders")) for _ in range(3)]
        for answer in await asyncio.gather(*answers):
            assert len(answer.messages()) == 1
        assert connection.share._account.throttled
        assert (await client.ask(GetAllTopicList())).code == 0
        assert time.monotonic() - began > 0.5


@looped
async def test_who_is_held_back_is_not_taken_for_idle_and_can_leave(tmp_path: Path):
    quota = QuotaConfig(requests_per_s=1)
    # Less than it is held back for, and more than a busy machine stands still.
    async with limited(tmp_path, quota, idle_ms=1500) as app:
        listener = app.server.listeners[0]
        async with connect(listener) as client:
            await asyncio.gather(*(client.send(GetAllTopicList()) for _ in range(5)))
            (connection,) = listener.connections
            await until(lambda: not connection.share.held_back)
            assert client.is_open
            for _ in range(99):
                client.send(GetAllTopicList())
            await until(lambda: connection.share.held_back)
            # What a peer does that resets the connection, while nothing is read.
            client.writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            client.writer.transport.abort()
        await app.server.close(0.1)
        assert not listener.connections


@looped
async def test_principals_have_accounts_of_their_own_behind_one_address(
    tmp_path: Path,
):
    key = tmp_path / "key"
    key.write_bytes(SECRET)
    roles = ["a", "b"]
    options = {
        "token_secret_key": str(key),
        "admin_url": f"http://127.0.0.1:{free_ports(1)[0]}",
        "superusers": roles,
    }
    guarded = config(
        tmp_path,
        quotas=(QuotaConfig(connections=1),),
        acl=AclConfig(hooks=("pulsar",), options={"pulsar": options}),
    )
    async with App(guarded) as app, AsyncExitStack() as stack:
        listener = app.server.listeners[0]

        async def asked(client: Remoting, role: str) -> Frame:
            fields = {"AccessKey": token({"sub": role})}
            return await client.ask(
                RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, fields=fields
            )

        clients = [await stack.enter_async_context(connect(listener)) for _ in roles]
        for _ in range(2):
            for client, role in zip(clients, roles, strict=True):
                assert (await asked(client, role)).code == 0
        third = await stack.enter_async_context(connect(listener))
        refused = await asked(third, "a")
        assert refused.code == ResponseCode.SYSTEM_BUSY
        assert "a has as many connections as its quota allows" in refused.remark
        await clients[0].close()
        await until(lambda: len(listener.connections) == 2)
        assert (await asked(third, "a")).code == 0
