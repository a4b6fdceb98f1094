"""What a node tells its clients without being asked."""

from __future__ import annotations

from gateway.processors.callbacks import notify_consumer_ids_changed
from gateway.wire.codes import ONE_WAY_FLAG, RequestCode
from gateway.wire.frame import FrameReader, decode_envelope, decode_fields


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
