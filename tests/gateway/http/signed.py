"""A site under access control, and who has signed in to it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ropeway.gateway.config import AuditConfig, HttpConfig
from ropeway.gateway.wire.commands.admin import CreateTopic
from tests.gateway.http.site import serving
from tests.guarded import PASSWORD, ROOT, acl_of, ask, populate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.acl.administration import Rule
    from tests.gateway.http.site import Answer, Site

HEADERS = {"X-Ropeway": "page"}


@asynccontextmanager
async def guarded_site(
    data: Path,
    *rules: Rule,
    http: HttpConfig | None = None,
    audit: AuditConfig = AuditConfig(),  # noqa: B008 - it is frozen
    **changes: Any,
) -> AsyncIterator[Site]:
    """A site where `alice` may do what the rules say; it has the topic `orders`."""
    async with serving(data, http, audit=audit, acl=acl_of(data, **changes)) as site:
        await populate(site.app, *rules)
        made = CreateTopic(
            topic="orders",
            default_topic="TBW102",
            read_queue_nums=1,
            write_queue_nums=1,
            perm=6,
        )
        assert (await ask(site.client, ROOT, made)).code == 0
        yield site


async def sign_in(site: Site, who: str, password: str = PASSWORD) -> Answer:
    """Sign in, and keep the cookie as a browser does."""
    # aiohttp keeps no cookies of IP addresses unless told to; so does the jar here.
    answer = await site.ask(
        "/api/session",
        "POST",
        json={"access_key": who, "secret_key": password},
        headers=HEADERS,
    )
    if answer.status == 200:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
        site.session.headers["Cookie"] = cookie
    return answer
