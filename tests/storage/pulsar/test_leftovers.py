"""What does not fit the routes is found, and only what is surely deleted is deleted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.diagnosis import Finding, examine
from ropeway.storage.pulsar.leftovers import Left, Missing, Routed, find, mend
from ropeway.storage.pulsar.owner import Owner
from ropeway.storage.pulsar.topic_names import Names, PulsarName
from tests.storage.pulsar.logs import settings_for, until

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

NAMES = Names("rocketmq", "c")
SPACE = "rocketmq/c"
ORDERS = Routed("orders", {2: frozenset({0, 3})}, 3)


def listed(*locals_: str) -> list[str]:
    return [f"persistent://{SPACE}/{one}" for one in locals_]


def local(*found: Missing | Left) -> list[str]:
    return [one.name.local for one in found]


def test_what_fits_the_routes_is_no_finding() -> None:
    there = listed("orders@2-partition-0", "orders@2-partition-3", "__ropeway_state-a")
    assert list(find([ORDERS], NAMES, SPACE, there)) == []


def test_partitions_that_queues_are_in_and_pulsar_has_not_are_missing() -> None:
    there = listed("orders@2-partition-3", "orders-partition-0")
    missing, left = find([ORDERS], NAMES, SPACE, there)
    assert missing == Missing("orders", NAMES.pulsar("orders", 2), (0,))
    assert isinstance(left, Left)
    assert not left.is_ours


def test_older_generations_are_left_unless_a_broker_has_queues_of_them() -> None:
    there = listed(*(f"orders@{one}-partition-0" for one in (1, 2, 3, 4)))
    routed = Routed("orders", {2: frozenset({0})}, 3)
    assert local(*find([routed], NAMES, SPACE, there)) == ["orders@1"]
    deleted = Routed("rocketmq|c%orders", {}, 4)
    found = local(*find([deleted], NAMES, SPACE, there))
    assert found == ["orders@1", "orders@2", "orders@3"]


def test_what_routes_know_nothing_of_or_is_elsewhere_is_left_alone() -> None:
    there = listed("bills@1-partition-0", "x-partition-0", "__ropeway@cluster-0")
    others = [Routed("acme|blue%bills", {0: frozenset({0})}, 5), Routed("a b|%", {}, 9)]
    assert list(find(others, NAMES, SPACE, there)) == []


def test_a_plain_name_is_never_deleted() -> None:
    admin = Admin("http://127.0.0.1:1")
    with pytest.raises(ValueError, match="not provably"):
        asyncio.run(mend(admin, Left("orders", PulsarName("rocketmq", "c", "orders"))))


@pytest.mark.jvm
@pytest.mark.server
def test_each_kind_is_seen_and_mended_in_a_real_pulsar(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    space = pulsar_namespace
    settings = settings_for(pulsar, space)
    names = Names(settings.tenant, settings.namespace)
    owner = Owner("aa", "c", frozenset({"whole", "orders", "lost"}))
    routed = [
        Routed("whole", {0: frozenset({0, 1})}, 0),
        Routed("orders", {2: frozenset({0, 1, 2})}, 2),
        Routed("lost", {1: frozenset({0, 1})}, 1),
    ]

    def found(*, fix: bool = False) -> list[Finding]:
        looked = examine(settings, owner, routed, prepare=True, fix=fix)
        return [one for one in asyncio.run(looked) if one.advice or fix]

    def there() -> set[str]:
        full = pulsar.admin("GET", f"persistent/{space}")
        return {one.rpartition("/")[2] for one in full}

    async def make() -> None:
        admin = Admin(pulsar.admin_url)
        try:
            for topic, generation in (("whole", 0), ("orders", 0), ("orders", 1)):
                await admin.create(names.pulsar(topic, generation), 2)
            await admin.create(names.pulsar("orders", 2), 3)
        finally:
            await admin.close()

    made = {"allowAutoTopicCreation": False}
    pulsar.admin("POST", f"namespaces/{space}/autoTopicCreation", made)
    pulsar.admin("PUT", f"namespaces/{space}/properties", {"ropeway.cluster.aa": "c"})
    asyncio.run(make())
    path = f"persistent/{space}/orders%402-partition-1?force=true"
    pulsar.admin("DELETE", path)
    asyncio.run(until(lambda: "orders@2-partition-1" not in there()))
    before = there()
    whole = [f"whole-partition-{one}" for one in (0, 1)]
    said = [(one.text.partition(" in ")[0], one.refused) for one in found()]
    assert said == [
        ("topic orders has queues", True),
        ("topic lost has queues", True),
        ("Pulsar still has orders", False),
        ("Pulsar still has orders@1", False),
    ]
    # Nothing is changed unless that is asked for.
    assert there() == before
    assert any("they were made, empty" in one.text for one in found(fix=True))
    mended = {
        *whole,
        *(f"orders-partition-{one}" for one in (0, 1)),
        *(f"orders@2-partition-{one}" for one in (0, 1, 2)),
        *(f"lost@1-partition-{one}" for one in (0, 1)),
    }
    asyncio.run(until(lambda: there() == mended))
    (left,) = found()
    assert left.advice.endswith(f"partitioned-topic persistent://{space}/orders")
    # A namespace of another cluster is not touched.
    pulsar.admin("PUT", f"namespaces/{space}/properties", {"ropeway.cluster.bb": "c"})
    routed[2] = Routed("lost", {}, 2)
    assert any("belongs to another" in one.text for one in found(fix=True))
    assert there() == mended
