"""Who sent bytes that cannot be read is told so, in no words of Python's."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.admin_bodies import KvTable
from ropeway.gateway.wire.batch import decode_batch
from ropeway.gateway.wire.errors import HeaderError, MessageError
from ropeway.gateway.wire.header import decode_fields
from ropeway.gateway.wire.unreadable import UNREADABLE, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable


def error_of(read: Callable[[], object]) -> Exception:
    with pytest.raises(UNREADABLE) as caught:
        read()
    return caught.value


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (b"a\xff".decode, "byte 1 of a text is 0xff; allowed: UTF-8"),
        (lambda: struct.unpack(">i", b""), "it ends before all that it says it holds"),
        (lambda: msgspec.json.decode(b"[" * 10**5), "it is nested too deep"),
        (lambda: msgspec.json.decode(b"{"), "Input data was truncated"),
    ],
    ids=["text", "fixed fields", "depth", "JSON"],
)
def test_each_kind_has_words(read: Callable[[], object], said: str) -> None:
    assert reason_of(error_of(read)) == said


@pytest.mark.parametrize(
    "data",
    [b'{"x":"\xff"}', b'{"x":' + b"[" * 10**5, b'{"\xed\xa0\x80":1}'],
    ids=["not UTF-8", "deep", "half a pair"],
)
@pytest.mark.parametrize(
    "read",
    [
        lambda data: decode_fields(msgspec.Raw(data)),
        lambda data: bodies.decode(KvTable, b'{"table":' + data + b"}"),
        lambda data: decode_batch(data.ljust(40)),
    ],
    ids=["fields", "body", "batch"],
)
def test_what_cannot_be_read_is_told_without_python_s_words(
    read: Callable[[bytes], object], data: bytes
) -> None:
    with pytest.raises((HeaderError, MessageError)) as caught:
        read(data)
    said = str(caught.value)
    assert not any(word in said for word in ("codec", "recursion", "unpack", "struct"))
