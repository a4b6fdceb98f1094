"""Who may not see a thing is answered as if it were not there, by every request.

Each request with a processor is sent twice by a user with few rights: with what exists
and is forbidden, and with what does not exist. A new request is in it by itself, and
fails where the test cannot say how it names something.
"""

from __future__ import annotations

import re
import types
import typing
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest

from ropeway.gateway.node import names
from ropeway.gateway.processors.needs import NEEDS
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.wire.codes import RequestCode as Code
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateGroup
from ropeway.gateway.wire.commands.clients import HeartBeat
from ropeway.gateway.wire.commands.lite_views import GetLiteGroupInfo
from ropeway.gateway.wire.commands.offsets import GetMaxOffset
from ropeway.gateway.wire.commands.query import ViewMessage
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack, SendReply
from ropeway.gateway.wire.commands.transactions import (
    COMMIT,
    EndTransaction,
    ResumeCheckHalfMessage,
)
from ropeway.gateway.wire.header import ROWS
from ropeway.gateway.wire.message_id import parse_offset_msg_id, unpack
from ropeway.routing.api import Group, Topic
from tests.gateway.processors.test_admission import BODIES, SECRET, made
from tests.guarded import ALICE, ROOT, allow, ask, guarded
from tests.remoting import connect, looped
from tests.requests import heartbeat, sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from ropeway.gateway.wire.header import Header
    from tests.remoting import Frame, Remoting

ABSENT = "absent"
MINE = "mine"
assert len(ABSENT) == len(SECRET)
OF_HALVES = {"transaction", "half message"}
HALF = {"TRAN_MSG": "true", "PGROUP": SECRET}

NAMELESS = {Code.CHECK_CLIENT_CONFIG}
"""Requests that name nothing, by header or body, and need nothing: its filters are read
and nothing else. Others that name nothing are for all topics, groups, or the cluster.
"""
IDS = {"offset", "commit_log_offset"}
TEXT_IDS = {"msg_id", "origin_msg_id"}
GROUP_KEYS = {"groupName", "consumerGroup", "c", "group"}
TOPIC_KEYS = {"topic", "topicName", "t"}


class Target(NamedTuple):
    """What is asked for: a name, and the id of a message."""

    name: str
    identity: int
    text_id: str

    def hidden(self, answer: Frame) -> tuple[Any, ...]:
        """An answer without what was asked for."""

        def without(text: str) -> str:
            name = self.name.removeprefix(names.RETRY_PREFIX)
            for one in (self.text_id, name):
                text = text.replace(one, "<it>")
            # A short one may be a part of an address.
            text = re.sub(rf"(?<![\d.]){self.identity}(?![\d.])", "<it>", text)
            return text.replace(f"offset {unpack(self.identity).offset}", "<at>")

        fields = {name: without(value) for name, value in answer.fields.items()}
        body = answer.body.decode("utf-8", "replace")
        return answer.code, without(answer.remark or ""), fields, without(body)


def kind_of(field: msgspec.structs.FieldInfo) -> Any:
    kinds = [field.type]
    if typing.get_origin(field.type) in (typing.Union, types.UnionType):
        kinds = list(typing.get_args(field.type))
    kind = typing.get_origin(kinds[0]) or kinds[0]
    return getattr(kind, "__origin__", kind)


def texts_of(code: int) -> list[str]:
    """The fields that may name something; a broker is not hidden."""
    return [
        field.name
        for field in msgspec.structs.fields(ROWS[code].header)
        if kind_of(field) is str and field.name not in {"bname", "broker_name"}
    ]


def asked(code: int, target: Target) -> Iterator[tuple[str, Header, bytes]]:
    """A request in its forms: all names it, or one field does, or some are left out."""
    kind = ROWS[code].header
    fields = msgspec.structs.fields(kind)
    optional = {one.name for one in fields if not one.required}
    texts = texts_of(code)

    def one(named: set[str], without: set[str]) -> Header:
        values: dict[str, Any] = {}
        for field in fields:
            if field.name in without or field.name == "bname":
                continue
            if field.name in TEXT_IDS:
                values[field.name] = target.text_id
            elif kind_of(field) is str:
                values[field.name] = target.name if field.name in named else MINE
            elif field.name in IDS:
                values[field.name] = target.identity
            else:
                values[field.name] = False if kind_of(field) is bool else 0
        return kind(**values)

    for body in bodies_of(code, target.name):
        yield "all", one(set(texts), set()), body
        yield "required", one(set(texts), optional), body
        yield "by id", one(set(), set()), body
        yield "by id, required", one(set(), optional), body
        for name in texts:
            yield f"only {name}", one({name}, set()), body
            if name in optional:
                yield f"without {name}", one(set(), {name}), body


def bodies_of(code: int, name: str) -> Iterator[bytes]:
    """What follows the header: with the name everywhere, as a topic, as a group."""
    if code not in BODIES:
        yield b""
        return
    for named in (GROUP_KEYS | TOPIC_KEYS, GROUP_KEYS, TOPIC_KEYS):
        yield msgspec.json.encode(_renamed(BODIES[code], name, named))


def _renamed(value: Any, name: str, named: set[str]) -> Any:
    if isinstance(value, list):
        return [_renamed(one, name, named) for one in value]
    if isinstance(value, dict):
        return {
            key: (name if key in named else MINE)
            if one == SECRET
            else _renamed(one, name, named)
            for key, one in value.items()
        }
    return value


def more_asked(target: Target, half: Target) -> Iterator[tuple[str, Header, bytes]]:
    """Requests that name something by more than one field."""
    for topic in (None, MINE):
        yield (
            "transaction",
            EndTransaction(
                producer_group=SECRET,
                tran_state_table_offset=unpack(half.identity).offset,
                commit_log_offset=half.identity,
                commit_or_rollback=COMMIT,
                msg_id="x",
                topic=topic,
            ),
            b"",
        )
    yield "half message", ResumeCheckHalfMessage(MINE, half.text_id), b""
    for topic in (None, f"{names.RETRY_PREFIX}{MINE}"):
        yield "look", ViewMessage(offset=target.identity, topic=topic), b""
        back = ConsumerSendMsgBack(
            offset=target.identity, group=MINE, delay_level=0, origin_topic=topic
        )
        yield "send back", back, b""


async def prepare(app: App) -> None:
    """What the user may use is there, whatever was deleted."""
    node = app.node
    if node.topics.get(MINE) is None:
        await node.topics.put(Topic(name=MINE, read_queue_nums=1, write_queue_nums=1))
    if node.groups.get(MINE) is None:
        await node.groups.put(Group(name=MINE))


async def target_of(
    client: Remoting, name: str, **changes: Any
) -> tuple[Target, Target]:
    """A message that exists under a name, and one of the same sort that does not."""
    return targets_of(await ask(client, ROOT, sending(name, **changes), b"hello"))


def targets_of(sent: Frame) -> tuple[Target, Target]:
    """Likewise, of what answered a send."""
    text_id = sent.read(SendReply).msg_id
    there = parse_offset_msg_id(text_id).message_id
    nowhere = there + 0x7000
    return (
        Target(SECRET, there, text_id),
        Target(ABSENT, nowhere, f"{text_id[:-16]}{nowhere:016X}"),
    )


@asynccontextmanager
async def hiding(data: Path) -> AsyncIterator[tuple[App, Remoting, Remoting]]:
    """A node with things that `alice` may not see; a superuser's connection, hers."""
    rules = (allow(f"Topic:{MINE}"), allow(f"Group:{MINE}"))
    async with (
        guarded(data, *rules) as (app, root),
        connect(app.server.listeners[0]) as client,
    ):
        await prepare(app)
        await app.node.groups.put(Group(name=SECRET))
        await ask(root, ROOT, sending(SECRET), b"hello")
        await ask(root, ROOT, sending(f"{names.RETRY_PREFIX}{SECRET}"), b"again")
        beat = heartbeat(SECRET, SECRET, producers=(SECRET,), topic=SECRET)
        assert (await ask(root, ROOT, HeartBeat(), beat)).code == 0
        yield app, root, client


def codes() -> list[int]:
    """Every request that a client may send."""
    return sorted(code for code in PROCESSORS if not NEEDS[code].of_nodes)


@looped
async def test_it_is_known_how_every_request_names_something(tmp_path: Path):
    async with hiding(tmp_path) as (_, _root, client):
        for code in codes():
            if texts_of(code) or code in BODIES or code in NAMELESS:
                continue
            refused = await ask(client, ALICE, made(code))
            assert refused.code == ResponseCode.NO_PERMISSION
            needed = refused.remark.split()[-3]
            assert needed.startswith("Cluster:") or needed.endswith(":*"), code


@looped
async def test_what_is_forbidden_is_answered_as_what_is_not_there(tmp_path: Path):
    differing = []
    async with hiding(tmp_path) as (app, root, client):
        there, nowhere = await target_of(root, SECRET)
        retried = f"{names.RETRY_PREFIX}{SECRET}", f"{names.RETRY_PREFIX}{ABSENT}"
        pairs = [
            (there, nowhere),
            (there._replace(name=retried[0]), nowhere._replace(name=retried[1])),
        ]
        for code in codes():
            for one, other in pairs:
                forms = zip(asked(code, one), asked(code, other), strict=True)
                for (form, first, body), (_, second, body_2) in forms:
                    await prepare(app)
                    seen = one.hidden(await ask(client, ALICE, first, body))
                    await prepare(app)
                    unseen = other.hidden(await ask(client, ALICE, second, body_2))
                    if seen != unseen:
                        differing.append((Code(code).name, form, seen, unseen))
    assert not differing


@looped
async def test_what_is_named_by_an_id_is_hidden_too(tmp_path: Path):
    async with hiding(tmp_path) as (_, root, client):
        targets = await target_of(root, SECRET)
        halves = await target_of(root, SECRET, pairs=HALF, sys_flag=4)
        forms = zip(
            more_asked(targets[0], halves[0]),
            more_asked(targets[1], halves[1]),
            strict=True,
        )
        for (form, first, _), (_, second, _) in forms:
            answers = [await ask(client, ALICE, one) for one in (first, second)]
            by_form = [
                (form, (half if form in OF_HALVES else one).hidden(found))
                for one, half, found in zip(targets, halves, answers, strict=True)
            ]
            assert by_form[0] == by_form[1]
            assert by_form[0][1][0] != 0


@looped
@pytest.mark.parametrize("who", [ROOT, ALICE])
async def test_who_may_see_it_is_told_the_truth(tmp_path: Path, who: str):
    async with hiding(tmp_path) as (_, root, client):
        name = SECRET if who == ROOT else MINE
        there, nowhere = await target_of(root, name)
        for topic in (name, None):
            seen = await ask(
                client, who, ViewMessage(offset=there.identity, topic=topic)
            )
            assert (seen.code, b"hello" in seen.body) == (0, True)
            missing = ViewMessage(offset=nowhere.identity, topic=topic)
            assert "can not find" in (await ask(client, who, missing)).remark
        gone = await ask(client, ROOT, GetMaxOffset(ABSENT, 0))
        assert gone.code == ResponseCode.TOPIC_NOT_EXIST


@looped
async def test_a_group_of_ones_own_tells_nothing_of_the_topic_it_is_bound_to(
    tmp_path: Path,
):
    """Before, it told how many messages lite topics of a forbidden topic have."""
    lite = {"message.type": "LITE"}
    async with hiding(tmp_path) as (app, root, client):
        await app.node.topics.put(
            Topic(name="rooms", read_queue_nums=1, write_queue_nums=1, attributes=lite)
        )
        sent = sending("rooms", pairs={"__LITE_TOPIC": "a"})
        assert (await ask(root, ROOT, sent, b"hello")).code == 0
        answers = []
        for topic in ("rooms", "halls"):
            made = {"groupName": MINE, "attributes": {"+lite.bind.topic": topic}}
            body = msgspec.json.encode(made)
            assert (await ask(client, ALICE, CreateGroup(), body)).code == 0
            for name in ("a", "b", None):
                asking = GetLiteGroupInfo(group=MINE, lite_topic=name, top_k=5)
                answer = await ask(client, ALICE, asking)
                assert answer.code == ResponseCode.NO_PERMISSION
                answers.append(answer.remark.replace(topic, "<it>"))
                told = await ask(root, ROOT, asking)
                assert (told.code, b'"totalLagCount":' in told.body) == (0, True)
        assert len(set(answers)) == 1
