"""Which queues a client consumes, and how, where the broker shares them out.

How a group consumes a topic is a setting in the route store, so all brokers say the
same. A group that nobody set up pulls.

Source: QueryAssignmentProcessor.java and MessageRequestModeManager.java, 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from ropeway.gateway.node import names
from ropeway.gateway.processors import auto_create
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import (
    GET,
    SUB,
    UPDATE,
    Needs,
    on_cluster,
    popped_needs,
)
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.bodies import Body, MessageQueue
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.group_admin import GetAllMessageRequestMode
from ropeway.gateway.wire.commands.pop import QueryAssignment, SetMessageRequestMode
from ropeway.routing.api import PERM_READ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ropeway.acl.api import Need
    from ropeway.routing.api import Topic

NAMESPACE = names.REQUEST_MODES
"""Of settings; their keys are `topic@group`."""

_BROADCASTING = ("BROADCASTING", 0)
_ANY_QUEUE = -1
_LEAST_SHARED = 0

Mode = Literal["PULL", "POP"]


class RequestMode(Body, frozen=True, kw_only=True):
    """How a group consumes a topic: SetMessageRequestModeRequestBody."""

    consumer_group: str
    mode: Mode = "PULL"
    pop_share_queue_num: int = 0
    """How many clients besides its own share a client's queues; 0 or less: all."""
    topic: str


class AssignmentQuery(Body, frozen=True, kw_only=True):
    """Who asks for its queues: QueryAssignmentRequestBody."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str | None = None
    message_model: str | int | None = "CLUSTERING"


class Assignment(Body, frozen=True):
    """A queue that a client is to consume: MessageQueueAssignment."""

    message_queue: MessageQueue
    mode: Mode


class Assignments(Body, frozen=True):
    """All of them: QueryAssignmentResponseBody."""

    message_queue_assignments: list[Assignment]


def _consumed(_: QueryAssignment, context: Context) -> Iterator[Need]:
    query = bodies.decode(AssignmentQuery, context.body)
    return popped_needs(context.node, query.consumer_group, query.topic, (SUB,))


@handles(QueryAssignment, Needs(_consumed))
def query_assignment(_: QueryAssignment, context: Context) -> Answer:
    """Tell a client its queues; nothing where that cannot be said now."""
    query = bodies.decode(AssignmentQuery, context.body)
    topic = context.node.routes.topics.get(query.topic)
    queues = _queues(topic) if topic is not None else []
    mode = _mode(context, query.topic, query.consumer_group)
    shared: list[MessageQueue] | None = None
    if queues and query.message_model in _BROADCASTING:
        shared = queues
    elif queues:
        shared = _share(query, mode, queues, _clients(context, query.consumer_group))
    if shared is None:
        return Answer(body=b"{}")
    found = [Assignment(queue, mode.mode) for queue in shared]
    return Answer(body=bodies.encode(Assignments(found)))


def _queues(topic: Topic) -> list[MessageQueue]:
    """Every queue of a topic that can be read, as all clients order them."""
    if not topic.perm & PERM_READ:
        return []
    return [
        MessageQueue(broker, queue_id, topic.name)
        for broker, numbers in sorted(topic.route.items())
        for queue_id in range(min(topic.read_queue_nums, len(numbers)))
    ]


def _clients(context: Context, group: str) -> list[str]:
    connected = context.node.clients.consumer_group(group)
    if connected is None:
        return []
    return sorted({member.client_id for member in connected.members.values()})


def _share(
    query: AssignmentQuery,
    mode: RequestMode,
    queues: list[MessageQueue],
    clients: list[str],
) -> list[MessageQueue] | None:
    """The client's part; None where nobody can say."""
    allocate = _STRATEGIES.get(query.strategy_name or "")
    if not clients or allocate is None:
        return None
    if mode.mode == "PULL":
        return list(allocate(query.client_id, queues, clients))
    more = mode.pop_share_queue_num
    if more <= _LEAST_SHARED or more >= len(clients) - 1:
        brokers = dict.fromkeys(queue.broker_name for queue in queues)
        return [MessageQueue(broker, _ANY_QUEUE, query.topic) for broker in brokers]
    if query.client_id not in clients:
        return []
    index = clients.index(query.client_id)
    if len(clients) > len(queues):
        # So that each has one.
        return [queues[index % len(queues)]]
    found: dict[MessageQueue, None] = {}
    for number in range(index, index + more + 1):
        client = clients[number % len(clients)]
        found.update(dict.fromkeys(allocate(client, queues, clients)))
    return list(found)


def _averagely(
    client: str, queues: Sequence[MessageQueue], clients: Sequence[str]
) -> Sequence[MessageQueue]:
    if client not in clients:
        return []
    index = clients.index(client)
    each, more = divmod(len(queues), len(clients))
    start = index * each + min(index, more)
    return queues[start : start + each + (index < more)]


def _in_a_circle(
    client: str, queues: Sequence[MessageQueue], clients: Sequence[str]
) -> Sequence[MessageQueue]:
    return queues[clients.index(client) :: len(clients)] if client in clients else []


_STRATEGIES: Mapping[
    str,
    Callable[[str, Sequence[MessageQueue], Sequence[str]], Sequence[MessageQueue]],
]
_STRATEGIES = {"AVG": _averagely, "AVG_BY_CIRCLE": _in_a_circle}


def _mode(context: Context, topic: str, group: str) -> RequestMode:
    value = context.node.routes.settings.get((NAMESPACE, f"{topic}@{group}"))
    if value is not None:
        return msgspec.json.decode(value, type=RequestMode)
    return RequestMode(consumer_group=group, topic=topic)


def _set(_: SetMessageRequestMode, context: Context) -> Iterator[Need]:
    wanted = bodies.decode(RequestMode, context.body)
    return popped_needs(context.node, wanted.consumer_group, wanted.topic, (UPDATE,))


@handles(SetMessageRequestMode, Needs(_set))
async def set_message_request_mode(
    _: SetMessageRequestMode, context: Context
) -> Answer:
    """Say how a group consumes a topic from now on; make the group where it is missing.

    Source: QueryAssignmentProcessor.setMessageRequestMode, RocketMQ 5.5.0.
    """
    wanted = bodies.decode(RequestMode, context.body)
    if wanted.topic.startswith(names.RETRY_PREFIX):
        raise Refusal(
            ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode"
        )
    node = context.node
    if await node.routes.find_topic(wanted.topic) is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST, f"topic[{wanted.topic:.200}] not exist"
        )
    if await node.groups.find(wanted.consumer_group) is None:
        remark = f"subscription group {wanted.consumer_group:.200} does not exist"
        await auto_create.ensure_group(context, wanted.consumer_group, remark)
    key = f"{wanted.topic}@{wanted.consumer_group}"
    await node.routes.put_setting(NAMESPACE, key, bodies.encode(wanted).decode())
    return Answer()


@handles(GetAllMessageRequestMode, on_cluster(GET), anywhere=True)
def get_all_message_request_mode(
    _: GetAllMessageRequestMode, context: Context
) -> Answer:
    """How groups consume topics, where that was said."""
    table: dict[str, dict[str, RequestMode]] = {}
    for (namespace, _key), value in context.node.routes.settings.items():
        if namespace == NAMESPACE:
            mode = msgspec.json.decode(value, type=RequestMode)
            table.setdefault(mode.topic, {})[mode.consumer_group] = mode
    return Answer(body=bodies.encode({"messageRequestModeMap": table}))
