"""What is reserved, is so for producers and consumers alike."""

from __future__ import annotations

from ropeway.gateway.grpc.reserved import RESERVED
from ropeway.gateway.wire import properties


def test_whatever_makes_a_broker_do_more_is_reserved():
    assert properties.RARE <= RESERVED
    assert "idx" not in RESERVED
