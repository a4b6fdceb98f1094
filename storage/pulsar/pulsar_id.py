"""Which Pulsar cluster has the messages: an id that replication does not carry along.

It is the name of the only field in the schema of the topic that says whose the first
namespace is (`__ropeway@cluster-0`). Pulsar keeps schemas in each cluster's own
metadata, and any broker tells them, whoever serves the topic. Schemas go to another
cluster with messages alone, and this topic has none.
Source: BookkeeperSchemaStorage.java, SchemasResourceBase.java, Pulsar 4.0.8.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Struct

from ropeway.storage.pulsar.topic_names import CLAIM

REPLICA = "replica"
"""What `adopts` says of another Pulsar cluster that has the messages, too."""
_PREFIX = "id_"


class PulsarIds(Struct, frozen=True):
    """Ids of Pulsar clusters, as they stand in the routes of a cluster of Ropeway."""

    current: str | None
    """The one that has the messages; None where none was noted yet."""
    following: str
    """For the one that is used next; the same for all nodes that come at once."""
    others: tuple[str, ...] = ()
    """Nodes that run besides this one."""


class Expected(NamedTuple):
    """What an address of the settings has to show before it is used."""

    topic: str
    """Whose schema has the id, `persistent://tenant/namespace/topic`."""
    pulsar_id: str

    def complaint(self, where: str, schema: bytes | None) -> str | None:
        """Why an address is not used that shows this schema; None where it fits."""
        found = id_in(schema)
        if found == self.pulsar_id:
            return None
        return (
            f"{where} is of another Pulsar cluster ({shown(found)}) than the messages "
            f"(id {self.pulsar_id}), and is not used; see docs/pulsar.md, Two clusters"
        )


class _Field(Struct):
    name: str


class _Record(Struct):
    fields: tuple[_Field, ...]


def schema_topic(space: str) -> str:
    """The topic whose schema has the id, where `space` is the first namespace."""
    return f"persistent://{space}/{CLAIM}0"


def definition(pulsar_id: str) -> str:
    """The schema for an id; one may follow another under each compatibility check."""
    field = {"name": _PREFIX + pulsar_id, "type": ["null", "string"], "default": None}
    record = {"type": "record", "name": "ropeway", "fields": [field]}
    return msgspec.json.encode(record).decode()


def id_in(schema: bytes | None) -> str | None:
    """The id that a schema has; None where it has none."""
    try:
        record = msgspec.json.decode(schema or b"", type=_Record)
    except msgspec.DecodeError:
        return None
    names = [one.name for one in record.fields if one.name.startswith(_PREFIX)]
    return names[0].removeprefix(_PREFIX) if names else None


def shown(found: str | None) -> str:
    """What people are told of an id that a cluster shows, or does not."""
    return "without an id" if found is None else f"id {found}"
