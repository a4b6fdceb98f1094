"""Faults carry what is told of them."""

from __future__ import annotations

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode, StreamFault


def test_faults_carry_their_code():
    fault = ConnectionFault(ErrorCode.PROTOCOL_ERROR, "what came")
    assert (fault.code, fault.reason, str(fault)) == (1, "what came", "what came")
    stream = StreamFault(3, ErrorCode.CANCEL)
    assert (stream.stream_id, stream.code) == (3, 8)
    assert str(stream) == "stream 3: CANCEL"
