"""With access control, only who has received a request can answer it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.acl.administration import Rules
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.clients import HeartBeat
from ropeway.gateway.wire.commands.reply import PushReplyMessage
from tests.gateway.processors.test_reply import REPLY_TOPIC, answer, replying
from tests.guarded import (
    ALICE,
    NOBODY,
    ROOT,
    acl_of,
    allow,
    ask,
    guarded,
    populate,
)
from tests.remoting import TIMEOUT_S, connect, looped, running, two_running, until
from tests.requests import heartbeat, pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.app import App
    from tests.remoting import Remoting

RULES = (
    allow("Topic:orders", "Pub", "Sub"),
    allow("Group:readers", "Sub"),
    allow(f"Topic:{REPLY_TOPIC}", "Pub"),
)
"""Of who asks and of who answers."""
THIEVES = (allow(f"Topic:{REPLY_TOPIC}", "Pub"), allow("Topic:own", "Pub", "Sub"))
WAITING = {properties.REPLY_TO_CLIENT: "asker", properties.CORRELATION_ID: "c1"}
FORGED = "not those of a request"


async def let_nobody(app: App) -> None:
    await app.node.guard.administration.add_rules(Rules(f"User:{NOBODY}", THIEVES))


async def register(client: Remoting, who: str) -> None:
    body = heartbeat("asker", producers=("askers",))
    assert (await ask(client, who, HeartBeat(), body)).code == 0


async def known_everywhere(asker: Remoting) -> None:
    """Register the asker, as soon as its node has the users and rules of the other."""
    body = heartbeat("asker", producers=("askers",))
    async with asyncio.timeout(TIMEOUT_S):
        while (await ask(asker, ALICE, HeartBeat(), body)).code:  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.01)
        while (await ask(asker, ALICE, sending("orders"), b"-")).code:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def address_of_request(
    client: Remoting, who: str = ALICE, topic: str = "orders", reader: str = ROOT
) -> str:
    """What a consumer reads of who waits for a reply to a request that is sent now."""
    sent = await ask(client, who, sending(topic, pairs=WAITING), b"?")
    assert sent.code == 0
    pulled = await ask(client, reader, pulling(topic))
    pairs = properties.parse(pulled.messages()[-1].properties)
    assert pairs[properties.CORRELATION_ID] == "c1"
    return pairs[properties.REPLY_TO_CLIENT]


async def push_of(asker: Remoting, replying_to: object) -> PushReplyMessage:
    asked = await asker.asked()
    assert asked.code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
    answer(asker, asked)
    assert (await replying_to).code == 0
    return asked.read(PushReplyMessage)


def send_reply(client: Remoting, who: str, address: str, **changes):
    """Ask in the background."""
    header = replying(address, **changes)
    return asyncio.get_running_loop().create_task(ask(client, who, header, b"42"))


@looped
async def test_a_reply_goes_to_who_asked_and_names_no_signature(tmp_path: Path):
    async with (
        guarded(tmp_path, *RULES) as (app, asker),
        connect(app.server.listeners[0]) as client,
    ):
        await register(asker, ALICE)
        address = await address_of_request(asker)
        assert address != "asker"
        for v2 in (True, False):
            sent = send_reply(client, ALICE, address, v2=v2)
            pairs = properties.parse((await push_of(asker, sent)).properties)
            assert pairs[properties.REPLY_TO_CLIENT] == "asker"
            assert pairs[properties.CORRELATION_ID] == "c1"
        kept = (await ask(client, ROOT, pulling(REPLY_TOPIC))).messages()
        assert len(kept) == 2
        assert {
            properties.parse(one.properties)[properties.REPLY_TO_CLIENT] for one in kept
        } == {"asker"}


@looped
async def test_who_guesses_a_correlation_id_answers_nobody(tmp_path: Path):
    async with (
        guarded(tmp_path, *RULES) as (app, asker),
        connect(app.server.listeners[0]) as thief,
    ):
        await let_nobody(app)
        await register(asker, ALICE)
        address = await address_of_request(asker)
        # The node that signs knows the client as another's, and yet it signs this one.
        own = await address_of_request(thief, NOBODY, "own")
        wrong = address[:-1] + ("0" if address[-1] != "0" else "1")
        for forged in ("asker", "nobody-there", wrong, f"x{address}"):
            for v2 in (True, False):
                refused = await ask(thief, NOBODY, replying(forged, v2=v2), b"forged")
                assert refused.code == ResponseCode.NO_PERMISSION
                assert FORGED in refused.remark
        refused = await ask(thief, NOBODY, replying(own), b"forged")
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert "channel of <asker> not found" in refused.remark
        assert asker.requests.empty()
        # Only what was a reply to a request was kept.
        kept = (await ask(thief, ROOT, pulling(REPLY_TOPIC))).messages()
        assert [one.body for one in kept] == [b"forged"]


@looped
async def test_what_was_read_of_one_request_answers_no_other(tmp_path: Path):
    async with guarded(tmp_path, *RULES) as (_, asker):
        await register(asker, ALICE)
        address = await address_of_request(asker)
        header = replying(address)
        fields = {name: getattr(header, name) for name in header.__struct_fields__}
        pairs = properties.parse(fields["properties"])
        pairs[properties.CORRELATION_ID] = "c2"
        fields["properties"] = properties.dump(pairs)
        refused = await ask(asker, ALICE, type(header)(**fields), b"42")
        assert refused.code == ResponseCode.NO_PERMISSION
        assert FORGED in refused.remark
        assert asker.requests.empty()


@looped
async def test_a_request_that_is_sent_back_can_be_answered(tmp_path: Path):
    async with guarded(tmp_path, *RULES) as (app, asker):
        await register(asker, ALICE)
        address = await address_of_request(asker)
        pairs = {**WAITING, properties.REPLY_TO_CLIENT: address}
        again = sending("%RETRY%readers", pairs=pairs, producer_group="readers")
        assert (await ask(asker, ALICE, again, b"?")).code == 0
        await until(lambda: app.node.topics.get("%RETRY%readers") is not None)
        pulled = await ask(asker, ROOT, pulling("%RETRY%readers"))
        kept = properties.parse(pulled.messages()[0].properties)
        assert kept[properties.REPLY_TO_CLIENT] == address
        await push_of(asker, send_reply(asker, ALICE, address))


@looped
async def test_a_reply_at_another_node_goes_to_the_same_user_alone(tmp_path: Path):
    acl = acl_of(tmp_path)
    async with (
        two_running(tmp_path, acl=acl) as ((near, client), (far, asker)),
        connect(near.server.listeners[0]) as thief,
    ):
        await populate(near, *RULES)
        await let_nobody(near)
        for one in (near, far):
            await until(lambda one=one: len(one.node.routes.brokers) == 2)
        await known_everywhere(asker)
        # Each node knows its own clients: here the id is free, and somebody else's.
        await register(thief, NOBODY)
        address = await address_of_request(asker)
        sent = send_reply(client, ALICE, address)
        pushed = await push_of(asker, sent)
        pairs = properties.parse(pushed.properties)
        assert pairs[properties.REPLY_TO_CLIENT] == "asker"
        assert thief.requests.empty()


@looped
async def test_a_dry_run_signs_and_refuses_nothing(tmp_path: Path):
    async with guarded(tmp_path, *RULES, dry_run=True) as (_, asker):
        await register(asker, ALICE)
        assert await address_of_request(asker) == "asker"
        await push_of(asker, send_reply(asker, NOBODY, "asker"))


@looped
async def test_without_access_control_a_request_is_stored_as_it_came(tmp_path: Path):
    async with running(tmp_path) as (_, asker):
        await asker.ask(sending("orders", pairs=WAITING), b"?")
        (found,) = (await asker.ask(pulling("orders"))).messages()
        assert properties.parse(found.properties)[properties.REPLY_TO_CLIENT] == "asker"
