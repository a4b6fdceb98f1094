"""Who may use `team` and `billing` gets nothing of the group `team_billing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.client.credentials import Credentials, signed
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.clients import HeartBeat
from ropeway.gateway.wire.commands.pop import (
    AckMessage,
    ChangeInvisibleTime,
    Notification,
    NotificationReply,
    PeekMessage,
    PollingInfo,
    PopMessage,
)
from ropeway.routing.api import Group
from tests.gateway.grpc.thin import Thin, consumer, create, receives, serving, sign
from tests.gateway.pop.rig import rigged
from tests.gateway.pop.test_revive import next_one
from tests.guarded import ALICE, PASSWORD, ROOT, acl_of, allow, ask, guarded, populate
from tests.remoting import looped
from tests.requests import heartbeat, pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

DENIED = ResponseCode.NO_PERMISSION
THEIRS = "%RETRY%team_billing"
RULES = (allow("Group:team"), allow("Topic:billing"))
RECEIPT = "0 1 60000 0 1 broker-0 0 0"


def asking(topic: str, group: str = "team"):
    popped = {"consumer_group": group, "topic": topic}
    held = {**popped, "queue_id": 0, "extra_info": RECEIPT, "offset": 0}
    times = {"poll_time": 0, "born_time": 0}
    return {
        "pull": pulling(topic, group=group),
        "pop": PopMessage(
            **popped,
            **times,
            queue_id=-1,
            max_msg_nums=9,
            invisible_time=60_000,
            init_mode=0,
        ),
        "peek": PeekMessage(**popped, queue_id=-1, max_msg_nums=9),
        "notification": Notification(**popped, **times, queue_id=-1),
        "polling": PollingInfo(**popped, queue_id=-1),
        "ack": AckMessage(**held),
        "change": ChangeInvisibleTime(**held, invisible_time=1),
        "send": sending(topic, producer_group=group),
    }


async def _prepare(app, client) -> None:
    """A retry of the group, and a topic that the attacker may read."""
    await app.node.groups.put(Group(name="team_billing"))
    await ask(client, ROOT, sending("billing"), b"open")
    sent = await ask(client, ROOT, sending(THEIRS), b"secret")
    assert sent.code == 0


@looped
async def test_no_request_reads_another_groups_retries_by_a_second_reading(
    tmp_path: Path,
):
    async with guarded(tmp_path, *RULES) as (app, client):
        await _prepare(app, client)
        for name, header in asking(THEIRS).items():
            answer = await ask(client, ALICE, header, b"x")
            assert (name, answer.code, answer.body) == (name, DENIED, b"")
        beat = heartbeat("c", "team", topic=THEIRS)
        assert (await ask(client, ALICE, HeartBeat(), beat)).code == DENIED
        ack = {"c": "team", "t": "billing", "r": "1", "b": "AQ=="}
        numbers = dict.fromkeys(("so", "q", "rq", "pt", "it"), 0)
        body = msgspec.json.encode({"acks": [{**ack, **numbers}]})
        fields = signed({}, body, Credentials(access_key=ALICE, secret_key=PASSWORD))
        batch = await client.ask(RequestCode.BATCH_ACK_MESSAGE, body, fields=fields)
        assert batch.code == DENIED


@looped
async def test_a_pop_of_the_topic_gives_nothing_of_another_groups_retries(
    tmp_path: Path,
):
    async with guarded(tmp_path, *RULES) as (app, client):
        await _prepare(app, client)
        requests = asking("billing")
        bodies = []
        for _ in range(6):
            popped = await ask(client, ALICE, requests["pop"])
            bodies += [one.body for one in popped.messages()]
            peeked = await ask(client, ALICE, requests["peek"])
            assert b"secret" not in peeked.body
        assert bodies == [b"open"]
        waiting = await ask(client, ALICE, requests["notification"])
        assert waiting.read(NotificationReply).has_msg is False


@looped
async def test_who_has_the_rights_of_every_reading_reads(tmp_path: Path):
    async with guarded(tmp_path, *RULES, allow("Group:team_billing")) as (app, client):
        await _prepare(app, client)
        popped = await ask(client, ALICE, asking(THEIRS)["pop"])
        assert [one.body for one in popped.messages()] == [b"secret"]


@looped
async def test_a_group_made_later_does_not_read_what_was_popped(tmp_path: Path):
    rules = allow("Group:team_billing"), allow("Topic:other")
    async with guarded(tmp_path, *rules) as (app, client):
        await ask(client, ROOT, sending("billing"), b"secret")
        await app.node.groups.put(Group(name="team"))
        # As `Revive` does before it stores what was not acknowledged.
        await ask(client, ROOT, sending(THEIRS), b"secret")
        app.node.offsets.commit("team", THEIRS, 0, 0)
        await app.node.groups.put(Group(name="team_billing"))
        mine = asking(THEIRS, "team_billing")
        assert (await ask(client, ALICE, mine["pull"])).code == DENIED
        assert (await ask(client, ALICE, mine["pop"])).code == DENIED


@looped
@pytest.mark.parametrize("name", ["%RETRY%theirs+secret", "%RETRY%mine+secret"])
async def test_a_v2_name_is_split_at_the_plus_alone(tmp_path: Path, name):
    rules = allow("Group:mine"), allow("Topic:mine")
    async with guarded(tmp_path, *rules) as (app, client):
        await app.node.topics.ensure_derived(name, 1)
        for what, header in asking(name, "mine").items():
            answer = await ask(client, ALICE, header, b"x")
            assert (what, answer.code) == (what, DENIED)


@looped
async def test_grpc_receives_nothing_of_another_groups_retries(tmp_path: Path):
    async with serving(tmp_path, acl=acl_of(tmp_path)) as (app, _):
        await populate(app, *RULES)
        await create(app, "billing")
        await app.node.groups.put(Group(name="team"))
        await app.node.groups.put(Group(name="team_billing"))
        await app.node.topics.ensure_derived(THEIRS, 1)
        client = sign(Thin(app.server.listeners[0].advertised), ALICE)
        try:
            stream, _ = await client.telemetry(consumer("billing", "team"))
            (refused,) = await client.stream("ReceiveMessage", receives(THEIRS, "team"))
            assert refused.status.code == Code.FORBIDDEN
            stream.cancel()
        finally:
            await client.close()


@looped
async def test_what_is_popped_goes_where_it_is_nobody_elses(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.app.node.groups.put(Group(name="readers_orders"))
        await rig.consumer.send(1)
        await rig.consumer.take(1)
        again = await next_one(rig)
        assert again.bodies == [b"0"]
        assert rig.app.node.topics.get("%RETRY%readers_orders") is None
        assert rig.app.node.topics.get("%RETRY%readers+orders").partitions[0].end == 1
