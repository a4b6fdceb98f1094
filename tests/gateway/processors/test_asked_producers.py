"""Who is asked how a transaction ended: its sender, and who else may send there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.config import TransactionsConfig
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RequestCode, ResponseCode
from ropeway.gateway.wire.commands.clients import HeartBeat
from ropeway.gateway.wire.commands.transactions import ResumeCheckHalfMessage
from tests.gateway.grpc.thin import Thin, create, producer, serving, sign
from tests.guarded import ALICE, NOBODY, ROOT, acl_of, allow, ask, populate
from tests.remoting import connect, looped, running, until
from tests.requests import heartbeat, pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

SOON = TransactionsConfig(timeout_ms=100, check_interval_ms=1000, check_max=3)


async def half(client, who: str, body: bytes = b"secret") -> None:
    pairs = {"TRAN_MSG": "true", "PGROUP": "bank"}
    answer = await ask(client, who, sending("money", pairs=pairs, sys_flag=4), body)
    assert answer.code == 0


async def time_asked(client) -> int:
    """How often somebody is asked with what a client is asked next, with this."""
    asked = message.decode((await client.asked()).body)
    return int(properties.parse(asked.properties)["TRANSACTION_CHECK_TIMES"])


def named(client_id: str) -> bytes:
    return heartbeat(client_id, producers=("bank",))


@looped
async def test_nobody_is_shown_half_messages_who_may_not_send_to_their_topic(
    tmp_path: Path,
):
    acl = acl_of(tmp_path)
    async with (
        running(tmp_path, acl=acl, transactions=SOON) as (app, real),
        connect(app.server.listeners[0]) as first,
        connect(app.server.listeners[0]) as second,
    ):
        await populate(app, allow("Topic:money", "Pub"))
        # As with RocketMQ 5.5, saying that one is a producer needs no permission.
        for number, thief in enumerate((first, second)):
            beat = await ask(thief, NOBODY, HeartBeat(), named(f"thief{number}"))
            assert beat.code == 0
        assert (await ask(real, ALICE, HeartBeat(), named("real"))).code == 0
        for _ in range(3):
            await half(real, ALICE)
        for _ in range(6):
            asked = await real.asked()
            assert asked.code == RequestCode.CHECK_TRANSACTION_STATE
            assert asked.flag & ONE_WAY_FLAG
            assert message.decode(asked.body).body == b"secret"
        assert first.requests.empty()
        assert second.requests.empty()


@looped
async def test_the_sender_is_asked_first_and_then_the_others(tmp_path: Path):
    acl = acl_of(tmp_path)
    async with (
        running(tmp_path, acl=acl, transactions=SOON) as (app, real),
        connect(app.server.listeners[0]) as other,
        connect(app.server.listeners[0]) as third,
    ):
        await populate(app, allow("Topic:money", "Pub"))
        for number, client in enumerate((other, real, third)):
            await ask(client, ALICE, HeartBeat(), named(f"c{number}"))
        for _ in range(4):
            await half(real, ALICE)
        for _ in range(4):
            assert await time_asked(real) == 1
        for client in (other, third):
            assert await time_asked(client) > 1


@looped
async def test_who_may_not_send_any_more_is_asked_no_more(tmp_path: Path):
    acl = acl_of(tmp_path)
    async with running(tmp_path, acl=acl, transactions=SOON) as (app, real):
        await populate(app, allow("Topic:money", "Pub"))
        await ask(real, ALICE, HeartBeat(), named("real"))
        await half(real, ALICE)
        await real.asked()
        await app.node.guard.administration.delete_rules(f"User:{ALICE}")
        # What was asked before comes before this answer.
        await ask(real, ALICE, HeartBeat(), named("real"))
        asked = real.requests.qsize()
        await until(lambda: app.node.topics.get("TRANS_CHECK_MAX_TIME_TOPIC"))
        assert real.requests.qsize() == asked
        assert asked + 1 < SOON.check_max


@looped
async def test_a_grpc_producer_needs_pub_on_the_topics_that_it_names(tmp_path: Path):
    async with serving(tmp_path, acl=acl_of(tmp_path)) as (app, _):
        await populate(app, allow("Topic:mine", "Pub"))
        for topic in ("mine", "money"):
            await create(app, topic)
        client = sign(Thin(app.server.listeners[0].advertised), ALICE)
        try:
            for topics in (("money",), ("mine", "money"), ("unknown",)):
                _, why = await client.refused(producer(*topics))
                assert why.startswith("FORBIDDEN: ")
                assert app.node.clients.producer_groups() == []
            stream, answer = await client.telemetry(producer("mine"))
            assert answer.HasField("settings")
            assert app.node.clients.producer_groups() == ["mine"]
            stream.cancel()
        finally:
            await client.close()


@looped
async def test_nobody_has_others_transactions_asked_about_again(tmp_path: Path):
    """Nor learns which were given up, whatever topic is named."""
    soon = TransactionsConfig(timeout_ms=100, check_interval_ms=100, check_max=1)
    acl = acl_of(tmp_path)
    async with running(tmp_path, acl=acl, transactions=soon) as (app, client):
        await populate(app, allow("Topic:mine"), allow("Topic:money", "Pub", "Sub"))
        await half(client, ALICE)
        kept_in = "TRANS_CHECK_MAX_TIME_TOPIC"
        await until(lambda: app.node.topics.get(kept_in))
        await until(lambda: len(app.node.transactions) == 0)
        (kept,) = (await ask(client, ROOT, pulling(kept_in))).messages()
        resume = app.node.transactions.resume
        resumed = []

        async def noting(found):
            resumed.append(found.topic)
            await resume(found)

        app.node.transactions.resume = noting
        remarks = []
        for identity in (kept.message_id, kept.message_id + 0x7000):
            text = f"7F00000100002A9F{identity:016X}"
            asked = ResumeCheckHalfMessage(topic="mine", msg_id=text)
            answer = await ask(client, ALICE, asked)
            assert answer.code == ResponseCode.SYSTEM_ERROR
            remarks.append(answer.remark.replace(str(identity), "ID"))
        assert len(set(remarks)) == 1
        assert not resumed
        text = f"7F00000100002A9F{kept.message_id:016X}"
        again = ResumeCheckHalfMessage(topic="mine", msg_id=text)
        assert (await ask(client, ROOT, again)).code == 0
        assert resumed == ["money"]
