"""One file of the page, and how it is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping


class File(NamedTuple):
    """A file that browsers may get."""

    body: bytes
    content_type: str
    tag: str
    """Changes with the body."""

    def answer(self, request: web.Request, headers: Mapping[str, str]) -> web.Response:
        """The file, or that the browser has it already."""
        every = {**headers, "Cache-Control": "no-cache", "ETag": f'"{self.tag}"'}
        known = request.if_none_match or ()
        if any(one.value == self.tag for one in known):
            return web.Response(status=304, headers=every)
        return web.Response(
            body=self.body, headers={**every, "Content-Type": self.content_type}
        )
