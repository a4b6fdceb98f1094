"""Entries go out as Pulsar's own client sends them."""

import itertools
from typing import TYPE_CHECKING, ClassVar, cast

import pytest

from ropeway.storage.pulsar.commands import Send, encode_command
from ropeway.storage.pulsar.entry import Metadata
from ropeway.storage.pulsar.frames import (
    Buffer,
    decode_frame,
    decode_rest,
    payload_frame,
)
from ropeway.storage.pulsar.send_entry import (
    EntryMetadata,
    Pending,
    ProducerSlot,
    encode_metadata,
    metadata_head,
    size_of,
)
from tests.storage.pulsar.golden import FRAMES

if TYPE_CHECKING:
    from ropeway.storage.pulsar.connection import Connection


def metadata_of(name: str) -> bytes:
    frame = FRAMES[name]
    begin, end = decode_rest(frame, decode_frame(frame)[1]).metadata
    return frame[begin:end]


def test_metadata_is_byte_for_byte_that_of_pulsars_own_client():
    ours = encode_metadata(
        metadata_head("writer"),
        1,
        EntryMetadata(
            1795283382681,
            properties=[("a", "1"), ("b", "two")],
            partition_key="k",
            event_ms=1234567890123,
            batch=None,
        ),
    )
    assert ours == metadata_of("Send 2")


def test_metadata_of_a_batch_is_that_of_pulsars_own_client():
    ours = encode_metadata(
        metadata_head("batcher"),
        0,
        EntryMetadata(
            1795283384144, properties=(), partition_key="k0", event_ms=0, batch=3
        ),
    )
    assert ours == metadata_of("Send 7")


def test_metadata_reads_as_what_it_was_made_of():
    encoded = encode_metadata(
        metadata_head("näme"),
        1 << 40,
        EntryMetadata(
            1, properties=[("", "")], partition_key="", event_ms=5, batch=None
        ),
    )
    assert Metadata.decode(encoded) == Metadata(
        *("näme", 1 << 40, 1, (b"\n\x00\x12\x00",), ""),
        event_ms=5,
    )


@pytest.mark.parametrize("num_messages", [1, 7])
def test_an_entry_goes_out_behind_the_command_send(num_messages):
    written: list[Buffer] = []

    class Wire:
        ids = itertools.count(300)
        producers: ClassVar[dict[int, ProducerSlot]] = {}
        write = written.extend

    place = ProducerSlot(cast("Connection", Wire()), print, print)
    payload = (b"pay", b"load")
    place.write(Pending(1 << 40, num_messages, b"m", payload, 7, print))
    send = Send(place.producer_id, 1 << 40, num_messages)
    assert written == payload_frame(encode_command(send), b"m", payload)


@pytest.mark.parametrize(
    ("payload", "size"),
    [((), 0), ([b"abc"], 3), ([b"a", bytearray(2), memoryview(b"abc")], 6)],
)
def test_the_size_of_a_payload_is_that_of_its_parts(payload, size):
    assert size_of(payload) == size
