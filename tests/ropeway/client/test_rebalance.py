"""Sharing queues within a group, as members come and go."""

import asyncio
import contextlib
import subprocess
import sys

from ropeway.client import Admin, PushConsumer
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RequestCode
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import (
    PATIENT,
    Inbox,
    consumer,
    numbered,
    scenario,
    send_all,
    until,
)

MEMBER = """
import asyncio, sys
from ropeway.client import ConsumeFrom, PushConsumer

async def main():
    async def ignore(message):
        await asyncio.Event().wait()

    _, name_server, group, topic = sys.argv
    first = ConsumeFrom.FIRST_OFFSET
    member = PushConsumer(name_server, group, consume_from=first)
    member.subscribe(topic, "*", ignore)
    async with member:
        while not member.queues:
            await asyncio.sleep(0.01)
        print("reading", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def held(member: PushConsumer, topic: str) -> set:
    return {queue for queue in member.queues if queue.topic == topic}


@scenario
async def test_members_share_the_queues_and_take_over_from_who_leaves(
    name_server, topic, group
):
    await send_all(name_server, topic, numbered(8))
    async with Admin(name_server, config=PATIENT) as admin:
        everything = {span.queue for span in await admin.describe_topic(topic)}
    inboxes = [Inbox(), Inbox()]
    members = [consumer(name_server, group) for _ in inboxes]
    for member, inbox in zip(members, inboxes, strict=True):
        member.subscribe(topic, "*", inbox)
    first, second = members
    async with first:
        await until(lambda: held(first, topic) == everything)
        async with second:
            await until(lambda: len(held(second, topic)) == len(everything) // 2)
            await until(lambda: held(first, topic) == everything - held(second, topic))
            await send_all(name_server, topic, numbered(20, "shared"))
            await until(
                lambda: (
                    set(numbered(20, "shared"))
                    <= {*inboxes[0].bodies, *inboxes[1].bodies}
                )
            )
        await until(lambda: held(first, topic) == everything)
        await send_all(name_server, topic, numbered(8, "alone"))
        await inboxes[0].wait_for(*numbered(8, "alone"))
    assert any(body.startswith(b"shared") for body in inboxes[1].bodies)


@scenario
async def test_what_a_killed_member_did_not_finish_comes_to_another(
    name_server, topic, group
):
    await send_all(name_server, topic, numbered(12))
    command = [sys.executable, "-c", MEMBER, name_server, group, topic]
    inbox = Inbox()
    member = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert await member.stdout.readline() == b"reading\n"
        other = consumer(name_server, group)
        other.subscribe(topic, "*", inbox)
        async with other:
            await until(lambda: held(other, topic) != set())
            member.kill()
            await inbox.wait_for(*numbered(12))
    finally:
        with contextlib.suppress(ProcessLookupError):
            member.kill()
        await member.wait()


@scenario
async def test_a_notice_of_the_broker_shares_anew_at_once():
    config = None  # the real intervals: only the notice can be this quick
    async with FakeServer(queues=2) as server:
        clients: list[str] = []
        body = lambda: str(clients).replace("'", '"')  # noqa: E731
        server.behaviours |= {
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: lambda _: Answer(
                body=f'{{"consumerIdList":{body()}}}'.encode()
            ),
            RequestCode.QUERY_CONSUMER_OFFSET: lambda _: Answer(fields={"offset": "0"}),
            RequestCode.PULL_MESSAGE: lambda _: None,
        }
        member = PushConsumer(server.address, "g", config=config)
        member.subscribe("t", "*", Inbox())
        clients.append(member.client_id)
        async with member:
            await until(lambda: len(held(member, "t")) == 2)
            clients.append(member.client_id + "z")
            server.push(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, 1, ONE_WAY_FLAG)
            await until(lambda: len(held(member, "t")) == 1)
