"""Reads of what a tier alone has left are limited by their group's quota."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import LogConfig, TierConfig
from ropeway.gateway.node import accounts
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.storage.tiered.log import TieredLog
from tests.gateway.http.site import serving
from tests.gateway.processors.test_throttling import (
    BODY,
    FOREVER,
    filled,
    free,
    limit,
    popping,
)
from tests.remoting import looped, until
from tests.requests import pulling, waiting
from tests.storage.tiered import s3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from tests.gateway.http.site import Site

TAIL_BYTES = 256 * 1024
"""Less than three messages stay in memory."""
COUNT = 12


@pytest.fixture(params=["files", pytest.param("S3", marks=pytest.mark.server)])
def url(request, tmp_path: Path, monkeypatch) -> Iterator[str]:
    """Where the tier is."""
    with ExitStack() as stack:
        if request.param == "S3":
            for name, value in s3.CREDENTIALS.items():
                monkeypatch.setenv(name, value)
            yield s3.url(stack.enter_context(s3.server(tmp_path)), "cold")
        else:
            yield f"file://{tmp_path}/tier"


async def _leave_to_tier(app: App) -> None:
    """Have the log drop all but its last segment, once the tier has it."""
    tier = app.node.log.inner
    assert isinstance(tier, TieredLog)
    await tier.dispatch()
    await tier.inner.expire(1 << 50, tier.dispatcher.safe_position)
    number = min(tier.topics()["orders"])
    assert tier.inner.partition("orders", number).first > COUNT // 2
    assert tier.partition("orders", number).first == 0


async def _metric(site: Site, name: str, of: str) -> list[str]:
    """Its values, where it is of the group and of this."""
    text = (await site.ask("/metrics")).body.decode()
    wanted = (f"{name}{{", 'kind="group"', 'resource="readers"', f'="{of}"')
    return [
        one.rpartition(" ")[2]
        for one in text.splitlines()
        if one.startswith(name) and all(part in one for part in wanted)
    ]


THROTTLED = ("ropeway_quota_throttled_total", "cold")
LIMIT = ("ropeway_quota_limit", "cold_bytes_per_s")


@pytest.mark.parametrize("how", ["pull", "pop"])
@looped
async def test_what_a_tier_alone_has_is_read_as_fast_as_the_quota_lets_it(
    tmp_path: Path, monkeypatch, url: str, how: str
):
    monkeypatch.setattr(accounts, "MAX_DEBT_S", 1e9)
    small = LogConfig(segment_bytes=1 << 20, tail_cache_bytes=TAIL_BYTES)
    tier = TierConfig(url=url, commit_ms=1, commit_bytes=2 * len(BODY))
    async with serving(tmp_path / "data", log=small, tier=tier) as site:
        app, client = site.app, site.client
        await filled(client, count=COUNT)
        await _leave_to_tier(app)
        await limit(client, "group", "readers", cold_bytes_per_s=FOREVER)

        def read(at: int) -> asyncio.Future:
            one = {"max_msg_nums": 1}
            long = {"suspend_timeout_millis": 60_000}
            return asyncio.ensure_future(
                client.ask(waiting("orders", at, **one, **long))
                if how == "pull"
                else client.ask(popping(poll_time=60_000, **one))
            )

        # A whole read is let through, and what it took beyond is a debt.
        first = await read(0)
        assert [one.body for one in first.messages()] == [BODY]
        assert app.node.quotas.cold_reads["readers"].size_bytes > len(BODY)
        late = read(1)
        await until(lambda: app.node.quotas.waiting == 1)
        assert await _metric(site, *THROTTLED) == ["1"]
        assert await _metric(site, *LIMIT) == ["1"]
        # Another group reads the same, and this one what is in memory.
        others = await client.ask(pulling("orders", group="others", max_msg_nums=1))
        assert [one.body for one in others.messages()] == [BODY]
        await filled(client)
        hot = await client.ask(pulling("orders", COUNT))
        assert [one.body for one in hot.messages()] == [BODY]
        # One that would wait for longer than it may is answered without messages.
        empty = await client.ask(pulling("orders", 2, max_msg_nums=1))
        assert empty.code == ResponseCode.PULL_NOT_FOUND
        assert not late.done()
        await free(client, "group", "readers")
        assert [one.body for one in (await late).messages()] == [BODY]
        assert not await _metric(site, *LIMIT)
