"""What a send is answered, when it is known what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.processors.context import Context
from ropeway.gateway.processors.send_store import stored
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.frame import FrameReader, decode_envelope
from ropeway.storage.api import LogBusyError, OutcomeUnknownError
from tests.remoting import looped, running

if TYPE_CHECKING:
    from pathlib import Path


class Peer:
    id_prefix = b"7F00000100002A9F"
    take_answer = None

    def __init__(self) -> None:
        self.answers: list[bytes] = []

    def respond(self, *data: bytes) -> None:
        self.answers.append(b"".join(data))


@looped
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, ResponseCode.SUCCESS),
        (LogBusyError("busy"), ResponseCode.SYSTEM_BUSY),
        (OutcomeUnknownError("nobody knows"), ResponseCode.SYSTEM_ERROR),
    ],
)
async def test_every_send_is_answered_once(tmp_path: Path, error, code):
    async with running(tmp_path) as (app, _):
        peer = Peer()
        context = Context(app.node, peer, 310, 7, False, b"x")
        stored(context, 1, "key", 0, 1, b"", 5, error)
        ((kind, header, _),) = FrameReader().feed(peer.answers[0])
        envelope = decode_envelope(kind, header)
        assert (envelope.code, envelope.opaque) == (code, 7)
        assert len(peer.answers) == 1


@looped
async def test_a_one_way_send_is_counted_only(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        peer = Peer()
        stored(
            Context(app.node, peer, 310, 7, True, b"x"), 1, "key", 0, 1, b"", 5, None
        )
        assert peer.answers == [b""]
