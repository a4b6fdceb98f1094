"""Quotas of topics and groups are set, listed and deleted over the wire."""

from __future__ import annotations

import msgspec
import pytest

from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.quotas import (
    ColdDataFlow,
    DeleteQuota,
    ListQuotas,
    Quota,
    QuotaInfo,
    QuotaList,
    SetQuota,
    cold_lines,
)
from ropeway.gateway.wire.header import row_of, to_fields
from tests.audited import audited, changes
from tests.guarded import ALICE, ROOT, allow, ask, guarded
from tests.remoting import Remoting, looped, running

DENIED = ResponseCode.NO_PERMISSION
UPDATE, REMOVE, GET = (
    RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
    RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
    RequestCode.GET_COLD_DATA_FLOW_CTR_INFO,
)


async def listed(client: Remoting) -> list[QuotaInfo]:
    answer = await client.ask(ListQuotas())
    return msgspec.json.decode(answer.body, type=QuotaList).quotas


@looped
async def test_limits_are_set_one_by_one_and_listed_and_deleted(tmp_path):
    async with running(tmp_path, audit=audited(tmp_path)) as (_, client):
        assert await listed(client) == []
        first = SetQuota("topic", "orders", send_bytes_per_s=10, read_bytes_per_s=20)
        for header in (
            first,
            SetQuota("group", "readers", cold_bytes_per_s=30),
            SetQuota("topic", "orders", send_bytes_per_s=0, send_requests_per_s=5),
        ):
            assert (await client.ask(header)).code == 0
        orders = Quota(send_requests_per_s=5, read_bytes_per_s=20)
        assert await listed(client) == [
            QuotaInfo("group", "readers", Quota(cold_bytes_per_s=30)),
            QuotaInfo("topic", "orders", orders),
        ]
        for kind, name in (("topic", "orders"), ("group", "readers")):
            assert (await client.ask(DeleteQuota(kind, name))).code == 0
        assert await listed(client) == []
        told = [
            (one["resource"], one.get("before"), one.get("after"))
            for one in changes(tmp_path, "QUOTA")
        ]
        both = {"sendBytesPerS": 10, "readBytesPerS": 20}
        after = {"sendRequestsPerS": 5, "readBytesPerS": 20}
        assert told == [
            ("Quota:topic/orders", None, both),
            ("Quota:group/readers", None, {"coldBytesPerS": 30}),
            ("Quota:topic/orders", both, after),
            ("Quota:topic/orders", after, None),
            ("Quota:group/readers", {"coldBytesPerS": 30}, None),
        ]


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (SetQuota("queue", "orders", send_bytes_per_s=1), "allowed: topic, group"),
        (SetQuota("topic", "a b", send_bytes_per_s=1), "a b"),
        (SetQuota("topic", "orders"), "limits of a topic: none; allowed: send_req"),
        (
            SetQuota("group", "g", send_bytes_per_s=1),
            "limits of a group: send_bytes_per_s; allowed: read_requests_per_s, read",
        ),
        (SetQuota("topic", "orders", cold_bytes_per_s=1), "limits of a topic: cold"),
        (SetQuota("topic", "orders", send_bytes_per_s=-1), "sendBytesPerS is '-1'"),
        (SetQuota("topic", "orders", send_bytes_per_s=2**53 + 1), "9007199254740992"),
        (DeleteQuota("group", ""), "group"),
    ],
)
@looped
async def test_what_is_no_quota_is_refused_with_what_is_allowed(
    tmp_path, header, complaint
):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(header)
        assert answer.code != 0
        assert complaint in answer.remark
        assert await listed(client) == []


@looped
async def test_mqadmin_limits_cold_reads_by_bytes_in_five_seconds(tmp_path):
    async with running(tmp_path) as (_, client):

        async def told() -> ColdDataFlow:
            answer = await client.ask(GET, fields={})
            return msgspec.json.decode(answer.body, type=ColdDataFlow)

        body = b"readers=3145728\n# a comment\nothers=1\n"
        assert (await client.ask(UPDATE, body, fields={})).code == 0
        assert (await told()).config_table == {"others": 5, "readers": 3145730}
        found = {one.name: one.quota.cold_bytes_per_s for one in await listed(client)}
        assert found == {"others": 1, "readers": 629146}
        assert (await client.ask(REMOVE, b"others", fields={})).code == 0
        assert (await told()).config_table == {"readers": 3145730}
        for wrong in (b"", b"readers=0", b"readers=x", b"a b=1", b"readers"):
            refused = await client.ask(UPDATE, wrong, fields={})
            assert refused.code == ResponseCode.INVALID_PARAMETER, wrong
            assert "allowed" in refused.remark or "a b" in refused.remark


@looped
async def test_only_who_may_change_the_cluster_sets_quotas(tmp_path):
    rules = allow("Topic:*"), allow("Group:*"), allow("Cluster:*", "Get")
    async with guarded(tmp_path, *rules) as (_, client):
        limit = SetQuota("topic", "orders", send_bytes_per_s=10)
        for header in (limit, DeleteQuota("topic", "orders")):
            assert (await ask(client, ALICE, header)).code == DENIED
            assert (await ask(client, ROOT, header)).code == 0
        assert (await ask(client, ALICE, ListQuotas())).code == 0


def test_the_header_and_the_quota_have_the_same_limits():
    fields = to_fields(SetQuota("topic", "t", 1, 2, 3, 4, 5))
    quota = {"kind": "topic", "name": "t"}
    for name, value in msgspec.to_builtins(Quota(1, 2, 3, 4, 5)).items():
        quota[name] = str(value)
    assert fields == quota
    assert row_of(SetQuota).code == RequestCode.ROPEWAY_SET_QUOTA


def test_comments_and_empty_lines_name_no_group():
    assert list(cold_lines(b"a=1\n# b=2\n\n c = 3 \nd\n")) == [
        ("a", "1"),
        ("c", "3"),
        ("d", ""),
    ]
