"""Sessions by client and connection, and what they are told."""

from __future__ import annotations

import gc
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.acl.api import Channel, Principal, Source
from ropeway.gateway.grpc.protocol import TelemetryCommand
from ropeway.gateway.grpc.sessions import STREAM_BYTES, Session, Sessions
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.request_limits import CreationsConfig
from tests.gateway.grpc.thin import create, producer, serving
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

NODE: Any = SimpleNamespace()
MOST_CPU_S = 5
"""With a look at all others it took 20 times as much."""


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


def test_what_clients_of_one_user_take_is_bounded():
    """Before, each stream could keep a MiB of settings, four times over."""
    sessions = Sessions(most_bytes=2 * STREAM_BYTES + 4000)
    one, two, other = session("a", 1), session("b", 2), session("c", 3)
    other.principal = Principal("bob", "users")
    sessions.hold(one, 600)
    sessions.add(one)
    sessions.hold(two, 0)
    for _ in range(2):
        with pytest.raises(RefusedError, match="gRPC clients of"):
            sessions.hold(two, 401)
        sessions.hold(other, 1000)
    # What a client says again takes the place of what it said.
    sessions.hold(one, 500)
    sessions.hold(two, 500)
    with pytest.raises(RefusedError, match="session_bytes"):
        sessions.hold(session("d", 4), 0)
    sessions.remove(one)
    sessions.hold(session("d", 4), 0)


def test_sessions_leave_without_a_look_at_the_others():
    """Before, 4,000 that left together took half a second of the loop."""
    sessions = Sessions()
    all_ = [session(f"client-{number}", number) for number in range(20_000)]
    for one in all_:
        sessions.add(one)
    began_s = time.process_time()
    for one in all_:
        sessions.remove(one)
    assert time.process_time() - began_s < MOST_CPU_S
    assert not list(sessions)


def test_no_look_for_cycles_is_at_thousands_of_sessions():
    """As others ended meanwhile Python looked late, at 130,000 containers at once."""
    sessions, before = Sessions(), gc.get_stats()[1]["collections"]
    for number in range(2000):
        sessions.hold(session(f"client-{number}", number), 0)
    assert gc.get_stats()[1]["collections"] - before >= 20


def refusals() -> list[RefusedError]:
    """All that there are in this process, also of other tests."""
    return [one for one in gc.get_objects() if isinstance(one, RefusedError)]


@looped
async def test_nothing_stays_of_a_stream_that_is_refused(tmp_path: Path):
    """Its error had all that came, and itself, until somebody looked for cycles."""
    bounds = CreationsConfig(session_bytes=STREAM_BYTES + 1000)
    async with serving(tmp_path, creations=bounds) as (app, client):
        await create(app, "orders")
        wanted = producer("orders")
        wanted.user_agent.hostname = "x" * 1000
        gc.collect()
        before = refusals()
        gc.disable()
        try:
            _, why = await client.refused(wanted)
            assert "TOO_MANY_REQUESTS" in why
            # It goes with the last step of who answered, which comes behind the answer.
            await until(
                lambda: (
                    not any(
                        all(one is not other for other in before) for one in refusals()
                    )
                )
            )
        finally:
            gc.enable()
