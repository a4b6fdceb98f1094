"""Half of a surrogate pair comes in by no decoder of what the network brings.

It is no text: who encodes it later fails, far from the client that sent it. So what has
one is refused where it is decoded, in each form that it can have there.
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.message import DecodeError

from ropeway.common.native import TABLES
from ropeway.gateway.config import HttpConfig
from ropeway.gateway.grpc.protocol import Resource, message_class
from ropeway.gateway.http2.hpack_decoder import Decoder
from ropeway.gateway.processors.admission import credentials_of
from ropeway.gateway.wire import batch, bodies, message, recall
from ropeway.gateway.wire.codes import RequestCode as Code
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import SendMessageV2
from ropeway.gateway.wire.errors import FrameError, HeaderError, MessageError
from ropeway.gateway.wire.frame import (
    JSON,
    PREFIX,
    ROCKETMQ,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import ROWS, decode_fields, decode_request, to_fields
from ropeway.gateway.wire.rocketmq_header import Fixed
from ropeway.gateway.wire.rocketmq_header import encode as encode_rocketmq
from ropeway.gateway.wire.send_codec import NO_MARK
from tests.fuzz.wire_targets import COMMON
from tests.gateway.http.signed import guarded_site, sign_in
from tests.guarded import ROOT
from tests.remoting import TIMEOUT_S, looped, running, until
from tests.requests import batch_of, sending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.remoting import Remoting

MARK = "@mark@"
BYTES = {
    "first half": b"\xed\xa0\x80",
    "second half": b"\xed\xbf\xbf",
    "both halves, each by itself": b"\xed\xa0\xbd\xed\xb8\x80",
    "cut": b"\xed\xa0",
}
"""As UTF-8 would have it; CESU-8 writes characters beyond 16 bits like that."""
ESCAPES = {
    "first half": rb"\ud800",
    "second half": rb"\uDFFF",
    "the wrong way round": rb"\udc00\ud800",
    "before another character": rb"\ud83dx",
}
"""As JSON has it."""
IN_JSON = [
    pytest.param(one, id=f"{name}, {how}")
    for how, forms in (("bytes", BYTES), ("escaped", ESCAPES))
    for name, one in forms.items()
]
IN_BYTES = [pytest.param(one, id=name) for name, one in BYTES.items()]
FORMS = ("python", "compiled")


def with_mark(value: Any, half: bytes) -> bytes:
    """JSON, with the half where the mark stands."""
    data = json.dumps(value, separators=(",", ":")).encode()
    assert MARK.encode() in data
    return data.replace(MARK.encode(), half)


def sent_header(**changes: Any) -> dict[str, Any]:
    """A send's header as clients make it."""
    fields = to_fields(sending("orders"))
    return {
        "code": int(Code.SEND_MESSAGE_V2),
        "extFields": fields,
        "flag": 0,
        "language": "JAVA",
        "opaque": 7,
        "serializeTypeCurrentRPC": "JSON",
        "version": 479,
        **changes,
    }


def of_fields(**changes: str) -> dict[str, Any]:
    return sent_header(extFields={**to_fields(sending("orders")), **changes})


FIELDS = {
    "topic": {"b": MARK},
    "properties": {"i": f"KEYS\1{MARK}\2"},
    "a name": {MARK: "x"},
    "access key": {"AccessKey": MARK},
}


@pytest.mark.parametrize("half", IN_JSON)
def test_no_json_header_brings_one(half: bytes):
    for header in (sent_header(remark=MARK), sent_header(language=MARK)):
        with pytest.raises(FrameError, match="header is not a command"):
            decode_envelope(JSON, with_mark(header, half))


@pytest.mark.parametrize("changes", FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize("half", IN_JSON)
def test_no_field_of_a_json_header_brings_one(half: bytes, changes: dict[str, str]):
    header = with_mark(of_fields(**changes), half)
    for form in TABLES["ropeway.gateway.wire._native"]["read_send"]:
        # It is left to the general path.
        assert form is None or form(header, SendMessageV2) is None
    if half in ESCAPES.values():
        # Escapes are read with the frame; bytes, where the fields are looked at.
        with pytest.raises(FrameError, match="header is not a command"):
            decode_envelope(JSON, header)
        return
    envelope = decode_envelope(JSON, header)
    readers: list[Callable[[], object]] = [
        lambda: decode_fields(envelope.ext_fields),
        lambda: credentials_of(envelope, b""),
    ]
    if set(changes) <= {"b", "i"}:
        row = ROWS[Code.SEND_MESSAGE_V2]
        readers.append(lambda: decode_request(row, envelope.ext_fields))
    for read in readers:
        with pytest.raises(HeaderError):
            read()


@pytest.mark.parametrize("half", IN_BYTES)
@pytest.mark.parametrize("place", ["remark", "name", "value"])
def test_no_binary_header_brings_one(half: bytes, place: str):
    texts = {"remark": "r", "name": "name", "value": "value", place: MARK}
    fixed = Fixed(10, 0, 479, 7, 0)
    pair = {texts["name"]: texts["value"]}
    header = encode_rocketmq(fixed, texts["remark"], pair)
    half = half.ljust(len(MARK), b"x")
    with pytest.raises(FrameError, match="ROCKETMQ header is not a command"):
        decode_envelope(ROCKETMQ, header.replace(MARK.encode(), half))


@pytest.mark.parametrize("half", IN_JSON)
def test_no_body_brings_one(half: bytes):
    data = with_mark({"clientID": MARK}, half)
    with pytest.raises(HeaderError, match="HeartbeatData: "):
        bodies.decode(bodies.HeartbeatData, data)
    # As fastjson writes numbers; then it is read a second time.
    with pytest.raises(HeaderError, match="HeartbeatData: "):
        bodies.decode(bodies.HeartbeatData, data[:-1] + b",1:2}")


@pytest.mark.parametrize("half", IN_BYTES)
def test_no_properties_of_a_batch_bring_one(half: bytes):
    entries = batch_of(b"one", pairs={"UNIQ_KEY": "K" * 32, "KEYS": MARK})
    damaged = entries.replace(MARK.encode(), half.ljust(len(MARK), b"x"))
    with pytest.raises(MessageError, match=r"batch entry 0: byte .* allowed: UTF-8"):
        batch.decode_batch(damaged)
    for form in TABLES["ropeway.gateway.wire._native"]["plain_batch"]:
        if form is not None:
            made = form(message.MAGIC_V1, b"\1t", *COMMON, 1 << 40, NO_MARK, entries)
            assert made is not None
            with pytest.raises(
                MessageError, match=r"batch entry 0: byte .* allowed: UTF-8"
            ):
                refused_or_left(form, damaged)


def refused_or_left(form: Callable[..., Any], data: bytes) -> None:
    """What the compiled form does not take, the general path decodes."""
    if form(message.MAGIC_V1, b"\1t", *COMMON, 1 << 40, NO_MARK, data) is None:
        batch.decode_batch(data)


@pytest.mark.parametrize("half", IN_BYTES)
def test_no_recall_handle_brings_one(half: bytes):
    handle = base64.urlsafe_b64encode(b"v1 orders broker-0 5 " + half).decode()
    with pytest.raises(MessageError, match="recall handle is invalid"):
        recall.parse(handle)


@pytest.mark.parametrize("half", IN_BYTES)
def test_no_grpc_request_brings_one(half: bytes):
    whole = Resource(name=MARK).SerializeToString()
    damaged = whole.replace(MARK.encode(), half.ljust(len(MARK), b"x"))
    with pytest.raises(DecodeError):
        message_class(Resource.DESCRIPTOR).FromString(damaged)


@pytest.mark.parametrize("half", IN_BYTES)
def test_no_metadata_of_a_call_bring_one(half: bytes):
    literal = b"\0" + bytes([1]) + b"a" + bytes([len(half)]) + half
    ((_, value, _, _),) = Decoder().decode(literal)
    # Each byte is a character: none is a half.
    assert value.encode("latin-1") == half


def raw(header: bytes, body: bytes = b"") -> bytes:
    return PREFIX.pack(4 + len(header) + len(body), len(header)) + header + body


async def refused(client: Remoting, data: bytes) -> None:
    """See that a frame, with the opaque 7, gets an answer that says what is wrong."""
    client.answers.clear()
    client.writer.write(data)
    await until(lambda: client.answers)
    (answer,) = client.answers
    assert answer.opaque == 7
    assert answer.code not in (0, ResponseCode.SYSTEM_BUSY)
    assert answer.remark
    assert "Traceback" not in answer.remark


def requests(half: bytes) -> Iterator[bytes]:
    for changes in FIELDS.values():
        # What no processor asks for is read by access control alone.
        if not changes.keys().isdisjoint(("b", "i")):
            yield raw(with_mark(of_fields(**changes), half), b"x")
    beat = {"code": int(Code.HEART_BEAT), "opaque": 7, "extFields": {}}
    for body in (
        {"clientID": MARK, "consumerDataSet": [], "producerDataSet": []},
        {"clientID": "c", "producerDataSet": [{"groupName": MARK}]},
    ):
        yield raw(json.dumps(beat).encode(), with_mark(body, half))


@looped
async def test_requests_that_have_one_are_refused_and_the_connection_goes_on(
    tmp_path: Path,
):
    async with running(tmp_path) as (_, client):
        assert (await client.ask(sending("orders"), b"x")).code == 0
        for half in BYTES.values():
            for data in requests(half):
                await refused(client, data)
        for half in BYTES.values():
            entries = batch_of(b"one", b"two", pairs={"KEYS": MARK})
            entries = entries.replace(MARK.encode(), half.ljust(len(MARK), b"x"))
            header = to_fields(sending("orders", batch=True))
            await refused(client, encode_frame(310, 7, fields=header, body=entries))
        assert (await client.ask(sending("orders"), b"x")).code == 0


PLACES = (
    "GET /api/topics/@ HTTP/1.1",
    "GET /api/topics?search=@ HTTP/1.1",
    "GET /api/topics?@=1 HTTP/1.1",
    "GET /api/messages?topic=@ HTTP/1.1",
    "GET /@ HTTP/1.1",
    "GET /api/session HTTP/1.1\r\nCookie: ropeway=@",
    "GET /api/overview HTTP/1.1\r\nCookie: ropeway=@",
    "GET /metrics HTTP/1.1\r\nAuthorization: @",
    "GET /metrics HTTP/1.1\r\nAuthorization: Basic @",
    "GET /metrics HTTP/1.1\r\nAuthorization: Bearer @",
    "GET /metrics/workers HTTP/1.1\r\nAuthorization: Bearer @",
    "GET /api/overview HTTP/1.1\r\nOrigin: http://@",
)
OF_HTTP = (*BYTES.values(), ESCAPES["first half"], b"%ED%A0%80")


@looped
async def test_no_request_to_the_page_fails_by_one(tmp_path: Path):
    """Before, a header `Authorization` with one was answered 500, with a traceback."""
    metrics = HttpConfig(port=0, guard_metrics=True)
    async with guarded_site(tmp_path, http=metrics) as site:
        await sign_in(site, ROOT)
        cookie = site.session.headers["Cookie"]
        host = site.address.removeprefix("http://")
        more = f"\r\nHost: {host}\r\nX-Ropeway: page\r\nConnection: close\r\n"
        for place in PLACES:
            known = "" if "Cookie" in place else f"Cookie: {cookie}\r\n"
            before, after = f"{place}{more}{known}\r\n".split("@")
            for half in OF_HTTP:
                status, body = await asked(
                    host, before.encode() + half + after.encode()
                )
                assert (place, half, status // 100) != (place, half, 5), body
                assert b"codec" not in body
        for half in (*BYTES.values(), *ESCAPES.values()):
            body = with_mark({"access_key": MARK, "secret_key": "x"}, half)
            head = (
                f"POST /api/session HTTP/1.1{more}Content-Length: {len(body)}\r\n\r\n"
            )
            status, said = await asked(host, head.encode() + body)
            assert (status, b"allowed" in said) == (400, True)


async def asked(host: str, request: bytes) -> tuple[int, bytes]:
    """The status and body of what a server answers to bytes."""
    name, _, port = host.partition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    try:
        writer.write(request)
        answer = await asyncio.wait_for(reader.read(-1), TIMEOUT_S)
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body
