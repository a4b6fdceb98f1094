"""Which other protocol a connection speaks, by its first bytes, and what offers it.

A frame begins with its length. What a client of another protocol begins with is a
length that no frame may have, and says nothing to who reads the log.
"""

from __future__ import annotations

_BYTES = 4
_TLS = "TLS; nodes with a certificate speak it, too (--tls-cert, --tls-key)"
_HTTP = "HTTP; a node's page, metrics and health have a port of their own (--http)"
_BEGINNINGS = {
    # Records of a handshake and of an alert, of any version (RFC 8446, 5.1).
    b"\x16\x03": _TLS,
    b"\x15\x03": _TLS,
    # The preface of a connection (RFC 9113, 3.4), as gRPC's clients have it.
    b"PRI ": "HTTP/2; nodes that serve gRPC speak it, too (--grpc)",
    **dict.fromkeys(
        (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"HTTP"), _HTTP
    ),
}


def spoken(length: int) -> str | None:
    """Say which protocol has a frame's length for its beginning, and what offers it.

    Args:
        length: The first four bytes, as the number that they are in a frame.

    Returns:
        None: none that is known.
    """
    beginning = length.to_bytes(_BYTES, "big")
    return _BEGINNINGS.get(beginning) or _BEGINNINGS.get(beginning[:2])
