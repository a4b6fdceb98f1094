"""The admin REST of Pulsar's model: those requests that `storage/pulsar` makes.

Each broker answers them, or sends on to the one that serves the topic.
Source: PersistentTopicsBase, NamespacesBase, TenantsBase, Pulsar 4.0.8.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import msgspec

from tests.simulation.pulsar_served import Served

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.pulsar_brokers import Broker

VERSION = "4.0.8"
COMPACTION_S = (0.02, 1.0)
SETTINGS = {"maxMessageSize": "5242880", "allowAutoTopicCreation": "true"}
POLICIES = {
    "deduplication": "deduplicationEnabled",
    "retention": "retention_policies",
    "inactiveTopicPolicies": "inactive_topic_policies",
    "autoTopicCreation": "autoTopicCreationOverride",
}
"""What is set by which path, and shown under which name."""


class Asked(msgspec.Struct):
    """A request, as it goes over the simulated network."""

    method: str
    path: str
    """Behind `/admin/v2/`, as it was encoded."""
    query: dict[str, str] = {}
    body: Any = None


class Answer(msgspec.Struct):
    """Status and content; with 307, the host that is to be asked."""

    status: int = HTTPStatus.OK
    content: Any = None
    onward: str = ""


DONE = Answer(HTTPStatus.NO_CONTENT)


class Partitioned(NamedTuple):
    """What metadata have of a partitioned topic."""

    partitions: int
    properties: dict[str, str]


def _refused(status: int, reason: str) -> Answer:
    return Answer(status, {"reason": reason})


def _absent(what: str) -> Answer:
    return _refused(HTTPStatus.NOT_FOUND, f"{what} not found")


def answered(broker: Broker, asked: Asked) -> Answer:
    """What a broker answers."""
    for method, pattern, do in TABLE:
        if method == asked.method and (found := pattern.fullmatch(asked.path)):
            return do(broker, asked, *map(unquote, found.groups()))
    raise NotImplementedError(f"{asked.method} {asked.path}")


# -- brokers, tenants, namespaces


def _space(broker: Broker, asked: Asked, tenant: str, name: str) -> Answer:
    found = broker.pulsar.spaces.get(f"{tenant}/{name}")
    return _absent("Namespace") if found is None else Answer(content=found)


def _make_tenant(broker: Broker, asked: Asked, tenant: str) -> Answer:
    if tenant in broker.pulsar.tenants:
        return _refused(HTTPStatus.CONFLICT, "Tenant already exist")
    broker.pulsar.tenants.add(tenant)
    return DONE


def _make_space(broker: Broker, asked: Asked, tenant: str, name: str) -> Answer:
    if tenant not in broker.pulsar.tenants:
        return _absent("Tenant")
    if f"{tenant}/{name}" in broker.pulsar.spaces:
        return _refused(HTTPStatus.CONFLICT, "Namespace already exists")
    broker.pulsar.spaces[f"{tenant}/{name}"] = {"properties": {}}
    return DONE


def _changed(
    change: Callable[[dict[str, Any], Asked, str], Answer],
) -> Callable[..., Answer]:
    """What changes the policies of a namespace that is there."""

    def do(
        broker: Broker, asked: Asked, tenant: str, name: str, what: str = ""
    ) -> Answer:
        found = broker.pulsar.spaces.get(f"{tenant}/{name}")
        return _absent("Namespace") if found is None else change(found, asked, what)

    return do


def _set_policy(policies: dict[str, Any], asked: Asked, which: str) -> Answer:
    policies[POLICIES[which]] = asked.body
    return DONE


def _set_properties(policies: dict[str, Any], asked: Asked, _: str) -> Answer:
    policies["properties"].update(asked.body)
    return DONE


def _remove_property(policies: dict[str, Any], asked: Asked, key: str) -> Answer:
    policies["properties"].pop(key, None)
    return Answer()


# -- topics


def _name(tenant: str, space: str, local: str) -> str:
    return f"persistent://{tenant}/{space}/{local}"


def _topics(broker: Broker, asked: Asked, tenant: str, space: str) -> Answer:
    if f"{tenant}/{space}" not in broker.pulsar.spaces:
        return _absent("Namespace")
    begin = _name(tenant, space, "")
    found = sorted(one for one in broker.pulsar.topics if one.startswith(begin))
    return Answer(content=found)


def _make_topic(broker: Broker, asked: Asked, *where: str) -> Answer:
    name = _name(*where)
    if f"{where[0]}/{where[1]}" not in broker.pulsar.spaces:
        return _absent("Namespace")
    if name in broker.pulsar.partitioned or not broker.pulsar.make(name):
        return _refused(HTTPStatus.CONFLICT, "This topic already exists")
    return DONE


def _delete_topic(broker: Broker, asked: Asked, *where: str) -> Answer:
    name = _name(*where)
    if name in broker.pulsar.partitioned:
        return _refused(HTTPStatus.CONFLICT, f"{name} is a partitioned topic")
    broker.pulsar.schemas.pop(name, None)
    if not broker.pulsar.delete(name):
        return _absent("Topic")
    return DONE


def _partitions(broker: Broker, asked: Asked, *where: str) -> Answer:
    found = broker.pulsar.partitioned.get(_name(*where))
    if found is not None:
        return Answer(content=found._asdict())
    if _name(*where) in broker.pulsar.topics:
        return Answer(content={"partitions": 0})
    return _absent("Topic")


def _make_partitioned(broker: Broker, asked: Asked, *where: str) -> Answer:
    name, body = _name(*where), asked.body
    if f"{where[0]}/{where[1]}" not in broker.pulsar.spaces:
        return _absent("Namespace")
    if name in broker.pulsar.partitioned or name in broker.pulsar.topics:
        return _refused(HTTPStatus.CONFLICT, "This topic already exists")
    if isinstance(body, int):
        body = {"partitions": body}
    made = Partitioned(body["partitions"], body.get("properties") or {})
    broker.pulsar.partitioned[name] = made
    return _make_missing(broker, asked, *where)


def _extend(broker: Broker, asked: Asked, *where: str) -> Answer:
    name = _name(*where)
    found = broker.pulsar.partitioned.get(name)
    if found is None:
        return _refused(HTTPStatus.CONFLICT, f"{name} is not the partitioned topic")
    if asked.body < found.partitions:
        reason = f"Desired partitions {asked.body} can't be less than there are"
        return _refused(HTTPStatus.UNPROCESSABLE_ENTITY, reason)
    broker.pulsar.partitioned[name] = found._replace(partitions=asked.body)
    return _make_missing(broker, asked, *where)


def _make_missing(broker: Broker, asked: Asked, *where: str) -> Answer:
    name = _name(*where)
    found = broker.pulsar.partitioned.get(name)
    if found is None:
        return _absent("Topic")
    for number in range(found.partitions):
        broker.pulsar.make(f"{name}-partition-{number}")
    return DONE


def _delete_partitioned(broker: Broker, asked: Asked, *where: str) -> Answer:
    name = _name(*where)
    if name in broker.pulsar.topics:
        return _refused(HTTPStatus.CONFLICT, f"{name} is a non-partitioned topic")
    found = broker.pulsar.partitioned.pop(name, None)
    if found is None:
        return _absent("Topic")
    broker.pulsar.schemas.pop(name, None)
    for number in range(found.partitions):
        broker.pulsar.delete(f"{name}-partition-{number}")
    return DONE


def _schema(broker: Broker, asked: Asked, *where: str) -> Answer:
    found = broker.pulsar.schemas.get(_name(*where))
    if found is None:
        return _absent("Schema")
    return Answer(content={"data": found[-1].decode()})


def _set_schema(broker: Broker, asked: Asked, *where: str) -> Answer:
    known = broker.pulsar.schemas.setdefault(_name(*where), [])
    if asked.body["schema"].encode() not in known:
        known.append(asked.body["schema"].encode())
    return Answer(content={"version": 0})


# -- what only the broker of a topic knows


def _owned(do: Callable[[Broker, Served, Asked], Answer]) -> Callable[..., Answer]:
    """What the broker answers that serves the topic, and others send on to."""

    def ask(broker: Broker, asked: Asked, *where: str) -> Answer:
        owner = broker.pulsar.owner(_name(*where))
        if owner is None:
            reason = "Failed to find ownership for topic"
            return _refused(HTTPStatus.PRECONDITION_FAILED, reason)
        if owner is not broker:
            return Answer(HTTPStatus.TEMPORARY_REDIRECT, onward=owner.host)
        served = broker.serve(_name(*where))
        if not isinstance(served, Served):
            return _absent("Topic")
        return do(broker, served, asked)

    return ask


def _compact(broker: Broker, served: Served, asked: Asked) -> Answer:
    if served.compaction == "RUNNING":
        return _refused(HTTPStatus.CONFLICT, "Compaction already in progress")
    served.compaction = "RUNNING"

    def end() -> None:
        if not served.is_closed:
            served.topic.compact()
            served.compaction = "SUCCESS"

    broker.after(broker.chance.uniform(*COMPACTION_S), end)
    return DONE


def _compaction(broker: Broker, served: Served, asked: Asked) -> Answer:
    return Answer(content={"status": served.compaction, "lastError": ""})


def _stats(broker: Broker, served: Served, asked: Asked) -> Answer:
    topic = served.topic
    ledgers = [
        {"ledgerId": one.number, "entries": one.next_entry} for one in topic.ledgers
    ]
    ledgers[-1]["entries"] = 0
    content = {
        "ledgers": ledgers,
        "currentLedgerEntries": topic.ledgers[-1].next_entry,
        "compactedLedger": {"entries": len(topic.compacted) or -1, "size": -1},
    }
    return Answer(content=content)


def _unload(broker: Broker, served: Served, asked: Asked) -> Answer:
    broker.served.pop(served.topic.name).unload()
    return DONE


SPACE = "([^/]+)/([^/]+)"
TOPIC = f"{SPACE}/([^/]+)"
TABLE: list[tuple[str, re.Pattern[str], Callable[..., Answer]]] = [
    (method, re.compile(pattern), do)
    for method, pattern, do in [
        ("GET", "brokers/version", lambda *_: Answer(content=VERSION)),
        ("GET", "brokers/configuration/runtime", lambda *_: Answer(content=SETTINGS)),
        ("GET", "clusters", lambda *_: Answer(content=["model"])),
        ("PUT", "tenants/([^/]+)", _make_tenant),
        ("GET", f"namespaces/{SPACE}", _space),
        ("PUT", f"namespaces/{SPACE}", _make_space),
        ("PUT", f"namespaces/{SPACE}/properties", _changed(_set_properties)),
        ("DELETE", f"namespaces/{SPACE}/property/([^/]+)", _changed(_remove_property)),
        ("POST", f"namespaces/{SPACE}/([^/]+)", _changed(_set_policy)),
        ("GET", f"persistent/{SPACE}", _topics),
        ("PUT", f"persistent/{TOPIC}", _make_topic),
        ("DELETE", f"persistent/{TOPIC}", _delete_topic),
        ("GET", f"persistent/{TOPIC}/partitions", _partitions),
        ("PUT", f"persistent/{TOPIC}/partitions", _make_partitioned),
        ("POST", f"persistent/{TOPIC}/partitions", _extend),
        ("DELETE", f"persistent/{TOPIC}/partitions", _delete_partitioned),
        ("POST", f"persistent/{TOPIC}/createMissedPartitions", _make_missing),
        ("GET", f"schemas/{TOPIC}/schema", _schema),
        ("POST", f"schemas/{TOPIC}/schema", _set_schema),
        ("PUT", f"persistent/{TOPIC}/compaction", _owned(_compact)),
        ("GET", f"persistent/{TOPIC}/compaction", _owned(_compaction)),
        ("GET", f"persistent/{TOPIC}/internalStats", _owned(_stats)),
        # Brokers of 4.0.8 do not have it yet.
        ("GET", f"persistent/{TOPIC}/getMessageIdByIndex", lambda *_: _absent("It")),
        ("PUT", f"persistent/{TOPIC}/unload", _owned(_unload)),
    ]
]
"""In full, and the first that fits."""
