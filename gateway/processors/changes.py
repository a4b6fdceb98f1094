"""Which requests change something, and how the audit log tells what: one table.

Each request code with a processor is in `CHANGES` or in `NOT_CHANGES`, and a test finds
one that is in neither. Messages, consumers' own progress and what clients register of
themselves are no changes: they are what a broker is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ropeway.gateway.node import names
from ropeway.gateway.node.quotas import GROUP, Key
from ropeway.gateway.wire import bodies, recall
from ropeway.gateway.wire.access_bodies import AclInfo
from ropeway.gateway.wire.codes import RequestCode as Code
from ropeway.gateway.wire.commands.quotas import cold_lines
from ropeway.routing.api import Group, Topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.node import Node
    from ropeway.gateway.processors.context import Context

    Look = Callable[[Any, Context], dict[str, Any] | None]
    """The state of each thing that a request names, before it and after it; None where
    this request changes nothing."""


class Hidden:  # noqa: PLW1641 - it is a key nowhere
    """A value that is compared, and never shown."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hidden) and self._value == other._value


# What things are like.


def _set_up(what: Topic | Group) -> dict[str, Any]:
    """What of a set-up is not as it is by default; the name is told elsewhere."""
    usual: Topic | Group = Group(name=what.name)
    if isinstance(what, Topic):
        usual = Topic(name=what.name, read_queue_nums=-1, write_queue_nums=-1)
    plain = msgspec.to_builtins(usual)
    return {
        key: value
        for key, value in msgspec.to_builtins(what).items()
        if value != plain[key]
    }


def topic_state(node: Node, name: str) -> dict[str, Any] | None:
    """How a topic is set up, for people; None where there is none."""
    topic = node.routes.topics.get(name)
    if topic is None:
        return None
    state = _set_up(topic)
    # Which partitions those are says nothing to people, nor what is not done yet.
    state["route"] = {broker: len(queues) for broker, queues in topic.route.items()}
    for inner in ("generations", "deletions", "moved"):
        state.pop(inner, None)
    return state


def group_state(node: Node, name: str) -> dict[str, Any] | None:
    """How a group is set up, likewise."""
    group = node.groups.get(name)
    return None if group is None else _set_up(group)


def _user(node: Node, name: str) -> dict[str, Any] | None:
    rules = node.guard.administration if node.guard is not None else None
    user = rules.users().get(name) if rules is not None else None
    if user is None:
        return None
    hidden = Hidden(user.password)
    return {"super": user.super, "enabled": user.enabled, "password": hidden}


def _rules(node: Node, subject: str) -> dict[str, list[str]] | None:
    rules = node.guard.administration if node.guard is not None else None
    found = rules.rules().get(subject) if rules is not None else None
    return None if found is None else found.shown()


def _setting(namespace: str, key: str, context: Context) -> dict[str, Any]:
    value = context.node.routes.settings.get((namespace, key))
    return {f"Setting:{namespace}/{key}": value}


def _offsets(node: Node, group: str, topic: str) -> dict[str, int]:
    return {str(queue): at for queue, at in node.offsets.queues(group, topic).items()}


# What requests name.


def _topics_of(_: Any, context: Context) -> dict[str, Any]:
    wanted = bodies.decode(bodies.TopicConfigList, context.body).topic_config_list
    found = (one.topic_name for one in wanted)
    return {f"Topic:{name}": topic_state(context.node, name) for name in found}


def _group_of(_: Any, context: Context) -> dict[str, Any]:
    name = bodies.decode(bodies.GroupConfig, context.body).group_name
    return {f"Group:{name}": group_state(context.node, name)}


def _groups_of(_: Any, context: Context) -> dict[str, Any]:
    wanted = bodies.decode(bodies.GroupConfigList, context.body).group_config_list
    found = (one.group_name for one in wanted)
    return {f"Group:{name}": group_state(context.node, name) for name in found}


def _subject(request: Any, context: Context) -> dict[str, Any]:
    given = bodies.decode(AclInfo, context.body) if context.body else None
    subject = request.subject or (given.subject if given is not None else "") or ""
    return {f"Acl:{subject}": _rules(context.node, subject)}


def _begins(request: Any, context: Context) -> dict[str, Any] | None:
    topic = context.node.topics.get(request.topic)
    begins = None if topic is None else topic.begins()
    return None if request.dry_run else {f"Topic:{request.topic}": begins}


def _switches(_: Any, context: Context) -> dict[str, Any]:
    switches = context.node.pop.switches
    return {f"Broker:{context.node.config.broker}": switches.shown()}


def _writable(request: Any, context: Context) -> dict[str, Any]:
    key = names.WRITE_PERMISSION, request.broker_name
    wiped = key in context.node.routes.settings
    return {f"Broker:{request.broker_name}": {"writable": not wiped}}


def _mode(_: Any, context: Context) -> dict[str, Any]:
    given = msgspec.json.decode(context.body)
    pair = f"{given['topic']}@{given['consumerGroup']}"
    return _setting(names.REQUEST_MODES, pair, context)


def _reset(request: Any, context: Context) -> dict[str, Any]:
    offsets = _offsets(context.node, request.group, request.topic)
    return {f"Group:{request.group} Topic:{request.topic}": offsets}


def _cloned(request: Any, context: Context) -> dict[str, Any]:
    node, group = context.node, request.dest_group
    topics = (
        [request.topic] if request.topic else node.offsets.topics(request.src_group)
    )
    return {
        f"Group:{group} Topic:{topic}": _offsets(node, group, topic) for topic in topics
    }


def _leader(_: Any, context: Context) -> dict[str, Any]:
    node = context.node
    nodes = node.routes.brokers.get(node.config.broker, ())
    return {f"Broker:{node.config.broker}": {"nodes": [one.node for one in nodes]}}


def _recalled(request: Any, _: Context) -> dict[str, Any]:
    handle = recall.parse(request.recall_handle)
    return {f"Topic:{handle.topic} Timer:{handle.unique_key}": None}


def _progress(request: Any, context: Context) -> dict[str, Any] | None:
    if request.consumer_group != names.REPLAY_GROUP:
        # Consumers' own progress.
        return None
    offsets = _offsets(context.node, names.REPLAY_GROUP, request.topic)
    return {f"DeadLetters:{request.topic}": offsets}


def _sent_back(request: Any, _: Context) -> dict[str, Any] | None:
    topic = request.origin_topic or ""
    if not topic.startswith(names.DLQ_PREFIX):
        # A consumer that could not handle a message.
        return None
    return {f"DeadLetters:{topic} Message:{request.origin_msg_id or ''}": None}


def _quota(kind: str, name: str, context: Context) -> dict[str, Any]:
    quota = context.node.quotas.kept.get(Key(kind, name))
    state = None if quota is None else msgspec.to_builtins(quota)
    return {f"Quota:{kind}/{name}": state}


def _cold(_: Any, context: Context) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for group, _value in cold_lines(context.body):
        found |= _quota(GROUP, group, context)
    return found


CHANGES: dict[int, Look] = {
    Code.UPDATE_AND_CREATE_TOPIC: lambda request, context: {
        f"Topic:{request.topic}": topic_state(context.node, request.topic)
    },
    Code.UPDATE_AND_CREATE_TOPIC_LIST: _topics_of,
    Code.DELETE_TOPIC_IN_BROKER: lambda request, context: {
        f"Topic:{request.topic}": topic_state(context.node, request.topic)
    },
    Code.DELETE_TOPIC_IN_NAMESRV: lambda request, context: {
        f"Topic:{request.topic}": topic_state(context.node, request.topic)
    },
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _group_of,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: _groups_of,
    Code.DELETE_SUBSCRIPTIONGROUP: lambda request, context: {
        f"Group:{request.group_name}": group_state(context.node, request.group_name)
    },
    Code.PUT_KV_CONFIG: lambda request, context: _setting(
        request.namespace, request.key, context
    ),
    Code.DELETE_KV_CONFIG: lambda request, context: _setting(
        request.namespace, request.key, context
    ),
    **dict.fromkeys(
        (Code.ROPEWAY_SET_QUOTA, Code.ROPEWAY_DELETE_QUOTA),
        lambda request, context: _quota(request.kind, request.name, context),
    ),
    Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: _cold,
    Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: _cold,
    Code.UPDATE_BROKER_CONFIG: _switches,
    Code.WIPE_WRITE_PERM_OF_BROKER: _writable,
    Code.ADD_WRITE_PERM_OF_BROKER: _writable,
    Code.SET_MESSAGE_REQUEST_MODE: _mode,
    Code.INVOKE_BROKER_TO_RESET_OFFSET: _reset,
    Code.CLONE_GROUP_OFFSET: _cloned,
    Code.UPDATE_CONSUMER_OFFSET: _progress,
    Code.CONSUMER_SEND_MSG_BACK: _sent_back,
    Code.CONSUME_MESSAGE_DIRECTLY: lambda request, _: {
        f"Group:{request.consumer_group} Message:{request.msg_id or ''}": None
    },
    Code.ROPEWAY_NOTE_RESEND: lambda request, _: {
        f"Topic:{request.to_topic} Message:{request.msg_id}": None
    },
    Code.RESUME_CHECK_HALF_MESSAGE: lambda request, _: {
        f"Topic:{request.topic or ''} Message:{request.msg_id or ''}": None
    },
    Code.RECALL_MESSAGE: _recalled,
    Code.POP_ROLLBACK: lambda _, context: {
        f"Broker:{context.node.config.broker}": None
    },
    Code.TRIGGER_LITE_DISPATCH: lambda request, _: {f"Group:{request.group}": None},
    Code.ROPEWAY_COMPACT_TOPIC: lambda request, _: (
        {f"Topic:{request.topic}": None} if request.force else None
    ),
    Code.ROPEWAY_TRIM_TOPIC: _begins,
    Code.ROPEWAY_STEP_BACK: _leader,
    Code.ROPEWAY_MOVE_QUEUE: lambda request, context: {
        f"Topic:{request.topic} Broker:{context.node.config.broker}": {
            "to": request.to_broker
        }
    },
    Code.ROPEWAY_DRAIN_BROKER: lambda _, context: {
        f"Broker:{context.node.config.broker}": {
            "drained": context.node.drains.is_drained
        }
    },
    Code.ROPEWAY_REMOVE_BROKER: lambda request, _: {f"Broker:{request.broker}": None},
    **dict.fromkeys(
        (Code.AUTH_CREATE_USER, Code.AUTH_UPDATE_USER, Code.AUTH_DELETE_USER),
        lambda request, context: {
            f"User:{request.username}": _user(context.node, request.username)
        },
    ),
    **dict.fromkeys(
        (Code.AUTH_CREATE_ACL, Code.AUTH_UPDATE_ACL, Code.AUTH_DELETE_ACL), _subject
    ),
}
"""How to tell what each change changes, by its code."""

NOT_CHANGES = frozenset(
    {
        # Messages, and the ends of their transactions.
        Code.SEND_MESSAGE,
        Code.SEND_MESSAGE_V2,
        Code.SEND_BATCH_MESSAGE,
        Code.SEND_REPLY_MESSAGE,
        Code.SEND_REPLY_MESSAGE_V2,
        Code.END_TRANSACTION,
        Code.ROPEWAY_STAGE,
        Code.ROPEWAY_COMMIT_BATCH,
        Code.ROPEWAY_MIRROR_MESSAGES,
        # Receiving and acknowledging.
        Code.PULL_MESSAGE,
        Code.LITE_PULL_MESSAGE,
        Code.POP_MESSAGE,
        Code.POP_LITE_MESSAGE,
        Code.PEEK_MESSAGE,
        Code.NOTIFICATION,
        Code.ACK_MESSAGE,
        Code.BATCH_ACK_MESSAGE,
        Code.CHANGE_MESSAGE_INVISIBLETIME,
        # What clients register of themselves, for as long as they are connected.
        Code.HEART_BEAT,
        Code.UNREGISTER_CLIENT,
        Code.LOCK_BATCH_MQ,
        Code.UNLOCK_BATCH_MQ,
        Code.LITE_SUBSCRIPTION_CTL,
        # Answered, and nothing is done: logs and routes look after that themselves.
        Code.CLEAN_EXPIRED_CONSUMEQUEUE,
        Code.CLEAN_UNUSED_TOPIC,
        Code.DELETE_EXPIRED_COMMITLOG,
        # Requests of clients are in them, and those are looked at by themselves.
        Code.ROPEWAY_FORWARD,
        Code.ROPEWAY_RELAY,
        Code.ROPEWAY_ASK,
        # Half of a change that the other node tells of.
        Code.ROPEWAY_TAKE_QUEUE,
        Code.ROPEWAY_STORE_DUE,
        Code.ROPEWAY_GET_DRAIN,
        # Looking.
        Code.QUERY_MESSAGE,
        Code.QUERY_CONSUMER_OFFSET,
        Code.GET_ALL_TOPIC_CONFIG,
        Code.GET_BROKER_CONFIG,
        Code.GET_BROKER_RUNTIME_INFO,
        Code.SEARCH_OFFSET_BY_TIMESTAMP,
        Code.GET_MAX_OFFSET,
        Code.GET_MIN_OFFSET,
        Code.GET_EARLIEST_MSG_STORETIME,
        Code.VIEW_MESSAGE_BY_ID,
        Code.GET_CONSUMER_LIST_BY_GROUP,
        Code.CHECK_CLIENT_CONFIG,
        Code.GET_KV_CONFIG,
        Code.GET_ROUTEINFO_BY_TOPIC,
        Code.GET_BROKER_CLUSTER_INFO,
        Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        Code.GET_TOPIC_STATS_INFO,
        Code.GET_CONSUMER_CONNECTION_LIST,
        Code.GET_PRODUCER_CONNECTION_LIST,
        Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
        Code.GET_CONSUME_STATS,
        Code.GET_KVLIST_BY_NAMESPACE,
        Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        Code.GET_TOPICS_BY_CLUSTER,
        Code.QUERY_TOPIC_CONSUME_BY_WHO,
        Code.QUERY_CONSUME_TIME_SPAN,
        Code.GET_SYSTEM_TOPIC_LIST_FROM_NS,
        Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
        Code.GET_CONSUMER_RUNNING_INFO,
        Code.QUERY_CORRECTION_OFFSET,
        Code.GET_UNIT_TOPIC_LIST,
        Code.GET_HAS_UNIT_SUB_TOPIC_LIST,
        Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
        Code.VIEW_BROKER_STATS_DATA,
        Code.GET_BROKER_CONSUME_STATS,
        Code.GET_NAMESRV_CONFIG,
        Code.QUERY_CONSUME_QUEUE,
        Code.GET_ALL_PRODUCER_INFO,
        Code.QUERY_TOPICS_BY_CONSUMER,
        Code.QUERY_SUBSCRIPTION_BY_CONSUMER,
        Code.GET_TOPIC_CONFIG,
        Code.GET_SUBSCRIPTIONGROUP_CONFIG,
        Code.QUERY_ASSIGNMENT,
        Code.GET_ALL_MESSAGE_REQUEST_MODE,
        Code.AUTH_GET_USER,
        Code.AUTH_LIST_USER,
        Code.AUTH_GET_ACL,
        Code.AUTH_LIST_ACL,
        Code.ROPEWAY_LIST_TIMERS,
        Code.ROPEWAY_LAST_BATCH,
        Code.ROPEWAY_NODE_STATUS,
        Code.ROPEWAY_TOPIC_PLACES,
        Code.ROPEWAY_LIST_HALVES,
        Code.ROPEWAY_EXPLAIN_ACCESS,
        Code.ROPEWAY_GET_LATEST,
        Code.POLLING_INFO,
        Code.GET_BROKER_LITE_INFO,
        Code.GET_PARENT_TOPIC_INFO,
        Code.GET_LITE_TOPIC_INFO,
        Code.GET_LITE_CLIENT_INFO,
        Code.GET_LITE_GROUP_INFO,
        Code.ROPEWAY_LIST_QUOTAS,
        Code.GET_COLD_DATA_FLOW_CTR_INFO,
    }
)
"""What changes nothing that an administrator sets up."""
