"""What native clients of Pulsar send is text in the page, too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import HttpConfig
from ropeway.gateway.http.setup import site
from tests.gateway.http.static.browser import browsing
from tests.gateway.http.static.test_stored_scripts import (
    SETTINGS,
    keyed,
    script,
    shows,
)
from tests.remoting import looped
from tests.system.native import (
    TOPIC,
    full_name,
    native_client,
    node_on,
    pulled,
    share,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@looped
async def test_nothing_that_native_clients_send_runs_in_the_page(
    pulsar: Pulsar, pulsar_namespace: str, tmp_path: Path
) -> None:
    def produce() -> None:
        with native_client(pulsar) as client:
            producer = client.create_producer(full_name(pulsar_namespace))
            producer.send(
                script("body").encode(),
                properties={script("property"): script("value"), "TAGS": script("tag")},
                partition_key=keyed("key"),
            )

    http = HttpConfig(port=0)
    async with (
        node_on(pulsar, pulsar_namespace, tmp_path, http=http) as (app, client),
        site(app) as address,
    ):
        assert address is not None
        assert (await share(client)).code == 0
        await asyncio.to_thread(produce)
        assert len(await pulled(client, 1)) == 1
        async with browsing(address, **SETTINGS) as page:
            await shows(page, f"messages?topic={TOPIC}", "tag", "key", "body")
            await page.locator("#main td a").click()
            await page.get_by_text("data-mark=value").first.wait_for()
            message = page.url.partition("#/")[2]
            marks = ("tag", "key", "property", "value", "body")
            await shows(page, message, *marks)
