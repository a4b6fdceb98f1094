"""Receipts, and the texts that clients make them of, as captured from real ones."""

from __future__ import annotations

import base64

import msgspec
import pytest

from ropeway.gateway.wire import receipt
from ropeway.gateway.wire.errors import ReceiptError
from ropeway.gateway.wire.receipt import BatchAcks, Receipt

# By Java's client 5.5.0, in an ACK_MESSAGE and a BATCH_ACK_MESSAGE.
CAPTURED = "0 1795249230607 20000 2 0 broker-a 3 0"
BATCH = (
    b'{"acks":[{"b":"Bg==","c":"cg","it":30000,"pt":1795251504947,"q":0,"r":"0","rq":3,'
    b'"so":0,"t":"T_raw"},{"b":"AQ==","c":"cg","it":30000,"pt":1795251504947,"q":1,'
    b'"r":"0","rq":3,"so":0,"t":"T_raw"}],"brokerName":"broker-a"}'
)


def test_a_receipt_is_read_and_written_as_it_was_captured():
    found = receipt.parse(CAPTURED)
    assert found == Receipt(0, 1795249230607, 20000, 2, 0, "broker-a", 3)
    assert receipt.dump(found, 0) == CAPTURED
    # An old client puts nothing behind the queue, another one more.
    assert receipt.parse(CAPTURED.rsplit(" ", 1)[0]) == found
    assert receipt.parse(CAPTURED + " 0") == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "0 1 2",
        *(CAPTURED[:end] for end in range(len("0 1795249230607 20000 2 0 broker-a "))),
        "x 1795249230607 20000 2 0 broker-a 3 0",
        "0 1795249230607 20000 2 3 broker-a 3 0",
        "0 1795249230607 20000 2 -1 broker-a 3 0",
        "0 1795249230607 20000 2 0 broker-a x 0",
        "0 1.5 20000 2 0 broker-a 3 0",
        "9" * 5000 + " 1 1 1 0 broker-a 3 0",
        "0\t1795249230607\t20000\t2\t0\tbroker-a\t3\t0",
    ],
)
def test_what_is_no_receipt_is_refused(text: str):
    with pytest.raises(ReceiptError, match="allowed: start popTime") as refused:
        receipt.parse(text)
    assert len(str(refused.value)) < 1000


def test_a_batch_says_which_messages_are_done():
    body = msgspec.json.decode(BATCH, type=BatchAcks)
    assert body.broker_name == "broker-a"
    assert [one.offsets() for one in body.acks] == [[1, 2], [0]]
    assert [one.queue_id for one in body.acks] == [0, 1]
    later = msgspec.structs.replace(body.acks[0], start=40)
    assert later.offsets() == [41, 42]


@pytest.mark.parametrize("bits", ["B", "no base 64!", "Bg", "é"])
def test_a_set_that_cannot_be_read_is_refused(bits: str):
    body = msgspec.json.decode(BATCH, type=BatchAcks)
    with pytest.raises(ReceiptError, match="allowed: base 64"):
        msgspec.structs.replace(body.acks[0], bits=bits).offsets()


def test_a_set_that_is_too_large_is_refused_before_it_is_read():
    body = msgspec.json.decode(BATCH, type=BatchAcks)
    large = base64.b64encode(bytes((1 << 16) + 1)).decode()
    with pytest.raises(ReceiptError, match="65537 bytes; allowed: 65536"):
        msgspec.structs.replace(body.acks[0], bits=large).offsets()


@pytest.mark.parametrize(
    ("kind", "topic"),
    [(0, "orders"), (1, "%RETRY%readers_orders"), (2, "%RETRY%readers+orders")],
)
def test_a_kind_names_a_topic_and_a_topic_has_a_kind(kind: int, topic: str):
    assert receipt.retry_topic("readers", "orders", kind) == topic
    assert receipt.kind_of(topic) == kind


def test_infos_are_as_clients_take_them_apart():
    assert receipt.order_info(0, 3, {}, 0) == "0 3 0"
    assert receipt.order_info(0, 3, {7: 1, 8: 2}, 1) == "0 qo3%7 1;0 qo3%8 2;0 3 1"


def test_a_batch_has_no_more_messages_than_a_pop_gives():
    body = msgspec.json.decode(BATCH, type=BatchAcks)
    for count in (receipt.MOST_MESSAGES, receipt.MOST_MESSAGES + 1):
        # A filter left out every second one.
        bits = sum(1 << 2 * number for number in range(count))
        text = base64.b64encode(bits.to_bytes(16, "little")).decode()
        one = msgspec.structs.replace(body.acks[0], bits=text)
        if count == receipt.MOST_MESSAGES:
            assert one.offsets() == [2 * number for number in range(count)]
        else:
            with pytest.raises(ReceiptError, match="33 acknowledged messages"):
                one.offsets()
