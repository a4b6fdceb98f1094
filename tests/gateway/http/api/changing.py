"""Changes as the page asks for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ropeway.gateway.config import HttpConfig
from tests.gateway.http.signed import HEADERS

if TYPE_CHECKING:
    from tests.gateway.http.site import Answer, Site

WRITABLE = HttpConfig(port=0, writable=True)


async def change(site: Site, method: str, path: str, **wanted: Any) -> Answer:
    """Ask for a change; the answer is whatever comes."""
    data = json.dumps(wanted) if wanted else None
    return await site.ask(f"/api/{path}", method, data=data, headers=HEADERS)
