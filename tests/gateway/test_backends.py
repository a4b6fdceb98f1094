"""What a configuration names is what is opened, or there is an error that says why."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from gateway import backends
from gateway.config import Config, ConfigError, ListenerConfig, PulsarConfig
from routing.embedded import EmbeddedRoutes
from storage.file import FileLog
from tests.remoting import config, looped

if TYPE_CHECKING:
    from pathlib import Path


def on_pulsar(port: int = 9876, **changes: object) -> Config:
    listener = ListenerConfig(port=port, **changes)
    return Config(pulsar=PulsarConfig(), listeners=(listener,))


@looped
async def test_messages_are_kept_in_files_where_nothing_else_is_said(tmp_path: Path):
    async with AsyncExitStack() as stack:
        storage = await backends.open_storage(config(tmp_path), "n", stack, print)
        assert isinstance(storage.log, FileLog)
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
