"""Signed requests."""

import base64
import hashlib
import hmac

from ropeway.client import Credentials, Message, Producer, ProducerConfig
from ropeway.client.credentials import signed
from ropeway.gateway.wire.codes import RequestCode
from tests.ropeway.client.fake_server import FakeServer
from tests.ropeway.client.scenario import SENDING, scenario

CREDENTIALS = Credentials(access_key="me", secret_key="12345678", security_token="st")


def expected(content: bytes) -> str:
    digest = hmac.new(b"12345678", content, hashlib.sha1).digest()
    return base64.b64encode(digest).decode()


def test_a_signature_covers_values_sorted_by_name_and_the_body():
    fields = signed({"topic": "T", "b": "2", "a": "1"}, b"body", CREDENTIALS)
    assert fields["AccessKey"] == "me"
    assert fields["Signature"] == expected(b"me" + b"st" + b"1" + b"2" + b"T" + b"body")


def test_a_secret_is_not_shown():
    assert "12345678" not in repr(CREDENTIALS)


@scenario
async def test_every_request_is_signed():
    config = ProducerConfig(**SENDING, credentials=CREDENTIALS)
    async with (
        FakeServer() as server,
        Producer(server.address, "g", config=config) as producer,
    ):
        await producer.send(Message("t", b"x"))
        assert {request.fields["AccessKey"] for request in server.requests} == {"me"}
        (send,) = server.asked(RequestCode.SEND_MESSAGE_V2)
        rest = {k: v for k, v in send.fields.items() if k != "Signature"}
        content = "".join(rest[name] for name in sorted(rest)).encode() + b"x"
        assert send.fields["Signature"] == expected(content)
