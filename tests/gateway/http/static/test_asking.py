"""The web page in a real Chromium: how it asks its gateway, by itself and again."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.http.site import send, serving
from tests.gateway.http.static.browser import browsing, complaints
from tests.remoting import looped

pytestmark = pytest.mark.slow


@looped
async def test_what_fails_is_told_and_can_be_tried_again(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        await send(site.client, "orders", 1)
        fails = True

        async def answer(route):
            if fails:
                # Not an error status, which the browser would complain of itself.
                await route.fulfill(body="<html>", content_type="text/html")
            else:
                await route.continue_()

        await page.route("**/api/topics?*", answer)
        # The page asks again by itself, too, and may have done so before the click.
        await page.add_init_script("window.setInterval = () => 0")
        await page.goto("/#/topics")
        await page.get_by_role("alert").get_by_text("without saying why").wait_for()
        assert await complaints(page) == []
        fails = False
        await page.get_by_role("button", name="Try again").click()
        await page.get_by_role("link", name="orders").wait_for()


@looped
async def test_what_a_slow_gateway_answers_is_shown_though_it_was_asked_again(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        await send(site.client, "orders", 1)
        asked, slow = 0, True

        async def answer(route):
            nonlocal asked
            asked += 1
            mine = asked
            while slow and asked < mine + 3:  # noqa: ASYNC110 - the browser asks
                await asyncio.sleep(0.01)
            await route.continue_()

        await page.route("**/api/topics?*", answer)
        await page.add_init_script(
            "const every = setInterval; window.setInterval = (act) => every(act, 100)"
        )
        await page.goto("/#/topics")
        await page.get_by_role("link", name="orders").wait_for()
        slow = False
        await page.unroute_all(behavior="wait")
        await page.get_by_label("Search by name").fill("nothing")
        await page.get_by_text("No topic has that in its name").wait_for()
