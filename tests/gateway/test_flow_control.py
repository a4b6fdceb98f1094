"""When a connection pauses, goes on, and reads: flow control without a socket."""

import pytest

from ropeway.gateway.flow_control import FlowControl


class Transport:
    """Notes when it is told to read and when to stop."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def resume_reading(self) -> None:
        self.told.append("resume")

    def pause_reading(self) -> None:
        self.told.append("pause")


def test_so_many_requests_begin_and_half_are_answered_before_it_goes_on():
    control = FlowControl(4)
    control.in_flight = 3
    assert not control.look()
    assert not control.paused
    control.in_flight = 4
    assert not control.look()
    assert control.paused
    control.in_flight = 3
    assert not control.look()
    assert control.paused
    control.in_flight = 2
    assert control.look()
    assert not control.paused
    assert not control.look()


@pytest.mark.parametrize("reason", ["congested", "draining"])
def test_nothing_begins_for_a_client_that_takes_nothing_or_is_to_end(reason: str):
    control = FlowControl(4)
    setattr(control, reason, True)
    assert not control.look()
    assert control.paused
    setattr(control, reason, False)
    assert control.look()


def test_the_transport_is_told_once_to_stop_and_once_to_go_on():
    control, transport = FlowControl(1), Transport()
    control.read(transport, wanted=True)
    control.read(transport, wanted=False)
    control.read(transport, wanted=False)
    control.in_flight += 1
    control.look()
    control.read(transport, wanted=True)
    assert transport.told == ["pause"]
    control.in_flight = 0
    control.look()
    control.read(transport, wanted=True)
    control.read(transport, wanted=True)
    assert transport.told == ["pause", "resume"]
