"""Examples at the end of help."""

import click
from click.testing import CliRunner

from ropeway.gateway.cli.examples import example


def test_each_line_of_an_example_stays_a_line():
    command = click.Command("x", epilog=example("ropeway one", "ropeway two"))
    shown = CliRunner().invoke(command, ["--help"]).stdout
    assert shown.endswith("  Example:\n    $ ropeway one\n    $ ropeway two\n")
