"""How groups stand to a message, one scenario for each reason."""

import asyncio

from ropeway.client import (
    Admin,
    Message,
    PullConsumer,
    admin_explain,
    admin_groups,
    admin_offsets,
)
from ropeway.gateway.wire.commands.callbacks import GetConsumerRunningInfo
from tests.ropeway.client.explained import codes, sent
from tests.ropeway.client.scenario import (
    CONSUMER,
    PATIENT,
    consumer,
    eventually,
    scenario,
)
from tests.silent import silent_consumer


@scenario
async def test_a_group_that_has_not_come_to_it(ropeway_gateway, topic, group):
    name_server = ropeway_gateway.name_server
    async with Admin(name_server, config=PATIENT) as admin:
        await admin.create_topic(topic, 1)
        first = await sent(name_server, Message(topic, b"x"))
        second = await sent(name_server, Message(topic, b"y", tags="a"))
        assert await codes(admin, first.msg_id, group, topic) == ["no-group"]
        await admin_groups.create(admin, group, {"consume_enable": False})
        assert await codes(admin, first.msg_id, group, topic) == [
            "group-disabled",
            "nobody-consumes",
            "never-read",
        ]
        await admin_groups.update(admin, group, {"consume_enable": True})
        await admin_offsets.reset(admin, group, topic, queue_id=0, offset=1)
        assert "passed" in await codes(admin, first.msg_id, group, topic)
        assert (await codes(admin, second.msg_id, group, topic))[-1] == "behind"
        found = await admin_explain.explain(admin, second.offset_msg_id, group)
        assert found.message is not None
        assert found.message.body == b"y"
        await admin.create_topic(topic, 1, perm=2)
        assert "topic-not-readable" in await codes(admin, first.msg_id, group, topic)


@scenario
async def test_consumers_that_want_something_else(ropeway_gateway, topic, group):
    name_server = ropeway_gateway.name_server
    tagged = await sent(name_server, Message(topic, b"x", tags="a"))
    other = f"{topic}-other"
    await sent(name_server, Message(other, b"x"))
    for wanted, expression, code in (
        (topic, "b || c", "filtered"),
        (other, "*", "not-subscribed"),
    ):
        name = f"{group}-{code}"
        reader = PullConsumer(name_server, name, config=CONSUMER)
        reader.subscribe(wanted, expression)
        async with Admin(name_server, config=PATIENT) as admin, reader:

            async def look(admin=admin, name=name) -> list[str]:
                return await codes(admin, tagged.msg_id, name, topic)

            await eventually(look, lambda found, code=code: found[0] == code)


@scenario
async def test_what_a_consumer_has_and_has_not_done(ropeway_gateway, topic, group):
    name_server = ropeway_gateway.name_server
    one = await sent(name_server, Message(topic, b"x"))
    entered, leave = asyncio.Event(), asyncio.Event()

    async def handler(_: object) -> None:
        entered.set()
        await leave.wait()

    reader = consumer(name_server, group)
    reader.subscribe(topic, "*", handler)
    async with Admin(name_server, config=PATIENT) as admin, reader:
        await entered.wait()
        assert await codes(admin, one.msg_id, group, topic) == ["with-a-consumer"]
        leave.set()

        async def look() -> list[str]:
            return await codes(admin, one.msg_id, group, topic)

        await eventually(look, lambda found: found == ["passed"])


class Impatient(Admin):
    """Waits for what clients say of themselves for a second, and for servers longer."""

    async def ask(self, address, header, *given, **more):
        if isinstance(header, GetConsumerRunningInfo):
            more["timeout_s"] = 1.0
        return await super().ask(address, header, *given, **more)


@scenario
async def test_a_consumer_that_never_answers_is_named_beside_what_is_known(
    ropeway_gateway, topic, group
):
    name_server = ropeway_gateway.name_server
    one = await sent(name_server, Message(topic, b"x"))
    async with (
        silent_consumer(ropeway_gateway.address, group, topic),
        Impatient(name_server, config=PATIENT) as admin,
    ):
        found = await admin_explain.explain(admin, one.msg_id, group, topic)
        assert [it.code for it in found.findings] == ["client-silent", "never-read"]
        assert "me@silent" in found.findings[0].text
