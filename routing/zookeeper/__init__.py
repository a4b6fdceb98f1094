"""Routes in ZooKeeper, under one path that many nodes share.

`session` is a session with the servers, `copy` what is known of the store, `changes`
makes changes, `brokers` announces and watches nodes, `store` joins them. FORMAT.md
draws what is stored.
"""

from routing.zookeeper.settings import Tls, ZooKeeperSettings
from routing.zookeeper.store import ZooKeeperRoutes, open_routes

__all__ = ["Tls", "ZooKeeperRoutes", "ZooKeeperSettings", "open_routes"]
