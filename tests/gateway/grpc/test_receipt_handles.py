"""Receipt handles: what is one, and what is none."""

from __future__ import annotations

import pytest

from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.receipt_handles import handle, made
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.wire import receipt


@pytest.mark.parametrize("lite_topic", ["", "room-7"])
def test_a_handle_reads_as_what_it_was_made_of(lite_topic):
    of = receipt.Receipt(5, 1_700_000_000_000, 60_000, 3, 0, "broker-0", 2)
    assert handle(made(of, 7, lite_topic).text) == made(of, 7, lite_topic)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0 0 0 0 0 b 0",
        "0 0 0 0 9 b 0 0",
        "0 0 0 0 0 b x 0",
        "0 0 0 0 0 b 0 -1",
        f"0 {1 << 70} 0 0 0 b 0 0",
        f"0 0 0 0 0 b {1 << 40} 0",
        "0 0 0 0 0 b 0 " + "9" * 5000,
    ],
)
def test_what_is_no_handle_is_refused(text):
    with pytest.raises(RefusedError) as refused:
        handle(text)
    assert refused.value.code == Code.INVALID_RECEIPT_HANDLE
    assert len(refused.value.message) < 300
