"""Answers of the API: JSON that no browser keeps or takes for something else."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Type": "application/json",
    "X-Content-Type-Options": "nosniff",
}


def reply(value: Any, *, status: int = 200) -> web.Response:
    """A value as an answer."""
    return web.Response(
        body=msgspec.json.encode(value), status=status, headers=_HEADERS
    )
