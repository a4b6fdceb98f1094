"""What options say of a cluster is noted, wherever they stand."""

import click
from click.testing import CliRunner

from ropeway.gateway.cli.cluster_settings import given
from ropeway.gateway.cli.main import main
from tests.gateway.cli.test_main import ALL


def test_what_stands_behind_the_command_wins():
    said = ["-n", "a:1", "topic", "--context", "b", "list", "-n", "c:2"]
    found = {}

    def look(**_: object) -> None:
        found.update(given(click.get_current_context()))

    command = ALL["topic", "list"]
    callback, command.callback = command.callback, look
    try:
        assert CliRunner().invoke(main, said).exit_code == 0
    finally:
        command.callback = callback
    assert found == {"name_server": "c:2", "context": "b"}
