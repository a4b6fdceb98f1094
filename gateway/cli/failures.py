"""Errors of commands: one clear line and an exit code."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ropeway.client import ConnectionFailedError, RemotingError
from ropeway.client.diagnosis import Reason
from ropeway.common.reasons import reason_at
from ropeway.gateway.config import ConfigError, PackageMissingError
from ropeway.gateway.errors import ServerError, WorkerError
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogError, LogForeignError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.client.diagnosis import Diagnosis


class CannotError(click.ClickException):
    """Something could not be done: exit code 1."""


class MisusedError(click.ClickException):
    """What was asked for makes no sense: exit code 2, as click has it for options."""

    exit_code = 2


class UnreachableError(click.ClickException):
    """Nobody answers, so it may or may not have been done: exit code 3."""

    exit_code = 3


class RefusedError(click.ClickException):
    """Who asks may not do it: exit code 6."""

    exit_code = 6


class TlsFailedError(click.ClickException):
    """Client and server do not agree on TLS; nothing was done: exit code 7."""

    exit_code = 7


class ForeignError(click.ClickException):
    """What is in Pulsar is another cluster's, or lost; nothing changed: exit code 5."""

    exit_code = 5


class UnwellError(click.ClickException):
    """What was looked at has a problem, which was printed: exit code 4."""

    exit_code = 4


@contextmanager
def reported() -> Iterator[None]:
    """Turn what can go wrong into one line for the user."""
    try:
        yield
    except PackageMissingError as error:
        raise CannotError(str(error)) from error
    except ConfigError as error:
        raise MisusedError(str(error)) from error
    except ConnectionFailedError as error:
        raise UnreachableError(str(error)) from error
    except LogForeignError as error:
        raise ForeignError(str(error)) from error
    except (LogError, RouteError, ServerError, RemotingError, WorkerError) as error:
        raise CannotError(str(error)) from error
    except OSError as error:
        raise CannotError(reason_at(error)) from error


def told(found: Diagnosis) -> click.ClickException:
    """The error of a diagnosis: one line with what to do."""
    line = f"{found.address}: {found.text}; {found.advice}"
    if found.reason is Reason.NOT_ALLOWED:
        return RefusedError(line)
    return TlsFailedError(line) if found.is_of_access else UnreachableError(line)
