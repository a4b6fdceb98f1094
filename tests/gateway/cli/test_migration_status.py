"""`ropeway migrate status`: what is next of a topic that cannot be mirrored."""

from __future__ import annotations

import pytest

from ropeway.client.admin_migration_status import Standing
from ropeway.gateway.cli.migration_status import _row


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        (Standing("a", "at_source"), "ropeway migrate mirror"),
        (Standing("a", "mirrored", 3, 1.0, 0.0, None), "ropeway migrate mirror"),
        (Standing("a", "mirrored", 3, 1.0, 3.0, 1.0), "ropeway migrate cut-over"),
        (Standing("a", "stored"), "ropeway migrate cut-over"),
        (Standing("a", "moved"), "ropeway migrate finish"),
        (Standing("a", "finished"), ""),
        (Standing("a", "sent_back"), "ropeway migrate rollback"),
        (Standing("a", "returned"), ""),
        (Standing("a", "mirrored", why="it is compacted"), "it is compacted"),
    ],
)
def test_the_next_command_is_told_or_why_there_is_none(standing, expected):
    assert _row(standing).next == expected
