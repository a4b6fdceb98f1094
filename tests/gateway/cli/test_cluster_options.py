"""The options of every command that is a client of a cluster."""

import click
import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.main import main
from ropeway.gateway.cli.target import Target
from tests.gateway.cli.test_main import ALL

LOCAL = {
    *("acl key", "completion", "demo", "log verify", "pipeline compact", "schema"),
    "serve",
    *("streams describe", "tier backfill", "tier offload", "tier pause"),
    *("tier resume", "tier status", "tier verify"),
    *("context delete", "context list", "context show", "context use"),
}
"""Commands that talk to no cluster, or by what a node's own configuration says."""


def _takes(command: click.Command) -> bool:
    return any(one.name == "token_file" for one in command.params)


def test_every_command_takes_them_but_those_that_talk_to_no_cluster():
    without = {
        " ".join(path)
        for path, command in ALL.items()
        if not isinstance(command, click.Group) and not _takes(command)
    }
    assert without == LOCAL


def test_every_group_takes_them_for_what_is_below_it():
    assert _takes(main)
    assert all(
        _takes(command) for command in ALL.values() if isinstance(command, click.Group)
    )


@click.group()
def outer() -> None:
    pass


@outer.command()
@cluster_options
@json_option(bool)
def inner(*, cluster: Target, as_json: bool) -> None:
    click.echo(f"{cluster.name_server} {as_json}")


@pytest.mark.parametrize("args", [["-n", "a:1", "serve"], ["--no-tls", "demo"]])
def test_before_a_command_that_is_no_client_they_are_refused(args):
    refused = CliRunner().invoke(main, args)
    assert refused.exit_code == 2
    assert "is no client of a cluster" in refused.stderr


@pytest.mark.parametrize(
    ("args", "is_json"),
    [
        ([], False),
        (["--json"], True),
        (["--output", "json"], True),
        (["--output", "table"], False),
        (["--json", "--output", "json"], True),
    ],
)
def test_json_is_asked_for_in_two_ways(args, is_json):
    shown = CliRunner().invoke(outer, ["inner", *args])
    assert shown.stdout == f"127.0.0.1:9876 {is_json}\n"


def test_json_is_asked_for_by_the_environment():
    environment = {"ROPEWAY_OUTPUT": "json"}
    shown = CliRunner().invoke(outer, ["inner"], env=environment)
    assert shown.stdout == "127.0.0.1:9876 True\n"
    shown = CliRunner().invoke(outer, ["inner", "--output", "table"], env=environment)
    assert shown.stdout == "127.0.0.1:9876 False\n"


def test_another_output_is_refused_with_those_that_are_allowed():
    refused = CliRunner().invoke(outer, ["inner", "--output", "xml"])
    assert refused.exit_code == 2
    assert "'table', 'json'" in refused.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["topic", "create", "a\udcff"],
        ["produce", "orders", "a\udcff"],
        ["produce", "orders", "a", "--key", "a\udcff"],
        ["topic", "list", "--access-key", "a\udcff"],
        ["topic", "list", "-n", "a\udcff"],
    ],
)
def test_what_is_not_utf_8_is_refused(args):
    refused = CliRunner().invoke(main, args)
    assert refused.exit_code == 2
    assert refused.stderr == "Error: argument b'a\\xff'; allowed: UTF-8\n"
