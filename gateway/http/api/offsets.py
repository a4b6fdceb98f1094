"""Moving a group's committed offsets, where the page may change something."""

from __future__ import annotations

from typing import Literal

import msgspec
from aiohttp import web

from ropeway.client import admin_offsets
from ropeway.gateway.http.api.topics import find
from ropeway.gateway.http.login import changing, require
from ropeway.gateway.http.params import Params, RefusedError, decode_body
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.processors.needs import GET, group_need

_WORDS = {
    "earliest": admin_offsets.EARLIEST_MS,
    "latest": admin_offsets.LATEST_MS,
}
_MAX_MS = 1 << 53


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a group is to go on in a topic."""

    topic: str
    to: Literal["earliest", "latest"] | int
    """Or a time, in milliseconds since 1970."""
    dry_run: bool = True


async def _move(request: web.Request) -> web.Response:
    Params(request.query)
    state = state_of(request)
    group = request.match_info["group"]
    await require(state, group_need(group, (GET,)))
    wanted = _read(await request.read())
    find(state.app.node, wanted.topic)
    to_ms = _WORDS[wanted.to] if isinstance(wanted.to, str) else wanted.to
    async with changing(request) as console:
        moved = await admin_offsets.reset(
            console, group, wanted.topic, time_ms=to_ms, dry_run=wanted.dry_run
        )
    return reply(
        {
            "dry_run": wanted.dry_run,
            "moved": [
                {
                    "broker": one.queue.broker_name,
                    "queue_id": one.queue.queue_id,
                    "before": one.before,
                    "after": one.after,
                }
                for one in moved
            ],
        }
    )


def _read(body: bytes) -> _Wanted:
    allowed = (
        '{"topic": "NAME", "to": "earliest", "latest" or milliseconds since 1970, '
        '"dry_run": true}'
    )
    wanted = decode_body(body, _Wanted, allowed)
    if isinstance(wanted.to, int) and not 0 <= wanted.to <= _MAX_MS:
        raise RefusedError(f"to is {wanted.to}; allowed: 0 to {_MAX_MS}")
    return wanted


ROUTES = [web.post("/api/groups/{group}/offsets", _move)]
