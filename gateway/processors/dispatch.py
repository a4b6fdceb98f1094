"""Finds the processor of a request and sees to it that every request is answered.

Most requests are for a broker, and only the node that leads it works on them; what
comes to another node is sent on to that one, once. Reads of messages are answered by
every node that follows the broker's topics; what it cannot answer it sends on as well.
Where a queue is not open yet, the request waits until it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from ropeway.common.eager import begin as begin_eagerly
from ropeway.gateway.node.pending_sends import PendingSend
from ropeway.gateway.node.sql import NotCompiledError, compile_later
from ropeway.gateway.processors import stale
from ropeway.gateway.processors.admission import admit
from ropeway.gateway.processors.at_source import ASKED_THERE, ask_there, is_of_source
from ropeway.gateway.processors.context import (
    LATER,
    Answer,
    Context,
    Later,
    NotPreparedError,
    request_name,
)
from ropeway.gateway.processors.fast_failure import SENDS
from ropeway.gateway.processors.needs import NEEDS, NODES
from ropeway.gateway.processors.reauthorize import Interruptible, Refusable
from ropeway.gateway.processors.registry import (
    ANYWHERE,
    NAMING_BROKER,
    READS,
    Outcome,
    Result,
)
from ropeway.gateway.processors.unsupported import REASONS
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.header import Header
from ropeway.storage.api import NotReadyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.gateway.node.pending_sends import Destination
    from ropeway.routing.api import Broker

_WITH_MESSAGES = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
        RequestCode.ROPEWAY_STAGE,
        RequestCode.ROPEWAY_FORWARD,
        RequestCode.ROPEWAY_RELAY,
    }
)
"""Codes of requests whose body may be as long as a frame."""
_WAITS = frozenset(
    {
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.POP_MESSAGE,
        RequestCode.POP_LITE_MESSAGE,
        RequestCode.NOTIFICATION,
    }
)
"""Codes of requests that may wait for messages."""
_FIRST_STEP_S = 200e-6
"""What a request that waits for something does before that, about."""
_LATER_ERRORS = NotReadyError, NotCompiledError, NotPreparedError
"""What a request waits for, and is worked on anew then."""
_OPEN_S = 15.0
"""How long a request waits for its topic to be opened."""


def begin(context: Context) -> None:
    """Work on one request, if whoever sent it may have that done now.

    Its answer goes to the peer now or later, always.
    """
    node, code, peer = context.node, context.code, context.peer
    needs = NEEDS.get(code)
    if needs is None:
        _refuse_unsupported(context)
        return
    if (
        code not in _WITH_MESSAGES
        and len(context.body) > node.config.requests.body_bytes
        and not peer.forwarded
    ):
        context.refuse(
            ResponseCode.INVALID_PARAMETER,
            f"body of {len(context.body)} bytes in {request_name(code)}; "
            f"allowed: {node.config.requests.body_bytes}",
        )
        return
    if needs is NODES and not peer.forwarded:
        # Before it is sent on: the node that leads would take it for a node's.
        context.refuse(
            ResponseCode.NO_PERMISSION,
            f"{peer.address} is a client; allowed: nodes of this cluster",
        )
        return
    guard = node.guard
    if guard is None or needs.of_nodes:
        work(context)
        return
    try:
        admitted = begin_eagerly(admit(context, guard, needs))
    except Exception as error:  # noqa: BLE001 - turned into an answer
        context.fail(error)
        return
    if admitted is None:
        work(context)
    else:
        go_on(context, _work_once(admitted, context))


def go_on(context: Context, work: Coroutine[None, None, None]) -> None:
    """Go on with a request in a task, with an answer whatever becomes of it."""
    context.spawn(work, partial(_fail, context))


async def _work_once(admitted: Awaitable[None], context: Context) -> None:
    """Work on a request once it is let in."""
    await admitted
    work(context)


def work(context: Context) -> None:
    """Have the node that can do it work on a request: this one, or another."""
    if context.node.pending_sends.leaderless.waiting and _is_behind(context):
        go_on(context, _find_leader(context))
    else:
        _work_in_turn(context)


def _is_behind(context: Context) -> bool:
    """Whether a send would overtake some of its client that wait for a leader."""
    leaderless = context.node.pending_sends.leaderless.waiting
    return context.code in SENDS and context.peer.address in leaderless


def _work_in_turn(context: Context) -> None:
    node, code = context.node, context.code
    try:
        if not node.leadership.leads and code not in ANYWHERE:
            if code not in READS or not node.topics.follows:
                go_on(context, _find_leader(context))
                return
            context.as_slave = True
        header = context.header or context.read()
        if (node.forwarder.others or node.source is not None) and (
            code in NAMING_BROKER
            and (done := _done_elsewhere(header, context)) is not None
        ):
            go_on(context, done)
            return
        waiting = node.pending_sends.waiting
        if waiting and (destination := _blocking(context)) is not None:
            _add_pending(context, destination, context.slices().pause)
            return
        result = node.processors[code](header, context)
        if type(result) is Answer:
            context.answer(result)
        elif result is not LATER:
            _answer(context, result)
    except _LATER_ERRORS as missing:
        _wait_for(context, missing)
    except Exception as error:  # noqa: BLE001 - turned into an answer
        _fail(context, error)


def _done_elsewhere(
    header: Any, context: Context
) -> Coroutine[None, None, None] | None:
    """What is to be done with a request for another broker; None where it is for us."""
    other = context.node.forwarder.others.get(header.bname)
    if other is not None:
        return _forward(context, other)
    if context.code in ASKED_THERE and is_of_source(header.bname, context.node):
        return _wait(context, ask_there(header, context))
    return None


def _answer(context: Context, result: Outcome) -> None:
    if isinstance(result, (Header, Answer)):
        context.answer(result)
    elif not isinstance(result, Later):
        go_on(context, _wait(context, result))


def _refuse_unsupported(context: Context) -> None:
    remark = f"request type {request_name(context.code)} not supported"
    if reason := REASONS.get(context.code):
        remark = f"{remark}: {reason}"
    context.refuse(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)


async def _wait(context: Context, result: Awaitable[Result]) -> None:
    try:
        # Those that bring messages are begun in their order.
        if context.code not in _WITH_MESSAGES and not context.node.fair_queue.is_free():
            await context.slices().pause(_FIRST_STEP_S)
        outcome = await result
    except _LATER_ERRORS as missing:
        _wait_for(context, missing)
        return
    finally:
        if isinstance(result, Coroutine):
            # Where the node stops meanwhile, nobody has begun it, nor will.
            result.close()
    if isinstance(outcome, (Header, Answer)):
        context.answer(outcome)


def _blocking(context: Context) -> Destination | None:
    """What others wait for that a send must not overtake; None where nobody does."""
    pending = context.node.pending_sends
    if context.code not in SENDS:
        return None
    header = context.header
    return pending.blocking(header.topic, header.queue_id, context.waited_for)


def _wait_for(
    context: Context, missing: NotReadyError | NotCompiledError | NotPreparedError
) -> None:
    if isinstance(missing, NotPreparedError):
        _add_pending(context, missing.destination, missing.make)
    elif context.code in SENDS:
        queue = context.header.topic, context.header.queue_id
        _add_pending(context, queue, partial(_ready, context, missing))
    else:
        go_on(context, _work_when_ready(context, missing))


def _add_pending(
    context: Context,
    destination: Destination,
    prepare: Callable[[], Awaitable[object]],
) -> None:
    """Work on a send once its destination is ready, behind those that came before."""
    node, size = context.node, len(context.body) + len(context.header.properties)
    keep = partial(node.fair_queue.keep, context.slices().flow)
    refusable = Refusable(context)

    def start() -> None:
        keep(-size)
        context.waited_for = destination
        if refusable.leave():
            _work_anew(context)

    def fail(error: Exception) -> None:
        keep(-size)
        if refusable.leave():
            _fail(context, error)

    keep(size)  # who sends faster than they are started is held back
    first, send = context.waited_for == destination, PendingSend(prepare, start, fail)
    node.pending_sends.add(destination, send, node.tasks.start, first=first)


async def _work_when_ready(
    context: Context, missing: NotReadyError | NotCompiledError
) -> None:
    """Work on a request once what it lacks is there."""
    with Interruptible(context):
        await _ready(context, missing)
    _work_anew(context)


def _work_anew(context: Context) -> None:
    """Work on a request that has waited, unless it is too old by now."""
    if not stale.refused(context):
        work(context)


async def _ready(context: Context, missing: NotReadyError | NotCompiledError) -> None:
    """Return once a request's queue is open, or its expression compiled."""
    if isinstance(missing, NotCompiledError):
        peer = context.peer
        await compile_later(missing.text, context.slices(), lambda: not peer.closed)
    else:
        # Most need one queue; who has needed two may need them all.
        again = context.opened == missing.topic
        context.opened = missing.topic
        opening = context.node.log.ready(
            missing.topic, None if again else missing.numbers
        )
        try:
            await asyncio.wait_for(opening, _OPEN_S)
        except TimeoutError:
            raise missing from None
        context.as_slave = False
    # Many may have waited for the same.
    await context.slices().pause()


def _fail(context: Context, error: Exception) -> None:
    """What a slave cannot read, the master may: it knows more, and earlier."""
    if context.as_slave:
        # What fails then is the answer.
        context.as_slave = False
        go_on(context, _find_leader(context))
    else:
        context.fail(error)


async def _find_leader(context: Context) -> None:
    if stale.refused(context):
        return
    # Of several that have waited for a queue, none is the first there any more.
    context.waited_for = None
    turns, client = context.node.pending_sends.leaderless, context.peer.address
    turn = turns.take(client)
    begin_work: Callable[[], None] = _nothing
    try:
        expected = context.peer.forwarded
        leader = await context.node.leadership.settle(expected=expected)
        begin_work = partial(_begin_work, context, leader)
    finally:
        turns.end(client, turn, begin_work)


def _begin_work(context: Context, leader: Broker | None) -> None:
    """Work on a request, or have it worked on, when it is known who leads."""
    between_nodes = leader is not None or context.peer.forwarded
    if stale.refused(context, between_nodes=between_nodes):
        return
    if leader is None:
        _work_in_turn(context)
    else:
        go_on(context, _forward(context, leader))


def _nothing() -> None:
    """Go on with nothing: the request has failed."""


async def _forward(context: Context, node: Broker) -> None:
    """Have the node that leads a broker work on the request, and pass its answer on."""
    peer = context.peer
    if peer.forwarded:
        # Two nodes that take each other for the leader must not play ball with it.
        context.refuse(
            ResponseCode.SERVICE_NOT_AVAILABLE,
            f"broker {node.name} has just moved to node {node.node}; try again",
        )
        return
    if stale.refused(context, between_nodes=True):
        return
    with Interruptible(context):
        answer = await context.node.forwarder.forward(
            *(node.addresses[0], context.frame(), peer.address),
            *(context.principal, context.since_s),
            waits=context.code in _WAITS,
        )
    context.respond(answer)
