"""Who may no longer do what waits is told so within a second, and is given nothing."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from ropeway.acl.administration import Rules
from ropeway.client.credentials import Credentials, signed
from ropeway.gateway.node import reauthorization
from ropeway.gateway.node.reauthorization import Reauthorization
from ropeway.gateway.processors import pop
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.batches import CommitBatch, Stage, StageReply
from ropeway.gateway.wire.commands.lite import PopLiteMessage
from ropeway.gateway.wire.commands.pop import FROM_LATEST, Notification, PopMessage
from ropeway.gateway.wire.header import Header, row_of, to_fields
from ropeway.gateway.workers import split
from ropeway.routing.api import Group, Topic
from tests.guarded import ALICE, PASSWORD, ROOT, acl_of, allow, ask, guarded, populate
from tests.promptness import promptly
from tests.remoting import TIMEOUT_S, config, looped, running, until
from tests.requests import pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.app import App
    from ropeway.gateway.processors.context import Context
    from tests.remoting import Frame, Remoting

MINUTE_MS = 60_000
SOON_S = 1.0
"""What is promised; a pause of that is most of it."""
LITE = "lites"
PULL = waiting("orders", suspend_timeout_millis=MINUTE_MS)
POP = PopMessage(
    consumer_group="readers",
    topic="orders",
    queue_id=-1,
    max_msg_nums=1,
    invisible_time=30_000,
    poll_time=MINUTE_MS,
    born_time=0,
    init_mode=FROM_LATEST,
)
NOTIFICATION = Notification(
    consumer_group="readers",
    topic="orders",
    queue_id=-1,
    poll_time=MINUTE_MS,
    born_time=0,
)
POP_LITE = PopLiteMessage(
    client_id="thin",
    consumer_group="lite-readers",
    topic=LITE,
    max_msg_num=1,
    invisible_time=30_000,
    poll_time=MINUTE_MS,
    born_time=0,
)
RULES = (
    *(allow(f"Topic:{one}", "Pub", "Sub") for one in ("orders", LITE)),
    *(allow(f"Group:{one}", "Sub") for one in ("readers", "lite-readers")),
)


def say(client: Remoting, header: Header) -> asyncio.Future[Frame]:
    """Have alice ask for something that waits."""
    credentials = Credentials(access_key=ALICE, secret_key=PASSWORD)
    fields = signed(to_fields(header), b"", credentials)
    return client.send(int(row_of(type(header)).code), fields=fields)


async def lose_rules(app: App) -> None:
    await app.node.guard.administration.delete_rules(f"User:{ALICE}")


async def be_disabled(app: App) -> None:
    await app.node.guard.administration.update_user(ALICE, enabled=False)


async def get_a_password(app: App) -> None:
    await app.node.guard.administration.update_user(ALICE, password="another-one")


async def be_deleted(app: App) -> None:
    await app.node.guard.administration.delete_user(ALICE)


async def prepare(app: App) -> None:
    """Make what is read."""
    topics, groups = app.node.topics, app.node.groups
    made = Topic(name="orders", read_queue_nums=1, write_queue_nums=1)
    await topics.put(made)
    kind = {"message.type": "LITE"}
    await topics.put(
        Topic(name=LITE, read_queue_nums=1, write_queue_nums=1, attributes=kind)
    )
    await groups.put(Group(name="readers"))
    bound = {"lite.bind.topic": LITE}
    await groups.put(Group(name="lite-readers", attributes=bound))


async def refused(asked: asyncio.Future[Frame]) -> None:
    """See that a request is refused before the end of its wait."""
    answer = await asyncio.wait_for(asked, MINUTE_MS / 2000)
    assert answer.code == ResponseCode.NO_PERMISSION, answer.remark


@looped
@pytest.mark.parametrize(
    ("header", "change"),
    [
        *((one, lose_rules) for one in (PULL, POP, NOTIFICATION, POP_LITE)),
        *((PULL, one) for one in (be_disabled, get_a_password, be_deleted)),
    ],
)
async def test_what_waits_is_refused_soon_after_its_sender_may_no_longer(
    tmp_path: Path, header: Header, change
):
    async with guarded(tmp_path, *RULES) as (app, client):
        await prepare(app)
        asked = say(client, header)
        await until(lambda: len(app.node.reauthorization) == 1)
        async with promptly(SOON_S):
            await change(app)
            await refused(asked)
        await ask(client, ROOT, sending("orders"), b"secret")
        assert not any(b"secret" in one.body for one in client.answers)
        assert len(app.node.pull_hold) == len(app.node.pop.polling) == 0


@looped
async def test_what_was_let_in_before_a_change_and_waits_after_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with guarded(tmp_path, *RULES) as (app, client):
        await prepare(app)
        was_let_in, changed = asyncio.Event(), asyncio.Event()
        ensure = pop.ensure_group

        async def ensure_later(context: Context, name: str) -> Group:
            was_let_in.set()
            await changed.wait()
            return await ensure(context, name)

        monkeypatch.setattr(pop, "ensure_group", ensure_later)
        asked = say(client, NOTIFICATION)
        await asyncio.wait_for(was_let_in.wait(), TIMEOUT_S)
        await lose_rules(app)
        await until(lambda: app.node.reauthorization._task is None)
        changed.set()
        async with promptly(SOON_S):
            await refused(asked)


@looped
@pytest.mark.parametrize("header", [PULL, POP, NOTIFICATION])
async def test_who_still_may_waits_on(tmp_path: Path, header: Header):
    async with guarded(tmp_path, *RULES) as (app, client):
        await prepare(app)
        asked = say(client, header)
        await until(lambda: len(app.node.reauthorization) == 1)
        others = Rules("User:nobody", (allow("Topic:*", "Sub"),))
        await app.node.guard.administration.add_rules(others)
        await until(lambda: app.node.reauthorization._task is None)
        assert not asked.done()
        await ask(client, ROOT, sending("orders"), b"hello")
        assert (await asyncio.wait_for(asked, 120)).code == 0


@looped
async def test_what_is_answered_or_whose_client_has_gone_is_forgotten(tmp_path: Path):
    async with guarded(tmp_path, *RULES) as (app, client):
        await prepare(app)
        asked = [say(client, one) for one in (PULL, POP)]
        await until(lambda: len(app.node.reauthorization) == 2)
        await ask(client, ROOT, sending("orders"), b"hello")
        await asyncio.wait(asked)
        await until(lambda: len(app.node.reauthorization) == 0)
        say(client, waiting("orders", 1, suspend_timeout_millis=MINUTE_MS))
        await until(lambda: len(app.node.reauthorization) == 1)
        await client.close()
        await until(lambda: len(app.node.reauthorization) == 0)


@looped
async def test_without_access_control_nothing_is_kept(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await prepare(app)
        client.send(PULL)
        await until(lambda: len(app.node.pull_hold) == 1)
        assert len(app.node.reauthorization) == 0


@looped
@pytest.mark.parametrize("change", [lose_rules, be_disabled])
async def test_what_waits_at_another_node_is_refused_soon(tmp_path: Path, change):
    acl = acl_of(tmp_path)
    async with AsyncExitStack() as stack:
        parts = split(config(tmp_path, acl=acl), 2)
        (near, client), (far, _) = [
            await stack.enter_async_context(running(one)) for one in parts
        ]
        await populate(near, *RULES)
        await prepare(far)
        await until(lambda: near.node.forwarder.others)
        (name,) = near.node.forwarder.others
        header = waiting("orders", suspend_timeout_millis=MINUTE_MS, bname=name)
        await until(far.node.guard.administration.rules)
        asked = say(client, header)
        await until(lambda: asked.done() or len(far.node.pull_hold) == 1)
        assert not asked.done(), asked.result()
        async with promptly(SOON_S):
            await change(near)
            await refused(asked)


@looped
async def test_what_was_staged_is_not_committed_by_who_may_no_longer_send(
    tmp_path: Path,
):
    async with guarded(tmp_path, *RULES) as (app, client):
        await prepare(app)
        staging = Stage(producer_id="sink", topic="orders", queue_id=0)
        body = encode_batch([BatchEntry(0, b"staged", "")])
        staged = (await ask(client, ALICE, staging, body)).read(StageReply)
        await lose_rules(app)
        commit = CommitBatch(producer_id="sink", batch_id=0)
        named = json.dumps({"staged": {"broker-0": [staged.offset]}}).encode()
        answer = await ask(client, ALICE, commit, named)
        assert answer.code == ResponseCode.NO_PERMISSION
        found = await ask(client, ROOT, pulling("orders"))
        assert not found.messages()
        await app.node.guard.administration.add_rules(Rules(f"User:{ALICE}", RULES))
        assert (await ask(client, ALICE, commit, named)).code == 0
        found = await ask(client, ROOT, pulling("orders"))
        assert [one.body for one in found.messages()] == [b"staged"]


class Counted:
    """Something that goes on."""

    def __init__(self, error: Exception | None = None) -> None:
        self.judged = 0
        self.error = error

    async def judge(self) -> None:
        self.judged += 1
        if self.error is not None:
            raise self.error


@looped
async def test_changes_that_come_fast_are_judged_together_and_the_last_one_too():
    assert SOON_S / 4 >= reauthorization.PAUSE_S
    all_, one = Reauthorization(), Counted()
    all_.add(one, all_.changes)
    for _ in range(100):
        all_.rules_changed()
    await until(lambda: one.judged == 1)
    all_.rules_changed()
    await until(lambda: one.judged == 2)
    await until(lambda: all_._task is None)
    assert one.judged == 2


@looped
async def test_one_that_cannot_be_judged_does_not_keep_others_from_it(capsys):
    all_ = Reauthorization()
    some = [Counted(None if number else OSError("x")) for number in range(250)]
    for one in some:
        all_.add(one, all_.changes)
    all_.rules_changed()
    await until(lambda: all(one.judged for one in some))
    await until(lambda: all_._task is None)
    assert len(some) > 2 * reauthorization.AT_A_TIME
    assert "not judged again" in capsys.readouterr().out
