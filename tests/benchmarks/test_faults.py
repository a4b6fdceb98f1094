"""The soak of faults notices whatever may not be, and draws every kind of fault."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from benchmarks.faults.__main__ import drawn
from benchmarks.faults.kinds import KINDS
from benchmarks.faults.ledger import Ledger, longest
from benchmarks.faults.proxy import Proxy
from ropeway.gateway.wire import message_id
from ropeway.gateway.wire.commands.send import SendReply
from tests.remoting import looped, until
from tests.system.process import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable

PARTITION = 3


def acknowledge(ledger: Ledger, body: str, offset: int) -> None:
    ledger.begin(body)
    number = message_id.pack(PARTITION, offset)
    ledger.acknowledge(
        body,
        SendReply(
            msg_id=f"7F00000100002F0A{number:016X}", queue_id=0, queue_offset=offset
        ),
    )


def lost(ledger: Ledger) -> None:
    acknowledge(ledger, "3.0.0", 0)
    acknowledge(ledger, "3.1.0", 0)
    ledger.take(0, "3.0.0")


def twice(ledger: Ledger) -> None:
    acknowledge(ledger, "3.0.0", 0)
    ledger.take(0, "3.0.0")
    ledger.take(1, "3.0.0")


def late(ledger: Ledger) -> None:
    for body in ("3.0.0", "3.0.1"):
        ledger.begin(body)
    ledger.take(0, "3.0.1")
    ledger.take(1, "3.0.0")


def refused(ledger: Ledger) -> None:
    ledger.begin("3.0.0")
    ledger.refuse("3.0.0", "busy")
    ledger.take(0, "3.0.0")


def refused_after(ledger: Ledger) -> None:
    ledger.begin("3.0.0")
    ledger.take(0, "3.0.0")
    ledger.refuse("3.0.0", "busy")


def elsewhere(ledger: Ledger) -> None:
    acknowledge(ledger, "3.0.0", 1)
    ledger.take(0, "3.0.0")


def gap(ledger: Ledger) -> None:
    ledger.begin("3.0.0")
    ledger.take(1, "3.0.0")


def strange(ledger: Ledger) -> None:
    ledger.take(0, "3.0.0")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lost, "is lost"),
        (twice, "is at 1 and at 0"),
        (late, "is behind"),
        (refused, "was refused"),
        (refused_after, "was refused: busy"),
        (elsewhere, "acknowledged at 1"),
        (gap, "expected 0"),
        (strange, "was never sent"),
    ],
)
def test_what_may_not_be_is_reported(wrong: Callable[[Ledger], None], told: str):
    found: list[str] = []
    ledger = Ledger("soak", PARTITION, found.append)
    wrong(ledger)
    ledger.check_missing()
    assert any(told in one for one in found), found


def test_what_may_be_is_not_reported():
    found: list[str] = []
    ledger = Ledger("soak", PARTITION, found.append)
    acknowledge(ledger, "3.0.0", 0)
    for body in ("3.1.0", "3.1.1"):
        ledger.begin(body)
        ledger.doubt()
    ledger.begin("3.1.2")
    ledger.refuse("3.1.2", "busy")
    ledger.take(0, "3.0.0")
    ledger.take(1, "3.1.1")
    acknowledge(ledger, "3.2.0", 2)
    ledger.begin("3.3.0")
    ledger.take(2, "3.2.0")
    ledger.take(3, "3.3.0")
    acknowledge(ledger, "3.3.0", 3)
    ledger.check_missing()
    assert found == []
    assert ledger.counts == {
        "acknowledged": 3,
        "refused": 1,
        "unknown": 2,
        "unknown, stored": 1,
    }


def test_a_gap_is_the_longest_time_between_answers_that_touches_the_fault():
    answered_s = [0.0, 4.0, 4.5, 7.5, 8.0, 20.0]
    assert longest(answered_s, 4.6, 7.8) == 3.0
    assert longest(answered_s, 1.0, 4.2) == 4.0
    assert longest([], 1.0, 2.0) == 0.0


def test_each_kind_comes_and_a_seed_repeats_them():
    kinds = list(KINDS)
    assert set(drawn(kinds, 200, 7)) == set(kinds)
    assert drawn(kinds, 200, 7) == drawn(kinds, 200, 7) != drawn(kinds, 200, 8)
    assert len(drawn(kinds, 200, 7)) == 200
    assert len(kinds) >= 12


@looped
async def test_connections_through_the_proxy_are_cut_stranded_and_held():
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(100):
                writer.write(data)
        writer.close()
        ended.append(1)

    ended: list[int] = []
    (port, target) = free_ports(2)
    server = await asyncio.start_server(echo, "127.0.0.1", target)
    proxy = Proxy(port, target)
    await proxy.start()
    first = await asyncio.open_connection("127.0.0.1", port)
    first[1].write(b"a")
    assert await first[0].readexactly(1) == b"a"
    assert proxy.strand() == 1
    first[1].write(b"b")
    second = await asyncio.open_connection("127.0.0.1", port)
    second[1].write(b"c")
    assert await second[0].readexactly(1) == b"c"
    assert not first[0]._buffer
    proxy.hold()
    second[1].write(b"d")
    proxy.release()
    assert await second[0].readexactly(1) == b"d"
    assert proxy.cut() == 2
    with pytest.raises(ConnectionResetError):
        await second[0].read(1)
    for _, writer in (first, second):
        writer.close()
    await proxy.stop()
    server.close()
    await until(lambda: len(ended) == 2)
