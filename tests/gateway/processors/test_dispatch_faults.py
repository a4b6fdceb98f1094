"""Whatever fails on a request's way to its answer, there is one answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from ropeway.gateway.node.fair_queueing import Slices
from ropeway.gateway.node.flow import Flow
from ropeway.gateway.processors import context
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.frame import Envelope
from ropeway.storage.api import NotReadyError
from tests.gateway.processors.test_dispatch import (
    CODE,
    FIELDS,
    Node,
    Peer,
    dispatched,
    later,
)
from tests.remoting import looped, until


class BrokenError(Exception):
    """Nobody foresaw it."""


async def broken(*_, **__):
    await asyncio.sleep(0)
    raise BrokenError


async def ready(*_):
    """A topic that is open."""


def not_ready(*_):
    raise NotReadyError("t")


def pauses_no_more(node):
    """While others wait, whoever pauses fails."""
    fair_queue = SimpleNamespace(is_free=lambda: False, join=raising_broken)
    node.fair_queue.slices = lambda *_: Slices(fair_queue, Flow())
    node.log = SimpleNamespace(ready=ready)


def raising_broken(*_):
    raise BrokenError


def led_elsewhere(node, address="127.0.0.1:9"):
    async def settle(**_):
        return SimpleNamespace(name="b", node="n", addresses=[address][: bool(address)])

    node.leadership = SimpleNamespace(leads=False, settle=settle)
    node.topics = SimpleNamespace(follows=False)
    node.forwarder.forward = broken


def nobody_knows_who_leads(node):
    led_elsewhere(node)
    node.leadership.settle = broken


def leader_has_no_address(node):
    led_elsewhere(node, "")


def leadership_is_broken(node):
    node.leadership = SimpleNamespace()


def is_follower(node):
    led_elsewhere(node)
    node.topics.follows = True


@pytest.mark.rule(
    "README.md", "A request gets exactly one answer, unless it is one-way."
)
@looped
@pytest.mark.parametrize(
    ("fault", "processor"),
    [
        (pauses_no_more, not_ready),
        (pauses_no_more, lambda *_: later(NotReadyError("t"))),
        (led_elsewhere, None),
        (nobody_knows_who_leads, None),
        (leader_has_no_address, None),
        (leadership_is_broken, None),
        (is_follower, raising_broken),
        (is_follower, lambda *_: later(BrokenError())),
    ],
)
async def test_wherever_a_request_fails_there_is_one_answer(
    monkeypatch: pytest.MonkeyPatch, fault, processor
):
    monkeypatch.setitem(PROCESSORS, CODE, processor or not_ready)
    node, peer = Node(), Peer()
    fault(node)
    dispatched(node, peer, Envelope(CODE, ext_fields=FIELDS), b"")
    await until(lambda: all(one.done() for one in node.tasks))
    assert peer.codes == [ResponseCode.SYSTEM_ERROR]
    assert not [one for one in node.tasks if one.exception() is not None]


@looped
async def test_who_waits_for_what_is_given_up_is_answered(
    monkeypatch: pytest.MonkeyPatch,
):
    shared = asyncio.get_running_loop().create_future()

    async def process(*_):
        await shared

    monkeypatch.setitem(PROCESSORS, CODE, process)
    node, peer = Node(), Peer()
    dispatched(node, peer, Envelope(CODE, ext_fields=FIELDS), b"")
    await asyncio.sleep(0)
    shared.cancel()
    await until(lambda: all(one.done() for one in node.tasks))
    assert peer.codes == [ResponseCode.SYSTEM_ERROR]


@looped
async def test_whose_task_is_cancelled_is_answered_by_who_does_that(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(PROCESSORS, CODE, lambda *_: asyncio.Event().wait())
    node, peer = Node(), Peer()
    dispatched(node, peer, Envelope(CODE, ext_fields=FIELDS), b"")
    await asyncio.sleep(0)
    node.tasks[0].cancel()
    await until(node.tasks[0].done)
    assert peer.codes == []


def test_a_log_that_cannot_be_written_leaves_nobody_unanswered(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(PROCESSORS, CODE, raising_broken)

    def full(*_, **__):
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(context.log, "error", full)
    peer = Peer()
    with pytest.raises(OSError, match="no space"):
        dispatched(Node(), peer, Envelope(CODE, ext_fields=FIELDS), b"")
    assert peer.codes == [ResponseCode.SYSTEM_ERROR]
