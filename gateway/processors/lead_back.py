"""Steps of a topic that was cut over and goes back to its source."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ropeway.client.errors import RemotingError
from ropeway.gateway.node.source_routes import SourceError
from ropeway.gateway.node.source_sends import HOLD_S
from ropeway.gateway.node.topic_changes import TopicError
from ropeway.gateway.processors.context import Refusal
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import HELD
from ropeway.routing.api import PERM_WRITE, RETURNED, SENT_BACK

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.source_sends import SourceSends
    from ropeway.gateway.processors.context import Context
    from ropeway.gateway.wire.commands.admin import CreateTopic
    from ropeway.routing.api import Topic

_LOOK_S = 0.005


def goes_back(request: CreateTopic, topic: ServedTopic) -> bool:
    """Whether it is a step of one that was cut over, and not of a mirror."""
    return bool(topic.setup.cut_offsets) and (
        request.writes in (SENT_BACK, RETURNED)
        or (request.writes == HELD and not topic.setup.mirrored)
    )


async def lead_back(request: CreateTopic, context: Context, topic: ServedTopic) -> None:
    """Hold producers' messages, have them be sent to the source, or clients led there.

    Raises:
        Refusal: It is not the next step, or the source lacks messages.
    """
    node, name, wanted = context.node, topic.name, request.writes
    if node.source is None:
        raise refusal("this node knows no source; start it with --migrate-from")
    sends = node.source.sends
    if wanted == HELD and not topic.setup.mirrored:
        await check_rights(context, name)
        await _hold(topic, request.hold or "", sends)
    elif wanted == SENT_BACK and not topic.setup.mirrored:
        if not (topic.passed_on and sends.is_held(name, request.hold or "")):
            raise refusal(f"messages of topic {name} were held for too long; try again")
        if _lacks(topic, request.ends or ""):
            raise refusal(f"the source lacks messages of topic {name}; copy them")
        # Nothing is stored here any more, however long it takes to write that down.
        sends.hold_on(name)
        try:
            await change_setup(context, name, _sent_back)
        finally:
            sends.release(name)
    elif wanted == RETURNED and topic.setup.writes in (SENT_BACK, RETURNED):
        await change_setup(context, name, _returned)
    else:
        raise refusal(
            f"topic {name} is not to be {wanted:.80} now; allowed: {HELD}, "
            f"{SENT_BACK}, {RETURNED}, one after the other"
        )


async def _hold(topic: ServedTopic, hold: str, sends: SourceSends) -> None:
    """Have senders wait; returns when all that was sent before is stored."""
    await sends.hold(topic.name, hold)
    topic.passed_on = True
    clock = asyncio.get_running_loop().time
    end_s = clock() + HOLD_S
    while any(one.end < one.next_offset for one in topic.partitions):
        if clock() >= end_s:
            raise refusal(f"messages of topic {topic.name} are not stored in time")
        await asyncio.sleep(_LOOK_S)


def _lacks(topic: ServedTopic, ends: str) -> bool:
    words = ends.split(",")
    return len(words) != len(topic.partitions) or any(
        not word.isascii() or not word.isdigit() or int(word[:20]) < one.next_offset
        for word, one in zip(words, topic.partitions, strict=True)
    )


async def check_rights(context: Context, topic: str) -> None:
    """See that the source lets this node send to a topic.

    Raises:
        Refusal: It does not, or does not answer.
    """
    node = context.node
    assert node.source is not None, "it was looked at before"
    try:
        found = await node.source.sends.refusal(topic, node.routes.brokers)
    except (RemotingError, SourceError) as error:
        raise Refusal(ResponseCode.SERVICE_NOT_AVAILABLE, str(error)) from error
    if found is not None:
        raise Refusal(
            ResponseCode.SERVICE_NOT_AVAILABLE,
            f"the migration's source lets this node send nothing to topic {topic}: "
            f"{found}; migration.access_key says as whom it sends",
        )


async def change_setup(
    context: Context, name: str, change: Callable[[Topic], Topic]
) -> None:
    """Have the routes say something else of a topic.

    Raises:
        TopicError: It was deleted meanwhile.
    """

    def changed(old: Topic | None) -> Topic:
        if old is None:
            raise TopicError(f"topic {name} was deleted meanwhile")
        return change(old)

    await context.node.topics.change(name, changed)


def _sent_back(old: Topic) -> Topic:
    return msgspec.structs.replace(
        old, mirrored=True, perm=old.perm & ~PERM_WRITE, writes=SENT_BACK
    )


def _returned(old: Topic) -> Topic:
    return msgspec.structs.replace(old, writes=RETURNED)


def refusal(complaint: str) -> Refusal:
    """The answer to a step that is not taken."""
    return Refusal(ResponseCode.INVALID_PARAMETER, complaint)
