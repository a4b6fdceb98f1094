"""Names: a RocketMQ topic's partition and its Pulsar topic, one to one. No I/O here.

    orders                     persistent://public/default/orders-partition-0
    acme|blue%orders           persistent://acme/blue/orders-partition-0
    %RETRY%acme|blue%billing   persistent://acme/blue/%RETRY%billing-partition-0
    blue%orders                persistent://public/default/blue%25orders-partition-0
    orders, generation 2       persistent://public/default/orders@2-partition-0

Tenant and namespace stand as RocketMQ's namespaces do: behind `%RETRY%` or `%DLQ%`,
before a `%`. A namespace without a tenant is RocketMQ's own, and part of the name.
A topic that was deleted and made again is another generation; no name that is encoded
has an `@`.
Source: NamespaceUtil.java, RocketMQ 5.3.4; RocketMQTopic.java, RoP 0.3.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from ropeway.storage.api import LogLimitError

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
PARTITION = "-partition-"
"""Pulsar's own mark between a topic and a partition's number."""
CLAIM = "__ropeway@cluster-"
"""What names of topics that say whose a namespace is begin with."""
_generation = re.compile(r"(.+)@([1-9][0-9]{0,9})", re.DOTALL).fullmatch

_legal = re.compile(r"[-=:.\w]+", re.ASCII).fullmatch
"""Source: NamedEntity.java, Pulsar 4.0.8."""


class PulsarName(NamedTuple):
    """A partitioned topic of Pulsar."""

    tenant: str
    namespace: str
    local: str

    def partition(self, number: int) -> str:
        """The full name of one of its partitions."""
        return (
            f"persistent://{self.tenant}/{self.namespace}/{self.local}"
            f"{PARTITION}{number}"
        )

    @property
    def generation(self) -> int:
        """Which of those that were made under one RocketMQ name."""
        found = _generation(self.local)
        return int(found[2]) if found else 0

    @property
    def path(self) -> str:
        """As the admin REST's paths have it."""
        return f"{self.tenant}/{self.namespace}/{quote(self.local, safe='')}"


class Names:
    """The two ways between names.

    Args:
        tenant: Of topics that name none.
        namespace: Of topics that name none.
    """

    def __init__(self, tenant: str, namespace: str) -> None:
        self.tenant = tenant
        self.namespace = namespace

    def pulsar(self, topic: str, generation: int = 0) -> PulsarName:
        """The Pulsar topic of a RocketMQ topic.

        Args:
            topic: Its name.
            generation: How often it was deleted before, or more.

        Raises:
            LogLimitError: Pulsar cannot take that tenant or namespace.
        """
        prefix, rest = _split(topic)
        tenant, namespace, local = _place(rest) or (self.tenant, self.namespace, rest)
        name = self._name(topic, tenant, namespace, prefix, local)
        if generation:
            name = name._replace(local=f"{name.local}@{generation}")
        return name

    def _name(
        self, topic: str, tenant: str, namespace: str, prefix: str, local: str
    ) -> PulsarName:
        for part in (tenant, namespace):
            if not _legal(part):
                raise LogLimitError(
                    f"topic {topic}: {part!r} cannot be a tenant or namespace of "
                    "Pulsar; allowed: letters, digits and _ - = : ."
                )
        if not local:
            raise LogLimitError(f"topic {topic} has a namespace and no name")
        return PulsarName(tenant, namespace, prefix + _encode(local))

    def rocketmq(self, name: PulsarName) -> str:
        """The RocketMQ topic of a Pulsar topic, in the shortest form."""
        found = _generation(name.local)
        prefix, rest = _split(found[1] if found else name.local)
        rest = unquote(rest)
        ours = (name.tenant, name.namespace) == (self.tenant, self.namespace)
        if ours and _place(rest) is None:
            return prefix + rest
        return f"{prefix}{name.tenant}|{name.namespace}%{rest}"

    def canonical(self, topic: str) -> str:
        """The one form among those that mean the same topic."""
        return self.rocketmq(self.pulsar(topic))

    def refuse_alias(self, topic: str) -> None:
        """See that a topic to be made has the one name that it can have.

        By a second one, whoever knows topics by their names alone would guard, count
        and delete the same messages as another topic.

        Raises:
            LogLimitError: Another name means the same topic.
        """
        if (canonical := self.canonical(topic)) != topic:
            raise LogLimitError(
                f"topic {topic} is called {canonical} here: {self.tenant}|"
                f"{self.namespace} is where names without a namespace are"
            )

    def is_in(self, space: str, topic: str) -> bool:
        """Whether a topic is in `tenant/namespace`; none is that Pulsar cannot take."""
        try:
            name = self.pulsar(topic)
        except LogLimitError:
            return False
        return f"{name.tenant}/{name.namespace}" == space


def parse_partition(full: str) -> tuple[PulsarName, int] | None:
    """Take a partition's full name apart; None where it is none of a RocketMQ topic."""
    scheme, found, rest = full.partition("://")
    parts = rest.split("/", 2)
    if scheme != "persistent" or not found or len(parts) != 3:  # noqa: PLR2004 - tenant, namespace, topic
        return None
    local, found, number = parts[2].rpartition(PARTITION)
    if not found or not local or not number.isascii() or not number.isdigit():
        return None
    if local.startswith(CLAIM):
        return None
    return PulsarName(parts[0], parts[1], local), int(number)


def _split(name: str) -> tuple[str, str]:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name


def _place(rest: str) -> tuple[str, str, str] | None:
    """Tenant, namespace and name of `tenant|namespace%name`; None of anything else."""
    space, found, local = rest.partition("%")
    tenant, bar, namespace = space.partition("|")
    if not (found and bar):
        return None
    return tenant, namespace, local


def _encode(local: str) -> str:
    """What Pulsar takes: no slashes, no mark of a partition, and nothing ambiguous."""
    return quote(local, safe="|").replace(PARTITION, "%2Dpartition-")
