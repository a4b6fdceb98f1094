"""Dead letters: looking at them, and giving them back."""

import pytest

from ropeway.client import RETRY, Admin, Producer, admin_dlq
from ropeway.client.errors import AdminError
from tests.ropeway.client.scenario import (
    PATIENT,
    PRODUCER,
    Inbox,
    consumer,
    eventually,
    numbered,
    scenario,
    send_all,
)


async def killed(name_server: str, topic: str, group: str, bodies: list[bytes]) -> None:
    """Messages that a group has given up at once."""
    await send_all(name_server, topic, bodies)
    inbox = Inbox()

    async def handler(message):
        await inbox(message)
        return RETRY

    reader = consumer(name_server, group, max_reconsume_times=0)
    reader.subscribe(topic, "*", handler)
    async with reader, Admin(name_server, config=PATIENT) as admin:
        await inbox.wait_for(*bodies)
        await eventually(
            lambda: admin_dlq.count(admin, group), lambda count: count == len(bodies)
        )


async def letters(admin: Admin, group: str, *, replayed_too: bool = False):
    found = admin_dlq.dead_letters(admin, group, replayed_too=replayed_too)
    return [(one.message.body, one.is_replayed) async for one in found]


@scenario
async def test_a_replayed_letter_comes_back_to_its_group_alone(
    ropeway_gateway, topic, group
):
    name_server = ropeway_gateway.name_server
    bodies = numbered(3)
    await killed(name_server, topic, group, bodies)
    async with (
        Admin(name_server, config=PATIENT) as admin,
        Producer(name_server, "p", config=PRODUCER) as sender,
    ):
        found = [one async for one in admin_dlq.dead_letters(admin, group)]
        assert sorted(one.message.body for one in found) == bodies
        assert {one.topic for one in found} == {topic}
        first = found[0].message.body
        replayed = admin_dlq.replay(admin, sender, group, most=1)
        assert [one.message.body async for one, _ in replayed] == [first]
        assert await admin_dlq.count(admin, group) == 2
        everything = await letters(admin, group, replayed_too=True)
        assert dict(everything)[first]
        assert len(everything) == 3
        assert len(await letters(admin, group)) == 2

        inbox = Inbox()
        reader = consumer(name_server, group)
        reader.subscribe(topic, "*", inbox)
        async with reader:
            async for _ in admin_dlq.replay(admin, sender, group):
                pass
            await inbox.wait_for(*bodies)
        assert {message.topic for message in inbox.messages} == {topic}
        assert {one.queue.topic for one in inbox.messages} == {f"%RETRY%{group}"}
        # All attempts anew.
        assert {message.reconsume_times for message in inbox.messages} == {0}
        assert await letters(admin, group) == []


@scenario
async def test_letters_may_go_to_a_topic_for_everybody(ropeway_gateway, topic, group):
    name_server = ropeway_gateway.name_server
    await killed(name_server, topic, group, [b"x"])
    async with (
        Admin(name_server, config=PATIENT) as admin,
        Producer(name_server, "p", config=PRODUCER) as sender,
    ):
        replayed = admin_dlq.replay(admin, sender, group, to_topic=f"{topic}-again")
        ((letter, sent),) = [pair async for pair in replayed]
        assert sent.queue.topic == f"{topic}-again"
        assert letter.topic == topic
        assert (await admin.view(sent.offset_msg_id)).body == b"x"


@scenario
async def test_a_group_without_dead_letters_has_none(ropeway_gateway, group):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        assert await letters(admin, group) == []
        assert await admin_dlq.count(admin, group) == 0


@scenario
async def test_a_retry_that_is_dead_again_is_told_and_not_repeated(
    ropeway_gateway, topic, group, monkeypatch
):
    name_server = ropeway_gateway.name_server
    await killed(name_server, topic, group, numbered(2))
    monkeypatch.setattr(admin_dlq.Keeper, "is_dead_again", lambda *_: True)
    async with (
        Admin(name_server, config=PATIENT) as admin,
        Producer(name_server, "p", config=PRODUCER) as sender,
    ):
        with pytest.raises(AdminError, match="consumes in order"):
            [one async for one in admin_dlq.replay(admin, sender, group)]
        assert await admin_dlq.count(admin, group) == 1
