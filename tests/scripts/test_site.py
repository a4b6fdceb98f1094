"""The documentation site builds from the repository's pages, and no link is broken."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Run the script of a repository."""
    return subprocess.run(
        [sys.executable, root / "scripts" / "site", site],
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def pages_in(nav: object) -> set[str]:
    """The pages that a navigation names, whatever they are called there."""
    if isinstance(nav, str):
        return {nav}
    below = nav.values() if isinstance(nav, dict) else nav
    return set().union(*map(pages_in, below))


def test_every_page_of_the_docs_is_on_the_site_and_in_its_navigation(site):
    settings = tomllib.loads((ROOT / "docs" / "site.toml").read_text())
    docs = {str(one.relative_to(ROOT)) for one in (ROOT / "docs").rglob("*.md")}
    named = pages_in(settings["project"]["nav"])
    assert docs - named == set()
    for page in named | docs:
        folder, _, name = page.rpartition("/")
        built = "index.html" if name == "README.md" else f"{name[:-3]}.html"
        assert (site / folder / built).is_file(), page


def test_a_site_is_replaced_and_nothing_else_is(tmp_path, site):
    (site / "old.html").write_text("")
    assert build(ROOT, site).returncode == 0
    assert not (site / "old.html").exists()
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for folder in (tmp_path, mine):
        refused = build(ROOT, folder)
        assert refused.returncode == 2
        assert "allowed: a new or empty folder" in refused.stderr
    assert mine.read_text() == "mine"


def test_links_to_source_files_hold_and_nothing_is_loaded_from_elsewhere(site):
    text = (site / "docs" / "streams.html").read_text()
    (target,) = set(re.findall(r'href="([^"]*order_totals\.py)"', text))
    assert (site / "docs" / target).resolve().is_file()
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|img|link)\b[^>]*>", page.read_text()):
            loaded = re.search(r'(?:src|href)="((?:https?:)?//[^"]*)"', tag)
            assert loaded is None or 'rel="canonical"' in tag, f"{page}: {tag}"


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("docs/other.md", "page does not exist"),
        ("docs/page.md#gone", "anchor does not exist"),
        ("docs/page.md#the-one-----two", ""),
    ],
)
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path, link, said):
    files = {
        "README.md": f"# Start\nSee [this]({link}).\n",
        "docs/page.md": "# A page\n\n[Back](../README.md)\n\n## The one --- two\n",
        "docs/site.toml": (ROOT / "docs" / "site.toml").read_text(),
        "scripts/site": (ROOT / "scripts" / "site").read_text(),
    }
    files["docs/site.toml"] = re.sub(
        r"^nav = \[.*?^\]", "", files["docs/site.toml"], flags=re.MULTILINE | re.DOTALL
    )
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = build(tmp_path, tmp_path / "site")
    said_plainly = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    assert bool(done.returncode) == bool(said), said_plainly
    assert said in said_plainly
    assert (tmp_path / "site").exists() == (not said)
