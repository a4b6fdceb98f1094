"""The metrics of all workers of a machine on one page, from whichever is asked.

Each worker's samples carry its broker's name in `node_id`, so they stand beside each
other; those of its process, which carry none elsewhere, get it here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import msgspec
import structlog

from ropeway.common.reasons import reason_of
from ropeway.gateway.http.metrics.page import render
from ropeway.gateway.tls import node_context
from ropeway.gateway.wire import host_port

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.gateway.app import App

log = structlog.get_logger(__name__)

UP = "ropeway_worker_up"
MEANING = "Whether a worker answered; 0: its metrics are left out."
_WAIT = aiohttp.ClientTimeout(total=5)
"""Prometheus gives up after 10 s, and would have nothing of those that answer."""
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised, not bound


async def render_all(
    app: App, workers: Mapping[str, int], authorization: str | None
) -> bytes:
    """The page of this worker and of all others.

    Args:
        app: This worker.
        workers: The ports of all sites, by their brokers' names; none: it is alone.
        authorization: What whoever asks shows, for the others.
    """
    own = app.node.config.broker
    others = [name for name in workers if name != own]
    headers = {"Authorization": authorization} if authorization else {}
    async with aiohttp.ClientSession(headers=headers, timeout=_WAIT) as session:
        found = await asyncio.gather(
            render(app), *(_fetch(session, app, name, workers) for name in others)
        )
    pages = dict(zip((own, *others), found, strict=True))
    # Clients get turns meanwhile.
    return await asyncio.to_thread(merge, dict(sorted(pages.items())))


async def _fetch(
    session: aiohttp.ClientSession, app: App, name: str, workers: Mapping[str, int]
) -> bytes | None:
    """Another worker's page; None where it does not answer."""
    config = app.node.config.http
    assert config is not None, "it was asked by its site"
    tls = app.node.config.tls
    context = (
        node_context(msgspec.structs.replace(tls, required=True))
        if tls and config.tls
        else None
    )
    address = host_port.join(_ANYWHERE.get(config.host, config.host), workers[name])
    url = f"http{'s' if config.tls else ''}://{address}/metrics"
    try:
        async with session.get(
            url,
            ssl=context or True,
            # Its certificate has the name that clients know.
            server_hostname=_advertised_host(app) if context else None,
        ) as answer:
            answer.raise_for_status()
            return await answer.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        log.warning("no metrics of a worker", broker=name, reason=reason_of(error))
        return None


def _advertised_host(app: App) -> str:
    return host_port.split(app.server.listeners[0].advertised)[0]


def merge(pages: Mapping[str, bytes | None]) -> bytes:
    """One page of several, by who wrote them; None for who wrote none."""
    heads: dict[str, list[str]] = {UP: [f"# HELP {UP} {MEANING}", f"# TYPE {UP} gauge"]}
    samples: dict[str, list[str]] = {UP: []}
    for worker, page in pages.items():
        samples[UP].append(f'{UP}{{node_id="{worker}"}} {int(page is not None)}')
        if page is None:
            continue
        name, is_known = "", False
        for line in page.decode().rstrip("\n").split("\n"):
            if not line.startswith("# "):
                samples[name].append(_named(line, worker))
                continue
            kind, name = line.split(" ", 3)[1:3]
            if kind == "HELP":
                is_known = name in heads
                heads.setdefault(name, [])
                samples.setdefault(name, [])
            if not is_known:
                heads[name].append(line)
    lines = [line for name in heads for line in (*heads[name], *samples[name])]
    return ("\n".join(lines) + "\n").encode()


def _named(line: str, worker: str) -> str:
    """A sample with its worker's name."""
    if not line.startswith("process_"):
        return line
    name, _, value = line.partition(" ")
    return f'{name}{{node_id="{worker}"}} {value}'
