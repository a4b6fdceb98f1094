"""Floods end their connection, and what is useful forgets them."""

from __future__ import annotations

import pytest

from ropeway.gateway.http2 import floods
from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode
from ropeway.gateway.http2.floods import MOST, Flood


def test_so_many_at_a_time_and_no_more(monkeypatch):
    now_s = 100.0
    monkeypatch.setattr(floods.time, "monotonic", lambda: now_s)
    flood = Flood("pings")
    for _ in range(999):
        flood.count()
    with pytest.raises(ConnectionFault) as fault:
        flood.count()
    assert fault.value.code is ErrorCode.ENHANCE_YOUR_CALM
    assert fault.value.reason == "too many pings; allowed: 1000, and 33 a second"


def test_time_and_use_allow_more(monkeypatch):
    now_s = 100.0
    monkeypatch.setattr(floods.time, "monotonic", lambda: now_s)
    flood = Flood("pings")
    for _ in range(999):
        flood.count()
    now_s = 110.0
    for _ in range(330):
        flood.count()
    flood.left = MOST
    for _ in range(999):
        flood.count()
    with pytest.raises(ConnectionFault):
        flood.count()
