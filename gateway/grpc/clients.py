"""Clients' coming and going: settings, heartbeats, and the stream both ways.

Source: ClientActivity.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.grpc import pushes, settings, validation
from ropeway.gateway.grpc.message_decoder import named
from ropeway.gateway.grpc.methods import rpc
from ropeway.gateway.grpc.protocol import (
    ClientType,
    FilterType,
    HeartbeatResponse,
    NotifyClientTerminationResponse,
    TelemetryCommand,
)
from ropeway.gateway.grpc.sessions import Session
from ropeway.gateway.grpc.statuses import OK
from ropeway.gateway.processors.needs import PUB, SUB, group_need, topic_needs
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.clients import HeartBeat

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from ropeway.gateway.grpc.calls import Call
    from ropeway.gateway.grpc.protocol import (
        HeartbeatRequest,
        NotifyClientTerminationRequest,
        Settings,
    )

_POPS = "CONSUME_POP"
_PULLS = bodies.CONSUME_ACTIVELY


async def telemetry(
    commands: AsyncIterator[TelemetryCommand], call: Call
) -> AsyncGenerator[TelemetryCommand, None]:
    """Answer settings, and pass on what comes and goes until the stream ends."""
    session = Session(
        call.node, call.origin, call.language, call.client_id, call.principal
    )
    call.messaging.sessions.hold(session, 0)
    reading = asyncio.get_running_loop().create_task(_read(commands, call, session))
    try:
        while (command := await session.commands.get()) is not None:
            yield command
        if reading.done():
            # What a client must be told of what it sent.
            await reading
    finally:
        reading.cancel()
        # Its error has this frame, and so itself and all that came: a cycle.
        del reading
        call.messaging.sessions.cut_off(session)
        _gone(session, call)


async def _read(
    commands: AsyncIterator[TelemetryCommand], call: Call, session: Session
) -> None:
    try:
        async for command in commands:
            await _take(command, call, session)
    finally:
        session.close()


async def _take(command: TelemetryCommand, call: Call, session: Session) -> None:
    kind = command.WhichOneof("command")
    if kind == "settings":
        await _settle(command.settings, call, session)
    elif kind == "verify_message_result":
        pushes.verified(
            call.node, session, command.status, command.verify_message_result
        )
    elif kind == "thread_stack_trace":
        pushes.stack_trace_came(
            call.node, session, command.status, command.thread_stack_trace
        )


async def _settle(wanted: Settings, call: Call, session: Session) -> None:
    """Take a client's settings, and answer what it is to go by."""
    await call.slices().pause()
    settings.check(wanted)
    group = None
    if wanted.HasField("subscription"):
        group = validation.group(wanted.subscription.group)
        await call.require(group_need(group, (SUB,)))
        settings.check_group(call.node, wanted, group)
        for entry in wanted.subscription.subscriptions:
            validation.topic(entry.topic)
    else:
        topics = [validation.topic(topic) for topic in wanted.publishing.topics]
        # A heartbeat would not ask for it: RocketMQ's proxy does for settings.
        await call.require(
            *(need for one in topics for need in topic_needs(call.node, one, (PUB,)))
        )
    call.messaging.sessions.hold(session, wanted.ByteSize())
    session.settings = settings.complete(call.node, wanted, group)
    await _register(session)
    call.messaging.sessions.add(session)
    if wanted.client_type in settings.LITE_CONSUMERS:
        session.lite_group = group
    if group is not None:
        # The group may just have been made.
        session.settings = settings.complete(call.node, wanted, group)
    session.tell(TelemetryCommand(status=OK, settings=session.settings))


async def _register(session: Session) -> None:
    """Have the node know the client, as a heartbeat of a remoting client does."""
    wanted = session.settings
    if wanted.HasField("subscription"):
        data = bodies.HeartbeatData(
            client_id=session.client_id, consumer_data_set=[_consumer(wanted)]
        )
    else:
        # Producers have no groups here; as with RocketMQ's proxy, a topic is one.
        producers = [
            bodies.ProducerData(group_name=named(topic))
            for topic in wanted.publishing.topics
        ]
        data = bodies.HeartbeatData(
            client_id=session.client_id, producer_data_set=producers
        )
    await session.do(HeartBeat(), bodies.encode(data))


def _consumer(wanted: Settings) -> bodies.ConsumerData:
    subscription = wanted.subscription
    pulls = wanted.client_type == ClientType.PULL_CONSUMER
    return bodies.ConsumerData(
        group_name=named(subscription.group),
        consume_type=_PULLS if pulls else _POPS,
        subscription_data_set=[
            bodies.SubscriptionData(
                topic=named(entry.topic),
                sub_string=entry.expression.expression or bodies.SUB_ALL,
                expression_type=bodies.SQL92
                if entry.expression.type == FilterType.SQL
                else bodies.TAG,
            )
            for entry in subscription.subscriptions
        ],
    )


@rpc("Heartbeat")
async def heartbeat(_: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    """A client lives."""
    await _register(call.session())
    return HeartbeatResponse(status=OK)


@rpc("NotifyClientTermination")
async def notify_termination(
    request: NotifyClientTerminationRequest, call: Call
) -> NotifyClientTerminationResponse:
    """A client stops: one that its own principal has here."""
    if request.group.name:
        await call.require(group_need(validation.group(request.group), (SUB,)))
    sessions = call.messaging.sessions
    # A client that closes both at once may be heard in either order.
    if not sessions.stops(call.client_id, call.principal):
        session = call.session()
        sessions.remove(session)
        _gone(session, call)
    return NotifyClientTerminationResponse(status=OK)


def _gone(session: Session, call: Call) -> None:
    """A client is no more there, or a stream of it."""
    session.gone()
    group, principal = session.lite_group, session.principal
    sessions = call.messaging.sessions
    if group is not None and not sessions.find(session.client_id, "", principal):
        call.node.lite.gone(session.client_id, group, principal)
