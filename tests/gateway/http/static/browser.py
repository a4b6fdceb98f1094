"""A real Chromium: pages that complain when something is wrong with them."""

from __future__ import annotations

import os
import shutil
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import async_playwright

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Page

TIMEOUT_MS = 120_000
"""Longer than anything takes on a loaded machine."""
DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


@asynccontextmanager
async def browsing(
    address: str, *, ignored: str = "\0", **settings: Any
) -> AsyncIterator[Page]:
    """A tab; its console must stay free of errors and warnings until it is closed.

    Args:
        address: The site, which paths begin from.
        ignored: What lines of the console may have in them.
        settings: The context's: viewport, colours.
    """
    program = shutil.which("chromium")
    assert program is not None, "scripts/setup test installs it"
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(
            executable_path=program,
            # Its sandbox needs what containers do not give; the page is our own.
            args=["--no-sandbox", "--disable-dev-shm-usage"],
            timeout=TIMEOUT_MS,
        )
        context = await chromium.new_context(base_url=address, **settings)
        context.set_default_timeout(TIMEOUT_MS)
        page = await context.new_page()
        said: list[str] = []
        page.on(
            "console",
            lambda one: said.append(f"{one.type}: {one.text} {one.location['url']}"),
        )
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        yield page
        await chromium.close()
    bad = [one for one in said if one.startswith(("error", "warning"))]
    assert [one for one in bad if ignored not in one] == [], bad


async def complaints(page: Page) -> list[str]:
    """What is wrong for people who see badly, or use no pointer."""
    results = await Axe().run(page, options=RULES)
    return [
        f"{one['id']}: {node['html'][:120]} {node.get('failureSummary', '')}"
        for one in results.response["violations"]
        for node in one["nodes"]
    ]


async def is_too_wide(page: Page) -> bool:
    """Whether the page scrolls sideways."""
    return await page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )


async def keep_picture(page: Page, name: str) -> None:
    """Take a picture into the folder that ROPEWAY_PICTURES names, if it does."""
    if folder := os.environ.get("ROPEWAY_PICTURES"):
        await page.screenshot(path=Path(folder) / f"{name}.png")
