"""Making, changing and deleting topics, and sending a message, from the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from ropeway.client import admin_topics
from ropeway.client.message import Message
from ropeway.gateway.http.api.topics import PERMISSIONS, find
from ropeway.gateway.http.login import changing, require, source_of
from ropeway.gateway.http.params import Params, RefusedError, wanted_of
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.processors.needs import CREATE, DELETE, PUB, topic_needs
from ropeway.storage.api import MAX_PARTITIONS

if TYPE_CHECKING:
    from ropeway.acl.api import Action
    from ropeway.gateway.http.state import State

SENDING = "PAGE_SEND"
"""What the audit log says for a request."""
Queues = Annotated[int, Meta(ge=1, le=MAX_PARTITIONS)]
Permission = Literal["read", "write"]


class _Changed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a topic is to be."""

    queues: Queues
    """On each broker that has it."""
    permissions: tuple[Permission, ...] = ("read", "write")


class _New(_Changed, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A topic that is to be on all brokers."""

    name: str


class _Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to send."""

    body: str
    tag: str = ""
    keys: list[str] = []


_ALLOWED = f'"queues": 1 to {MAX_PARTITIONS}, "permissions": ["read", "write"]'


def _perm(permissions: tuple[Permission, ...]) -> int:
    return sum(bit for bit, word in PERMISSIONS if word in permissions)


async def _create(request: web.Request) -> web.Response:
    state = state_of(request)
    allowed = f'{{"name": "NAME", {_ALLOWED}}}'
    wanted = await wanted_of(request, _New, allowed)
    # Whether there is one is told to those alone who may make it.
    await require(state, *topic_needs(state.app.node, wanted.name, (CREATE,)))
    if wanted.name in state.app.node.routes.topics:
        raise RefusedError(f"topic {wanted.name:.150} exists already", 409)
    async with changing(request) as console:
        await console.create_topic(
            wanted.name, wanted.queues, perm=_perm(wanted.permissions)
        )
    return reply({"name": wanted.name}, status=201)


async def _change(request: web.Request) -> web.Response:
    name = await _known(request, CREATE)
    wanted = await wanted_of(request, _Changed, f"{{{_ALLOWED}}}")
    perm = _perm(wanted.permissions)
    async with changing(request) as console:
        await admin_topics.update(console, name, queues=wanted.queues, perm=perm)
    return reply({"name": name})


async def _delete(request: web.Request) -> web.Response:
    Params(request.query)
    name = await _known(request, DELETE)
    async with changing(request) as console:
        await console.delete_topic(name)
    return reply({"name": name})


async def _known(request: web.Request, action: Action) -> str:
    """The topic that a request names, for whom may know that there is one."""
    state, name = state_of(request), request.match_info["topic"]
    await require(state, *topic_needs(state.app.node, name, (action,)))
    return find(state.app.node, name).name


async def _send(request: web.Request) -> web.Response:
    state = state_of(request)
    topic = await _known(request, PUB)
    allowed = '{"body": "TEXT", "tag": "TAG", "keys": ["KEY", ...]}'
    wanted = await wanted_of(request, _Sent, allowed)
    message = Message(
        topic, wanted.body.encode(), tags=wanted.tag or None, keys=tuple(wanted.keys)
    )
    async with changing(request) as console:
        try:
            sent = await console.send(message)
        except ValueError as error:
            raise RefusedError(str(error)) from None
    _note(state, request, topic, sent.msg_id)
    return reply(
        {
            "id": sent.offset_msg_id,
            "key_id": sent.msg_id,
            "broker": sent.queue.broker_name,
            "queue_id": sent.queue.queue_id,
            "offset": sent.queue_offset,
        },
        status=201,
    )


def _note(state: State, request: web.Request, topic: str, msg_id: str) -> None:
    """Write who sent it: brokers write no line for a message."""
    user = state.user
    state.app.node.audit.change(
        SENDING,
        user.principal if user else None,
        user.source if user else source_of(request),
        f"Topic:{topic} Message:{msg_id}",
    )


ROUTES = [
    web.post("/api/topics", _create),
    web.put("/api/topics/{topic}", _change),
    web.delete("/api/topics/{topic}", _delete),
    web.post("/api/topics/{topic}/messages", _send),
]
