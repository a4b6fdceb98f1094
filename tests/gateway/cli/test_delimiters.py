"""Delimiters as people write them."""

import click
import pytest

from ropeway.gateway.cli.delimiters import delimiter

OPTION = click.Option(["--delimiter"])
CONTEXT = click.Context(click.Command("produce"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("\\n", b"\n"), ("\\0", b"\0"), ("\\x1e", b"\x1e"), ("é;", "é;".encode())],
)
def test_escapes_are_bytes_and_other_letters_themselves(text, expected):
    assert delimiter(CONTEXT, OPTION, text) == expected
    assert delimiter(CONTEXT, OPTION, None) is None


@pytest.mark.parametrize("text", ["", "\\", "\\u263a", "\\xZZ"])
def test_what_is_no_delimiter_is_refused(text):
    with pytest.raises(click.BadParameter, match="allowed: "):
        delimiter(CONTEXT, OPTION, text)
