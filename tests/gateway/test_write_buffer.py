"""Answers gather in a tick and leave together, in order, and nothing after the end."""

from __future__ import annotations

from ropeway.gateway.write_buffer import Outbox, WriteBuffer


class Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def writelines(self, data: list[bytes]) -> None:
        self.written.extend(data)


class Counting:
    """An outbox that counts who wants to be flushed."""

    def __init__(self) -> None:
        self.added = 0

    def expect(self, _: object) -> None:
        self.added += 1


def made() -> tuple[WriteBuffer, Transport, Counting]:
    transport, outbox = Transport(), Counting()
    outgoing = WriteBuffer(outbox)
    outgoing._transport = transport
    return outgoing, transport, outbox


def test_small_answers_of_a_tick_leave_in_one_write():
    outgoing, transport, outbox = made()
    outgoing.push(b"a", b"b")
    outgoing.push(b"c")
    assert (transport.written, outbox.added) == ([], 1)
    outgoing.flush()
    outgoing.flush()
    assert transport.written == [b"abc"]


def test_large_answers_are_not_copied_and_do_not_wait_for_the_tick():
    outgoing, transport, _ = made()
    large = bytes(1 << 20)
    outgoing.push(b"a", large)
    assert transport.written == [b"a", large]
    assert transport.written[1] is large


def test_nothing_is_sent_to_who_has_gone():
    outgoing, transport, _ = made()
    outgoing.push(b"a")
    outgoing.closed = True
    outgoing.push(b"b")
    outgoing.flush()
    assert transport.written == []


class Flushed:
    """A connection that counts its flushes."""

    def __init__(self) -> None:
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1


class Loop:
    """A loop whose ticks the test makes."""

    def __init__(self) -> None:
        self.soon: list = []

    def call_soon(self, call):
        self.soon.append(call)


def test_answers_are_written_once_a_tick():
    loop = Loop()
    outbox = Outbox(loop)
    one, two = Flushed(), Flushed()
    outbox.expect(one)
    outbox.expect(two)
    assert len(loop.soon) == 1
    loop.soon.pop()()
    assert (one.flushes, two.flushes) == (1, 1)
    outbox.expect(one)
    assert len(loop.soon) == 1


def test_a_tick_that_expects_answers_writes_what_comes_before_its_end():
    loop = Loop()
    outbox = Outbox(loop)
    outbox.expect()
    outbox.expect()
    connection = Flushed()
    outbox.expect(connection)
    assert len(loop.soon) == 1
    loop.soon.pop()()
    assert connection.flushes == 1
    outbox.expect()
    loop.soon.pop()()
    assert connection.flushes == 1
