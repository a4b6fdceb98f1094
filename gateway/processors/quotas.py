"""Quotas of topics and groups: set, deleted and listed while the node runs.

Source of the requests for cold reads: AdminBrokerProcessor.java and
ColdDataCgCtrService.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ropeway.common.clock import now_ms
from ropeway.gateway.node import names
from ropeway.gateway.node.quotas import ALLOWED, GROUP, TOPIC, Key
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import GET, UPDATE, on_cluster
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.quotas import (
    COLD_FORGET_S,
    COLD_WINDOW_S,
    ColdDataFlow,
    ColdReads,
    DeleteQuota,
    GetColdDataFlowCtrInfo,
    ListQuotas,
    Quota,
    QuotaInfo,
    QuotaList,
    RemoveColdDataFlowCtrConfig,
    SetQuota,
    UpdateColdDataFlowCtrConfig,
    cold_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPLAINTS = {TOPIC: names.topic_complaint, GROUP: names.group_complaint}


@handles(SetQuota, on_cluster(UPDATE), anywhere=True)
async def set_quota(request: SetQuota, context: Context) -> Answer:
    """Set what is given, and leave the rest as it is; 0 removes a limit."""
    key = _key(request.kind, request.name)
    limits = Quota.__struct_fields__
    given = {name: getattr(request, name) for name in limits}
    pairs = {name: value for name, value in given.items() if value is not None}
    allowed = [name for name in limits if name.startswith(ALLOWED[key.kind])]
    if not pairs or not pairs.keys() <= set(allowed):
        raise _bad(
            f"limits of a {key.kind}: {', '.join(pairs) or 'none'}; "
            f"allowed: {', '.join(allowed)}"
        )
    await context.node.quotas.change(key, partial(_changed, pairs))
    return Answer()


def _changed(pairs: dict[str, int], old: Quota) -> Quota:
    return msgspec.structs.replace(
        old, **{name: value or None for name, value in pairs.items()}
    )


@handles(DeleteQuota, on_cluster(UPDATE), anywhere=True)
async def delete_quota(request: DeleteQuota, context: Context) -> Answer:
    """Remove every limit."""
    await context.node.quotas.change(_key(request.kind, request.name), lambda _: None)
    return Answer()


@handles(ListQuotas, on_cluster(GET), anywhere=True)
async def list_quotas(_: ListQuotas, context: Context) -> Answer:
    """Every quota, and how often this node has held something back for it."""
    await context.node.routes.catch_up()
    quotas = context.node.quotas
    times = {key: sum(one.values()) for key, one in quotas.throttled().items()}
    found = [
        QuotaInfo(key.kind, key.name, quota, times.get(key, 0))
        for key, quota in sorted(quotas.kept.items())
    ]
    return Answer(body=bodies.encode(QuotaList(found)))


def _key(kind: str, name: str) -> Key:
    if kind not in ALLOWED:
        raise _bad(f"kind is {kind!r:.40}; allowed: {', '.join(ALLOWED)}")
    if complaint := _COMPLAINTS[kind](name):
        raise _bad(complaint)
    return Key(kind, name)


def _bad(complaint: str) -> Refusal:
    return Refusal(ResponseCode.INVALID_PARAMETER, complaint)


@handles(UpdateColdDataFlowCtrConfig, on_cluster(UPDATE))
async def limit_cold_reads(_: UpdateColdDataFlowCtrConfig, context: Context) -> Answer:
    """Limit cold reads of groups; all that are named, or none."""
    wanted = [(_key(GROUP, name), value) for name, value in cold_limits(context.body)]
    if not wanted:
        raise _bad("no group is named; allowed: lines of group=threshold")
    for key, threshold in wanted:
        rate = -(-threshold // COLD_WINDOW_S)
        change = partial(_changed, {"cold_bytes_per_s": rate})
        await context.node.quotas.change(key, change)
    return Answer()


def cold_limits(body: bytes) -> Iterator[tuple[str, int]]:
    """Read groups and their thresholds, in bytes.

    Raises:
        Refusal: A threshold is not a whole number above 0.
    """
    for name, value in cold_lines(body):
        if not (value.isascii() and value.isdecimal() and 0 < int(value) < 2**53):
            raise _bad(
                f"threshold of {name:.200} is {value!r:.40}; allowed: a whole number "
                f"above 0, of bytes in {COLD_WINDOW_S} seconds"
            )
        yield name, int(value)


@handles(RemoveColdDataFlowCtrConfig, on_cluster(UPDATE))
async def free_cold_reads(_: RemoveColdDataFlowCtrConfig, context: Context) -> Answer:
    """Limit cold reads of a group no more."""
    key = _key(GROUP, context.body.decode(errors="replace").strip())
    await context.node.quotas.change(
        key, lambda old: msgspec.structs.replace(old, cold_bytes_per_s=None)
    )
    return Answer()


@handles(GetColdDataFlowCtrInfo, on_cluster(GET))
async def get_cold_reads(_: GetColdDataFlowCtrInfo, context: Context) -> Answer:
    """The groups whose cold reads are limited, and what they have read lately."""
    await context.node.routes.catch_up()
    quotas, now = context.node.quotas, now_ms()
    runtime = {
        group: ColdReads(
            one.size_bytes if now - one.last_ms < COLD_WINDOW_S * 1000 else 0,
            one.since_ms,
            one.last_ms,
        )
        for group, one in quotas.cold_reads.items()
        if now - one.last_ms < COLD_FORGET_S * 1000
    }
    config = {
        key.name: quota.cold_bytes_per_s * COLD_WINDOW_S
        for key, quota in sorted(quotas.kept.items())
        if quota.cold_bytes_per_s
    }
    total = sum(one.cold_acc for one in runtime.values())
    return Answer(body=bodies.encode(ColdDataFlow(runtime, config, total)))
