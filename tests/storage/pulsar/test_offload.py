"""What Pulsar offloads by itself is shown and asked for; what it refuses is told."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogError
from ropeway.storage.pulsar import PulsarLogSettings
from ropeway.storage.pulsar.offload import NOT_SET, Offloading, Policy, open_offloading
from tests import builds
from tests.contracts.log import begin, opened, read_all, record
from tests.storage.pulsar.logs import log_of, settings_for
from tests.storage.pulsar.test_admin import run
from tests.system.pulsar import Pulsar

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.pulsar.admin import Admin
    from tests.storage.pulsar.test_admin import Rest

SPACE = "/admin/v2/persistent/public/default"
FIRST = f"{SPACE}/orders%402-partition-0"
ALL = [
    f"persistent://public/default/{name}-partition-0"
    for name in ("orders", "orders@2", "orders@1", "others@3")
]
"""Two generations are being deleted."""
LEDGERS = {
    "ledgers": [
        {"ledgerId": 7, "entries": 9, "size": 900, "offloaded": True},
        {"ledgerId": 8, "entries": 9, "size": 100, "offloaded": False},
        {"ledgerId": 9, "entries": 0, "size": 0, "offloaded": False},
    ]
}
OFFLOADERS = "org.apache.pulsar:pulsar-offloader-distribution:4.0.8:tar.gz:bin"


def test_all_but_the_newest_ledger_of_each_partition_is_asked_for() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        found = await Offloading(admin, PulsarLogSettings()).offload(
            "orders", wait=True
        )
        (one,) = found
        assert (one.topic, one.partition, one.ledgers, one.offloaded) == (
            *("orders", 0),
            *(3, 1),
        )
        assert (one.bytes, one.offloaded_bytes, one.status) == (1000, 900, "SUCCESS")
        asked = [(path, body) for method, path, body in rest.asked if method == "PUT"]
        assert asked == [
            (f"{FIRST}/offload", '{"ledgerId":9,"entryId":0,"partitionIndex":-1}')
        ]

    running, done = {"status": "RUNNING"}, {"status": "SUCCESS", "lastError": ""}
    run(
        {
            ("GET", SPACE): [(200, ALL)] * 3,
            ("GET", f"{FIRST}/internalStats"): [(200, LEDGERS)] * 3,
            # One that runs already is as good.
            ("PUT", f"{FIRST}/offload"): [(HTTPStatus.CONFLICT, {"reason": "runs"})],
            ("GET", f"{FIRST}/offload"): [(200, running), (200, done)],
        },
        test,
    )


def test_policies_say_when_pulsar_offloads_by_itself() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        settings = PulsarLogSettings(namespaces=("a/b",))
        given, none = await Offloading(admin, settings).policies()
        assert given == Policy("public/default", "filesystem", 5, NOT_SET)
        assert none == Policy("a/b", None, NOT_SET, NOT_SET)

    policies = {
        "managedLedgerOffloadDriver": "filesystem",
        "managedLedgerOffloadThresholdInBytes": 5,
    }
    run(
        {
            ("GET", "/admin/v2/namespaces/public/default"): [
                (200, {"offload_policies": policies})
            ],
            ("GET", "/admin/v2/namespaces/a/b"): [(200, {})],
        },
        test,
    )


def test_without_a_topic_all_partitions_of_all_namespaces_are_told_of() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        settings = PulsarLogSettings(namespaces=("a/b",))
        found = await Offloading(admin, settings).status(None)
        assert [(one.topic, one.partition, one.status) for one in found] == [
            ("a|b%carts", 11, "NOT_RUN"),
            ("orders", 0, "SUCCESS"),
        ]

    carts = "/admin/v2/persistent/a/b/carts-partition-11"
    first = ["persistent://public/default/orders@2-partition-0"]
    # What has no partitions is no topic of ours.
    second = ["persistent://a/b/plain", "persistent://a/b/carts-partition-11"]
    run(
        {
            ("GET", "/admin/v2/persistent/public/default"): [(200, first)],
            ("GET", "/admin/v2/persistent/a/b"): [(200, second)],
            ("GET", f"{FIRST}/internalStats"): [(200, LEDGERS)],
            ("GET", f"{FIRST}/offload"): [(200, {"status": "SUCCESS"})],
            ("GET", f"{carts}/internalStats"): [(200, LEDGERS)],
            ("GET", f"{carts}/offload"): [(200, {"status": "NOT_RUN"})],
        },
        test,
    )


def test_a_topic_that_is_not_there_is_named() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        with pytest.raises(LogError, match="there is no topic orders"):
            await Offloading(admin, PulsarLogSettings()).status("orders")

    run({("GET", SPACE): [(200, [])]}, test)


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.jvm
def test_what_pulsar_has_offloaded_is_read_as_before(tmp_path: Path) -> None:
    """A real Pulsar with its filesystem offloader."""
    offloaders = builds.unpacked(OFFLOADERS) / "apache-pulsar-offloaders-4.0.8"
    site = tmp_path / "site.xml"
    site.write_text("<configuration></configuration>")
    store = tmp_path / "store"
    small = {
        "managedLedgerMaxEntriesPerLedger": "5",
        "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    }
    driver = {
        "managedLedgerOffloadDriver": "filesystem",
        "offloadersDirectory": str(offloaders / "offloaders"),
        "fileSystemURI": f"file://{store}",
        "fileSystemProfilePath": str(site),
    }
    server = Pulsar(tmp_path / "pulsar", settings={**small, **driver})
    server.start()
    try:
        settings = settings_for(server, "public/offloaded")
        texts = [f"{at}" for at in range(12)]

        async def offloaded() -> None:
            async with log_of(settings) as log:
                await log.create("orders", [0])
                partition = await opened(log, 0, "orders")
                for text in texts:
                    await begin(partition, record(text))
                async with open_offloading(settings) as offloading:
                    (one,) = await offloading.offload("orders", wait=True)
                    assert (one.status, one.error) == ("SUCCESS", "")
                    (now,) = await offloading.status()
                    # A ledger may be there before Pulsar says so.
                    assert one.ledgers > now.offloaded >= one.offloaded > 0
                    assert (now.status, now.bytes) == (one.status, one.bytes)
                assert any(path.is_file() for path in store.rglob("*"))
                assert await read_all(partition) == texts

        asyncio.run(offloaded())
    finally:
        server.stop()
