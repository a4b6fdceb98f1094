"""Holds of what is sent on to a migration's source."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Credentials
from ropeway.client.config import ClientConfig
from ropeway.client.connections import Connections
from ropeway.gateway.config import ConfigError
from ropeway.gateway.node.source_routes import SourceRoutes, opened
from ropeway.gateway.node.source_sends import SourceSends
from ropeway.gateway.topics_config import MigrationConfig, MigrationTlsConfig
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from tests.remoting import looped
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import scenario

if TYPE_CHECKING:
    from pathlib import Path


class Nowhere:
    async def find(self, *_: object) -> None:
        return None


@looped
async def test_a_hold_is_of_one_topic_and_one_name_until_it_is_released():
    sends = SourceSends(Nowhere(), Connections(ClientConfig(), lambda _: None))
    await sends.hold("orders", "one")
    assert (sends.is_held("orders"), sends.is_held("others")) == (True, False)
    assert (sends.is_held("orders", "one"), sends.is_held("orders", "two")) == (
        True,
        False,
    )
    sends.release("orders")
    await sends.released("orders")
    assert not sends.is_held("orders", "one")


OF_4_X = "org.apache.rocketmq.acl.common.AclException: No accessKey is configured"
NO_RIGHTS = [
    (Answer(ResponseCode.NO_PERMISSION, remark="no Pub"), "no Pub"),
    (
        Answer(ResponseCode.SYSTEM_ERROR, remark=OF_4_X),
        "No accessKey is configured",
    ),
    (Answer(ResponseCode.SYSTEM_ERROR, remark="queueId 1073741824 is illegal"), None),
]


@pytest.mark.parametrize(("answer", "expected"), NO_RIGHTS)
@scenario
async def test_a_source_is_asked_whether_it_takes_messages_of_a_node(answer, expected):
    credentials = Credentials(access_key="mover", secret_key="hush")
    async with FakeServer() as server:
        server.behaviours[RequestCode.SEND_MESSAGE_V2] = lambda _: answer
        source = SourceRoutes(server.address, ClientConfig(credentials=credentials))
        try:
            assert await source.sends.refusal("orders", ["target-0"]) == expected
        finally:
            await source.close()
        (asked,) = server.asked(RequestCode.SEND_MESSAGE_V2)
        # Brokers look at who asks first, and have no such queue to store it in.
        assert asked.fields["AccessKey"] == "mover"
        assert int(asked.fields["e"]) > 1024
    assert "hush" not in repr(asked)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"access_key": "mover"}, "access_key and migration.secret_key_file go toget"),
        ({"access_key": "mover", "secret_key_file": "none"}, "cannot read .*none"),
        ({"tls": MigrationTlsConfig(ca="none")}, "migration.tls: none cannot be used"),
    ],
)
@scenario
async def test_credentials_of_a_source_that_cannot_be_used_end_the_start(
    tmp_path: Path, settings, said
):
    if "secret_key_file" in settings:
        settings = {**settings, "secret_key_file": tmp_path / "none"}
    config = MigrationConfig(name_server="mq-old:9876", **settings)
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigError, match=said):
            opened(config, stack)
