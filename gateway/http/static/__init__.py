"""The page's own files, read once: HTML, style and modules, as browsers get them.

`vendor` has the one library that is not ours, uPlot, with its licence.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ropeway.gateway.http.static.file import File

HEADERS = {
    # All that the page needs is here, and nobody may put it into a frame.
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_ROOT = Path(__file__).parent
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


def _read(path: Path) -> File:
    body = path.read_bytes()
    return File(body, _TYPES[path.suffix], hashlib.sha256(body).hexdigest()[:16])


FILES = {
    f"/{path.relative_to(_ROOT)}": _read(path)
    for path in sorted(_ROOT.rglob("*"))
    if path.suffix in _TYPES
}
"""Every file by its path."""

FILES["/"] = FILES["/index.html"]
