"""A flow: large requests have every other turn, however many of them wait."""

from __future__ import annotations

from ropeway.gateway.node.flow import Flow


class Asking:
    """A connection that waits."""

    def __init__(self, flow: Flow, *, has_large: bool) -> None:
        self.flow, self.has_large = flow, has_large
        flow.add(self)

    def take_turn(self, _now: float, _until: float) -> int:
        return 0

    def close(self) -> None:
        """Nothing to end."""


def test_who_asks_for_little_waits_for_one_large_request_and_not_for_all() -> None:
    flow = Flow()
    large = [Asking(flow, has_large=True) for _ in range(4)]
    first = flow.next()
    little = [Asking(flow, has_large=False) for _ in range(2)]
    order = [first, *(flow.next() for _ in range(5))]
    assert order == [large[0], little[0], large[1], little[1], large[2], large[3]]
    assert not flow.waits


def test_large_requests_have_turns_though_small_ones_never_end() -> None:
    flow = Flow()
    for _ in range(4):
        Asking(flow, has_large=False)
    large = Asking(flow, has_large=True)
    assert large in {flow.next(), flow.next()}
    assert flow.waits
