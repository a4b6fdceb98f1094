"""What commands have in common that are clients."""

import asyncio
import signal

import pytest

from ropeway.client import RemotingError
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.failures import CannotError, MisusedError
from ropeway.gateway.cli.target import Target

NODE = Target(name_server="127.0.0.1:1")


async def failing(error: Exception) -> None:
    raise error


def test_what_the_work_returns_is_given_back():
    assert run(NODE, asyncio.sleep(0, "done")) == "done"


def test_bad_arguments_and_failed_requests_differ():
    with pytest.raises(MisusedError, match=r"^bad$"):
        run(NODE, failing(ValueError("bad")))
    with pytest.raises(CannotError, match=r"^gone$"):
        run(NODE, failing(RemotingError("gone")))


def test_a_closed_pipe_ends_the_command_as_it_does_others():
    async def handler() -> object:
        return signal.getsignal(signal.SIGPIPE)

    before = signal.getsignal(signal.SIGPIPE)
    assert run(NODE, handler()) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGPIPE) == before
