"""The page that Prometheus reads: every part of a node writes its metrics."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ropeway.gateway.http.metrics import of_groups, of_node, of_process, of_topics
from ropeway.gateway.http.metrics.text import Page

if TYPE_CHECKING:
    from ropeway.gateway.app import App


async def render(app: App) -> bytes:
    """The page as it is now, in text."""
    return (await gather(app)).text()


async def gather(app: App) -> Page:
    """All samples as they are now.

    Topics and groups are told by the node that leads their broker alone, so that sums
    over all nodes are right.
    """
    began_s = time.perf_counter()
    node = app.node
    page = Page(
        {
            "cluster": node.config.cluster,
            "node_type": "broker",
            "node_id": node.config.broker,
        }
    )
    of_node.write(page, node, app.node_name, app.server)
    if node.leadership.leads:
        await of_topics.write(page, node)
        await of_groups.write(page, node)
    of_process.write(page)
    page.add("ropeway_scrape_seconds", time.perf_counter() - began_s)
    return page
