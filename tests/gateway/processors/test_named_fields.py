"""Each field of a request that names a topic or a group needs a right of its own.

Whoever has every right on what the other fields name is refused all the same. A new
field fails here until it is known what it names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.wire.codes import RequestCode as Code
from ropeway.gateway.wire.codes import ResponseCode
from tests.gateway.processors.test_admission import SECRET
from tests.gateway.processors.test_hidden_names import (
    MINE,
    asked,
    codes,
    hiding,
    prepare,
    target_of,
    texts_of,
)
from tests.guarded import ALICE, ask
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = {"topic", "parent_topic", "to_topic", "topic_list"}
GROUPS = {
    "consumer_group",
    "group",
    "group_name",
    "src_group",
    "dest_group",
    "compare_group",
    "filter_groups",
}
BY_THEIR_MESSAGE = {
    "origin_topic",
    "origin_msg_id",
    "msg_id",
    "transaction_id",
    "unique_key",
    "recall_handle",
    "extra_info",
}
"""They name a message, and its own topic is judged, or what another field names."""
OF_THE_CLUSTER = {
    "broker",
    "cluster",
    "cluster_name",
    "kind",
    "name",
    "namespace",
    "stats_key",
    "stats_name",
    "successor",
    "to_broker",
    "value",
}
"""Of requests that need the cluster."""
OF_RULES = {
    "action",
    "address",
    "filter",
    "policy_type",
    "principal",
    "resource",
    "resource_filter",
    "subject",
    "subject_filter",
    "username",
}
"""Likewise."""
OTHERS = {
    "after",
    "attempt_id",
    "attributes",
    "begins",
    "boundary_type",
    "client_addr",
    "client_id",
    "data_version",
    "ends",
    "default_topic",
    "exp",
    "exp_type",
    "expression_type",
    "hold",
    "index_type",
    "key",
    "last_key",
    "lite_topic",
    "producer_group",
    "producer_id",
    "properties",
    "proxy_forward_client_id",
    "subscription",
    "topic_filter_type",
    "writes",
}
"""What is beside a name, or of the client itself; a template lends its queues alone."""
SPELT = (
    Code.SEND_MESSAGE_V2,
    Code.PULL_MESSAGE,
    Code.POP_MESSAGE,
    Code.PEEK_MESSAGE,
    Code.QUERY_MESSAGE,
    Code.QUERY_CONSUMER_OFFSET,
    Code.UPDATE_CONSUMER_OFFSET,
    Code.GET_MAX_OFFSET,
    Code.CONSUMER_SEND_MSG_BACK,
    Code.DELETE_TOPIC_IN_BROKER,
    Code.DELETE_SUBSCRIPTIONGROUP,
)
FREE = {(Code.ROPEWAY_NOTE_RESEND, "topic")}
"""Where a copy came from is only written to the audit log, by who may send it on."""


def test_it_is_known_what_every_field_names():
    named = TOPICS | GROUPS
    others = BY_THEIR_MESSAGE | OF_THE_CLUSTER | OF_RULES | OTHERS
    assert not named & others
    assert {field for code in codes() for field in texts_of(code)} == named | others


@looped
async def test_each_field_that_names_a_thing_needs_a_right_of_its_own(tmp_path: Path):
    let_in, counted = [], 0
    async with hiding(tmp_path) as (app, root, client):
        there, _ = await target_of(root, SECRET)
        for code in codes():
            for form, header, body in asked(code, there):
                field = form.removeprefix("only ")
                by_field = (
                    form.startswith("only ")
                    and field in TOPICS | GROUPS
                    and (code, field) not in FREE
                )
                if not by_field and SECRET.encode() not in body:
                    continue
                counted += 1
                await prepare(app)
                answer = await ask(client, ALICE, header, body)
                if answer.code != ResponseCode.NO_PERMISSION or answer.body:
                    let_in.append((Code(code).name, form, body, answer.code))
    assert not let_in
    # Each of the fields above, and the bodies.
    assert counted > len(TOPICS | GROUPS)


OTHER_SPELLINGS = (
    f" {SECRET}",
    f"{SECRET} ",
    f"{SECRET}\0",
    f"{SECRET}\u200b",
    SECRET.upper(),
    f"\uff53{SECRET[1:]}",
    f"default%{SECRET}",
    f"%RETRY%{SECRET}",
    f"%RETRY%{SECRET}+{MINE}",
    f"%RETRY%{MINE}+{SECRET}",
    f"%RETRY%{SECRET}_{MINE}",
    f"%RETRY%%RETRY%{SECRET}",
    f"%DLQ%{SECRET}",
    f"lite:{SECRET}",
    f"%LMQ%${SECRET}$a",
)


@looped
async def test_a_right_on_one_name_opens_no_other_spelling(tmp_path: Path):
    let_in = []
    async with hiding(tmp_path) as (app, root, client):
        there, _ = await target_of(root, SECRET)
        for spelling in OTHER_SPELLINGS:
            for code in SPELT:
                for form, header, body in asked(code, there._replace(name=spelling)):
                    field = form.removeprefix("only ")
                    if form.startswith("only ") and field in TOPICS | GROUPS:
                        await prepare(app)
                        answer = await ask(client, ALICE, header, body)
                        if answer.code != ResponseCode.NO_PERMISSION:
                            let_in.append((spelling, code.name, form, answer.code))
    assert not let_in
