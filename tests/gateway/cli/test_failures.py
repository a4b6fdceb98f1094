"""Errors become one line with the right exit code."""

import errno

import click
import pytest

from ropeway.client import ConnectionFailedError, RemotingError
from ropeway.gateway.cli.failures import (
    CannotError,
    MisusedError,
    UnreachableError,
    reported,
)
from ropeway.gateway.config import ConfigError, PackageMissingError
from ropeway.gateway.errors import ServerError
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogDamagedError


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        (ConfigError("why"), MisusedError, 2),
        (PackageMissingError("why"), CannotError, 1),
        (LogDamagedError("why"), CannotError, 1),
        (RouteError("why"), CannotError, 1),
        (ServerError("why"), CannotError, 1),
        (RemotingError("why"), CannotError, 1),
        (ConnectionFailedError("why", ""), UnreachableError, 3),
    ],
)
def test_what_can_go_wrong_is_one_line(raised, kind, code):
    with pytest.raises(kind, match=r"^why(: )?$") as caught, reported():
        raise raised
    assert isinstance(caught.value, click.ClickException)
    assert caught.value.exit_code == code


def test_errors_of_the_system_name_the_file():
    with (
        pytest.raises(CannotError, match=r"^here: No space left on device$"),
        reported(),
    ):
        raise OSError(errno.ENOSPC, "No space left on device", "here")
    with pytest.raises(CannotError, match=r"^Broken pipe$"), reported():
        raise OSError(errno.EPIPE, "Broken pipe")


def test_a_bug_stays_visible():
    with pytest.raises(KeyError), reported():
        raise KeyError("bug")
