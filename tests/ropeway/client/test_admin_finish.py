"""A migration ends: late messages are sent here, what waits is counted."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.client import (
    Admin,
    Message,
    Producer,
    admin_groups,
    admin_messages,
    admin_offsets,
    admin_topics,
)
from ropeway.client.admin_cut_over import CutOver
from ropeway.client.admin_finish import Finish, Left
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.errors import AdminError, ResponseError
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.commands.admin import FINISHED
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack
from tests.ropeway.client.scenario import PATIENT, PRODUCER, scenario
from tests.ropeway.client.test_admin_cut_over import led_to
from tests.ropeway.client.test_admin_mirrors import contents, copy_all, send, target
from tests.ropeway.client.test_admin_under_way import LATE_MS, half

__all__ = ["target"]


async def moved(source: Admin, here: Admin, topic: str) -> None:
    """Mirror a topic, and cut it over."""
    mirror = Mirror(source, here)
    pairs = await mirror.prepare(topic)
    await copy_all(mirror, pairs)
    await CutOver(source, here, mirror, 0).move([topic], [], lambda _: None)


@scenario
async def test_late_messages_come_here_once_as_they_were_sent(name_server, topic):
    with led_to(name_server) as led:
        async with (
            Admin(name_server, config=PATIENT) as source,
            Admin(led.name_server, config=PATIENT) as here,
            Producer(name_server, f"p-{topic}", config=PRODUCER) as there,
            Producer(led.name_server, f"p-{topic}", config=PRODUCER) as ours,
        ):
            await source.create_topic(topic, 2)
            await send(there, topic, 4)
            await moved(source, here, topic)
            finish = Finish(source, here)
            assert await finish.look(topic) == Left()
            # As of a producer that had not looked at routes.
            await admin_topics.update(source, topic, perm=6)
            while not (await source.route(topic)).write_queues:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            async with Producer(name_server, f"q-{topic}", config=PRODUCER) as late:
                await send(late, topic, 3)
            await send(ours, topic, 2)
            assert await finish.look(topic) == Left(late=3)
            assert await finish.bring(topic) == 3
            assert await finish.bring(topic) == 0
            assert await finish.look(topic) == Left()
            for pair in await Mirror(source, here).pairs(topic):
                theirs = messages(await contents(source, pair.source))
                mine = messages(await contents(here, pair.target))
                # Those that were mirrored are the same; what was sent here is between.
                assert mine[:2] == theirs[:2]
                assert len(mine) == len(theirs) + 1
                for one, sent in zip(theirs[2:], mine[3:], strict=True):
                    assert sender_s(sent) == sender_s(one)
            await finish.end(topic)
            with pytest.raises(AdminError, match="was not cut over here, or is finish"):
                await finish.look(topic)
            with pytest.raises(ResponseError, match="was not cut over, or is finished"):
                await admin_topics.lead_writes(here, topic, FINISHED)
            (config,) = await here.topic_configs(topic)
            assert config.perm == 6


FACTS = 8
"""Of a message, as of `contents`."""


def messages(found: list[object]) -> list[list[object]]:
    """What `contents` found, a list for each message."""
    return [found[at : at + FACTS] for at in range(2, len(found), FACTS)]


def sender_s(message: list[object]) -> list[object]:
    """What its producer said, and not its brokers."""
    body, text, flag, _, born_ms, *_ = message
    pairs = properties.parse(str(text))
    names = ("TAGS", "KEYS", "UNIQ_KEY", "colour")
    return [body, flag, born_ms, *map(pairs.get, names)]


@scenario
async def test_what_waits_at_the_source_is_counted(name_server, topic):
    group = f"g-{topic}"
    with led_to(name_server) as led:
        async with (
            Admin(name_server, config=PATIENT) as source,
            Admin(led.name_server, config=PATIENT) as here,
            Producer(name_server, f"p-{topic}", config=PRODUCER) as there,
        ):
            for name in (topic, f"{topic}-other"):
                await source.create_topic(name, 1)
                await there.send(Message(name, b"now"))
                await there.send(Message(name, b"level", delay_level=18))
                await there.send(Message(name, b"timed", delay_ms=LATE_MS))
            (master,) = await source.masters()
            await source.ask(master, half(topic), b"half")
            await admin_groups.create(source, group, {})
            (queue,) = (await source.route(topic)).read_queues
            async for message in admin_messages.read(source, queue, 0):
                back = ConsumerSendMsgBack(
                    offset=message.message_id,
                    group=group,
                    delay_level=18,
                    origin_msg_id=message.msg_id,
                    origin_topic=topic,
                )
                await source.ask(master, back)
            await admin_offsets.place(source, group, {queue: 0})
            await moved(source, here, topic)
            finish = Finish(source, here)
            wanted = Left(delayed=2, timed=1, half=1, unread=1)
            # It is listed once the timer has taken it in, behind the answer.
            while (left := await finish.look(topic)).timed < 1:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert left == wanted
            assert left.waits
            assert left.stays
            await admin_groups.create(here, group, {})
            (mine,) = (await here.route(topic)).read_queues
            await admin_offsets.place(here, group, {mine: 0})
            assert (await finish.look(topic)).unread == 0


@scenario
async def test_topics_that_have_not_moved_are_not_finished(
    ropeway_gateway, topic, target
):
    where = ropeway_gateway.name_server
    async with (
        Admin(where, config=PATIENT) as source,
        Admin(target.name_server, config=PATIENT) as here,
    ):
        finish = Finish(source, here)
        await source.create_topic(topic, 1)
        with pytest.raises(AdminError, match="is not at the target"):
            await finish.look(topic)
        await Mirror(source, here).prepare(topic)
        with pytest.raises(AdminError, match="has not moved; cut it over first"):
            await finish.bring(topic)
        await here.create_topic(f"{topic}-ours", 1)
        with pytest.raises(AdminError, match="was not cut over here"):
            await finish.end(f"{topic}-ours")
