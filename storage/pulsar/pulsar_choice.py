"""Refuses a Pulsar cluster that has not the messages, and notes one that has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ropeway.storage.api import LogForeignError
from ropeway.storage.pulsar.pulsar_id import (
    REPLICA,
    definition,
    id_in,
    schema_topic,
    shown,
)
from ropeway.storage.pulsar.rest import AdminRefusedError, NotPermittedError

if TYPE_CHECKING:
    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.pulsar_id import PulsarIds

_log = structlog.get_logger()


async def check(
    admin: Admin,
    space: str,
    ids: PulsarIds,
    *,
    is_there: bool,
    adopts: bool,
    has_topics: bool,
) -> str | None:
    """Refuse a Pulsar cluster that is not the one that has the messages.

    Args:
        admin: Its admin REST.
        space: The first namespace.
        ids: What the routes say.
        is_there: Whether it has the namespace.
        adopts: Whether it is to be used all the same from now on.
        has_topics: Whether routes say that there are messages at all.

    Returns:
        The id that it has or gets, for `note`; None where it cannot be told.

    Raises:
        LogForeignError: It is another one; says what can be done.
        LogUnavailableError: The admin REST does not answer.
    """
    topic = schema_topic(space)
    try:
        found = id_in(await admin.schema(topic)) if is_there else None
    except (NotPermittedError, AdminRefusedError) as error:
        _untold(error)
        return None
    if found == ids.current and found is not None:
        return found
    if ids.current is None or found == ids.following or not has_topics:
        return ids.following
    said = (
        f"this Pulsar is another cluster ({shown(found)}, in the schema of {topic}) "
        f"than the one that has the messages (id {ids.current}, in the routes)"
    )
    if not adopts:
        raise LogForeignError(
            f"{said}; set pulsar.service_url and pulsar.admin_url to that one's; to go "
            "on with what was replicated to this one, when no node uses that one any "
            f"more: --adopt {REPLICA}"
        )
    if ids.others:
        raise LogForeignError(
            f"{said}, and nodes run: {', '.join(ids.others)}; stop all before this one "
            f"is started with --adopt {REPLICA}; one that died is named for a session"
        )
    return ids.following


async def note(admin: Admin, space: str, pulsar_id: str) -> str | None:
    """Have a Pulsar cluster show an id; None where it does not take it.

    Raises:
        LogUnavailableError: The admin REST does not answer.
    """
    topic = schema_topic(space)
    try:
        if id_in(await admin.schema(topic)) != pulsar_id:
            await admin.set_schema(topic, "AVRO", definition(pulsar_id))
            _log.warning("Pulsar cluster noted", topic=topic, pulsar_id=pulsar_id)
    except (NotPermittedError, AdminRefusedError) as error:
        _untold(error)
        return None
    return pulsar_id


def _untold(error: Exception) -> None:
    _log.warning(
        "this Pulsar cluster cannot be told from another one: name brokers of no other "
        "in pulsar.service_url and pulsar.admin_url",
        reason=str(error),
    )
