"""The switches: what they stop, what goes on, and how long they stay so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.pop.switches import ENABLE, INIT, Switches
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pop import Notification, NotificationReply
from ropeway.routing.embedded import EmbeddedRoutes
from tests.gateway.pop.rig import (
    GROUP,
    INVISIBLE_MS,
    RETRY_V1,
    TOPIC,
    popped,
    rigged,
)
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.pop.rig import Rig


async def turn(rig: Rig, name: str, value: str) -> None:
    answer = await rig.consumer.client.ask(25, f"{name}={value}\n".encode(), fields={})
    assert answer.code == 0, answer.remark
    rig.pass_time(0)


@looped
async def test_without_enable_nothing_is_handed_out_and_the_rest_goes_on(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(4)
        found = await rig.consumer.take(2)
        await turn(rig, ENABLE, "false")
        assert (await rig.consumer.pop()).frame.code == ResponseCode.POLLING_TIMEOUT
        look = Notification(
            consumer_group=GROUP, topic=TOPIC, queue_id=0, poll_time=0, born_time=0
        )
        answer = await rig.consumer.client.ask(look)
        assert not answer.read(NotificationReply).has_msg
        waiting = rig.consumer.client.send(rig.consumer.header(poll_time=60_000))
        await until(lambda: len(rig.pop.polling) == 1)
        assert await rig.consumer.ack(found, 0) == 0
        rig.pass_time(INVISIBLE_MS + 100)
        await until(lambda: rig.app.node.topics.get(RETRY_V1) is not None)
        assert not waiting.done()
        await turn(rig, ENABLE, "true")
        assert len(popped(await waiting).messages) > 0


@looped
async def test_without_init_nothing_comes_back_until_it_is_on(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        await rig.consumer.take(2)
        await turn(rig, INIT, "false")
        await rig.pass_time_until_done(INVISIBLE_MS + 100)
        assert rig.in_hand() == (2, 0)
        assert (await rig.consumer.pop()).messages == []
        await turn(rig, INIT, "true")
        await until(lambda: rig.in_hand() == (0, 0))
        await rig.consumer.take(2)


@looped
async def test_switches_stay_as_they_were_turned_and_are_each_broker_s(tmp_path: Path):
    routes = EmbeddedRoutes(tmp_path / "routes.db")
    ours, theirs = Switches(routes, "broker-0"), Switches(routes, "broker-1")
    assert not ours.look()
    woken = []
    theirs.wake = lambda: woken.append(theirs)
    await routes.put_setting("ANOTHER", "key", "value")
    assert woken == []
    await ours.turn({ENABLE: "false"})
    assert woken == [theirs]
    assert (ours.look(), theirs.look()) == (False, False)
    assert (ours.gives, ours.works, theirs.gives) == (False, True, True)
    await routes.close()
    routes = EmbeddedRoutes(tmp_path / "routes.db")
    ours = Switches(routes, "broker-0")
    ours.look()
    assert not ours.gives
    await ours.turn({ENABLE: "true", INIT: "false"})
    assert not ours.look()
    assert not ours.works
    await ours.turn({INIT: "true"})
    assert ours.look()
    await routes.close()
