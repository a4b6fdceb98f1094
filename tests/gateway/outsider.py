"""A package from elsewhere: a log, a route store, a hook and a request.

`test_outsider.py` installs it beside a node, which finds them by entry points;
nothing of Ropeway knows of it.
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ropeway.acl.api import Decision, Hook, Principal
from ropeway.gateway.processors.needs import KNOWN
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire.frame import I32
from ropeway.gateway.wire.header import Header, request
from ropeway.routing.api import NoRoutesError
from ropeway.routing.embedded import EmbeddedRoutes
from ropeway.storage.file import FileLog, FileLogSettings
from ropeway.storage.file import open_log as open_files

if TYPE_CHECKING:
    from ropeway.acl.api import Credentials, Need, Setting, Source
    from ropeway.gateway.processors.context import Context


async def open_log(url: str) -> FileLog:
    """Keep messages in the directory that a URL names."""
    directory = Path(urlsplit(url).path)
    return open_files(directory, FileLogSettings(segment_bytes=8 << 20))


async def open_routes(url: str, *, make: bool) -> EmbeddedRoutes:
    """Keep routes in the file that a URL names."""
    return _opened(Path(urlsplit(url).path), make=make)


def _opened(path: Path, *, make: bool) -> EmbeddedRoutes:
    if not make and not path.exists():
        raise NoRoutesError(f"{path} is not there")
    path.parent.mkdir(exist_ok=True, mode=0o700)
    return EmbeddedRoutes(path)


class Guests:
    """Everybody is a guest, and guests may do all but look into the cellar."""

    def authenticate(self, _credentials: Credentials, _source: Source) -> Principal:
        """Take anybody for a guest."""
        return Principal(name="guest", hook="guests")

    def authorize(
        self, _principal: Principal, need: Need, _source: Source
    ) -> Decision | None:
        """Keep guests out of one topic."""
        return Decision(allowed=need.resource.name != "cellar", rule="no cellar")


def open_hook(_setting: Setting) -> Hook:
    """Open the hook."""
    return Hook(authenticator=Guests(), authorizer=Guests())


class Code(IntEnum):
    """Beyond RocketMQ's codes and Ropeway's."""

    COUNT_TOPICS = 31_000


class Count(Header, frozen=True):
    """How many there are."""

    count: I32


@request(Code.COUNT_TOPICS, reply=Count)
class CountTopics(Header, frozen=True):
    """Count topics."""

    prefix: str


@handles(CountTopics, KNOWN)
def count_topics(asked: CountTopics, context: Context) -> Count:
    """Count the topics whose names begin with a prefix."""
    names = context.node.routes.topics
    return Count(count=sum(name.startswith(asked.prefix) for name in names))
