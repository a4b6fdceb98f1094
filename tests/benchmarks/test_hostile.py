"""Every attack, for half a second: nobody waits long, and all goes on.

The bounds are far above what is aimed at, which `python -m benchmarks.hostile` shows:
CPU time and memory do not depend on what else the machine does, but their worst case
in a few sends does, a little.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from benchmarks import hostile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.attacks import Attack

pytestmark = pytest.mark.slow

MOST_CPU_MS = 1500
MOST_MIB = 400
GROWN_MIB = 32
"""A server that has grown so much would hide what the next attack takes."""


class Servers:
    """The server that is attacked: the last one, if it is as it was at its start."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._new_folder = tmp_path_factory.mktemp
        self._running = ExitStack()
        self._server: hostile.Server | None = None
        self._start_bytes = 0

    def attack(self, attack: Attack, by: str, seconds: float) -> hostile.Found:
        """Attack it for so long."""
        if self._server is None:
            folder = self._new_folder("attacked")
            # A log of 128 MiB, and thirty of them in a run.
            self._running.callback(shutil.rmtree, folder)
            self._server = self._running.enter_context(hostile.serving(folder))
            self._start_bytes = self._server.rss_bytes()
        found = hostile.measure(attack, by, seconds, self._server)
        if self._server.rss_bytes() > self._start_bytes + (GROWN_MIB << 20):
            self.stop()
        return found

    def stop(self) -> None:
        """Stop it; the next attack is on a new one."""
        self._server = None
        self._running.close()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    found = Servers(tmp_path_factory)
    try:
        yield found
    finally:
        found.stop()


@pytest.mark.parametrize(
    ("attack", "by"),
    [
        pytest.param(attack, by, id=f"{attack.name}, {by}")
        for attack, by in hostile.chosen([])
    ],
)
def test_no_attack_stops_who_sends_a_message_now_and_then(
    servers: Servers, attack: Attack, by: str
) -> None:
    try:
        found = servers.attack(attack, by, 0.5)
    except BaseException:
        servers.stop()
        raise
    assert found.cpu_ms
    assert found.cpu_ms[-1] < MOST_CPU_MS
    assert found.more_mib < MOST_MIB
    assert found.over_s < hostile.OVER_S, "sends are not accepted afterwards"
