"""What commands have in common that are clients."""

import asyncio
import signal

import click
import pytest
from click.testing import CliRunner

from gateway.cli.clients import json_option, run
from gateway.cli.failures import CannotError, MisusedError
from ropeway.client import RemotingError


async def failing(error: Exception) -> None:
    raise error


def test_what_the_work_returns_is_given_back():
    assert run(asyncio.sleep(0, "done")) == "done"


def test_bad_arguments_and_failed_requests_differ():
    with pytest.raises(MisusedError, match=r"^bad$"):
        run(failing(ValueError("bad")))
    with pytest.raises(CannotError, match=r"^gone$"):
        run(failing(RemotingError("gone")))


def test_a_closed_pipe_ends_the_command_as_it_does_others():
    async def handler() -> object:
        return signal.getsignal(signal.SIGPIPE)

    before = signal.getsignal(signal.SIGPIPE)
    assert run(handler()) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGPIPE) == before


@click.command()
@json_option
def shown(*, as_json: bool) -> None:
    click.echo(as_json)


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
    assert CliRunner().invoke(shown, args).stdout == f"{is_json}\n"


def test_another_output_is_refused_with_those_that_are_allowed():
    refused = CliRunner().invoke(shown, ["--output", "xml"])
    assert refused.exit_code == 2
    assert "'table', 'json'" in refused.stderr
