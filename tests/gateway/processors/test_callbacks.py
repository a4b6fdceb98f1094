"""What a node tells and asks its clients by itself."""

from __future__ import annotations

import asyncio

from ropeway.gateway.node.calls import Calls, ClientAnswer
from ropeway.gateway.processors.callbacks import ask, notify_consumer_ids_changed
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RequestCode
from ropeway.gateway.wire.commands.callbacks import GetConsumerRunningInfo
from ropeway.gateway.wire.frame import FrameReader, decode_envelope, decode_fields
from tests.remoting import looped, until


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
