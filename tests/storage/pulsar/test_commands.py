"""Commands are those that Pulsar's own client and a real broker exchanged."""

import pytest

from ropeway.storage.pulsar.commands import (
    COMMANDS,
    Access,
    Ack,
    CloseConsumer,
    CloseProducer,
    Connect,
    Connected,
    Delivery,
    FeatureFlags,
    Flow,
    GetLastMessageId,
    LastMessageId,
    Lookup,
    LookupAnswer,
    LookupType,
    MessageId,
    OpenProducer,
    Ping,
    ProducerSuccess,
    Refused,
    Seek,
    Send,
    SendReceipt,
    Subscribe,
    Success,
    command,
    decode_command,
    encode_command,
)
from ropeway.storage.pulsar.errors import WireError
from ropeway.storage.pulsar.frames import decode_frame
from tests.storage.pulsar.golden import FRAMES

TOPIC = "persistent://public/default/golden-1795283382"
BROKER = "pulsar://127.0.0.1:43881"
BUSY = (
    "org.apache.pulsar.broker.service.BrokerServiceException$ProducerBusyException:"
    " Topic has an existing exclusive producer: writer"
)
READER = "reader-1f849bfdbf"
EARLIEST = MessageId(-1, -1)

SAME = {
    "Connect 1": Connect(
        "Pulsar-CPP-v4.2.0",
        protocol_version=20,
        auth_method="none",
        feature_flags=FeatureFlags(auth_refresh=True, broker_entry_metadata=True),
    ),
    "LookupAnswer 1": LookupAnswer(
        BROKER,
        response=LookupType.CONNECT,
        request_id=2,
        authoritative=True,
        proxy_through_service_url=True,
    ),
    "Send 1": Send(0, 0),
    "Send 2": Send(0, 1),
    "Send 7": Send(6, 0, num_messages=3),
    "Refused 1": Refused(1, 16, BUSY),
    "Success 1": Success(2),
    "Flow 1": Flow(0, 1000),
    "GetLastMessageId 1": GetLastMessageId(0, 3),
    "Seek 1": Seek(0, 4, EARLIEST),
    "Seek 2": Seek(0, 6, publish_ms=1234567890123),
    "CloseConsumer 1": CloseConsumer(0, -1),
    "CloseProducer 1": CloseProducer(0, 8),
    "Ack 1": Ack(0, 1, (MessageId(9, 5),)),
}
"""What comes out of us as it came out of them."""

WITH_MORE = {
    "Connected 1": Connected("Pulsar Server4.0.8", 20, 5242880),
    "Lookup 1": Lookup(TOPIC, 2, advertised_listener_name=""),
    "OpenProducer 1": OpenProducer(
        TOPIC,
        producer_id=0,
        request_id=0,
        producer_name="writer",
        access=Access.EXCLUSIVE_WITH_FENCING,
    ),
    "ProducerSuccess 1": ProducerSuccess(0, "writer", -1, topic_epoch=0),
    "SendReceipt 1": SendReceipt(0, 0, MessageId(9, 0)),
    "Subscribe 1": Subscribe(
        *(TOPIC, READER, 0, 0, 2, ""),
        durable=False,
        start=EARLIEST,
        read_compacted=False,
    ),
    "Delivery 2": Delivery(0, MessageId(9, 1)),
    "LastMessageId 1": LastMessageId(MessageId(9, 1), 3, MessageId(9, -1)),
}
"""They wrote defaults as well, or fields that we do not look at."""


@pytest.mark.parametrize("name", [*SAME, *WITH_MORE])
def test_what_was_captured_decodes(name):
    decoded, _ = decode_frame(FRAMES[name])
    assert decoded == (SAME | WITH_MORE)[name]


@pytest.mark.parametrize("name", SAME)
def test_what_we_encode_is_what_was_captured(name):
    _, end = decode_frame(FRAMES[name])
    assert encode_command(SAME[name]) == FRAMES[name][8:end]


@pytest.mark.parametrize("name", WITH_MORE)
def test_what_we_encode_means_what_was_captured(name):
    encoded = encode_command(WITH_MORE[name])
    assert decode_command(encoded, 0, len(encoded)) == WITH_MORE[name]


def test_a_command_that_we_do_not_know_is_no_error():
    assert decode_frame(FRAMES["PartitionedMetadata 1"])[0] is None


def test_an_empty_command_has_its_field_all_the_same():
    assert encode_command(Ping()) == bytes.fromhex("0812920100")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("1001", "a command that begins with tag 16; allowed: 8, its type"),
        ("080d", "a command of type 13 without its field 13"),
        ("", "a varint at byte 0 that does not end before byte 0"),
    ],
)
def test_what_is_no_command_is_refused(data, said):
    encoded = bytes.fromhex(data)
    with pytest.raises(WireError) as caught:
        decode_command(encoded, 0, len(encoded))
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "encoded",
    [
        "0807 3a0c 0805 10ac02 1a05 08c801 1007",  # as brokers write it
        "0807 3a0e 0805 10ac02 1a05 08c801 1007 2000",  # and a field behind that
        "0807 3a0c 10ac02 0805 1a05 08c801 1007",  # in another order
        "0807 3a0e 0805 10ac02 1a07 08c801 1007 1802",  # with the number of a partition
    ],
)
def test_a_receipt_is_read_in_whatever_order_its_fields_come(encoded):
    data = bytes.fromhex(encoded)
    receipt = decode_command(data, 0, len(data))
    assert isinstance(receipt, SendReceipt)
    assert (receipt.producer_id, receipt.sequence_id) == (5, 300)
    assert receipt.message_id is not None
    assert (receipt.message_id.ledger, receipt.message_id.entry) == (200, 7)


def test_a_receipt_without_a_place_is_one():
    data = encode_command(SendReceipt(5, 300))
    assert decode_command(data, 0, len(data)) == SendReceipt(5, 300)


def test_a_receipt_that_is_cut_is_refused():
    data = encode_command(SendReceipt(5, 300, MessageId(200, 7)))
    for end in range(len(data)):
        with pytest.raises(WireError):
            decode_command(data, 0, end)


def test_a_number_belongs_to_one_command():
    with pytest.raises(TypeError, match="command 18 is Ping already"):
        command(18)(Flow)
    assert COMMANDS[18] is Ping
