"""The route store on ZooKeeper: the contract, on a real server."""

from __future__ import annotations

import pytest

from routing.zookeeper import open_routes as open_at
from tests.contracts.routes import SeveralNodesContract

pytestmark = [pytest.mark.jvm, pytest.mark.server]


class TestZooKeeperRoutes(SeveralNodesContract):
    @pytest.fixture
    def open_routes(self, chroot: str):
        return lambda: open_at(chroot)
