"""Requests in a user's name: brokers know who it is, and from where."""

from __future__ import annotations

import pytest

from ropeway.acl.api import Channel, Principal, Source
from ropeway.client.errors import ConnectionFailedError, ResponseError
from ropeway.gateway.http.on_behalf import OnBehalf
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import GetTopicStats
from ropeway.gateway.wire.commands.broker_admin import GetBrokerRuntimeInfo
from tests.guarded import ALICE, allow, guarded
from tests.remoting import looped

HERE = Source("10.0.0.7", Channel.HTTP)


@looped
async def test_a_broker_decides_by_who_it_is_and_where(tmp_path):
    async with guarded(tmp_path, allow("Cluster:*", "Get")) as (app, _):
        address = app.server.listeners[0].advertised
        alice = app.node.guard.administration and Principal(ALICE, "users")
        user = OnBehalf(app.node.forwarder, HERE, alice)
        answer = await user.request(address, GetBrokerRuntimeInfo())
        assert answer.code == ResponseCode.SUCCESS
        refused = r"alice may not Get Topic:orders from 10\.0\.0\.7"
        with pytest.raises(ResponseError, match=refused):
            await user.request(address, GetTopicStats(topic="orders"))
        expect = (ResponseCode.NO_PERMISSION,)
        found = await user.request(
            address, GetTopicStats(topic="orders"), expect=expect
        )
        assert found.code == ResponseCode.NO_PERMISSION
        nobody = OnBehalf(app.node.forwarder, HERE, None)
        with pytest.raises(ResponseError):
            await nobody.request(address, GetBrokerRuntimeInfo())


@looped
async def test_a_broker_that_is_not_there_is_told(tmp_path):
    async with guarded(tmp_path) as (app, _):
        user = OnBehalf(app.node.forwarder, HERE, None)
        with pytest.raises(ConnectionFailedError):
            await user.request("127.0.0.1:1", GetBrokerRuntimeInfo())
