"""What a node tells and asks its clients by itself."""

from __future__ import annotations

import asyncio
import itertools

from ropeway.gateway.node.calls import Calls, ClientAnswer
from ropeway.gateway.processors.callbacks import (
    GroupChanges,
    ask,
    notify_consumer_ids_changed,
)
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RequestCode
from ropeway.gateway.wire.commands.callbacks import GetConsumerRunningInfo
from ropeway.gateway.wire.frame import FrameReader, decode_envelope
from ropeway.gateway.wire.header import decode_fields
from tests.remoting import TIMEOUT_S, looped, until


class Link:
    """A connection that keeps what is pushed on it."""

    def __init__(self) -> None:
        self.pushed = b""

    def push(self, *data):
        self.pushed += b"".join(data)


def test_every_member_is_told_once_and_not_asked_to_answer():
    links = [Link(), Link()]
    notify_consumer_ids_changed(links, "g")
    notify_consumer_ids_changed(links, "h")
    opaques = set()
    for link in links:
        frames = FrameReader().feed(link.pushed)
        envelopes = [decode_envelope(kind, header) for kind, header, _ in frames]
        groups = [decode_fields(one.ext_fields)["consumerGroup"] for one in envelopes]
        assert groups == ["g", "h"]
        for envelope in envelopes:
            assert envelope.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
            assert envelope.flag == ONE_WAY_FLAG
            opaques.add(envelope.opaque)
    assert len(opaques) == 2


@looped
async def test_a_question_is_a_whole_request_and_its_answer_comes_back():
    calls, link = Calls(), Link()
    request = GetConsumerRunningInfo(consumer_group="g", client_id="me")
    asked = asyncio.create_task(ask(calls, link, request, b"body"))
    await until(lambda: link.pushed)
    ((kind, header, body),) = FrameReader().feed(link.pushed)
    envelope = decode_envelope(kind, header)
    assert (envelope.code, envelope.flag, body) == (307, 0, b"body")
    assert decode_fields(envelope.ext_fields)["clientId"] == "me"
    answer = ClientAnswer(0, None, b"well")
    calls.answered(link, envelope.opaque, answer)
    assert await asked == answer


@looped
async def test_members_of_very_many_groups_are_told_a_little_in_each_tick():
    """Before, ten clients that left a thousand groups took the loop for 0.3 s."""
    members = dict.fromkeys(Link() for _ in range(100))
    changes = GroupChanges()
    for _ in range(3):
        for number in range(100):
            changes.tell(members, f"g{number}")
    first, *_ = members
    told = [len(FrameReader().feed(first.pushed))]
    async with asyncio.timeout(TIMEOUT_S):
        # The first ten were told at once, and then changed again.
        while told[-1] < 110:
            await asyncio.sleep(0)
            told.append(len(FrameReader().feed(first.pushed)))
    assert max(after - before for before, after in itertools.pairwise(told)) < 15


@looped
async def test_who_has_left_a_group_meanwhile_is_not_told():
    stays, leaves = Link(), Link()
    members = dict.fromkeys((stays, leaves))
    changes = GroupChanges()
    changes.tell([Link() for _ in range(1000)], "a crowd")
    changes.tell(members, "g")
    assert not stays.pushed
    del members[leaves]
    await until(lambda: stays.pushed)
    assert not leaves.pushed
