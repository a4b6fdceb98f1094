"""The copy of Pulsar's topics: what counts as one, and where they may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogLimitError, LogUnavailableError
from ropeway.storage.pulsar.catalog import Catalog
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from tests.storage.pulsar.test_admin import Rest, run

if TYPE_CHECKING:
    from ropeway.storage.pulsar.admin import Admin

SETTINGS = PulsarLogSettings(namespaces=("acme/blue", "public/default"))
OLD = "/admin/v2/persistent/public/default/orders%4012/partitions?force=true"
BLUE = "/admin/v2/persistent/acme/blue"


def test_partitions_are_counted_from_one_list_a_namespace() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        catalog = Catalog(admin, SETTINGS)
        assert catalog.spaces == ["public/default", "acme/blue"]
        await catalog.load(catalog.spaces)
        assert catalog.topics == {"orders": 3, "%RETRY%acme|blue%billing": 1}

    default = [
        "persistent://public/default/orders-partition-2",
        "persistent://public/default/orders-partition-0",
        "persistent://public/default/__change_events",
        "non-persistent://public/default/other-partition-0",
    ]
    blue = ["persistent://acme/blue/%RETRY%billing-partition-0"]
    run(
        {
            ("GET", "/admin/v2/persistent/public/default"): [(200, default)],
            ("GET", BLUE): [(200, blue)],
        },
        test,
    )


def test_what_is_there_already_is_not_made_again() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        catalog = Catalog(admin, SETTINGS)
        await catalog.create("acme|blue%orders", [1])
        asked = len(rest.asked)
        await catalog.create("acme|blue%orders", [0, 1])
        assert len(rest.asked) == asked
        # Somebody else had made more.
        assert catalog.topics == {"acme|blue%orders": 4}

    path = f"{BLUE}/orders/partitions"
    run({("GET", path): [(200, {"partitions": 4})] * 2}, test)


def test_numbers_and_namespaces_are_checked_before_pulsar_is_asked() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        catalog = Catalog(admin, SETTINGS)
        with pytest.raises(LogLimitError, match=r"partition 1024 of .* 0 to 1023"):
            await catalog.create("orders", [3, 1024])
        with pytest.raises(LogUnavailableError, match="acme/red; served: public/defau"):
            await catalog.create("acme|red%orders", [0])
        with pytest.raises(LogLimitError, match="cannot be a tenant"):
            await catalog.create("a b|c%orders", [0])
        assert rest.asked == []

    run({}, test)


def test_a_topic_is_known_by_its_newest_generation_until_another_is_chosen() -> None:
    async def test(admin: Admin, rest: Rest) -> None:
        catalog = Catalog(admin, PulsarLogSettings())
        await catalog.load(catalog.spaces)
        assert catalog.topics == {"orders": 1, "others": 2}
        assert catalog.name("orders").local == "orders@12"
        assert not catalog.choose("orders", 12)
        assert catalog.topics["orders"] == 1
        assert catalog.choose("orders", 13)
        assert catalog.topics == {"others": 2}
        await catalog.create("orders", [0, 1])
        assert catalog.topics["orders"] == 2
        # What is deleted of an older one does not count for it.
        await catalog.delete("orders", 12)
        assert catalog.topics["orders"] == 2
        assert [path for method, path, _ in rest.asked if method == "DELETE"] == [OLD]

    space = "/admin/v2/persistent/public/default"
    names = ["orders@12-partition-0", "orders-partition-7", "orders@2-partition-9"]
    names.append("others-partition-1")
    new = f"{space}/orders%4013/partitions"
    run(
        {
            ("GET", space): [
                (200, [f"persistent://public/default/{n}" for n in names])
            ],
            ("GET", new): [(404, {"reason": "no"}), (200, {"partitions": 2})],
            ("PUT", new): [(204, None)],
            ("DELETE", OLD): [(204, None)],
        },
        test,
    )
