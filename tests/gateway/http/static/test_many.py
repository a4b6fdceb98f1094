"""Every view with 10,000 topics and 1,000 groups, narrow and wide, light and dark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.gateway.http.api.changing import WRITABLE
from tests.gateway.http.site import serving
from tests.gateway.http.static.browser import (
    DESKTOP,
    PHONE,
    browsing,
    complaints,
    is_too_wide,
    keep_picture,
)
from tests.gateway.http.static.test_browser import VIEWS, fill, heading
from tests.remoting import looped

if TYPE_CHECKING:
    from playwright.async_api import Page

    from tests.gateway.http.site import Site

pytestmark = pytest.mark.slow

TOPICS, GROUPS = 10_000, 999
"""With that of `fill` there are 1,000: so many the page looks through."""
LIST_TOPICS, LIST_GROUPS = "1 to 50 of 10,", "1 to 50 of 1,"
COLOURS = ("light", "dark")


async def crowd(site: Site) -> None:
    """Make them, and something for every view."""
    node = site.app.node
    for number in range(TOPICS):
        await node.topics.ensure_derived(f"topic-{number:05}-of-a-shop", 1)
    for number in range(GROUPS):
        await node.groups.ensure(f"group-{number:04}")
    await fill(site)


async def look(page: Page, path: str, title: str, content: str, name: str) -> None:
    """See one view in all widths and colours."""
    await page.goto(f"/#/{path}")
    await heading(page, title)
    await page.get_by_text(content).locator("visible=true").first.wait_for()
    for wide, viewport in (("wide", DESKTOP), ("narrow", PHONE)):
        await page.set_viewport_size(viewport)
        for colours in COLOURS:
            button = page.get_by_role("button", name=f"Use {colours} colours")
            if await button.count():
                await button.click()
            assert not await is_too_wide(page), (path, wide)
            if wide == "wide" or colours == "light":
                assert await complaints(page) == [], (path, wide, colours)
            await keep_picture(page, f"many-{name}-{wide}-{colours}")


@looped
async def test_every_view_is_whole_with_very_many_topics_and_groups(tmp_path):
    async with serving(tmp_path, WRITABLE) as site:
        began = time.monotonic()
        await crowd(site)
        print(f"made in {time.monotonic() - began:.1f} s")
        async with browsing(site.address, viewport=DESKTOP, ignored="400 (Bad") as page:
            for path, title, content in VIEWS:
                shown = {"topics": LIST_TOPICS, "groups": LIST_GROUPS}.get(path)
                name = path.partition("?")[0].replace("/", "-") or "overview"
                began = time.monotonic()
                await look(page, path, title, shown or content, name)
                print(f"{name} in {time.monotonic() - began:.1f} s")
            # By keyboard: to the search, to a page of its results, and into one.
            await page.set_viewport_size(DESKTOP)
            await page.goto("/#/topics")
            await page.get_by_label("Search by name").focus()
            await page.keyboard.type("topic-0999")
            await page.get_by_role("link", name="topic-09990-of-a-shop").wait_for()
            await page.get_by_role("link", name="topic-09990-of-a-shop").focus()
            await page.keyboard.press("Enter")
            await heading(page, "topic-09990-of-a-shop")
            await page.goto("/#/topics")
            await page.get_by_label("Sort by").select_option("messages")
            told = page.get_by_role("alert").get_by_text("search first")
            await told.wait_for()
