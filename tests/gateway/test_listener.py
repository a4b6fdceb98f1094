"""A listener's addresses, and who of its connections is slow or idle."""

from __future__ import annotations

import socket
from socket import AF_INET, AF_INET6, SOCK_STREAM
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import Config, ListenerConfig
from ropeway.gateway.errors import ServerError
from ropeway.gateway.listener import Listener
from ropeway.gateway.unauthenticated import Unauthenticated
from tests.remoting import looped

if TYPE_CHECKING:
    from collections.abc import Iterator


class Connection:
    """A connection that notes what is done to it."""

    address = "127.0.0.1:1"
    share = None

    def __init__(self) -> None:
        self.active = True
        self.done: list[str] = []

    def abort(self):
        self.done.append("abort")

    def close(self):
        self.done.append("close")

    def flush(self):
        self.done.append("flush")


def unauthenticated() -> Unauthenticated:
    return Unauthenticated(Config(), is_guarded=False)


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock


@pytest.mark.parametrize(
    ("host", "port", "shown", "packed"),
    [
        (None, 5, "127.0.0.1:5", "7f00000100000005"),
        ("10.0.0.9", 5, "10.0.0.9:5", "0a00000900000005"),
        ("localhost", 5, "localhost:5", "7f00000100000005"),
        ("::1", 5, "[::1]:5", "00" * 15 + "0100000005"),
    ],
)
def test_what_clients_are_told_and_what_ids_carry(
    bound: socket.socket, host, port, shown, packed
):
    config = ListenerConfig(advertised_host=host, advertised_port=port)
    listener = Listener(config, bound, 9, unauthenticated())
    assert listener.advertised == shown
    assert listener.packed_advertised.hex() == packed
    assert listener.id_prefix == packed.upper().encode()


@pytest.mark.parametrize(
    ("addresses", "packed"),
    [
        (["2001:db8::1"], "20010db8" + "00" * 11 + "0100000005"),
        (["2001:db8::1", "10.0.0.9", "10.0.0.8"], "0a00000900000005"),
    ],
)
def test_ids_carry_ipv6_where_the_advertised_name_has_nothing_else(
    bound: socket.socket, monkeypatch: pytest.MonkeyPatch, addresses, packed
):
    """The machine's own names have IPv4; in a cluster of IPv6 alone none does."""

    def found(_host: str, port: None, **_: object) -> list[object]:
        assert port is None
        return [
            (AF_INET6 if ":" in one else AF_INET, SOCK_STREAM, 6, "", (one, 0))
            for one in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    config = ListenerConfig(advertised_host="mq.example.com", advertised_port=5)
    listener = Listener(config, bound, 9, unauthenticated())
    assert listener.packed_advertised.hex() == packed


def test_its_own_address_is_told_where_no_other_is_given(bound: socket.socket):
    port = bound.getsockname()[1]
    assert (
        Listener(ListenerConfig(), bound, 9, unauthenticated()).advertised
        == f"127.0.0.1:{port}"
    )


def test_nobody_can_connect_to_every_address(bound: socket.socket):
    with pytest.raises(ServerError, match="needs advertised_host"):
        Listener(ListenerConfig(advertised_host="0.0.0.0"), bound, 9, unauthenticated())


@looped
async def test_only_who_stays_behind_is_slow():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        listener = Listener(ListenerConfig(), sock, 9, unauthenticated())
        behind, recovered, again = Connection(), Connection(), Connection()
        for connection in (behind, recovered, again):
            listener.slow(connection)
        listener.caught_up(recovered)
        listener.caught_up(again)
        listener.close_slow(-1)
        assert [one.done for one in (behind, recovered, again)] == [["abort"], [], []]
        listener.slow(again)
        listener.close_slow(3600)
        assert again.done == []
        listener.left(behind)
        listener.left(again)
        assert not listener._slow


@looped
async def test_of_too_many_slow_ones_the_slowest_is_cut_off():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        listener = Listener(ListenerConfig(), sock, 2, unauthenticated())
        slowest, recovered, third, fourth = (Connection() for _ in range(4))
        for connection in (slowest, recovered):
            listener.slow(connection)
        listener.caught_up(recovered)
        listener.slow(third)
        assert slowest.done == []
        listener.slow(fourth)
        listener.left(slowest)
        assert slowest.done == ["abort"]
        assert [recovered.done, third.done, fourth.done] == [[], [], []]


def test_who_is_silent_for_a_whole_round_is_idle(bound: socket.socket):
    listener = Listener(ListenerConfig(), bound, 9, unauthenticated())
    silent, lively = Connection(), Connection()
    listener.joined(silent)
    listener.joined(lively)
    listener.close_idle()
    assert (silent.done, lively.done) == ([], [])
    lively.active = True
    listener.close_idle()
    assert (silent.done, lively.done) == (["close"], [])
