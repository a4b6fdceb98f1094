"""Python's and the compiled form of each function take and refuse the same bytes.

Valid ones, damaged ones and garbage; what comes from a client, a disk or another server
is garbage sooner or later. `ROPEWAY_FUZZ_ROUNDS` and `ROPEWAY_SEED` as in `test_wire`.
"""

from __future__ import annotations

import json
import os
import random
import struct
from typing import TYPE_CHECKING, Any

from gateway.node.timer import waiting
from gateway.wire import batch, describing, frame, message, moving, plain, properties
from gateway.wire.compiled import TWINS
from tests.chance import fixed_and_fresh
from tests.compiler import needs_compiled_forms
from tests.fuzz.mutate import mutate

if TYPE_CHECKING:
    from collections.abc import Callable

assert waiting, (describing, moving, plain)  # they declare what may be compiled

ROUNDS = 400 * int(os.environ.get("ROPEWAY_FUZZ_ROUNDS", "1"))
GARBAGE_BYTES = 300
REFUSED = "refused"

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


def rows(form: Callable[..., Any], data: bytes) -> Any:
    return form(data)


def cut(form: Callable[..., Any], data: bytes) -> Any:
    return form(data, 100, 50, frame.RawFrame)


def plain_batch(form: Callable[..., Any], data: bytes) -> Any:
    return form(message.MAGIC_V1, b"\1t", *COMMON, 1 << 40, data)


def plain_record(form: Callable[..., Any], data: bytes) -> Any:
    text = data.decode("latin-1")
    return form(message.MAGIC_V2, b"\0\1t", *COMMON, 1 << 40, 0, b"body", text)


def moved_all(form: Callable[..., Any], data: bytes) -> Any:
    # It gets messages that `records_in` has cut.
    records = [record for _, _, record in moving.records_in(data)]
    return [
        form([(one, other) for one in records], *PLACE, timed) for other, timed in MOVES
    ]


MOVES = ((None, False), (b"a\1b\2", True))

TARGETS: dict[str, tuple[Callable[[Callable[..., Any], bytes], Any], list[bytes]]] = {
    "cut": (cut, [b"".join(FRAMES), *FRAMES]),
    "describe": (rows, [b"".join(RECORDS), *RECORDS]),
    "moved_all": (moved_all, RECORDS),
    "plain_batch": (plain_batch, ENTRIES),
    "plain_record": (plain_record, [properties.dump(one).encode() for one in PAIRS]),
    "plain_send": (rows, HEADERS),
    "records_in": (rows, [b"".join(RECORDS), *RECORDS]),
    "waiting_in": (rows, [b"".join(RECORDS), *RECORDS]),
}
NOT_BYTES = {
    "committed": "it gets messages of which `moved_all` has read each",
    "sent_frame": "it writes, and reads nothing",
}
"""Functions that read no bytes of others: `test_compiled` compares them."""

LEAVES_SOME = {"plain_send": "a header that is not as clients write it is read later"}
"""Functions whose compiled form may leave to the general path what Python's reads."""


def outcome(call: Callable[..., Any], form: Callable[..., Any], data: bytes) -> Any:
    """What a form makes of it; for all refusals the same."""
    try:
        return call(form, data)
    except (ValueError, struct.error, IndexError, OverflowError):
        return REFUSED


def test_every_function_with_two_forms_is_compared():
    assert TARGETS.keys() | NOT_BYTES.keys() == TWINS.keys()


@needs_compiled_forms
@fixed_and_fresh
def test_both_forms_take_and_refuse_the_same(seed: int) -> None:
    chance = random.Random(seed)
    taken = dict.fromkeys(TARGETS, 0)
    for name, (call, seeds) in TARGETS.items():
        python, compiled = TWINS[name]
        assert compiled is not None
        given = list(seeds)
        given += [mutate(chance, chance.choice(seeds), seeds) for _ in range(ROUNDS)]
        given += [
            chance.randbytes(chance.randint(0, GARBAGE_BYTES)) for _ in range(ROUNDS)
        ]
        for data in given:
            expected = outcome(call, python, data)
            got = outcome(call, compiled, data)
            may_be_left = name in LEAVES_SOME and got is None
            assert may_be_left or got == expected, (name, data.hex())
            taken[name] += expected not in (REFUSED, None)
    assert all(taken.values()), taken
