"""Messages as the page shows them."""

import pytest

from ropeway.gateway.http.api import shown


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"plain", "plain"),
        ("café".encode(), "café"),
        (b"\xff\xfe", None),
        (b"a\0b", None),
        (b"caf\xc3", None),
        (b"", ""),
    ],
)
def test_a_body_is_text_where_it_is_one(body, text):
    assert shown._text(body) == text


def test_a_text_that_was_cut_within_a_character_is_still_one():
    body = ("a" + "é" * shown.MAX_BODY_BYTES).encode()[: shown.MAX_BODY_BYTES]
    assert shown._text(body) == body[:-1].decode()
