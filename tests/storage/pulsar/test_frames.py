"""Frames survive any cut, have the right checksum, and garbage is refused."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.pulsar.commands import Ping, Send, encode_command
from ropeway.storage.pulsar.entry import Metadata
from ropeway.storage.pulsar.errors import WireError
from ropeway.storage.pulsar.frames import (
    Deframer,
    command_frame,
    decode_frame,
    decode_rest,
    extend_checksum,
    payload_frame,
)
from tests.fuzz.mutate import mutate
from tests.storage.pulsar.golden import FRAMES

ROUNDS = 3000
captured = list(FRAMES.values())


@given(st.lists(st.sampled_from(captured), max_size=6), st.data())
def test_frames_survive_any_cut(sent: list[bytes], data: st.DataObject):
    stream = b"".join(sent)
    places = st.lists(st.integers(0, len(stream)), max_size=12).map(sorted)
    cuts = [0, *data.draw(places), len(stream)]
    deframer = Deframer()
    came = [
        frame
        for begin, end in itertools.pairwise(cuts)
        for frame in deframer.feed(stream[begin:end])
    ]
    assert came == sent


def test_frames_survive_a_cut_after_every_byte():
    deframer = Deframer()
    stream = b"".join(captured)
    parts = [stream[at : at + 1] for at in range(len(stream))]
    assert [one for part in parts for one in deframer.feed(part)] == captured


@pytest.mark.parametrize("size", [0, 4, 5 * 1024 * 1024 + 10 * 1024 + 1, 0xFFFFFFFF])
@pytest.mark.parametrize("cut", [4, 2])
def test_a_frame_of_a_size_that_is_not_allowed_is_refused(size, cut):
    data = size.to_bytes(4, "big")
    deframer = Deframer()
    assert list(deframer.feed(data[: 4 - cut])) == []
    with pytest.raises(WireError, match=rf"frame of {size} bytes; allowed: 5 to 52531"):
        list(deframer.feed(data[4 - cut :]))


@pytest.mark.parametrize("name", ["Send 1", "Send 2", "Send 7"])
def test_what_we_send_is_byte_for_byte_what_pulsars_own_client_sends(name):
    frame = FRAMES[name]
    command, end = decode_frame(frame)
    rest = decode_rest(frame, end)
    metadata = Metadata.decode(frame, *rest.metadata)
    payload = frame[rest.payload_at :]
    halves = [bytearray(payload[:2]), memoryview(payload)[2:]]
    assert command is not None
    ours = payload_frame(encode_command(command), metadata.encode(), halves)
    assert b"".join(ours) == frame


def test_the_checksum_is_that_of_rfc_3720():
    assert extend_checksum(0, b"\x00" * 32) == 0x8A9136AA
    assert extend_checksum(0, memoryview(b"\xff" * 32)) == 0x62A8AB43


def test_a_checksum_goes_on_over_parts_of_any_kind_and_size():
    data = random.Random(1).randbytes(200_000)
    whole = extend_checksum(0, data)
    half = extend_checksum(0, bytearray(data[:150_000]))
    assert extend_checksum(half, memoryview(data)[150_000:]) == whole


def test_a_damaged_payload_is_noticed():
    frame = bytearray(FRAMES["Delivery 2"])
    frame[-1] ^= 1
    _, end = decode_frame(bytes(frame))
    assert not decode_rest(bytes(frame), end).intact
    assert decode_rest(FRAMES["Delivery 2"], end).intact


def test_a_frame_without_a_checksum_is_taken():
    command = encode_command(Send(1, 2))
    body = len(command).to_bytes(4, "big") + command + b"\x00\x00\x00\x01mpayload"
    frame = len(body).to_bytes(4, "big") + body
    _, end = decode_frame(frame)
    assert decode_rest(frame, end) == (None, (end + 4, end + 5), end + 5, True)


def test_a_command_alone_is_a_frame_of_two_sizes():
    assert command_frame(Ping()) == bytes.fromhex("00000009 00000005 0812920100")


def test_damaged_frames_raise_wire_errors_alone():
    chance = random.Random(8)
    for _ in range(ROUNDS):
        damaged = mutate(chance, chance.choice(captured), captured)
        try:
            for frame in Deframer().feed(damaged):
                _, end = decode_frame(frame)
                rest = decode_rest(frame, end)
                Metadata.decode(frame, *rest.metadata)
        except WireError:
            continue
