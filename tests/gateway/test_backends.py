"""What a configuration names is what is opened, or there is an error that says why."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway import backends
from ropeway.gateway.config import (
    Config,
    ConfigError,
    ListenerConfig,
    TierConfig,
    ZooKeeperConfig,
)
from ropeway.gateway.node.message_keys import MessageKeys
from ropeway.gateway.pulsar_config import PulsarConfig
from ropeway.routing.api import Topic
from ropeway.routing.embedded import EmbeddedRoutes
from ropeway.storage.api import LogUnfitError
from ropeway.storage.compaction.log import CompactedLog
from ropeway.storage.file import FileLog
from ropeway.storage.tiered.log import TieredLog
from tests.remoting import config, looped
from tests.storage.tiered.tiers import fill

if TYPE_CHECKING:
    from pathlib import Path


def on_pulsar(port: int = 9876, **changes: object) -> Config:
    listener = ListenerConfig(port=port, **changes)
    return Config(pulsar=PulsarConfig(), listeners=(listener,))


@looped
async def test_messages_are_kept_in_files_where_nothing_else_is_said(tmp_path: Path):
    async with AsyncExitStack() as stack:
        storage = await backends.open_storage(
            config(tmp_path), "n", stack, print, None, MessageKeys()
        )
        assert isinstance(storage.log, CompactedLog)
        assert isinstance(storage.log.inner, FileLog)
        assert storage.compaction is storage.log
        assert (storage.found, storage.state) == ([], None)
        routes = await backends.open_routes(config(tmp_path))
        assert isinstance(routes, EmbeddedRoutes)
        await routes.close()


def test_a_node_is_named_as_it_is_told_or_by_where_clients_find_it():
    given = on_pulsar(advertised_host="mq.example.com", advertised_port=1)
    assert backends.node_name(given) == "mq.example.com:1"
    assert backends.node_name(on_pulsar()) == "127.0.0.1:9876"
    named = Config(node="a", pulsar=PulsarConfig())
    assert backends.node_name(named) == "a"
    # One node has the embedded log, so it needs no name.
    assert backends.node_name(Config(node="a", broker="b")) == "b"


def test_a_node_that_nothing_names_is_an_error():
    with pytest.raises(ConfigError, match="node is not given, and a listener on port"):
        backends.node_name(on_pulsar(0))


def test_only_what_pulsar_keeps_can_be_shared():
    assert backends.is_shared(on_pulsar())
    assert not backends.is_shared(Config())


def test_the_embedded_log_has_one_node():
    with pytest.raises(ConfigError, match="replication_num is 2; allowed where"):
        backends.node_name(Config(replication_num=2))


COMPACTED = Topic(
    name="prices",
    read_queue_nums=1,
    write_queue_nums=1,
    attributes={"cleanup.policy": "COMPACTION"},
)


def with_tier(tmp_path: Path, **changes: object) -> Config:
    given = TierConfig(url=f"file://{tmp_path}/store", commit_ms=1, **changes)
    return msgspec.structs.replace(config(tmp_path), tier=given)


@looped
async def test_a_tier_has_the_topics_of_users_alone(tmp_path: Path):
    async with AsyncExitStack() as stack:
        given = with_tier(tmp_path)
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        stack.push_async_callback(routes.close)
        await routes.change_topic("prices", lambda _: COMPACTED)
        keys = MessageKeys()
        storage = await backends.open_storage(
            given, "n", stack, print, None, keys, routes
        )
        assert isinstance(storage.log, CompactedLog)
        tier = storage.log.inner
        assert isinstance(tier, TieredLog)
        users = ["orders", "%DLQ%kitchen"]
        others = ["prices", "%RETRY%kitchen", "rmq_sys_wheel_timer", given.broker]
        for topic in users + others:
            await storage.log.create(topic, [0])
            await fill(storage.log.partition(topic, 0), ["a"])
        await tier.dispatch()
        found = {flat.topic for flat in tier.tier_index.flats.values()}
        assert found == set(users)
        assert [path.name for path in (tmp_path / "store").iterdir()] == [given.broker]


@looped
async def test_a_tier_that_cannot_be_is_refused_in_words(tmp_path: Path):
    async with AsyncExitStack() as stack:
        ftp = msgspec.structs.replace(
            config(tmp_path), tier=TierConfig(url="ftp://host/path")
        )
        with pytest.raises(LogUnfitError, match="'ftp'; allowed: az, file"):
            await backends.open_storage(ftp, "n", stack, print, None, MessageKeys())
        both = msgspec.structs.replace(
            with_tier(tmp_path), pulsar=PulsarConfig(), broker="b"
        )
        with pytest.raises(ConfigError, match="tier is given, and pulsar"):
            await backends.open_storage(both, "n", stack, print, None, MessageKeys())


@looped
async def test_a_password_of_zookeeper_that_is_no_text_is_an_error(tmp_path: Path):
    path = tmp_path / "password"
    path.write_bytes(b"\xff\xfe")
    given = Config(
        routes="zookeeper://127.0.0.1:1", zookeeper=ZooKeeperConfig(password_file=path)
    )
    with pytest.raises(ConfigError, match=r"zookeeper.password_file: cannot read"):
        await backends.open_routes(given)
