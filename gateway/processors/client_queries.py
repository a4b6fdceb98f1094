"""Asking connected consumers on behalf of administrators, and handing back answers.

For a while a consumer may be connected to another node of the broker than the one that
leads it: then that one asks.

Source: AdminBrokerProcessor.callConsumer and Broker2Client.getConsumeStatus, RocketMQ
5.3.4.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.node import calls
from ropeway.gateway.node.calls import ClientAnswer, NoAnswerError
from ropeway.gateway.node.forwarder import ForwardingError
from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import (
    GET,
    NODES,
    SUB,
    on_group,
    on_topic,
    on_topic_if_given,
)
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import admin_bodies, bodies, message_id
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.callbacks import (
    ConsumeMessageDirectly,
    GetClientStatus,
    GetConsumerRunningInfo,
)
from ropeway.gateway.wire.commands.forward import Ask
from ropeway.gateway.wire.commands.group_admin import GetConsumerStatus
from ropeway.gateway.wire.errors import HeaderError, WireError
from ropeway.gateway.wire.frame import FrameReader, decode_envelope, encode_frame
from ropeway.gateway.wire.header import row_of, to_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.clients import Member
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.wire.header import Header

    MakeFrame = Callable[[int], bytes]

_ELSEWHERE_S = 2.0
"""How long another node may take beyond its client."""
_STATUS_S = 3.0
"""How long each client may take to say where it is; C++ never says it, and mqadmin
waits for 5 s."""


@handles(GetConsumerRunningInfo, on_group(GET))
async def get_running_info(request: GetConsumerRunningInfo, context: Context) -> Answer:
    """How a consumer does, as it says itself."""
    return await _ask(request.consumer_group, request.client_id, request, context)


@handles(ConsumeMessageDirectly, on_group(SUB) & on_topic_if_given(SUB))
async def consume_directly(request: ConsumeMessageDirectly, context: Context) -> Answer:
    """Have a consumer consume one message now, whatever its group has done."""
    if not request.client_id or not request.msg_id:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"clientId is {request.client_id!r:.80}, msgId is {request.msg_id!r:.80}; "
            "both are needed",
        )
    node, group = context.node, request.consumer_group
    identity = message_id.parse_offset_msg_id(request.msg_id).message_id
    stored = await lookup.permitted(
        context, identity, request.topic or None, (SUB,), group=group
    )
    topic, setup = node.topics.get(request.topic or ""), node.groups.get(group)
    completed = msgspec.structs.replace(
        request,
        broker_name=node.config.broker,
        topic_sys_flag=topic.setup.topic_sys_flag if topic else None,
        group_sys_flag=setup.group_sys_flag if setup else None,
    )
    return await _ask(group, request.client_id, completed, context, stored)


async def _ask(
    group: str, client_id: str, header: Header, context: Context, body: bytes = b""
) -> Answer:
    """What a consumer answers, wherever it is connected."""
    node = context.node
    frame = _frame(header, body)
    member = node.clients.find_consumer(group, client_id)
    if member is None:
        if (answer := await _ask_elsewhere(group, client_id, frame, context)) is None:
            raise Refusal(
                ResponseCode.SYSTEM_ERROR,
                f"The Consumer <{group:.200}> <{client_id:.200}> not online",
            )
        return answer
    return await _ask_here(node, member, frame)


def _frame(header: Header, body: bytes = b"") -> MakeFrame:
    code = row_of(type(header)).code
    return partial(encode_frame, code, fields=to_fields(header), body=body)


async def _ask_here(node: Node, member: Member, frame: MakeFrame) -> Answer:
    try:
        answer = await node.calls.ask(member.link, frame, calls.ANSWER_S)
    except NoAnswerError as error:
        raise Refusal(ResponseCode.CONSUME_MSG_TIMEOUT, str(error)) from error
    return _handed_back(answer)


def _handed_back(answer: ClientAnswer) -> Answer:
    return Answer(answer.code, answer.remark, body=answer.body)


async def _ask_elsewhere(
    group: str, client_id: str, frame: MakeFrame, context: Context
) -> Answer | None:
    """What a consumer answers on another node of the broker; None without one."""
    node, peer = context.node, context.peer
    request = Ask(consumer_group=group, client_id=client_id)
    asked = _frame(request, frame(0))(0)
    for other in node.routes.brokers.get(node.config.broker, ()):
        if peer.advertised in other.addresses:
            continue
        try:
            async with asyncio.timeout(calls.ANSWER_S + _ELSEWHERE_S):
                answer = _answer(
                    await node.forwarder.forward(
                        other.addresses[0], asked, peer.address
                    )
                )
        except (ForwardingError, TimeoutError, WireError):
            # It may have ended with the clients that it had.
            continue
        if answer.code != ResponseCode.CONSUMER_NOT_ONLINE:
            return answer
    return None


def _answer(data: bytes) -> Answer:
    ((serialize_type, header, body),) = FrameReader(len(data)).feed(data)
    envelope = decode_envelope(serialize_type, header)
    return Answer(envelope.code, envelope.remark, body=body)


@handles(Ask, NODES, anywhere=True)
async def ask(request: Ask, context: Context) -> Answer:
    """Ask a consumer that is connected here, for another node."""
    member = context.node.clients.find_consumer(
        request.consumer_group, request.client_id
    )
    if member is None:
        raise Refusal(
            ResponseCode.CONSUMER_NOT_ONLINE, f"{request.client_id:.200} is not here"
        )
    ((serialize_type, header, body),) = FrameReader(
        context.node.config.limits.frame_bytes
    ).feed(context.body)
    envelope = decode_envelope(serialize_type, header)
    frame = partial(encode_frame, envelope.code, fields=envelope.ext_fields, body=body)
    return await _ask_here(context.node, member, frame)


@handles(GetConsumerStatus, on_topic(GET) & on_group(GET, field="group"))
async def get_consumer_status(request: GetConsumerStatus, context: Context) -> Answer:
    """Where the connected consumers of a group are in a topic, as they say."""
    node = context.node
    group = node.clients.consumer_group(request.group)
    if group is None:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            f"No Any Consumer online in the consumer group: [{request.group:.200}]",
        )
    wanted = request.client_addr
    members = [
        one for one in group.members.values() if not wanted or one.client_id == wanted
    ]
    frame = _frame(GetClientStatus(topic=request.topic, group=request.group))
    answers = await asyncio.gather(*(_ask_status(node, one, frame) for one in members))
    table = {
        one.client_id: answer
        for one, answer in zip(members, answers, strict=True)
        if answer is not None
    }
    return Answer(body=bodies.encode(admin_bodies.ConsumerStatuses(table)))


async def _ask_status(
    node: Node, member: Member, frame: MakeFrame
) -> msgspec.Raw | None:
    """Where one is, as a map of queues; None where it does not say."""
    try:
        answer = await node.calls.ask(member.link, frame, _STATUS_S)
        if answer.code != ResponseCode.SUCCESS:
            return None
        return admin_bodies.object_map(admin_bodies.read_object_map(answer.body))
    except (NoAnswerError, HeaderError):
        return None
