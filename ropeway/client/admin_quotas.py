"""Quotas of topics and groups: setting, deleting and listing them. Ropeway's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.wire.commands.quotas import (
    DeleteQuota,
    ListQuotas,
    Quota,
    QuotaInfo,
    QuotaList,
    SetQuota,
)

if TYPE_CHECKING:
    from ropeway.client.admin import Admin

__all__ = ["Quota", "QuotaInfo", "delete", "listed", "set_limits"]


async def set_limits(admin: Admin, kind: str, name: str, limits: Quota) -> None:
    """Set limits of a topic or a group, on each node; those not given stay.

    Args:
        admin: Asks.
        kind: `topic` or `group`.
        name: Its name; it need not be there yet.
        limits: Numbers a second; 0 removes one.

    Raises:
        ResponseError: The limits are none of that kind, or it is not allowed.
        RemotingError: A server cannot be reached.
    """
    given = msgspec.structs.asdict(limits)
    await admin.ask_name_server(SetQuota(kind=kind, name=name, **given))


async def delete(admin: Admin, kind: str, name: str) -> None:
    """Remove all limits of a topic or a group, whether there are any or not.

    Raises:
        RemotingError: A server cannot be reached, or refused.
    """
    await admin.ask_name_server(DeleteQuota(kind=kind, name=name))


async def listed(admin: Admin) -> list[QuotaInfo]:
    """All quotas of topics and groups, and how often brokers have throttled for them.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    found: dict[tuple[str, str], QuotaInfo] = {}
    for response in await admin.ask_masters(ListQuotas()):
        for one in response.json(QuotaList).quotas:
            before = found.get((one.kind, one.name))
            times = one.throttled + (before.throttled if before else 0)
            found[one.kind, one.name] = msgspec.structs.replace(one, throttled=times)
    return [found[key] for key in sorted(found)]
