"""Every method of the service has one function that works on it."""

from __future__ import annotations

import pytest

from ropeway.gateway.grpc.messaging_service import Messaging
from ropeway.gateway.grpc.methods import METHODS, rpc
from ropeway.gateway.grpc.protocol import SERVICE


def test_every_method_of_the_service_is_worked_on():
    names = {one.name for one in SERVICE.methods}
    assert len(names) == 17
    assert Messaging.__module__ == "ropeway.gateway.grpc.messaging_service", (
        "it imports them all"
    )
    # Telemetry goes both ways, and is not one request and its answer.
    assert METHODS.keys() | {"Telemetry"} == names


def test_a_method_is_worked_on_by_one_function():
    with pytest.raises(ValueError, match="QueryRoute"):
        rpc("QueryRoute")(print)
