"""Credentials in metadata: read as official clients write them, or refused."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from ropeway.acl.api import Credentials
from ropeway.gateway.grpc.credentials import credentials_of
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError

DATE = "20261122T050000Z"


def signed(secret: str = "secret") -> hmac.HMAC:
    return hmac.new(secret.encode(), DATE.encode(), hashlib.sha1)


def metadata(authorization: str, **more: str) -> dict[str, str | bytes]:
    return {"authorization": authorization, "x-mq-date-time": DATE, **more}


@pytest.mark.parametrize(
    "form",
    [
        # Java, Go and Node.js, then Python.
        "MQv2-HMAC-SHA1 Credential=alice, SignedHeaders=x-mq-date-time, Signature={}",
        "MQv2-HMAC-SHA1 Credential=alice//, SignedHeaders=x-mq-date-time,Signature={}",
        "MQv2-HMAC-SHA1 Credential=alice/cn/Rocketmq, Signature={}",
    ],
)
@pytest.mark.parametrize("case", [str.upper, str.lower])
def test_a_claim_is_in_the_form_in_which_remoting_clients_sign(form, case):
    claim = credentials_of(metadata(form.format(case(signed().hexdigest()))))
    signature = base64.b64encode(signed().digest()).decode()
    assert claim == Credentials("alice", signature, signed=DATE.encode())


def test_a_security_token_comes_along():
    said = metadata("MQv2-HMAC-SHA1 Credential=a, Signature=00")
    claim = credentials_of({**said, "x-mq-session-token": "token"})
    assert claim.security_token == "token"


def test_who_says_nothing_claims_nothing():
    assert not credentials_of({"x-mq-date-time": DATE}).given


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Basic YWxpY2U6c2VjcmV0",
        "MQv2-HMAC-SHA1",
        "MQv2-HMAC-SHA1 Signature=00",
        "MQv2-HMAC-SHA1 Credential=, Signature=00",
        "MQv2-HMAC-SHA1 Credential=alice, Signature=no hex",
        "MQv2-HMAC-SHA1 Credential=alice, SignedHeaders=host, Signature=00",
        "MQv2-HMAC-SHA1 Credential=" + "a" * 5000,
    ],
)
def test_what_cannot_be_read_is_refused_without_saying_it_again(said: str):
    with pytest.raises(RefusedError) as refused:
        credentials_of(metadata(said))
    assert refused.value.code == Code.UNAUTHORIZED
    assert "YWxpY2U6c2VjcmV0" not in refused.value.message
    assert "a" * 100 not in refused.value.message
