"""Who waits until it is known who leads is overtaken by nothing of the same client."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from ropeway.gateway.node.leaderless_requests import LeaderlessRequests
from ropeway.gateway.node.leadership import Leadership
from ropeway.gateway.processors.context import Answer
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.wire.frame import FrameReader, decode_envelope, encode_frame
from ropeway.routing.api import Broker
from ropeway.storage.api import NotReadyError
from tests.gateway.processors.test_dispatch import SEND, Node, Peer, dispatched, send_of
from tests.remoting import looped, until


def test_each_goes_on_when_those_before_it_have():
    requests, gone = LeaderlessRequests(), []
    first, second, third = (requests.take("a") for _ in range(3))
    other = requests.take("b")
    requests.end("a", second, lambda: gone.append(2))
    requests.end("b", other, lambda: gone.append("other"))
    assert gone == ["other"]
    # While one goes on, those behind it still wait.
    requests.end("a", first, lambda: gone.append("a" in requests.waiting))
    assert gone == ["other", True, 2]
    requests.end("a", third, lambda: gone.append(3))
    assert gone == ["other", True, 2, 3]
    assert not requests.waiting


class Routes:
    """Who is to lead, as the test says."""

    def __init__(self) -> None:
        self.brokers = {}
        self.changed = None

    def watch_brokers(self, changed) -> None:
        self.changed = changed

    def choose(self, name: str) -> None:
        address = ("127.0.0.1:1",)
        chosen = Broker(name="b", node=name, cluster="c", addresses=address, pid=1)
        self.brokers = {"b": (chosen,)}
        self.changed("b")


@looped
@pytest.mark.parametrize("who", ["us", "them"])
async def test_sends_that_wait_for_a_leader_are_not_overtaken_when_there_is_one(
    monkeypatch: pytest.MonkeyPatch, who
):
    """Who waits hears of it some passes of the loop later than the node itself."""
    begun = []

    def process(_request, context):
        begun.append(context.opaque)
        return Answer()

    async def forward(_address, frame, *_, **__):
        envelope = decode_envelope(*next(iter(FrameReader().feed(frame)))[:2])
        begun.append(envelope.opaque)
        return encode_frame(0, envelope.opaque, flag=1)

    monkeypatch.setitem(PROCESSORS, SEND, process)
    node, peer, other = Node(), Peer(), Peer()
    other.address, peer.version, other.version = "127.0.0.1:2", 1, 1
    routes = Routes()
    node.leadership = Leadership("b", "us", routes, [])
    node.leadership.contest()
    node.forwarder.forward = forward
    node.topics = SimpleNamespace(follows=False)
    for number in (1, 2):
        dispatched(node, peer, send_of(number), b"x")
    await asyncio.sleep(0)
    routes.choose(who)
    for _ in range(100 if who == "us" else 0):
        if node.leadership.leads:
            break
        await asyncio.sleep(0)
    for number in (3, 4):
        dispatched(node, peer, send_of(number), b"x")
    dispatched(node, other, send_of(5), b"x")
    await until(lambda: len(begun) == 5 and not node.pending_sends.leaderless.waiting)
    # Another client's need not wait for them.
    assert who == "them" or begun[0] == 5
    assert [one for one in begun if one != 5] == [1, 2, 3, 4]
    assert (peer.codes, other.codes) == ([0] * 4, [0])
    await node.leadership.close()


class Log:
    """A log whose queues are ready when the test says so."""

    def __init__(self) -> None:
        self.is_open = False
        self.gate = asyncio.Event()

    async def ready(self, _topic, _numbers) -> None:
        await self.gate.wait()


@looped
async def test_sends_that_waited_for_a_queue_and_then_for_a_leader_keep_their_order(
    monkeypatch: pytest.MonkeyPatch,
):
    """Found by seed 12000227 of the simulator on Pulsar: they were stored backwards."""
    stored, leads = [], asyncio.Event()

    def process(_request, context):
        if not node.log.is_open:
            raise NotReadyError("t", 0)
        stored.append(context.opaque)
        return Answer()

    async def settle(*, expected):
        assert not expected
        await leads.wait()

    monkeypatch.setitem(PROCESSORS, SEND, process)
    node, peer = Node(), Peer()
    node.log, node.leadership.settle = Log(), settle
    for number in (1, 2, 3):
        dispatched(node, peer, send_of(number), b"x")
    node.leadership.leads = False
    node.log.gate.set()
    pending = node.pending_sends
    await until(lambda: not pending.waiting and pending.leaderless.waiting)
    node.log.gate.clear()
    node.leadership.leads = True
    leads.set()
    await until(lambda: len(pending.waiting.get(("t", 0), ())) == 3)
    node.log.is_open = True
    node.log.gate.set()
    await until(lambda: len(peer.codes) == 3)
    assert stored == [1, 2, 3]
