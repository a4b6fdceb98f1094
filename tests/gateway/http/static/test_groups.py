"""A group's plots and its offsets, in a real Chromium."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import HttpConfig
from ropeway.gateway.http.day_history import MINUTE_MS, DayHistory
from tests.gateway.http.site import send, serving
from tests.gateway.http.static.browser import (
    DESKTOP,
    browsing,
    complaints,
    keep_picture,
)
from tests.remoting import looped, running, until
from tests.requests import committing

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


async def fill_a_day(data: Path) -> None:
    """Three hours of a topic and a group, as a node that has ended left them."""
    now_ms = time.time_ns() // 1_000_000 - 170 * MINUTE_MS
    async with running(data) as (app, client):
        history = DayHistory(app.node, lambda: now_ms)
        await history.start()
        await until(lambda: history._looks)
        for minute in range(165):
            await send(client, "orders", 1 + minute % 11)
            await client.ask(committing("orders", 0, 3 * minute))
            now_ms += MINUTE_MS
            await history.look()
        await history.close()


@looped
async def test_a_groups_offsets_are_moved_after_a_preview_and_a_question(tmp_path):
    writable = HttpConfig(port=0, writable=True)
    async with serving(tmp_path, writable) as site, browsing(site.address) as page:
        await send(site.client, "orders", 5)
        await site.app.node.groups.ensure("readers")
        await site.client.ask(committing("orders", 0, 1))
        await page.goto("/#/groups/readers")
        await page.locator("#move-to").wait_for()
        assert not await page.locator("#move-at").is_visible()
        await page.locator("#move-to").select_option("time")
        assert await page.locator("#move-at").is_visible()
        await page.locator("#move-to").select_option("latest")
        await page.get_by_role("button", name="Preview").click()
        await page.get_by_role("cell", name="broker-0 / 0").first.wait_for()
        assert await complaints(page) == []
        await keep_picture(page, "move-offsets")
        await page.get_by_role("button", name="Move", exact=True).click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Move", exact=True).click()
        await page.get_by_text("queues moved").wait_for()
        queues = (await site.get("groups/readers"))["queues"]
        assert sum(one["lag"] for one in queues) == 0


@looped
async def test_where_nothing_may_be_changed_nobody_is_offered_to_move(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        await send(site.client, "orders", 1)
        await site.app.node.groups.ensure("readers")
        await site.client.ask(committing("orders", 0, 0))
        await page.goto("/#/groups/readers")
        await page.get_by_role("cell", name="broker-0 / 0").wait_for()
        assert not await page.get_by_role("button", name="Preview").is_visible()


@looped
async def test_hours_and_a_day_are_plotted_as_the_node_has_kept_them(tmp_path):
    await fill_a_day(tmp_path)
    async with serving(tmp_path) as site:
        settings = {"viewport": DESKTOP, "color_scheme": "light"}
        async with browsing(site.address, **settings) as page:
            for path in ("", "topics/orders", "groups/readers"):
                await page.goto(f"/#/{path}")
                plot = page.locator(".panel", has=page.locator(".plot")).first
                for name in ("3 hours", "1 day"):
                    await plot.get_by_role("button", name=name).click()
                    await plot.get_by_text("kept by its node").wait_for()
                    await plot.locator("canvas").wait_for()
                assert await complaints(page) == [], path
                await keep_picture(page, f"day-{path.replace('/', '-')}")
            found = await site.get("history", kind="group", name="readers")
            lag, out = found["series"]["lag"], found["series"]["out"]
            assert max(one for one in lag if one is not None) > 100
            assert any(out)
            assert None in lag
