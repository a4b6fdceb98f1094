"""The page's own files: all that it names is here, and nothing comes from elsewhere."""

import re
from pathlib import Path

import pytest

from ropeway.gateway.http.static import FILES
from tests.gateway.http.site import serving
from tests.remoting import looped

ROOT = Path(__file__).parents[4] / "gateway" / "http" / "static"
OWN = sorted(path for path in FILES if "/vendor/" not in path and path != "/")


@looped
async def test_the_page_is_there_and_may_not_be_framed_or_load_foreign_things(tmp_path):
    async with serving(tmp_path) as site:
        answer = await site.ask("/")
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        again = await site.ask("/", headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status, again.body) == (304, b"")
        assert (await site.ask("/file.py")).status == 404


@pytest.mark.parametrize("path", OWN)
def test_what_a_file_names_is_here(path):
    text = FILES[path].body.decode()
    named = re.findall(r'(?:from|import) "(\.[^"]+)"', text)
    named += re.findall(r'(?:href|src)="(/[^"#][^"]*)"', text)
    for one in named:
        target = (ROOT / path[1:]).parent / one if one[0] == "." else ROOT / one[1:]
        assert f"/{target.resolve().relative_to(ROOT)}" in FILES, one
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


def test_what_is_not_ours_comes_with_its_version_and_licence():
    assert b"(v1.6.32)" in FILES["/vendor/uPlot.js"].body
    assert b"MIT License" in FILES["/vendor/uPlot-LICENSE.txt"].body
    vendored = {path for path in FILES if path.startswith("/vendor/")}
    assert vendored == {
        "/vendor/uPlot.js",
        "/vendor/uPlot.css",
        "/vendor/uPlot-LICENSE.txt",
    }
