"""What fuzzers give the twins of the wire format and of the timer."""

from __future__ import annotations

import json
from typing import Any

from ropeway.gateway.wire import batch, frame, message, properties, record_rewrite
from ropeway.gateway.wire.commands.send import SendMessageV2
from tests.fuzz.twins import Form, Target

HOST = b"\x7f\0\0\1\0\0\x26\x94"
COMMON = (1, 2, 3, HOST, 4, HOST, 0, "MSG_REGION\1x\2", 7)
PLACE = (*message.topic_field("orders"), 3, 4, 1 << 40, 6)
PAIRS = [
    {properties.UNIQ_KEY: "K" * 32, "TAGS": "a", "KEYS": "b c"},
    {"TIMER_OUT_MS": "5", "REAL_TOPIC": "t", "REAL_QID": "0"},
    {"u": "ü\U0001f980"},
    {},
]
V6 = ("::1", 5)
RECORDS = [
    message.encode(
        message.Message(
            topic="t" * size,
            queue_id=0,
            queue_offset=offset,
            message_id=0,
            body=b"x" * offset,
            properties=properties.dump(pairs),
            born_host=born,
        )
    )
    for size, offset, pairs, born in zip(
        (1, 20, 200, 5), (0, 9, 99, 3), PAIRS, (*[("1.2.3.4", 5)] * 3, V6), strict=True
    )
]
ENTRIES = [
    batch.encode_batch(
        [batch.BatchEntry(n, b"x" * n, properties.dump(pairs)) for n in range(count)]
    )
    for count, pairs in enumerate(PAIRS, 1)
]
HEADERS = [
    json.dumps(
        {
            "code": 310,
            "extFields": {
                **dict.fromkeys("abc", "orders"),
                **dict.fromkeys("defghjl", "8"),
                "i": properties.dump(pairs),
                **dict.fromkeys("km", "false"),
                "n": "broker-a",
            },
            "flag": 0,
            "language": "JAVA",
            "opaque": 7,
            "serializeTypeCurrentRPC": "JSON",
            "version": 479,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()
    for pairs in PAIRS
]
FRAMES = [frame.PREFIX.pack(4 + 9, 5) + b"x" * 9, frame.PREFIX.pack(4, 0)]


def rows(form: Form, data: bytes) -> Any:
    return form(data)


def take_apart(form: Form, data: bytes) -> Any:
    return [*form(data.decode("utf-8", "surrogateescape")).items()]


def read_send(form: Form, data: bytes) -> Any:
    return form(data, SendMessageV2)


def cut(form: Form, data: bytes) -> Any:
    return form(data, 100, 50, frame.RawFrame)


def plain_batch(form: Form, data: bytes) -> Any:
    mark = len(data) % 20 - 1
    return form(message.MAGIC_V1, b"\1t", *COMMON, 1 << 40, mark, data)


def record_of(form: Form, data: bytes) -> Any:
    text = data.decode("latin-1")
    return form(
        message.MAGIC_V2,
        b"\0\1t",
        *COMMON,
        1 << 40,
        0,
        b"body",
        text,
        len(data) % 2 == 0,
    )


def moved_all(form: Form, data: bytes) -> Any:
    records = [record for _, _, record in record_rewrite.records_in(data)]
    return [
        form([(one, other) for one in records], *PLACE, timed) for other, timed in MOVES
    ]


def moved_as_it_is(form: Form, data: bytes) -> Any:
    return [form([(data, other)], *PLACE, timed) for other, timed in MOVES]


def moved(form: Form, data: bytes) -> Any:
    return (moved_as_it_is if data[:1] == b"\xff" else moved_all)(form, data[1:])


MOVES = ((None, False), (b"a\1b\2", True), (None, True))


def committed(form: Form, data: bytes) -> Any:
    # Properties stand in front, with the first two bytes for their length.
    size = int.from_bytes(data[:2], "big")
    text, record = data[2 : 2 + size], data[2 + size :]
    return form(record, text, *PLACE[:3], 4, 1 << 40, 6, 7)


def sent_frame(form: Form, data: bytes) -> Any:
    # It writes what a client chose: the unique key, and how many messages it sent.
    head, rest = data[:4].ljust(4, b"\0"), data[4:]
    key, _, handle = rest.decode("utf-8", "surrogateescape").partition("\n")
    numbers = (head[0] - 9, key, b"7F" * (head[1] % 99), head[2] << 40, head[3])
    return form(*numbers, b'"region"', 7, -5, 479, handle.encode("utf-8", "replace"))


TARGETS = {
    "committed": Target(
        committed,
        [
            len(text).to_bytes(2, "big") + text + record
            for text in (b"", b"KEYS\1a b\2TAGS\1\xc3\xbc\2")
            for record in RECORDS
        ],
    ),
    "cut": Target(cut, [b"".join(FRAMES), *FRAMES]),
    "describe": Target(rows, [b"".join(RECORDS), *RECORDS]),
    "moved_all": Target(
        moved, [one + record for one in (b"\0", b"\xff") for record in RECORDS]
    ),
    "plain_batch": Target(plain_batch, ENTRIES),
    "record_of": Target(record_of, [properties.dump(one).encode() for one in PAIRS]),
    "parse": Target(take_apart, [properties.dump(one).encode() for one in PAIRS]),
    "read_send": Target(read_send, HEADERS),
    "records_in": Target(rows, [b"".join(RECORDS), *RECORDS]),
    "sent_frame": Target(
        sent_frame,
        [b"\0\1\1\1" + b"K" * 32, b'\1\7\2\x20\x01"\\\xc3\xa9\nhandle', b"\1\0\0\0\n"],
    ),
    "waiting_in": Target(rows, [b"".join(RECORDS), *RECORDS]),
}
"""By function of `gateway.wire._native`."""

LEAVES_SOME = {"read_send": "a header that is not as clients write it is read later"}
"""Functions whose compiled form may leave to the general path what Python's reads."""
