"""Compiled forms: each does byte for byte what Python's form does."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from importlib import import_module
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.node.timer import pending_timers
from ropeway.gateway.wire import (
    compaction_rows,
    frame,
    message,
    properties,
    record_rewrite,
    send_codec,
)
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.commands.send import SendMessageV2
from ropeway.gateway.wire.compiled import may_be_compiled
from ropeway.gateway.wire.frame import RawFrame
from tests.compiler import needs_compiled_forms

assert frame, (
    compaction_rows,
    record_rewrite,
    send_codec,
    pending_timers,
)  # they declare what may be compiled

NAMES_OF_ALL = (
    "committed",
    "cut",
    "describe",
    "moved_all",
    "plain_batch",
    "record_of",
    "parse",
    "read_send",
    "records_in",
    "sent_frame",
    "waiting_in",
)

I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
HOSTS = st.sampled_from([b"\x7f\0\0\1\0\0\x26\x94", bytes(range(16)) + b"\0\0\x26\x94"])
NAMES = st.sampled_from(
    [
        *(properties.UNIQ_KEY, properties.TAGS, properties.KEYS),
        *("WAIT", "T", "", "Täg"),
        *sorted(properties.RARE),
    ]
)
VALUES = st.text(max_size=8) | st.sampled_from(["a b\u2003c", "\U0001f980", "", "0"])
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=6)
TEXTS = st.builds(
    lambda pairs, more: "".join(f"{a}\1{b}\2" for a, b in pairs) + more,
    PAIRS,
    st.sampled_from(["", f"{properties.UNIQ_KEY}\1k", "\2", "\1", "x\ud800"])
    | st.text("\1\2ab", max_size=9),
)
COMMON = (
    st.sampled_from([message.MAGIC_V1, message.MAGIC_V2]),
    st.binary(max_size=20),
    *(I32, I32, I64, HOSTS, I64, HOSTS, I32),
    st.sampled_from(["", "MSG_REGION\1x\2TRACE_ON\1true\2"]),
)
SOME = (message.MAGIC_V1, b"\1t", 1, 2, 3, *(b"12345678", 4) * 2, "", 5, 6, 7)
PLAIN = st.tuples(*COMMON, I64, I64, I32, st.binary(max_size=300), TEXTS, st.booleans())
ENTRIES = st.lists(
    st.builds(
        BatchEntry,
        I32,
        st.binary(max_size=50),
        TEXTS.map(lambda text: text.encode(errors="ignore").decode()),
    ),
    max_size=3,
)
BATCHES = ENTRIES.map(encode_batch)
BROKEN_BATCHES = st.builds(
    lambda data, at, byte: data[:at] + byte + data[at + 1 :],
    BATCHES,
    st.integers(0, 80),
    st.binary(min_size=1, max_size=1),
)
BATCH = st.tuples(
    *(*COMMON, I64, I64, st.just(-1) | st.integers(0, 1 << 62)),
    BATCHES | BROKEN_BATCHES | st.binary(max_size=60),
)
SENT = st.tuples(
    I32,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.binary(max_size=40) | st.just(b"7F" * 2000),
    st.integers(0, (1 << 63) - 200),
    st.sampled_from([1, 2, 100]),
    st.binary(max_size=20),
    *(I64, I32, I32),
    st.binary(max_size=1) | st.just(b"v1" * 2000),
)
FIELDS = {
    **dict.fromkeys("abc", "orders"),
    **dict.fromkeys("defghjl", "8"),
    "i": "UNIQ_KEY\1k\2TAGS\1a/b\2",
    **dict.fromkeys("km", "false"),
    "n": "broker-a",
}
SIGNED = {
    "AccessKey": "key",
    "OnsChannel": "ALIYUN",
    "SecurityToken": "token",
    "Signature": "c2lnbmF0dXJl+/==",
    "SignatureMethod": "HmacSHA256",
    "ns": "tenant",
    "nsd": "true",
}
ENVELOPE = {
    "code": 310,
    "extFields": FIELDS,
    "flag": 0,
    "language": "JAVA",
    "opaque": 7,
    "serializeTypeCurrentRPC": "JSON",
    "version": 479,
}
ODD_NUMBERS = [
    *(0, -1, 10, 1 << 31, 1 << 63, 10**18, 10**19, -(1 << 31), 1.5, None, True),
]
ODD_WORDS = st.sampled_from(
    [
        *map(str, ODD_NUMBERS),
        *("-0", "00", "01", "+1", " 1", "1 ", "-", "", "1e3", "true", "false"),
        *("\x00", '"', "\\", "\\n", "\b\f\n\r\t", "\x7f", "\x80", "é", "\U0001f980"),
    ]
)
ODD_FIELDS = st.dictionaries(
    st.sampled_from([*FIELDS, *SIGNED, "o", "A", "", "aa", "queueId"]),
    ODD_WORDS | st.text(max_size=5) | st.sampled_from(ODD_NUMBERS),
    max_size=2,
)
ODD_ENVELOPE = st.dictionaries(
    st.sampled_from([*ENVELOPE, "remark", "x", ""]),
    ODD_WORDS | st.sampled_from(ODD_NUMBERS),
    max_size=1,
)
HEADERS = st.builds(
    lambda envelope, fields, without, ascii_only, escape: escape(
        dump(
            {
                "code": 310,
                "extFields": {
                    name: value
                    for name, value in {**FIELDS, **fields}.items()
                    if name not in without
                },
                **{name: value for name, value in ENVELOPE.items() if name > "e"},
                **envelope,
            },
            ascii_only,
        )
    ),
    ODD_ENVELOPE,
    ODD_FIELDS,
    st.sets(st.sampled_from([*FIELDS]), max_size=1),
    st.booleans(),
    st.sampled_from(
        [
            lambda text: text,
            lambda text: text.replace("/", "\\/"),
            lambda text: text.replace("u0001", "u0041").replace("u0002", "u00e9"),
            lambda text: text.replace("u0001", "u00g1"),
            lambda text: text.replace("u0001", "ud800"),
            lambda text: text.replace(":", ": "),
            lambda text: text.replace('"opaque"', '"flag":2,"opaque"'),
            lambda text: text.replace('"a":', '"b":"twice","a":'),
        ]
    ),
).map(lambda text: text.encode(errors="surrogatepass"))
BROKEN_HEADERS = st.builds(
    lambda data, at, byte: data[:at] + byte + data[at + len(byte) :],
    HEADERS,
    st.integers(0, 400),
    st.binary(max_size=2) | st.sampled_from([b'"', b"\\", b"}", b",", b"}}", b"0"]),
)


WORDS = st.sampled_from(
    [
        *(b"TIMER_OUT_MS\1", b"REAL_TOPIC\1", b"REAL_QID\1", b"UNIQ_KEY\1", b"\2"),
        *(b"TIMER_DEL_UNIQKEY\1", b"5", b"9" * 18, b"9" * 19, b"t", b"", b"-1"),
        *(b"TAGS\1t\xc3\xa4g\2", b"KEYS\1a b\2", b"\1"),
    ]
)
WAITING = st.lists(
    st.lists(WORDS, max_size=9).map(b"".join)
    | st.builds(
        lambda due, topic, queue, rest: (
            b"TIMER_OUT_MS\1%b\2REAL_TOPIC\1%b\2REAL_QID\1%b\2%b"
            % (due, topic, queue, rest)
        ),
        *(WORDS, WORDS, WORDS),
        st.lists(WORDS, max_size=5).map(b"".join),
    ),
    max_size=3,
)


def waiting_record(text: bytes) -> bytes:
    front = message.Front(
        *(message.MAGIC_V1, 5, 0, 0, 7, 0, 0, 1, bytes(8), 2, bytes(8), 0)
    )
    return message.assemble(front, b"body", b"\1t", text)


def dump(header: object, ascii_only: bool = True) -> str:
    return json.dumps(header, ensure_ascii=ascii_only, separators=(",", ":"))


def both(name: str, *arguments: Any) -> tuple[Any, Any]:
    pure, twin = may_be_compiled.twins[name]
    assert twin is not None
    return pure(*arguments), twin(*arguments)


@needs_compiled_forms
def test_every_function_that_may_be_compiled_is():
    assert may_be_compiled.twins.keys() == {*NAMES_OF_ALL}
    assert all(twin for _, twin in may_be_compiled.twins.values())


@needs_compiled_forms
def test_both_forms_know_the_same_rare_properties():
    native = import_module("ropeway.gateway.wire._native")
    assert native.RARE == properties.RARE


@needs_compiled_forms
@given(st.lists(st.binary(max_size=30), max_size=4), st.binary(max_size=12))
def test_frames_are_cut_alike(bodies, rest):
    data = b"".join(
        frame.PREFIX.pack(4 + len(one), len(one) // 2) + one for one in bodies
    )
    expected, got = both("cut", data + rest, 40, 20, RawFrame)
    assert got == expected
    assert all(type(one) is RawFrame for one in got[0])


@pytest.mark.rule("wire.md", "tests throw the same input at both and compare the bytes")
@needs_compiled_forms
@given(PLAIN)
def test_plain_messages_are_laid_out_alike(arguments):
    expected, got = both("record_of", *arguments)
    assert got == expected


@needs_compiled_forms
@given(BATCH)
def test_batches_are_laid_out_alike(arguments):
    expected, got = both("plain_batch", *arguments)
    assert got == expected


@needs_compiled_forms
@pytest.mark.parametrize("length", [message.MAX_PROPERTIES_BYTES + n for n in (0, 1)])
def test_the_longest_properties_are_the_same(length):
    text = f"{properties.UNIQ_KEY}\1k\2TAGS\1"
    text += "t" * (length - len(text) - 1)
    expected, got = both("record_of", *SOME, b"x", text, True)
    assert got == expected
    assert (got is None) is (length > message.MAX_PROPERTIES_BYTES)


@needs_compiled_forms
@pytest.mark.parametrize("size", [0, 1, 15, 16, 63, 64, 65, 127, 128, 1000, 100_003])
def test_checksums_of_all_lengths_are_zlibs(size):
    body = bytes(number * 7 % 251 for number in range(size))
    record, _, _ = may_be_compiled.twins["record_of"][1](
        *SOME, body, "UNIQ_KEY\1k\2", True
    )
    assert record[8:12] == (zlib.crc32(body) & 0x7FFFFFFF).to_bytes(4, "big")


def kinds(read: Any) -> list[type]:
    """The types of what was read of a send."""
    return [*map(type, (*read, *msgspec.structs.astuple(read[2])))]


@needs_compiled_forms
@given(st.text(max_size=40) | TEXTS)
def test_properties_are_taken_apart_alike(text):
    expected, got = both("parse", text)
    assert [*got.items()] == [*expected.items()]


@pytest.mark.rule("wire.md", "tests throw the same input at both and compare the bytes")
@needs_compiled_forms
@given(HEADERS | BROKEN_HEADERS)
def test_a_header_is_read_alike_or_left_to_the_long_way(header):
    expected, got = both("read_send", header, SendMessageV2)
    assert got is None or (got, kinds(got)) == (expected, kinds(expected))


@needs_compiled_forms
@pytest.mark.parametrize("without", ["", "jkln", "il", "jklmn"])
@pytest.mark.parametrize("order", [1, -1])
def test_headers_as_clients_make_them_are_not_left(without, order):
    fields = {name: FIELDS[name] for name in [*FIELDS][::order] if name not in without}
    header = dump({**ENVELOPE, "flag": 2, "extFields": fields}).encode()
    expected, got = both("read_send", header, SendMessageV2)
    assert got == expected
    assert (got[:2], got[3]) == ((7, True), None)
    assert got[2].properties == fields.get("i", "")
    assert got[2].reconsume_times == (None if "j" in without else 8)


@needs_compiled_forms
@pytest.mark.parametrize("without", ["", "i", "n"])
@pytest.mark.parametrize("order", [1, -1])
def test_who_sent_it_is_read_alike(without, order):
    given = {**FIELDS, **SIGNED}
    fields = {name: given[name] for name in [*given][::order] if name not in without}
    header = dump({**ENVELOPE, "extFields": fields}).encode()
    expected, got = both("read_send", header, SendMessageV2)
    assert got == expected
    assert got[-1][:5] == ("key", "c2lnbmF0dXJl+/==", "token", "HmacSHA256", "tenant")


@needs_compiled_forms
@given(WAITING)
def test_what_waits_is_read_alike(texts):
    expected, got = both("waiting_in", b"".join(map(waiting_record, texts)))
    assert got == expected


@needs_compiled_forms
@given(TEXTS.map(lambda text: text.encode(errors="ignore")), st.none() | WORDS)
def test_records_are_moved_alike(text, other):
    record = waiting_record(text)
    assert both("records_in", record)[0] == both("records_in", record)[1]
    place = (message.MAGIC_V2, b"\0\1t", 1, 2, 3, 4)
    for from_timer in (False, True):
        expected, got = both("moved_all", [(record, other)], *place, from_timer)
        assert got == expected
    expected, got = both("committed", record, other or b"", *place, 5)
    assert got == expected


@pytest.mark.rule("wire.md", "tests throw the same input at both and compare the bytes")
@needs_compiled_forms
@given(SENT)
def test_answers_are_written_alike(arguments):
    expected, got = both("sent_frame", *arguments)
    assert got == expected


@needs_compiled_forms
@pytest.mark.parametrize("name", NAMES_OF_ALL)
def test_wrong_arguments_are_refused_and_not_followed(name):
    pure, twin = may_be_compiled.twins[name]
    count = pure.__code__.co_argcount
    is_text = name == "parse"
    wrong: list[Any] = [None, 1, *([b""] if count > 1 or is_text else [""])]
    for arguments in [(), *((one,) * count for one in wrong)]:
        with pytest.raises(TypeError):
            twin(*arguments)


@needs_compiled_forms
@pytest.mark.parametrize(
    ("environment", "used"), [({"ROPEWAY_PURE": "1"}, "True 0"), ({}, "False 1")]
)
def test_compiled_forms_are_used_unless_the_environment_asks_for_pythons(
    environment: dict[str, str], used: str
) -> None:
    program = (
        "from ropeway.gateway.wire import frame\n"
        "from ropeway.gateway.wire.compiled import may_be_compiled as forms\n"
        "print(forms.is_pure, forms.twins['cut'].index(frame.cut))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.strip() == used
