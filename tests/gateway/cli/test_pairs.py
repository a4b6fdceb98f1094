"""NAME=VALUE."""

import click
import pytest

from ropeway.gateway.cli.pairs import pairs

CONTEXT = click.Context(click.Command("x"))
OPTION = click.Option(["--set"])


def test_pairs_are_named():
    given = ("a=1", "b=x=y", "c=")
    assert pairs(CONTEXT, OPTION, given) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize("text", ["a", "=a", ""])
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(click.BadParameter, match="allowed: NAME=VALUE"):
        pairs(CONTEXT, OPTION, (text,))
