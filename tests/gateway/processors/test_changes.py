"""Each request is a change or none, and each change says what it changes."""

from __future__ import annotations

import msgspec
import pytest

import ropeway.gateway.processors.all  # noqa: F401 - registers every processor
from ropeway.client.admin_dlq import REPLAY_GROUP
from ropeway.client.admin_messages import READER_GROUP
from ropeway.gateway.cli.loads import GROUP as BENCH_GROUP
from ropeway.gateway.http import login
from ropeway.gateway.http.api import ROUTES
from ropeway.gateway.node import names
from ropeway.gateway.processors.changes import CHANGES, NOT_CHANGES
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.wire import bodies, recall
from ropeway.gateway.wire.access_bodies import (
    AclInfo,
    PolicyEntryInfo,
    PolicyInfo,
    UserInfo,
)
from ropeway.gateway.wire.codes import RequestCode as Code
from ropeway.gateway.wire.commands.admin import (
    CreateGroup,
    CreateTopic,
    CreateTopicList,
    DeleteGroup,
    DeleteTopic,
)
from ropeway.gateway.wire.commands.auth import (
    CreateAcl,
    CreateUser,
    DeleteAcl,
    DeleteUser,
    UpdateAcl,
    UpdateUser,
)
from ropeway.gateway.wire.commands.broker_admin import UpdateBrokerConfig
from ropeway.gateway.wire.commands.compaction import CompactTopic
from ropeway.gateway.wire.commands.group_admin import (
    CloneGroupOffset,
    CreateGroupList,
    ResetOffset,
)
from ropeway.gateway.wire.commands.namesrv import DeleteKvConfig, PutKvConfig
from ropeway.gateway.wire.commands.namesrv_admin import AddWritePerm, WipeWritePerm
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from ropeway.gateway.wire.commands.send import (
    ConsumerSendMsgBack,
    RecallMessage,
    SendReply,
)
from ropeway.gateway.wire.commands.trims import TrimTopic
from ropeway.gateway.wire.header import row_of
from ropeway.gateway.wire.recall import RecallHandle
from tests.audited import audited, changes, lines
from tests.gateway.processors.test_admission import BODIES, made
from tests.guarded import PASSWORD, ROOT, acl_of, ask
from tests.remoting import looped, running
from tests.requests import pulling, sending

HERE = {"address": "127.0.0.1", "channel": "remoting"}
BROKER = "Broker:broker-0"


def topic(name: str, queues: int = 2) -> CreateTopic:
    return CreateTopic(
        topic=name,
        default_topic="TBW102",
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=6,
    )


def group(name: str, **more) -> bytes:
    return bodies.encode(bodies.GroupConfig(group_name=name, **more))


def test_every_code_with_a_processor_is_a_change_or_none():
    assert CHANGES.keys() | NOT_CHANGES == PROCESSORS.keys()
    assert not CHANGES.keys() & NOT_CHANGES


def test_the_groups_of_commands_are_those_of_the_client():
    assert names.REPLAY_GROUP == REPLAY_GROUP
    assert {REPLAY_GROUP, READER_GROUP, BENCH_GROUP} == names.COMMAND_GROUPS


def shape(one: dict) -> tuple:
    return one["resource"], one.get("before"), one.get("after")


@looped
async def test_topics_groups_and_settings_are_told_before_and_after(tmp_path):
    async with running(tmp_path, audit=audited(tmp_path)) as (_, client):
        several = bodies.TopicConfigList([bodies.TopicConfig(topic_name="b")])
        groups = bodies.GroupConfigList([bodies.GroupConfig(group_name="h")])
        setting = "Setting:n/k"
        two = {"read_queue_nums": 2, "write_queue_nums": 2, "route": {"broker-0": 2}}
        three = {"read_queue_nums": 3, "write_queue_nums": 3, "route": {"broker-0": 3}}
        many = {**three, "read_queue_nums": 16, "write_queue_nums": 16}
        many["route"] = {"broker-0": 16}
        on, off = ({"writable": one} for one in (True, False))
        switches = dict.fromkeys(
            ("popConsumerKVServiceInit", "popConsumerKVServiceEnable"), True
        )
        turned = {**switches, "popConsumerKVServiceEnable": False}
        mode = {"topic": "a", "consumerGroup": "g", "mode": "POP"}
        for header, body, told in (
            (topic("a"), b"", ("Topic:a", None, two)),
            (topic("a", 3), b"", ("Topic:a", two, three)),
            (CreateTopicList(), bodies.encode(several), ("Topic:b", None, many)),
            (DeleteTopic(topic="b"), b"", ("Topic:b", many, None)),
            (CreateGroup(), group("g"), ("Group:g", None, {})),
            (
                CreateGroup(),
                group("g", retry_max_times=3),
                ("Group:g", {}, {"retry_max_times": 3}),
            ),
            (CreateGroupList(), bodies.encode(groups), ("Group:h", None, {})),
            (DeleteGroup(group_name="h"), b"", ("Group:h", {}, None)),
            (PutKvConfig("n", "k", "1"), b"", (setting, None, "1")),
            (PutKvConfig("n", "k", "2"), b"", (setting, "1", "2")),
            (DeleteKvConfig("n", "k"), b"", (setting, "2", None)),
            (WipeWritePerm("broker-0"), b"", (BROKER, on, off)),
            (AddWritePerm("broker-0"), b"", (BROKER, off, on)),
            (
                UpdateBrokerConfig(),
                b"popConsumerKVServiceEnable=false",
                (BROKER, switches, turned),
            ),
            (
                Code.SET_MESSAGE_REQUEST_MODE,
                msgspec.json.encode(mode),
                (f"Setting:{names.REQUEST_MODES}/a@g", None),
            ),
        ):
            more = {"fields": {}} if isinstance(header, int) else {}
            answer = await client.ask(header, body, **more)
            assert answer.code == 0, answer
            line = lines(tmp_path)[-1]
            code = header if isinstance(header, int) else row_of(type(header)).code
            assert line["request"] == f"{int(code)} {Code(code).name}"
            assert line["event"] == "changed"
            assert {**line, **HERE} == line
            assert "principal" not in line
            assert shape(line)[: len(told)] == told
        assert '"mode":"POP"' in lines(tmp_path)[-1]["after"]
        assert len(lines(tmp_path)) == 15


@looped
async def test_offsets_are_told_before_and_after(tmp_path):
    async with running(tmp_path, audit=audited(tmp_path)) as (_, client):
        await client.ask(topic("orders"))
        await client.ask(CreateGroup(), group("readers"))
        for _ in range(3):
            await client.ask(sending("orders"), b"x")
        commit = UpdateConsumerOffset(
            consumer_group="readers", topic="orders", queue_id=0, commit_offset=1
        )
        assert (await client.ask(commit)).code == 0
        known = len(lines(tmp_path))
        reset = ResetOffset(
            group="readers", topic="orders", timestamp=-1, is_force=True
        )
        assert (await client.ask(reset)).code == 0
        clone = CloneGroupOffset(src_group="readers", dest_group="copies")
        assert (await client.ask(clone)).code == 0
        moved, made, cloned = lines(tmp_path)[known:]
        name = "Topic:orders"
        both = {"0": 3, "1": 0}
        assert shape(moved) == (f"Group:readers {name}", {"0": 1}, both)
        assert shape(made) == ("Group:copies", None, {})
        assert shape(cloned) == (f"Group:copies {name}", {}, both)


@looped
async def test_replays_of_dead_letters_and_recalls_are_changes(tmp_path):
    async with running(tmp_path, audit=audited(tmp_path)) as (_, client):
        sent = await client.ask(
            sending("orders", pairs={"TIMER_DELAY_SEC": "3600"}), b"later"
        )
        handle = sent.read(SendReply).recall_handle
        await client.ask(sending("orders"), b"now")
        (found,) = (await client.ask(pulling("orders"))).messages()
        await client.ask(CreateGroup(), group("readers"))
        await client.ask(CreateGroup(), group(REPLAY_GROUP))
        known = len(lines(tmp_path))
        bury = ConsumerSendMsgBack(
            offset=found.message_id,
            group="readers",
            delay_level=-1,
            origin_topic="orders",
        )
        assert (await client.ask(bury)).code == 0
        assert len(lines(tmp_path)) == known
        dead = (await client.ask(pulling("%DLQ%readers"))).messages()[0]
        replay = ConsumerSendMsgBack(
            offset=dead.message_id,
            group="readers",
            delay_level=1,
            origin_msg_id="ID",
            origin_topic="%DLQ%readers",
            max_reconsume_times=9,
        )
        assert (await client.ask(replay)).code == 0
        counted = UpdateConsumerOffset(
            consumer_group=REPLAY_GROUP,
            topic="%DLQ%readers",
            queue_id=0,
            commit_offset=1,
        )
        assert (await client.ask(counted)).code == 0
        recall = RecallMessage(topic="orders", recall_handle=handle)
        assert (await client.ask(recall)).code == 0
        told = [shape(one) for one in lines(tmp_path)[known:]]
        assert told == [
            ("DeadLetters:%DLQ%readers Message:ID", None, None),
            ("DeadLetters:%DLQ%readers", {}, {"0": 1}),
            (f"Topic:orders Timer:{'0' * 32}", None, None),
        ]


@looped
async def test_users_and_rules_are_told_without_passwords(tmp_path):
    acl = acl_of(tmp_path)
    async with running(tmp_path, acl=acl, audit=audited(tmp_path)) as (_, client):
        (made,) = changes(tmp_path)
        assert (made["request"], made["resource"]) == ("ACCESS_BOOTSTRAP", "User:root")
        assert "address" not in made
        entry = PolicyEntryInfo("Topic:orders", ["Pub"], ["10.0.0.0/8"], "Allow")
        other = PolicyEntryInfo("Topic:orders", ["Sub"], None, "Deny")
        rules, others = (
            bodies.encode(AclInfo(policies=[PolicyInfo(entries=[one])]))
            for one in (entry, other)
        )
        named = bodies.encode(
            AclInfo(subject="User:bob", policies=[PolicyInfo(entries=[other])])
        )
        first = bodies.encode(UserInfo(password="one-secret"))
        second = bodies.encode(UserInfo(password="two-secret"))
        subject = "User:bob"
        plain = {"super": False, "enabled": True, "password": "***"}
        allow = {"custom": ["Allow Pub Topic:orders from 10.0.0.0/8"], "default": []}
        deny = {"custom": ["Deny Sub Topic:orders"], "default": []}
        for header, body, told in (
            (CreateUser("bob"), first, (subject, None, plain)),
            (
                UpdateUser("bob"),
                second,
                (subject, plain, {**plain, "password": "another"}),
            ),
            (UpdateUser("bob"), second, (subject, plain, plain)),
            (CreateAcl(subject), rules, (f"Acl:{subject}", None, allow)),
            (UpdateAcl(subject), others, (f"Acl:{subject}", allow, deny)),
            (UpdateAcl(), named, (f"Acl:{subject}", deny, deny)),
            (DeleteAcl(subject), b"", (f"Acl:{subject}", deny, None)),
            (DeleteUser("bob"), b"", (subject, plain, None)),
        ):
            answer = await ask(client, ROOT, header, body)
            assert answer.code == 0, answer
            line = lines(tmp_path)[-1]
            assert shape(line) == told
            assert line["principal"] == "users:root"
            assert line["address"] == "127.0.0.1"
    text = (tmp_path / "audit.jsonl").read_text()
    for secret in ("one-secret", "two-secret", PASSWORD):
        assert secret not in text


HEADERS = {
    Code.UPDATE_CONSUMER_OFFSET: UpdateConsumerOffset(REPLAY_GROUP, "%DLQ%g", 0, 1),
    Code.CONSUMER_SEND_MSG_BACK: ConsumerSendMsgBack(
        0, "g", delay_level=0, origin_topic="%DLQ%g"
    ),
    Code.ROPEWAY_COMPACT_TOPIC: CompactTopic(topic="t", force=True),
    Code.ROPEWAY_TRIM_TOPIC: TrimTopic(topic="t", timestamp=-1),
    Code.RECALL_MESSAGE: RecallMessage(
        topic="t",
        recall_handle=recall.dump(RecallHandle("t", "broker-0", 1, "K")).decode(),
    ),
}
"""Of requests that are changes for some headers alone."""
COLD = (Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG)
SPECIAL_BODIES = dict.fromkeys(COLD, b"readers=1000")


@looped
async def test_whatever_changes_something_leaves_a_line_with_who_and_what(tmp_path):
    settings = {"acl": acl_of(tmp_path), "audit": audited(tmp_path)}
    async with running(tmp_path, **settings) as (_, client):
        for code in sorted(CHANGES):
            known = len(lines(tmp_path))
            body = SPECIAL_BODIES.get(code, b"")
            if code in BODIES:
                body = msgspec.json.encode(BODIES[code])
            answer = await ask(client, ROOT, HEADERS.get(code) or made(code), body)
            name = f"{int(code)} {Code(code).name}"
            told = [one for one in lines(tmp_path)[known:] if one["request"] == name]
            # What it makes on its way, as a group, has lines of its own before.
            assert (name, [one["event"] for one in told][-1:]) == (
                name,
                ["change failed" if answer.code else "changed"],
            )
            for line in told:
                assert {**line, **HERE, "principal": "users:root"} == line
                assert line["resource"]


def test_these_addresses_of_the_page_change_something_and_no_others():
    """Of each a test sees that it leaves a line: `test_auditing.py`, `http/api`."""
    changing = {
        (route.method, route.path)
        for route in [*login.ROUTES, *ROUTES]
        if route.method not in {"GET", "HEAD"}
    }
    assert changing == {
        ("POST", "/api/session"),
        ("DELETE", "/api/session"),
        ("POST", "/api/dead-letters/{group}/replay"),
        ("POST", "/api/groups/{group}/offsets"),
        ("POST", "/api/groups"),
        ("PUT", "/api/groups/{group}"),
        ("DELETE", "/api/groups/{group}"),
        ("POST", "/api/topics"),
        ("PUT", "/api/topics/{topic}"),
        ("DELETE", "/api/topics/{topic}"),
        ("POST", "/api/topics/{topic}/messages"),
        ("POST", "/api/waiting/recall"),
        ("POST", "/api/users"),
        ("PUT", "/api/users/{user}"),
        ("DELETE", "/api/users/{user}"),
        ("POST", "/api/policies"),
        ("DELETE", "/api/policies"),
    }


@pytest.mark.parametrize("code", sorted(CHANGES))
@looped
async def test_a_change_that_cannot_be_read_is_refused_and_told(code, tmp_path):
    async with running(tmp_path, audit=audited(tmp_path)) as (_, client):
        answer = await client.ask(int(code), b"\xff", fields={})
        # Only that needs nothing, where popping is ready already.
        assert answer.code != 0 or code == Code.POP_ROLLBACK
        for line in lines(tmp_path):
            assert line["request"] == f"{int(code)} {Code(code).name}"
            assert (line["event"] == "changed") is (answer.code == 0)
