"""What tests of access control share: stores, sources, credentials, a file of rules."""

import base64
import hmac
from types import MappingProxyType

from ropeway.acl.api import (
    Action,
    Channel,
    Credentials,
    Need,
    Resource,
    ResourceKind,
    Setting,
    Source,
)
from ropeway.acl.audit import Audit
from ropeway.acl.vault import FernetVault, new_key

HERE = Source("192.0.2.7", Channel.REMOTING)
SECRET = "12345678"
RULES = """
globalWhiteRemoteAddresses:
- 10.10.103.*
accounts:
- accessKey: RocketMQ
  secretKey: '12345678'
  whiteRemoteAddress: 198.51.100.0/24
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - orders=PUB|SUB
  - prices=SUB
  - notices=PUB
  groupPerms:
  - closed=DENY
- accessKey: rocketmq2
  secretKey: 'other-secret'
  admin: true
"""


class MemoryStore:
    """A rule store of one node."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self._watchers = []

    def items(self):
        return dict(self.kept)

    async def change(self, key, change):
        new = change(self.kept.get(key))
        if new is None:
            self.kept.pop(key, None)
        else:
            self.kept[key] = new
        for changed in self._watchers:
            changed()

    def watch(self, changed) -> None:
        self._watchers.append(changed)


def setting(name="users", options=None, *, store=None, changed=None, **more) -> Setting:
    return Setting(
        name=name,
        options=options or {},
        cluster="DefaultCluster",
        store=store or MemoryStore(),
        vault=more.get("vault") or FernetVault([new_key()]),
        changed=changed or (lambda: None),
        environment=MappingProxyType(more.get("environment") or {}),
        audit=more.get("audit") or Audit(600, lambda: 0.0, lambda: 0),
    )


def signing(name: str, secret: str, content: bytes = b"all that is signed", **more):
    """Credentials as a client makes them."""
    digest = hmac.digest(secret.encode(), content, more.pop("hash", "sha1"))
    return Credentials(
        access_key=name,
        signature=base64.b64encode(digest).decode(),
        signed=content,
        **more,
    )


def topic(name: str, *actions: Action) -> Need:
    return Need(Resource(ResourceKind.TOPIC, name), actions)


def group(name: str, *actions: Action) -> Need:
    return Need(Resource(ResourceKind.GROUP, name), actions)


def cluster(*actions: Action) -> Need:
    return Need(Resource(ResourceKind.CLUSTER, "DefaultCluster"), actions)
