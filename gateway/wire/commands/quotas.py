"""Requests for quotas of topics and groups: ours, and RocketMQ's for cold reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.header import Header, request

if TYPE_CHECKING:
    from collections.abc import Iterator

Rate = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
COLD_WINDOW_S = 5
"""RocketMQ's thresholds are bytes in so many seconds: ColdDataCgCtrService.run."""
COLD_FORGET_S = 60
"""A group without cold reads for so long is forgotten:
ColdDataCgCtrService.cgColdAccResideTimeoutMills, RocketMQ 5.5.0."""


class Quota(Body, frozen=True, omit_defaults=True):
    """What may be taken of a topic, or by a group, on each node; None: no limit.

    In a request 0 removes a limit, and what is not given stays as it is.
    """

    send_requests_per_s: Rate | None = None
    """Of a topic: sends, of which a batch is one."""
    send_bytes_per_s: Rate | None = None
    read_requests_per_s: Rate | None = None
    """Pulls and pops that bring messages: of a topic by all groups, or of a group."""
    read_bytes_per_s: Rate | None = None
    cold_bytes_per_s: Rate | None = None
    """Of a group: what is read that the node has not in memory."""


@request(RequestCode.ROPEWAY_SET_QUOTA)
class SetQuota(Header, frozen=True):
    """Set limits of a topic or a group: those of a `Quota`."""

    kind: str
    """`topic` or `group`."""
    name: str
    send_requests_per_s: Rate | None = None
    send_bytes_per_s: Rate | None = None
    read_requests_per_s: Rate | None = None
    read_bytes_per_s: Rate | None = None
    cold_bytes_per_s: Rate | None = None


@request(RequestCode.ROPEWAY_DELETE_QUOTA)
class DeleteQuota(Header, frozen=True):
    """Remove all limits of a topic or a group."""

    kind: str
    name: str


@request(RequestCode.ROPEWAY_LIST_QUOTAS)
class ListQuotas(Header, frozen=True):
    """Ask a node for all quotas of topics and groups; answered by `QuotaList`."""


class QuotaInfo(Body, frozen=True):
    """One quota, as a node has it."""

    kind: str
    name: str
    quota: Quota
    throttled: int = 0
    """How often the node has held something back for it, since it knows it so."""


class QuotaList(Body, frozen=True):
    """All quotas, by kind and name."""

    quotas: list[QuotaInfo]


@request(RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG)
class UpdateColdDataFlowCtrConfig(Header, frozen=True):
    """Limit cold reads of groups; the body has `group=threshold` lines.

    Source: AdminBrokerProcessor.updateColdDataFlowCtrGroupConfig, RocketMQ 5.5.0.
    """


def cold_lines(body: bytes) -> Iterator[tuple[str, str]]:
    """Read groups and their thresholds, as texts, from lines of Java's properties."""
    for line in body.decode(errors="replace").splitlines():
        name, _, value = (part.strip() for part in line.partition("="))
        if name and not name.startswith("#"):
            yield name, value


@request(RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG)
class RemoveColdDataFlowCtrConfig(Header, frozen=True):
    """Limit cold reads of a group no more; the body is the group's name.

    Source: AdminBrokerProcessor.removeColdDataFlowCtrGroupConfig, RocketMQ 5.5.0.
    """


@request(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO)
class GetColdDataFlowCtrInfo(Header, frozen=True):
    """Ask which groups' cold reads are limited, and what they read; JSON.

    Source: AdminBrokerProcessor.getColdDataFlowCtrInfo, RocketMQ 5.5.0.
    """


class ColdReads(Body, frozen=True):
    """What a group has read lately: AccAndTimeStamp of RocketMQ 5.5.0."""

    cold_acc: int
    """Bytes in the last `COLD_WINDOW_S`, or so."""
    create_time_mills: int
    last_cold_read_time_mills: int


class ColdDataFlow(Body, frozen=True):
    """The answer to `GetColdDataFlowCtrInfo`, as mqadmin prints it."""

    runtime_table: dict[str, ColdReads]
    """Groups with a limit that have read old messages in the last minute."""
    config_table: dict[str, int]
    """Thresholds: bytes in `COLD_WINDOW_S`."""
    global_acc: int
    """Bytes that those groups have read lately, together."""
