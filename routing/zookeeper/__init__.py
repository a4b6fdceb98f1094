"""Routes in ZooKeeper, under one path that many nodes share.

`session` is a session with the servers, `copy` what is known of the store, `changes`
makes changes, `brokers` announces and watches nodes, `store` joins them. FORMAT.md
draws what is stored.
"""

from ropeway.routing.zookeeper.store import ZooKeeperRoutes, open_routes
from ropeway.routing.zookeeper.zookeeper_config import Tls, ZooKeeperSettings

__all__ = ["Tls", "ZooKeeperRoutes", "ZooKeeperSettings", "open_routes"]
