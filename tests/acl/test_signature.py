"""Signatures are right only with the secret, the content and a hash that is allowed."""

import base64
import hmac

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.acl.api import Credentials
from ropeway.acl.signature import is_right
from tests.acl.hooks import SECRET, signing

KEY = SECRET.encode()


@pytest.mark.parametrize(
    ("method", "name"), [("", "sha1"), ("HmacSHA1", "sha1"), ("HmacSHA256", "sha256")]
)
def test_what_was_signed_with_the_secret_is_right(method, name):
    credentials = signing("a", SECRET, signature_method=method, hash=name)
    assert is_right(credentials, KEY)
    assert not is_right(credentials, b"another")
    changed = msgspec.structs.replace(credentials, signed=b"other")
    assert not is_right(changed, KEY)


def test_nobody_chooses_a_hash_that_is_not_allowed_nor_none():
    for method, name in (("HmacMD5", "md5"), ("none", "sha1"), ("HmacSHA256", "sha1")):
        assert not is_right(
            signing("a", SECRET, signature_method=method, hash=name), KEY
        )


@given(st.binary(min_size=1, max_size=200), st.binary(max_size=300))
def test_signatures_are_those_of_rfc_2104(secret, content):
    for method, name in (("HmacSHA1", "sha1"), ("HmacSHA256", "sha256")):
        right = base64.b64encode(hmac.digest(secret, content, name)).decode()
        credentials = Credentials(
            signature=right, signature_method=method, signed=content
        )
        assert is_right(credentials, secret)


def test_an_empty_secret_makes_no_signature_right():
    assert not is_right(signing("a", ""), b"")


@given(st.text())
def test_no_other_text_is_a_signature(text):
    credentials = Credentials(access_key="a", signature=text, signed=b"content")
    assert not is_right(credentials, KEY)


@pytest.mark.parametrize("length", [63, 64, 65])
@pytest.mark.parametrize("method", ["sha1", "sha256"])
def test_a_secret_of_a_whole_block_is_used_as_it_is(length, method):
    secret = "k" * length
    signed = signing("a", secret, signature_method=f"Hmac{method.upper()}", hash=method)
    assert is_right(signed, secret.encode())
