"""Listening on every address."""

import socket

import pytest

from ropeway.gateway import addresses
from ropeway.gateway.addresses import is_everywhere, outgoing
from ropeway.gateway.config import ConfigError, ListenerConfig


@pytest.mark.parametrize(
    ("host", "advertised", "expected"),
    [
        ("0.0.0.0", None, True),
        ("::", None, True),
        ("0.0.0.0", "mq.example.com", False),
        ("127.0.0.1", None, False),
        ("localhost", None, False),
    ],
)
def test_every_address_without_an_advertised_one_is_noticed(host, advertised, expected):
    assert is_everywhere(ListenerConfig(host, 1, advertised)) is expected


@pytest.mark.parametrize(
    ("family", "host", "way"),
    [(socket.AF_INET, "0.0.0.0", "127.0.0.1"), (socket.AF_INET6, "::", "::1")],
)
def test_clients_are_told_the_address_on_the_way_out(monkeypatch, family, host, way):
    monkeypatch.setitem(addresses._ELSEWHERE, family, way)
    assert outgoing(host) == way


def test_without_a_way_out_the_address_has_to_be_given(monkeypatch):
    # No socket may go there without asking for broadcasting first.
    monkeypatch.setitem(addresses._ELSEWHERE, socket.AF_INET, "255.255.255.255")
    with pytest.raises(ConfigError, match="--listen HOST:PORT=ADVERTISED_HOST:PORT"):
        outgoing("0.0.0.0")
