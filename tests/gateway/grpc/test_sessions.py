"""Sessions by client and connection, and what they are told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ropeway.acl.api import Channel, Principal, Source
from ropeway.gateway.grpc.protocol import TelemetryCommand
from ropeway.gateway.grpc.sessions import Session, Sessions

NODE: Any = SimpleNamespace()


def session(client_id: str, port: int) -> Session:
    listener = SimpleNamespace(packed_advertised=b"", id_prefix=b"", advertised="")
    origin: Any = SimpleNamespace(
        address=f"127.0.0.1:{port}",
        source=Source("127.0.0.1", Channel.GRPC),
        packed_address=b"",
        listener=listener,
        closed=False,
    )
    return Session(NODE, origin, "JAVA", client_id)


def test_a_session_is_found_by_its_connection_and_else_by_its_client():
    sessions = Sessions()
    one, two = session("a", 1), session("a", 2)
    sessions.add(one)
    sessions.add(two)
    assert sessions.find("a", one.address, None) is one
    assert sessions.find("a", two.address, None) is two
    assert sessions.find("a", "127.0.0.1:3", None) is two
    assert sessions.find("b", one.address, None) is None
    sessions.remove(two)
    assert sessions.find("a", two.address, None) is one
    sessions.remove(one)
    assert sessions.find("a", one.address, None) is None
    assert not list(sessions)


def test_each_principal_finds_its_own_sessions():
    sessions = Sessions()
    alice, bob = Principal("alice", "users"), Principal("bob", "users")
    one, two = session("a", 1), session("a", 1)
    one.principal, two.principal = alice, bob
    sessions.add(one)
    assert sessions.find("a", one.address, bob) is None
    assert sessions.find("a", one.address, None) is None
    sessions.add(two)
    assert sessions.find("a", one.address, alice) is one
    assert sessions.find("a", "127.0.0.1:3", alice) is one
    sessions.remove(one)
    assert sessions.find("a", one.address, alice) is None
    assert sessions.find("a", one.address, bob) is two


def test_a_later_session_of_the_same_connection_stays():
    sessions = Sessions()
    before, after = session("a", 1), session("a", 1)
    assert sessions.add(before) is None
    assert sessions.add(after) is before
    sessions.remove(before)
    assert sessions.find("a", before.address, None) is after


def test_a_client_that_takes_nothing_keeps_no_more_than_so_much():
    one = session("a", 1)
    for _ in range(5000):
        one.tell(TelemetryCommand())
    assert one.commands.qsize() == 1024
    one.close()
    told = [one.commands.get_nowait() for _ in range(one.commands.qsize())]
    assert told[-1] is None
    one.close()
    one.tell(TelemetryCommand())
    assert one.commands.empty()
