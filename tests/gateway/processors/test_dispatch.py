"""Every request finds its processor, and every one is answered exactly once."""

from __future__ import annotations

import asyncio
import time
from inspect import CORO_CLOSED, getcoroutinestate
from types import SimpleNamespace

import msgspec
import pytest

import ropeway.gateway.processors.all  # noqa: F401 - registers every processor
from ropeway.gateway.config import Config
from ropeway.gateway.node.fair_queueing import Slices
from ropeway.gateway.node.flow import Flow
from ropeway.gateway.node.leadership import NoLeaderError
from ropeway.gateway.node.pending_sends import PendingSends
from ropeway.gateway.processors import dispatch
from ropeway.gateway.processors.context import LATER, Answer, Context
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RequestCode, ResponseCode
from ropeway.gateway.wire.commands.offsets import Offset
from ropeway.gateway.wire.frame import Envelope, FrameReader, decode_envelope
from ropeway.storage.api import LogError, LogUnavailableError, NotReadyError
from tests.remoting import looped, until

CODE = int(RequestCode.GET_MAX_OFFSET)
FIELDS = msgspec.Raw(b'{"topic":"t","queueId":"0"}')


SEND = int(RequestCode.SEND_MESSAGE_V2)


def send_of(number: int, queue_id: int = 0) -> Envelope:
    fields = f'{{"a":"g","b":"t","c":"TBW102","d":"4","e":"{queue_id}","f":"0"'
    more = ',"g":"1","h":"0","i":""}'
    return Envelope(
        SEND, opaque=number, ext_fields=msgspec.Raw((fields + more).encode())
    )


def dispatched(node, peer, envelope: Envelope, body: bytes) -> None:
    """Begin a request that came in a frame."""
    code, opaque = envelope.code, envelope.opaque
    one_way = bool(envelope.flag & ONE_WAY_FLAG)
    asked = Context(node, peer, code, opaque, one_way, body, envelope=envelope)
    asked.since_s = time.monotonic()
    dispatch.begin(asked)


class Peer:
    """A connection that keeps answers."""

    address = "127.0.0.1:1"
    source = SimpleNamespace(address="127.0.0.1")
    forwarded = False
    take_answer = None

    def __init__(self) -> None:
        self.codes: list[int] = []

    def respond(self, *data):
        (frame,) = FrameReader().feed(b"".join(data))
        self.codes.append(decode_envelope(*frame[:2]).code)


class Started(list):
    """Tasks that have been started, also those that have ended."""

    def start(self, work):
        self.append(asyncio.get_running_loop().create_task(work))


class Node:
    """A node as far as dispatch needs it."""

    def __init__(self) -> None:
        self.processors = PROCESSORS
        self.tasks = Started()
        self.leadership = SimpleNamespace(leads=True, is_stale=False, went_on_s=0.0)
        self.forwarder = SimpleNamespace(others={})
        self.source = None
        self.guard = None
        self.pending_sends = PendingSends()
        self.config = Config()
        self.fair_queue = SimpleNamespace(
            is_free=lambda: True, slices=self.slices, keep=lambda *_: None
        )

    def slices(self, *_):
        return Slices(self.fair_queue, Flow())


async def later(result):
    await asyncio.sleep(0)
    if isinstance(result, Exception):
        raise result
    return result


def raising(error: Exception):
    raise error


@pytest.mark.rule(
    "README.md", "A request gets exactly one answer, unless it is one-way."
)
@looped
@pytest.mark.parametrize(
    ("processor", "codes"),
    [
        (lambda *_: Offset(offset=1), [0]),
        (lambda *_: Answer(7), [7]),
        (lambda *_: later(Offset(offset=1)), [0]),
        (lambda *_: later(Answer(7)), [7]),
        (lambda *_: raising(KeyError()), [1]),
        (lambda *_: later(KeyError()), [1]),
        (lambda *_: LATER, []),
        (lambda *_: later(LATER), []),
        # An answer that cannot be encoded is a failure like any other.
        (lambda *_: Answer(fields={"a": "x" * (1 << 24)}), [1]),
        (lambda *_: later(Answer(fields={"a": "x" * (1 << 24)})), [1]),
    ],
)
async def test_whatever_a_processor_does_there_is_one_answer(
    monkeypatch: pytest.MonkeyPatch, processor, codes
):
    monkeypatch.setitem(PROCESSORS, CODE, processor)
    node, peer = Node(), Peer()
    dispatched(node, peer, Envelope(CODE, ext_fields=FIELDS), b"")
    await asyncio.gather(*node.tasks)
    assert peer.codes == codes


def test_fields_that_are_wrong_are_an_answer():
    peer = Peer()
    dispatched(Node(), peer, Envelope(CODE), b"")
    assert peer.codes == [ResponseCode.SYSTEM_ERROR]


def test_an_unknown_request_is_an_answer():
    peer = Peer()
    dispatched(Node(), peer, Envelope(31_337), b"")
    assert peer.codes == [ResponseCode.REQUEST_CODE_NOT_SUPPORTED]


def test_a_body_that_is_too_long_for_its_request_is_an_answer():
    peer, node = Peer(), Node()
    body = bytes(node.config.requests.body_bytes + 1)
    dispatched(node, peer, Envelope(CODE, ext_fields=FIELDS), body)
    assert peer.codes == [ResponseCode.INVALID_PARAMETER]


class Log:
    """A log whose topic is opened as a test says."""

    def __init__(self, outcome: LogError | None, *, hangs: bool) -> None:
        self._outcome = outcome
        self._hangs = hangs
        self.is_open = False
        self.asked: list[tuple[int] | None] = []

    async def ready(self, topic: str, numbers: tuple[int] | None) -> None:
        assert topic == "t"
        self.asked.append(numbers)
        await asyncio.sleep(0)
        if self._hangs:
            await asyncio.Event().wait()
        if self._outcome is not None:
            raise self._outcome
        self.is_open = True


@looped
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("outcome", "hangs", "code"),
    [
        (None, False, ResponseCode.SUCCESS),
        (LogUnavailableError("no"), False, ResponseCode.SERVICE_NOT_AVAILABLE),
        (None, True, ResponseCode.SERVICE_NOT_AVAILABLE),
    ],
    ids=["opens", "cannot be opened", "takes too long"],
)
async def test_a_request_whose_topic_is_shut_waits_until_it_is_open(
    monkeypatch: pytest.MonkeyPatch, at_once, outcome, hangs, code
):
    monkeypatch.setattr(dispatch, "_OPEN_S", 0.01 if hangs else 60)
    node, peer = Node(), Peer()
    node.log = Log(outcome, hangs=hangs)

    def process(*_):
        if node.log.is_open:
            return Offset(offset=1)
        error = NotReadyError("t")
        return raising(error) if at_once else later(error)

    monkeypatch.setitem(PROCESSORS, CODE, process)
    dispatched(node, peer, Envelope(CODE, ext_fields=FIELDS), b"")
    await until(lambda: all(one.done() for one in node.tasks))
    assert peer.codes == [code]


@looped
async def test_a_request_waits_for_its_queue_and_for_all_if_it_needs_more(
    monkeypatch: pytest.MonkeyPatch,
):
    """A topic may have 1,024 queues, and each takes tens of milliseconds."""
    node, peer = Node(), Peer()
    node.log = Log(None, hangs=False)
    shut = [5, 7]

    def process(*_):
        return raising(NotReadyError("t", shut.pop(0))) if shut else Offset(offset=1)

    monkeypatch.setitem(PROCESSORS, CODE, process)
    dispatched(node, peer, Envelope(CODE, ext_fields=FIELDS), b"")
    await until(lambda: all(one.done() for one in node.tasks))
    assert peer.codes == [ResponseCode.SUCCESS]
    assert node.log.asked == [(5,), None]


@looped
async def test_a_send_stays_behind_those_that_wait_for_its_queue(
    monkeypatch: pytest.MonkeyPatch,
):
    node, peer, stored = Node(), Peer(), []
    node.log = Log(None, hangs=False)

    def process(request, context):
        if not node.log.is_open:
            raise NotReadyError("t", 0)
        stored.append(context.opaque)
        return Answer()

    monkeypatch.setitem(PROCESSORS, SEND, process)
    for number in (1, 2):
        dispatched(node, peer, send_of(number), b"x")
    # It is open now, and the two have not been told.
    node.log.is_open = True
    dispatched(node, peer, send_of(3), b"x")
    dispatched(node, peer, send_of(4, queue_id=1), b"x")
    assert stored == [4]
    await until(lambda: all(one.done() for one in node.tasks))
    assert stored == [4, 1, 2, 3]
    assert peer.codes == [ResponseCode.SUCCESS] * 4


@looped
@pytest.mark.parametrize("who", ["us", "nobody"])
async def test_a_request_waits_until_it_is_known_who_leads(
    monkeypatch: pytest.MonkeyPatch, who
):
    async def settle(*, expected):
        await asyncio.sleep(0)
        assert not expected
        if who == "nobody":
            raise NoLeaderError("no node leads the broker")
        node.leadership.leads = True

    monkeypatch.setitem(PROCESSORS, CODE, lambda *_: Offset(offset=1))
    node, peer = Node(), Peer()
    node.leadership = SimpleNamespace(leads=False, settle=settle)
    node.topics = SimpleNamespace(follows=False)
    dispatched(node, peer, Envelope(CODE, ext_fields=FIELDS), b"")
    await until(lambda: all(one.done() for one in node.tasks))
    assert len(peer.codes) == 1
    assert (peer.codes == [0]) == (who == "us")


def test_what_a_node_answers_that_does_not_lead():
    """All else is sent on to the leader: it has the state that they ask about."""
    of_connections = {"HEART_BEAT", "UNREGISTER_CLIENT", "CHECK_CLIENT_CONFIG"}
    of_routes = {
        "GET_ROUTEINFO_BY_TOPIC",
        "GET_BROKER_CLUSTER_INFO",
        "GET_ALL_TOPIC_LIST_FROM_NAMESERVER",
        "GET_TOPICS_BY_CLUSTER",
        "GET_SYSTEM_TOPIC_LIST_FROM_NS",
        "GET_UNIT_TOPIC_LIST",
        "GET_HAS_UNIT_SUB_TOPIC_LIST",
        "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST",
        "GET_ALL_MESSAGE_REQUEST_MODE",
        "GET_NAMESRV_CONFIG",
        "DELETE_TOPIC_IN_NAMESRV",
        "PUT_KV_CONFIG",
        "GET_KV_CONFIG",
        "DELETE_KV_CONFIG",
        "GET_KVLIST_BY_NAMESPACE",
        "WIPE_WRITE_PERM_OF_BROKER",
        "ADD_WRITE_PERM_OF_BROKER",
        "ROPEWAY_REMOVE_BROKER",
        "ROPEWAY_TOPIC_PLACES",
        "ROPEWAY_SET_QUOTA",
        "ROPEWAY_DELETE_QUOTA",
        "ROPEWAY_LIST_QUOTAS",
    }
    of_nodes = {
        "GET_BROKER_RUNTIME_INFO",
        "GET_BROKER_CONFIG",
        "ROPEWAY_FORWARD",
        "ROPEWAY_RELAY",
        "ROPEWAY_ASK",
        "ROPEWAY_NODE_STATUS",
        "ROPEWAY_STEP_BACK",
        "ROPEWAY_EXPLAIN_ACCESS",
        "ROPEWAY_NOTE_RESEND",
    }
    anywhere = {RequestCode(code).name for code in dispatch.ANYWHERE}
    assert anywhere == of_connections | of_routes | of_nodes
    assert {RequestCode(code).name for code in dispatch.READS} == {
        "PULL_MESSAGE",
        "LITE_PULL_MESSAGE",
        "QUERY_MESSAGE",
        "VIEW_MESSAGE_BY_ID",
        "SEARCH_OFFSET_BY_TIMESTAMP",
        "GET_MAX_OFFSET",
        "GET_MIN_OFFSET",
        "GET_EARLIEST_MSG_STORETIME",
    }


@looped
async def test_a_request_that_is_stopped_before_its_turn_leaves_no_coroutine_behind(
    monkeypatch: pytest.MonkeyPatch,
):
    """Before, "coroutine 'heart_beat' was never awaited" was said at a stop."""
    node, result = Node(), later(Offset(offset=1))
    node.fair_queue.is_free = lambda: False
    node.fair_queue.join = lambda *_: None
    monkeypatch.setitem(PROCESSORS, CODE, lambda *_: result)
    dispatched(node, Peer(), Envelope(CODE, opaque=1, ext_fields=FIELDS), b"")
    await asyncio.sleep(0)
    (task,) = node.tasks
    task.cancel()
    await asyncio.wait([task])
    assert getcoroutinestate(result) == CORO_CLOSED
