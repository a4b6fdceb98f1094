"""The web page in a real Chromium: every view, by pointer and by keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from ropeway.client import MessageQueue
from ropeway.client.query_consumer import QueryConsumer
from ropeway.client.running_queries import Batch, Query
from ropeway.gateway.config import HttpConfig
from ropeway.gateway.wire.trace import TRACE_TOPIC
from tests.gateway.http.signed import guarded_site
from tests.gateway.http.site import bury, send, serving
from tests.gateway.http.static.browser import (
    DESKTOP,
    PHONE,
    browsing,
    complaints,
    is_too_wide,
    keep_picture,
)
from tests.guarded import ALICE, PASSWORD, ROOT, allow
from tests.remoting import beat, looped
from tests.requests import committing, pulling, sending

if TYPE_CHECKING:
    from playwright.async_api import Page

    from tests.gateway.http.site import Site

pytestmark = pytest.mark.slow

POINTS = 30
REFRESH_MS = 5000
"""As the page has it."""
WRITABLE = HttpConfig(port=0, writable=True)
TOPICS = ("orders", "payments", "shipments", "stock")
ID = f"{2:032X}"

VIEWS = [
    ("", "Overview", "Brokers up"),
    ("topics", "Topics", "payments"),
    ("topics/orders", "orders", "Groups that consume it"),
    ("groups", "Groups", "readers"),
    ("groups/readers", "readers", "Lag over time"),
    ("clients", "Clients", "me@host"),
    ("messages?topic=orders", "Messages", "broker-0 / 0, 2"),
    (f"messages/{ID}?topic=orders", "Message", "Consumed, without success"),
    (f"messages/{ID}?topic=orders", "Message", "Delivery by group"),
    ("waiting", "Waiting", "D" * 32),
    ("waiting", "Waiting", "E" * 32),
    ("waiting", "Waiting", "F" * 32),
    ("dead-letters", "Dead letters", "readers"),
    ("dead-letters/readers", "readers", "Dead since"),
    ("routes/orders", "Routes", "master"),
    ("access", "Access", "Who may do what"),
]


async def fill(site: Site) -> None:
    """Something for every view."""
    for topic in TOPICS:
        await send(site.client, topic, 3)
    await site.client.ask(committing("orders", 0, 1))
    await beat(site.client, "me@host", "readers", producers=("billing",))
    await bury(site.client, "orders", "readers", 2)
    later = {"UNIQ_KEY": "E" * 32, "TIMER_DELAY_SEC": "3600"}
    await site.client.ask(sending("orders", pairs=later), b"later")
    level = {"UNIQ_KEY": "D" * 32, "DELAY": "18"}
    await site.client.ask(sending("orders", pairs=level), b"two hours later")
    half = {"UNIQ_KEY": "F" * 32, "TRAN_MSG": "true", "PGROUP": "billing"}
    await site.client.ask(sending("orders", pairs=half, sys_flag=4), b"half")
    after = ["SubAfter", "R", ID, "5", "false", "k2", "1", "20", "readers"]
    trace = "\x01".join(after).encode() + b"\x02"
    await site.client.ask(sending(TRACE_TOPIC, pairs={"KEYS": ID}), trace)


async def heading(page: Page, text: str) -> None:
    await page.locator("h1", has_text=text).wait_for()


@looped
@pytest.mark.parametrize(
    ("viewport", "colours"),
    [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light")],
    ids=["desktop", "dark", "phone"],
)
async def test_every_view_shows_what_there_is_and_is_accessible(
    tmp_path, viewport, colours, request
):
    async with serving(tmp_path, WRITABLE) as site:
        await fill(site)
        settings = {"viewport": viewport, "color_scheme": colours}
        async with browsing(site.address, **settings) as page:
            for path, title, content in VIEWS:
                await page.goto(f"/#/{path}")
                await heading(page, title)
                await page.get_by_text(content).locator("visible=true").first.wait_for()
                assert not await is_too_wide(page), path
                assert await complaints(page) == [], path
                name = path.partition("?")[0].replace("/", "-") or "overview"
                await keep_picture(page, f"{request.node.callspec.id}-{name}")


@looped
async def test_an_empty_cluster_and_what_is_not_there_are_told(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        for path, text in (
            ("topics", "No topics yet"),
            ("groups", "No groups yet"),
            ("clients", "No consumers are connected"),
            ("messages", "Which topic?"),
            ("dead-letters", "No dead letters"),
            ("routes", "No topics yet"),
            ("nonsense", "There is no such view"),
        ):
            await page.goto(f"/#/{path}")
            await page.get_by_text(text).wait_for()
            assert await complaints(page) == [], path


@looped
async def test_a_consumer_that_runs_queries_has_their_plots(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        await send(site.client, "orders", 3)
        address = site.app.server.listeners[0].advertised
        async with QueryConsumer(address, "readers") as consumer:
            batches = [Batch(at * 1_000, at, at, 2, 250, 9 - at) for at in range(9)]
            queue = MessageQueue("orders", "broker-0", 0)
            await consumer.tell([Query("counts", batches)], {queue: 2})
            await page.goto(f"/#/clients/{quote(consumer.client_id)}?group=readers")
            shown = page.locator(".panel", has_text="Query counts")
            await shown.locator("canvas").nth(1).wait_for()
            await shown.get_by_text("Rows out (left)").wait_for()
            await shown.get_by_text("Batch, ms").wait_for()
            assert await complaints(page) == []
            await keep_picture(page, "client-with-queries")


@looped
async def test_lists_are_searched_and_paged_by_keyboard(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        for number in range(60):
            await site.app.node.topics.ensure_derived(f"topic-{number:02}", 1)
        await page.goto("/")
        await heading(page, "Overview")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == (
            "Skip to content"
        )
        await page.get_by_role("link", name="Topics", exact=True).focus()
        await page.keyboard.press("Enter")
        await page.get_by_text("1 to 50 of 60").wait_for()
        await page.get_by_role("button", name="Next").focus()
        await page.keyboard.press("Enter")
        await page.get_by_text("51 to 60 of 60").wait_for()
        await page.get_by_label("Search by name").fill("topic-07")
        await page.get_by_role("link", name="topic-08").wait_for(state="detached")
        await page.get_by_role("link", name="topic-07").focus()
        await page.keyboard.press("Enter")
        await heading(page, "topic-07")


@looped
async def test_messages_are_looked_up_by_key_and_opened(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        await fill(site)
        await page.goto("/#/messages")
        await page.get_by_role("button", name="By key").click()
        await page.get_by_label("Topic").fill("orders")
        await page.get_by_label("Key").fill("k2")
        await page.get_by_role("button", name="Search").click()
        await page.get_by_role("link", name=ID).click()
        await heading(page, "Message")
        await page.locator("pre", has_text="2").wait_for()


@looped
async def test_a_message_says_what_each_group_has_to_do_with_it(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        await send(site.client, "orders", 3)
        await site.client.ask(committing("orders", 0, 2))
        for number, code, text in (
            (1, "passed", "goes on at 2"),
            (2, "behind", "at 2"),
        ):
            await page.goto(f"/#/messages/{number:032X}?topic=orders")
            groups = page.locator(".panel", has_text="Delivery by group")
            await groups.get_by_role("link", name="readers").wait_for()
            await groups.get_by_text(code, exact=True).wait_for()
            await groups.get_by_text(text).first.wait_for()
        assert await complaints(page) == []
        await keep_picture(page, "message-by-group")


@looped
async def test_dead_letters_are_given_back_after_a_question(tmp_path):
    async with serving(tmp_path, WRITABLE, delay_levels="1s") as site:
        await fill(site)
        async with browsing(site.address) as page:
            await page.goto("/#/dead-letters/readers")
            await page.get_by_role("checkbox").first.check()
            await page.get_by_role("button", name="Replay 1").click()
            dialog = page.get_by_role("dialog")
            assert await complaints(page) == []
            await dialog.get_by_role("button", name="Cancel").click()
            await dialog.wait_for(state="detached")
            await page.get_by_role("button", name="Replay 1").click()
            await dialog.get_by_role("button", name="Replay").click()
            await page.get_by_text("1 replayed", exact=True).wait_for()


@looped
async def test_dead_letters_are_searched_paged_and_replayed_so_many_a_second(tmp_path):
    async with serving(tmp_path, WRITABLE, delay_levels="1s") as site:
        await send(site.client, "orders", 32)
        await bury(site.client, "orders", "readers", 32)
        await send(site.client, "orders", 28)
        await site.client.ask(committing("orders", 0, 32))
        for _ in range(2):
            await bury(site.client, "orders", "readers", 32)
        async with browsing(site.address) as page:
            await page.goto("/#/dead-letters/readers")
            await page.get_by_text("50 of 96").wait_for()
            await page.get_by_role("button", name="More").click()
            await page.get_by_text("96 of 96").wait_for()
            assert await complaints(page) == []
            await page.get_by_label("With text").fill("k31")
            await page.get_by_text("3 of 96").wait_for()
            await page.get_by_role("button", name="Choose all shown").click()
            await page.get_by_label("Messages a second").fill("2")
            await page.get_by_role("button", name="Replay 3").click()
            dialog = page.get_by_role("dialog")
            await dialog.get_by_role("button", name="Replay").click()
            await page.get_by_text("2 replayed, 1 to go").wait_for()
            await page.get_by_role("button", name="Stop").wait_for()
            await page.get_by_text("3 replayed", exact=True).wait_for()
            await keep_picture(page, "dead-letters-search")


@looped
async def test_messages_are_followed_live_with_a_text_and_paged_back(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        await send(site.client, "orders", 60)
        await page.goto("/#/messages?topic=orders")
        await page.get_by_role("button", name="Older").click()
        await page.get_by_role("link", name=f"{0:032X}").wait_for()
        await page.get_by_label("With text").fill("k59")
        await page.get_by_role("button", name="Search").click()
        await page.get_by_role("link", name=f"{59:032X}").wait_for()
        await page.get_by_role("link", name=f"{58:032X}").wait_for(state="detached")
        await page.get_by_label("With text").fill("late")
        await page.get_by_role("button", name="Live tail").click()
        await (
            page.get_by_text("Nothing found").or_(page.get_by_role("table")).wait_for()
        )
        pairs = {"UNIQ_KEY": "A" * 32, "KEYS": "too-late"}
        await site.client.ask(sending("orders", pairs=pairs), b"x")
        await page.get_by_role("link", name="A" * 32).wait_for()
        live = page.get_by_role("button", name="Live tail")
        assert await live.get_attribute("aria-pressed") == "true"
        assert await complaints(page) == []
        await live.click()
        assert await live.get_attribute("aria-pressed") == "false"


@looped
async def test_where_nothing_may_be_changed_the_page_says_how(tmp_path):
    async with serving(tmp_path) as site:
        await fill(site)
        async with browsing(site.address) as page:
            await page.goto("/#/dead-letters/readers")
            await page.get_by_text("http.writable = true").wait_for()
            assert await page.get_by_role("checkbox").first.is_disabled()


@looped
async def test_a_gateway_that_is_gone_is_told_with_since_when_until_it_is_back(
    tmp_path,
):
    async with (
        serving(tmp_path) as site,
        browsing(site.address, ignored="net::ERR_FAILED") as page,
    ):
        await page.clock.install()
        for path in ("", "messages", "groups"):
            await page.goto(f"/#/{path}")
            await page.locator("h1").wait_for()
            await page.route("**/api/**", lambda route: route.abort())
            told = page.get_by_text("The gateway has not answered since")
            await page.clock.run_for(REFRESH_MS)
            await told.wait_for()
            assert await complaints(page) == []
            await page.unroute("**/api/**")
            await page.clock.run_for(REFRESH_MS)
            await told.wait_for(state="detached")


@looped
async def test_colours_can_be_chosen_and_stay_chosen(tmp_path):
    async with serving(tmp_path) as site, browsing(site.address) as page:
        theme = "document.documentElement.dataset.theme"
        await page.goto("/")
        await page.get_by_role("button", name="Use dark colours").click()
        await page.reload()
        await heading(page, "Overview")
        assert await page.evaluate(theme) == "dark"
        assert await complaints(page) == []


@looped
async def test_what_goes_through_is_plotted_over_time(tmp_path):
    async with serving(tmp_path) as site:
        await fill(site)
        settings = {"viewport": DESKTOP, "color_scheme": "light"}
        async with browsing(site.address, **settings) as page:
            await page.clock.install()
            await page.goto("/")
            await heading(page, "Overview")
            for number in range(POINTS):
                await send(site.client, "orders", 2 + number % 7 * 2)
                await site.client.ask(pulling("orders", 3 * number, max_msg_nums=9))
                async with page.expect_response("**/api/overview"):
                    await page.clock.run_for(REFRESH_MS)
            await page.get_by_text("In since").wait_for()
            # The newest point's, in the legend.
            shown = await page.locator(
                ".plot >> nth=0 >> .u-legend .u-value"
            ).all_text_contents()
            assert len(shown) == 3
            assert all(any(sign.isdigit() for sign in value) for value in shown)
            await keep_picture(page, "page")


@looped
async def test_who_signs_in_sees_what_the_rules_allow(tmp_path, request):
    rules = allow("Cluster:*", "Get"), allow("Topic:*", "Get", "List")
    # What is refused the browser itself complains of: tests without one show that.
    async with (
        guarded_site(tmp_path, *rules) as site,
        browsing(site.address, viewport=PHONE) as page,
    ):

        async def sign_in(who: str) -> None:
            await heading(page, "Sign in")
            await page.get_by_label("Access key").fill(who)
            await page.get_by_label("Secret key").fill(PASSWORD)
            await page.keyboard.press("Enter")

        await page.goto("/#/topics")
        await heading(page, "Sign in")
        assert await complaints(page) == []
        assert not await is_too_wide(page)
        await keep_picture(page, "sign-in")
        await sign_in(ALICE)
        await page.get_by_role("link", name="orders").wait_for()
        await page.get_by_role("button", name="Sign out").click()
        await sign_in(ROOT)
        await page.get_by_role("link", name="orders").wait_for()
        await page.goto("/#/access")
        await page.get_by_role("heading", name="Policies").wait_for()
        await page.get_by_role("cell", name="Topic:*").wait_for()
        await page.get_by_label("User or account").fill(ALICE)
        await page.get_by_label("Name", exact=True).fill("orders")
        await page.get_by_role("button", name="Check").click()
        await page.get_by_text("denied").wait_for()
        await page.get_by_label("Action").select_option("get")
        await page.get_by_role("button", name="Check").click()
        await page.get_by_text("allowed", exact=True).wait_for()
        assert await complaints(page) == []
        assert not await is_too_wide(page)
        await keep_picture(page, "access")
