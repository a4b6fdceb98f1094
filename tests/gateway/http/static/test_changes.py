"""What the page changes, in a real Chromium: topics, groups, users, a message."""

from __future__ import annotations

import pytest

from ropeway.client import PushConsumer
from tests.gateway.http.api.changing import WRITABLE
from tests.gateway.http.signed import guarded_site
from tests.gateway.http.site import serving
from tests.gateway.http.static.browser import (
    PHONE,
    browsing,
    complaints,
    is_too_wide,
    keep_picture,
)
from tests.guarded import PASSWORD, ROOT
from tests.remoting import looped
from tests.requests import sending

pytestmark = pytest.mark.slow


@looped
async def test_a_topic_is_made_sent_to_changed_and_deleted(tmp_path):
    async with (
        serving(tmp_path, WRITABLE) as site,
        # A bad name, and a look at the topic while it is deleted.
        browsing(site.address, viewport=PHONE, ignored="Failed to load") as page,
    ):
        dialog = page.get_by_role("dialog")
        await page.goto("/#/topics")
        await page.get_by_role("button", name="New topic").click()
        await dialog.get_by_label("Name").fill("or ders")
        await dialog.get_by_role("button", name="Create").click()
        await dialog.get_by_text("That did not work.").wait_for()
        assert await complaints(page) == []
        assert not await is_too_wide(page)
        await keep_picture(page, "new-topic")
        await dialog.get_by_label("Name").fill("orders")
        await page.get_by_label("Queues on each broker").fill("2")
        await page.keyboard.press("Enter")
        await page.locator("h1", has_text="orders").wait_for()
        await page.get_by_role("button", name="Send a message").click()
        await page.get_by_label("Body").fill("one coffee")
        await page.get_by_label("Keys").fill("k1 k2")
        assert await complaints(page) == []
        await keep_picture(page, "send-message")
        await dialog.get_by_role("button", name="Send", exact=True).click()
        await page.get_by_text("Sent to broker-0").wait_for()
        await page.get_by_role("button", name="Change").click()
        await page.get_by_label("Queues on each broker").fill("3")
        await page.get_by_label("Clients may write").uncheck()
        await dialog.get_by_role("button", name="Change").click()
        await page.get_by_text("3 to write, 3 to read").wait_for()
        await page.get_by_role("button", name="Delete").click()
        await dialog.get_by_role("button", name="Delete").click()
        # Nothing is deleted before the name is typed.
        await page.get_by_label("Type orders to delete it").fill("orders")
        assert await complaints(page) == []
        await keep_picture(page, "delete-topic")
        await dialog.get_by_role("button", name="Delete").click()
        await page.get_by_text("No topics yet").wait_for()
        assert "orders" not in site.app.node.routes.topics


@looped
async def test_a_group_is_made_changed_and_deleted(tmp_path):
    async with serving(tmp_path, WRITABLE) as site, browsing(site.address) as page:
        dialog = page.get_by_role("dialog")
        await page.goto("/#/groups")
        await page.get_by_role("button", name="New group").click()
        await dialog.get_by_label("Name").fill("readers")
        assert await complaints(page) == []
        await dialog.get_by_role("button", name="Create").click()
        await page.locator("h1", has_text="readers").wait_for()
        await page.get_by_role("button", name="Change").click()
        await page.get_by_label("May consume").uncheck()
        await page.get_by_label("Retries at most").fill("3")
        await dialog.get_by_role("button", name="Change").click()
        await page.get_by_text("Consuming is switched off").wait_for()
        assert site.app.node.routes.groups["readers"].retry_max_times == 3
        await keep_picture(page, "group-off")
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_label("Type readers to delete it").fill("readers")
        await dialog.get_by_role("button", name="Delete").click()
        await page.get_by_text("No groups yet").wait_for()


@looped
async def test_where_nothing_may_be_changed_nothing_is_offered(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        await site.app.node.topics.ensure_derived("orders", 1)
        await page.goto("/#/topics")
        await page.get_by_role("link", name="orders").wait_for()
        assert not await page.get_by_role("button", name="New topic").is_visible()
        await page.get_by_role("link", name="orders").click()
        await page.get_by_role("heading", name="Set-up").wait_for()
        assert await page.get_by_role("button", name="Delete").count() == 0


@looped
async def test_a_consumer_shows_its_threads_and_a_timed_message_is_taken_back(tmp_path):
    async def handler(_: object) -> None: ...

    async with serving(tmp_path, WRITABLE) as site, browsing(site.address) as page:
        pairs = {"UNIQ_KEY": "A" * 32, "TIMER_DELAY_MS": "3600000"}
        await site.client.ask(sending("orders", pairs=pairs), b"x")
        consumer = PushConsumer(site.app.server.listeners[0].advertised, "readers")
        consumer.subscribe("orders", "*", handler)
        async with consumer:
            await page.goto("/#/clients")
            await page.get_by_role("link", name=consumer.client_id).click()
            await page.get_by_text("MainThread").wait_for()
            assert await complaints(page) == []
            await keep_picture(page, "client")
        await page.goto("/#/waiting")
        await page.get_by_role("button", name="Recall " + "A" * 32).click()
        dialog = page.get_by_role("dialog")
        assert await complaints(page) == []
        await dialog.get_by_role("button", name="Recall").click()
        await page.get_by_text("No message waits for its time").wait_for()


@looped
async def test_a_user_and_its_policies_are_made_changed_and_deleted(tmp_path):
    async with (
        guarded_site(tmp_path, http=WRITABLE) as site,
        browsing(site.address, viewport=PHONE, ignored="409 (Conflict)") as page,
    ):
        dialog = page.get_by_role("dialog")
        await page.goto("/#/access")
        await page.get_by_label("Access key").fill(ROOT)
        await page.get_by_label("Secret key").fill(PASSWORD)
        await page.keyboard.press("Enter")

        await page.get_by_role("button", name="New user").click()
        await dialog.get_by_label("Name").fill(ROOT)
        await dialog.get_by_label("Password").fill("hush-hush-hush")
        assert await complaints(page) == []
        assert not await is_too_wide(page)
        await dialog.get_by_role("button", name="Create").click()
        await dialog.get_by_text("user root exists already").wait_for()
        await dialog.get_by_label("Name").fill("bobby")
        await dialog.get_by_role("button", name="Create").click()
        await page.get_by_role("button", name="Disable bobby").wait_for()
        await keep_picture(page, "users")
        await page.get_by_role("button", name="New policy").click()
        await dialog.get_by_label("User").select_option("bobby")
        await dialog.get_by_label("Name").fill("orders*")
        await dialog.get_by_label("Actions").fill("pub, get")
        assert await complaints(page) == []
        await keep_picture(page, "new-policy")
        await dialog.get_by_role("button", name="Save").click()
        await page.get_by_text("Topic:orders*", exact=True).wait_for()
        await page.get_by_role("cell", name="Pub, Get").wait_for()
        await page.get_by_role("button", name="Delete bobby Topic:orders*").click()
        await dialog.get_by_role("button", name="Delete").click()
        await page.get_by_text("No policies").wait_for()
        await page.get_by_role("button", name="Disable bobby").click()
        await dialog.get_by_role("button", name="Disable").click()
        await page.get_by_role("button", name="Enable bobby").wait_for()
        await page.get_by_role("button", name="Delete bobby").click()
        await dialog.get_by_label("Type bobby to delete it").fill("bobby")
        await dialog.get_by_role("button", name="Delete").click()
        await page.get_by_role("button", name="Enable bobby").wait_for(state="detached")
