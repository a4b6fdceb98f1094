"""What clients, route stores and accounts are named is text in the page, never HTML.

The browser is told to ignore the page's Content-Security-Policy: that would stop a
script, and here not one element may come to be.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from ropeway.gateway.config import AclConfig, HttpConfig
from ropeway.gateway.node import names
from ropeway.gateway.wire.trace import TRACE_TOPIC
from ropeway.routing.api import Group, Topic
from tests.gateway.http.site import bury, serving
from tests.gateway.http.static.browser import DESKTOP, browsing
from tests.guarded import PASSWORD
from tests.remoting import beat, looped
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page

    from ropeway.gateway.node.node import Node
    from tests.gateway.http.site import Site

pytestmark = pytest.mark.slow

WRITABLE = HttpConfig(port=0, writable=True)
SETTINGS = {"viewport": DESKTOP, "bypass_csp": True}
ID = f"{7:032X}"


def script(mark: str) -> str:
    """Text that runs as a script wherever it is read as HTML, or within an attribute.

    It has no blanks, at which keys are cut, and no slash, at which paths are.
    """
    return f"'\"><img\tsrc=x\tdata-mark={mark}\tonerror=window.__ran='{mark}'>"


def keyed(mark: str) -> str:
    return script(mark).replace("\t", "/")


async def injected(page: Page) -> list[str]:
    """What came to be, or ran, of any `script`."""
    return await page.evaluate(
        "[...document.querySelectorAll('[data-mark]')].map((one) => one.outerHTML)"
        ".concat(window.__ran ? [window.__ran] : [])"
    )


async def shows(page: Page, path: str, *marks: str) -> None:
    """Whether a view has the texts that were chosen, and nothing ran."""
    await page.goto("about:blank")
    await page.goto(f"/#/{path}")
    for mark in marks:
        one = page.get_by_text(f"data-mark={mark}").locator("visible=true")
        await one.first.wait_for()
    assert await injected(page) == [], path


async def store(node: Node, topic: str, group: str) -> None:
    """What is in a route store, whoever wrote it there."""
    for number, name in enumerate((topic, names.dlq_topic(group))):
        made = Topic(
            name=name,
            read_queue_nums=1,
            write_queue_nums=1,
            attributes={script("attribute"): script("its-value")},
            # With a queue here, so that requests about it go all the way.
            route={node.config.broker: [number]},
        )
        await node.routes.change_topic(name, lambda _, made=made: made)
    await node.routes.change_group(group, lambda _: Group(name=group))


async def fill(site: Site) -> None:
    """A script in whatever a client can choose."""
    pairs = {
        "UNIQ_KEY": ID,
        "KEYS": keyed("key"),
        "TAGS": script("tag"),
        script("property"): script("value"),
        "RETRY_TOPIC": script("retried"),
    }
    body = json.dumps({script("member"): script("body")}).encode()
    assert (await site.client.ask(sending("orders", pairs=pairs), body)).code == 0
    await bury(site.client, "orders", "readers", 1)
    answer = await beat(
        site.client,
        script("client"),
        "readers",
        expression=f"a||{script('expression')}",
        producers=(script("producers"),),
    )
    assert answer.code == 0
    after = ["SubAfter", "R", ID, "5", "false", "k2", "1", "20", script("tracer")]
    trace = "\x01".join(after).encode() + b"\x02"
    answer = await site.client.ask(sending(TRACE_TOPIC, pairs={"KEYS": ID}), trace)
    assert answer.code == 0
    await store(site.app.node, script("topic"), script("group"))


@looped
async def test_a_script_that_gets_into_the_page_is_noticed(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as site,
        # Its picture is not there.
        browsing(site.address, ignored="Failed to load resource", **SETTINGS) as page,
    ):
        await page.goto("/")
        # Beside what the page draws, which it may draw anew at any time.
        await page.evaluate(
            "html => { document.body.insertAdjacentHTML('beforeend', html); }",
            script("here"),
        )
        await page.wait_for_function("window.__ran === 'here'")
        assert len(await injected(page)) == 2


@looped
async def test_nothing_that_is_stored_runs_in_any_view(tmp_path: Path) -> None:
    topic, group = quote(script("topic"), safe=""), quote(script("group"), safe="")
    message = f"messages/{ID}?topic=orders"
    views: list[tuple[str, tuple[str, ...]]] = [
        ("topics", ("topic",)),
        (f"topics/{topic}", ("topic", "attribute", "its-value")),
        ("topics/orders", ()),
        ("groups", ("group",)),
        (f"groups/{group}", ("group",)),
        ("groups/readers", ("client", "expression")),
        ("clients", ("client", "expression")),
        ("messages?topic=orders", ("tag", "key", "member", "body")),
        (message, ("tag", "key", "property", "value", "member", "body", "tracer")),
        ("dead-letters", ("group",)),
        # Not "retried": where it was sent first is what the broker saw.
        ("dead-letters/readers", ("key", "member", "body")),
        (f"dead-letters/{group}", ("group",)),
        ("routes", ("topic",)),
        (f"routes/{topic}", ("topic",)),
    ]
    async with serving(tmp_path, WRITABLE) as site:
        await fill(site)
        async with browsing(site.address, **SETTINGS) as page:
            for path, marks in views:
                await shows(page, path, *marks)
            await page.goto("/#/clients")
            await page.get_by_label("Show").select_option("producers")
            await page.get_by_text("data-mark=producers").wait_for()
            assert await injected(page) == []


@looped
async def test_nothing_in_an_address_runs_either(tmp_path: Path) -> None:
    text = quote(script("asked"), safe="")
    async with (
        serving(tmp_path) as site,
        # The views ask for what is not there, and the browser says so.
        browsing(site.address, ignored="Failed to load resource", **SETTINGS) as page,
    ):
        for view in ("topics", "groups", "messages", "dead-letters", "routes"):
            await page.goto("about:blank")
            await page.goto(f"/#/{view}/{text}?topic={text}&key={text}")
            await page.get_by_text("data-mark=asked").first.wait_for()
            await page.get_by_role("alert").or_(page.get_by_text("No dead")).wait_for()
            assert await injected(page) == [], view


@looped
async def test_the_name_of_who_signed_in_and_the_rules_are_text(tmp_path: Path) -> None:
    name = script("account")
    rules = tmp_path / "plain_acl.yml"
    account = {"accessKey": name, "secretKey": PASSWORD, "admin": True}
    # JSON is YAML, too.
    rules.write_text(json.dumps({"accounts": [account]}))
    acl = AclConfig(hooks=("plain",), options={"plain": {"file": str(rules)}})
    async with (
        serving(tmp_path, WRITABLE, acl=acl) as site,
        # Who is not signed in is refused, and the browser says so.
        browsing(site.address, ignored="Failed to load resource", **SETTINGS) as page,
    ):
        await page.goto("/#/access")
        await page.get_by_label("Access key").fill(f"{name}x")
        await page.keyboard.press("Enter")
        await page.get_by_role("alert").wait_for()
        await page.get_by_label("Access key").fill(name)
        await page.get_by_label("Secret key").fill(PASSWORD)
        await page.keyboard.press("Enter")
        await page.locator("#who").get_by_text("data-mark=account").wait_for()
        await page.get_by_label("User or account").fill(name)
        await page.get_by_label("Name", exact=True).fill(script("resource"))
        await page.get_by_role("button", name="Check").click()
        await page.locator("dd").get_by_text("data-mark=account").first.wait_for()
        assert await injected(page) == []
