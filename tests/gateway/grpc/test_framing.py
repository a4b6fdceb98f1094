"""Time-outs, and how calls begin and end."""

from __future__ import annotations

import pytest
from hpack import Decoder

from ropeway.gateway.grpc.framing import (
    CallError,
    GrpcStatus,
    begins,
    ends,
    ends_at_once,
    percent_encoded,
    timeout_s,
)


def test_timeouts_have_units():
    told = {"2H": 7200, "3M": 180, "5S": 5, "250m": 0.25, "7u": 7e-6, "9n": 9e-9}
    for text, seconds in told.items():
        assert timeout_s(text) == pytest.approx(seconds)
    for wrong in ("", "S", "5", "5s", "123456789S", "-1S", "1.5S", "٣S"):
        with pytest.raises(CallError):
            timeout_s(wrong)


def test_texts_are_percent_encoded():
    assert percent_encoded("100% ok\n") == "100%25 ok%0A"
    assert percent_encoded("Grüße") == "Gr%C3%BC%C3%9Fe"
    assert percent_encoded("\udc80") == "?"


def test_blocks_say_how_a_call_went():
    decode = Decoder().decode
    assert dict(decode(begins()))[":status"] == "200"
    assert decode(ends(GrpcStatus.OK)) == [("grpc-status", "0")]
    refused = dict(decode(ends_at_once(GrpcStatus.UNIMPLEMENTED, "no: ü", 415)))
    assert refused[":status"] == "415"
    assert refused["grpc-status"] == "12"
    assert refused["grpc-message"] == "no: %C3%BC"
    assert refused["grpc-accept-encoding"] == "identity,gzip,deflate"
