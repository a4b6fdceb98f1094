"""A configuration's log on Pulsar: where it is, and which cluster's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway import on_pulsar
from ropeway.gateway.config import Config, ConfigError
from ropeway.gateway.node import deletions
from ropeway.gateway.pulsar_config import PulsarConfig
from ropeway.routing.api import Topic
from ropeway.routing.embedded import EmbeddedRoutes
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


def on(cluster: str = "DefaultCluster", **given: object) -> Config:
    return Config(cluster=cluster, pulsar=PulsarConfig(**given))


def test_a_cluster_whose_name_no_namespace_can_have_needs_one_that_is_named():
    wrong = on("a|b")
    assert wrong.pulsar is not None
    with pytest.raises(ConfigError, match=r"pulsar\.namespace is 'a\|b'; allowed: le"):
        on_pulsar.settings(wrong, wrong.pulsar)
    named = on("a|b", namespace="ab")
    assert named.pulsar is not None
    assert on_pulsar.settings(named, named.pulsar).namespace == "ab"


def test_what_is_no_namespace_is_a_mistake_in_the_configuration():
    wrong = on(namespaces=("sales",))
    assert wrong.pulsar is not None
    with pytest.raises(ConfigError, match="'sales'; allowed: tenant/namespace"):
        on_pulsar.settings(wrong, wrong.pulsar)


@looped
async def test_a_clusters_id_is_made_once_and_kept_with_its_routes(tmp_path: Path):
    routes = EmbeddedRoutes(tmp_path / "routes.db")
    assert on_pulsar.known_owner(on(), routes) is None
    first = await on_pulsar.owner(on(), routes)
    topic = Topic(name="orders", read_queue_nums=1, write_queue_nums=1)
    await routes.change_topic("orders", lambda _: topic)
    await routes.close()
    again = EmbeddedRoutes(tmp_path / "routes.db")
    second = await on_pulsar.owner(on(adopt="empty"), again)
    assert (second.id, second.name, second.adopts) == (first.id, first.name, "empty")
    # A topic without queues has no partitions either.
    assert second.topics == frozenset()
    other = EmbeddedRoutes(tmp_path / "other.db")
    assert (await on_pulsar.owner(on(), other)).id != first.id
    await other.close()
    await again.close()


@looped
async def test_the_next_id_for_a_pulsar_is_the_same_until_it_is_used(tmp_path: Path):
    routes = EmbeddedRoutes(tmp_path / "routes.db")
    first = (await on_pulsar.owner(on(), routes)).pulsar_ids
    assert first is not None
    assert first.current is None
    assert (await on_pulsar.owner(on(), routes)).pulsar_ids == first
    await on_pulsar.keep_pulsar_id(routes, None)
    assert (await on_pulsar.owner(on(), routes)).pulsar_ids == first
    await on_pulsar.keep_pulsar_id(routes, first.following)
    second = (await on_pulsar.owner(on(), routes)).pulsar_ids
    assert second is not None
    assert second.current == first.following != second.following
    assert (await on_pulsar.owner(on(), routes)).pulsar_ids == second
    await routes.close()


@looped
async def test_topics_that_routes_know_nothing_of_begin_with_what_pulsar_has(
    tmp_path: Path,
):
    """Where routes were lost, such a topic was made anew, beside its messages."""
    routes = EmbeddedRoutes(tmp_path / "routes.db")
    known = Topic(name="orders", read_queue_nums=1, write_queue_nums=1)
    gone = deletions.unmade("gone", 3)
    for one in (known, gone):
        await routes.change_topic(one.name, lambda _, one=one: one)
    await on_pulsar.find_generations(routes, {"orders": 1, "gone": 1, "lost": 2})
    assert routes.topics == {"orders": known}
    assert routes.deleted == {"gone": gone, "lost": deletions.unmade("lost", 2)}
    # One of which the node was forgotten, as of very many: what is lower is over.
    place = deletions.DELETIONS_NAMESPACE, deletions.GENERATION
    await routes.put_setting(*place, "4")
    await on_pulsar.find_generations(routes, {"over": 4, "newer": 5})
    assert set(routes.deleted) == {"gone", "lost", "newer"}
    await routes.close()
