"""Refusing sends: which requests are sends, and what their clients are told."""

from __future__ import annotations

import pytest

from ropeway.gateway.processors.fast_failure import left_behind, refuse_sends
from ropeway.gateway.wire.codes import (
    ONE_WAY_FLAG,
    RESPONSE_FLAG,
    RequestCode,
    ResponseCode,
)
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import (
    FrameReader,
    RawFrame,
    decode_envelope,
    encode_frame,
)

WHY = "sends wait for 231 ms; allowed: 200"
SENDS = (
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
)


def frames(*encoded: bytes) -> list[RawFrame]:
    return FrameReader().feed(b"".join(encoded))


def test_each_send_is_told_why_it_is_refused():
    asked = [encode_frame(code, 7 + code, body=b"x") for code in SENDS]
    others, answers = refuse_sends(frames(*asked), WHY)
    assert others == []
    assert answers == b"".join(
        encode_frame(
            ResponseCode.SYSTEM_BUSY,
            7 + code,
            flag=RESPONSE_FLAG,
            remark=f"[TIMEOUT_CLEAN_QUEUE]broker busy, {WHY}",
        )
        for code in SENDS
    )


def test_a_one_way_send_is_refused_without_an_answer():
    asked = encode_frame(RequestCode.SEND_MESSAGE_V2, 1, flag=ONE_WAY_FLAG)
    assert refuse_sends(frames(asked), WHY) == ([], b"")


@pytest.mark.rule(
    "server.md",
    "Heartbeats, pulls and all other remoting requests are never",
)
def test_what_is_no_send_waits_on_in_its_order():
    kept = frames(
        encode_frame(RequestCode.HEART_BEAT, 1),
        encode_frame(RequestCode.PULL_MESSAGE, 2),
        encode_frame(RequestCode.SEND_MESSAGE, 3, flag=RESPONSE_FLAG),
        encode_frame(31_337, 4),
    )
    send = frames(encode_frame(RequestCode.SEND_MESSAGE, 5))
    others, answers = refuse_sends([*kept[:2], *send, *kept[2:]], WHY)
    assert others == kept
    (answer,) = frames(answers)
    assert decode_envelope(answer.serialize_type, answer.header).opaque == 5


def test_garbage_is_not_answered():
    with pytest.raises(FrameError):
        refuse_sends([RawFrame(0, b"null", b"")], WHY)


def test_only_what_lasts_and_nobody_waits_for_is_done_for_a_client_that_has_left():
    lasting = (
        *SENDS,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.END_TRANSACTION,
        RequestCode.UNLOCK_BATCH_MQ,
    )
    done = [encode_frame(code, 1, flag=ONE_WAY_FLAG) for code in lasting]
    not_done = [encode_frame(code, 1) for code in lasting] + [
        encode_frame(code, 1, flag=ONE_WAY_FLAG)
        for code in (RequestCode.HEART_BEAT, RequestCode.PULL_MESSAGE)
    ]
    came = [frames(*done[:3], *not_done), frames(*done[3:])]
    assert left_behind(came) == frames(*done)


def test_nothing_is_done_behind_what_cannot_be_read():
    commit = encode_frame(RequestCode.UPDATE_CONSUMER_OFFSET, 1, flag=ONE_WAY_FLAG)
    (good,) = frames(commit)
    bad = RawFrame(good[0], b"null", b"")
    assert left_behind([[good, bad, good]]) == [good]
