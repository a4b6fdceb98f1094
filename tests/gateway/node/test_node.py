"""The node says how what it makes from its log stands, where it leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.remoting import looped, running

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_stores_that_are_made_from_the_log_are_those_of_who_leads(
    tmp_path: Path, monkeypatch
):
    async with running(tmp_path) as (app, _):
        names = [one.store for one in app.node.derived_stores()]
        assert names == ["pops", "timers", "lite topics"]
        with monkeypatch.context() as away:
            away.setattr(app.node.leadership, "leads", False)
            assert app.node.derived_stores() == []
