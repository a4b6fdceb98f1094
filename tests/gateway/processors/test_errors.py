"""The one table from errors to response codes."""

import ropeway.storage.api
from ropeway.gateway.processors.errors import CODES, code_of
from ropeway.gateway.wire import errors
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.routing.api import RouteStoreUnavailableError
from ropeway.storage.api import (
    LogError,
    LogForeignError,
    LogInUseError,
    LogUnavailableError,
)


def test_an_error_has_the_code_of_its_nearest_kind():
    assert code_of(LogUnavailableError("x")) == ResponseCode.SERVICE_NOT_AVAILABLE
    assert (
        code_of(RouteStoreUnavailableError("x")) == ResponseCode.SERVICE_NOT_AVAILABLE
    )


def test_an_error_that_nobody_foresaw_has_none():
    assert code_of(KeyError("x")) is None
    assert code_of(OSError("x")) is None


def test_every_error_that_a_request_can_meet_stands_in_the_table():
    found = {
        kind
        for module in (errors, ropeway.storage.api)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Exception)
    }
    # Only their kinds are raised, or they close the connection, or come at start.
    never = {errors.WireError, errors.FrameError}
    never |= {LogError, LogForeignError, LogInUseError}
    assert found - never <= set(CODES)


def test_nothing_that_failed_is_a_success():
    assert ResponseCode.SUCCESS not in CODES.values()
