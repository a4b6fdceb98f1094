"""Where in Pulsar a resource is: the tenant, the namespace and the name in it.

    orders                persistent://public/default/orders
    acme|blue%orders      persistent://acme/blue/orders
    %DLQ%acme|blue%bills  persistent://acme/blue/%DLQ%bills

As the log on Pulsar keeps topics; a namespace without a tenant is part of the name.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

_PREFIXES = ("%RETRY%", "%DLQ%")
_PARTITION = "-partition-"
_is_legal = re.compile(r"(?!\.+$)[-=:.\w]+", re.ASCII).fullmatch
"""Of a tenant or namespace. Source: NamedEntity.java, Pulsar 4.0.8; but nothing that a
path would take for a step."""


class PulsarResource(NamedTuple):
    """Where a topic or a group is."""

    tenant: str
    namespace: str
    local: str
    """Its name in there."""

    @property
    def space(self) -> str:
        """Tenant and namespace."""
        return f"{self.tenant}/{self.namespace}"

    @property
    def is_legal(self) -> bool:
        """Whether Pulsar could have such a namespace."""
        return bool(_is_legal(self.tenant) and _is_legal(self.namespace))

    @property
    def topic(self) -> str:
        """The Pulsar topic of that name, with all of its partitions."""
        prefix = next((one for one in _PREFIXES if self.local.startswith(one)), "")
        # A slash or a partition's number in it would make it another topic.
        encoded = quote(self.local[len(prefix) :], safe="|")
        encoded = encoded.replace(_PARTITION, "%2Dpartition-")
        return f"persistent://{self.space}/{prefix}{encoded}"


def place_of(name: str, tenant: str, namespace: str) -> PulsarResource:
    """Where a resource is.

    Args:
        name: As the client named it.
        tenant: Of names that have none.
        namespace: Of names that have none.
    """
    prefix = next((one for one in _PREFIXES if name.startswith(one)), "")
    rest = name[len(prefix) :]
    space, found, local = rest.partition("%")
    given_tenant, bar, given_namespace = space.partition("|")
    if found and bar:
        return PulsarResource(given_tenant, given_namespace, prefix + local)
    return PulsarResource(tenant, namespace, prefix + rest)


def space_of(name: str) -> tuple[str, str] | None:
    """Tenant and namespace of `tenant|namespace`; None where it names no tenant."""
    tenant, bar, namespace = name.partition("|")
    return (tenant, namespace) if bar and tenant and namespace else None
