"""What is no frame is told by its first bytes."""

from __future__ import annotations

import pytest

from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import FrameReader


@pytest.mark.parametrize(
    ("beginning", "said"),
    [
        # A ClientHello, as OpenSSL 3 begins it; and what a server says of bad ones.
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "speaks TLS; .*--tls-cert"),
        (b"\x15\x03\x03\x00\x02\x02\x28\x00", "speaks TLS; .*--tls-cert"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "speaks HTTP/2; .*--grpc"),
        (b"GET /metrics HTTP/1.1\r\n", "speaks HTTP; .*--http"),
        (b"HTTP/1.1 400 Bad Request\r\n", "speaks HTTP; .*--http"),
        (b"\x03\x00\x00\x13\x0e\xe0\x00\x00", "frame of 50331667 bytes"),
    ],
)
def test_who_speaks_another_protocol_is_told_which(beginning: bytes, said: str) -> None:
    with pytest.raises(FrameError, match=said):
        FrameReader().feed(beginning)
