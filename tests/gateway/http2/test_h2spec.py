"""The conformance tests of h2spec, all of them, against our connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests import builds
from tests.gateway.http2.raw import FIRST, LAST, Echo, Echoing
from tests.remoting import looped

PROGRAM = Path(__file__).parent / "h2spec"
SOON_S = 0.02
"""What is asked at the same time is to be there before the first answer."""


class Web(Echo, eq=False):
    """Answers a little later."""

    def answer(self) -> None:
        asyncio.get_running_loop().call_later(SOON_S, self.say)

    def say(self) -> None:
        if not self.was_lost:
            self.connection.sender.whole(self, FIRST, self.came or b"nothing", LAST)


class Serving(Echoing):
    """One connection of many."""

    stream = Web


@pytest.mark.go
@looped
async def test_every_test_of_h2spec_passes():
    program = builds.go_program(PROGRAM)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Serving, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(program, str(port)), stdout=asyncio.subprocess.PIPE
    )
    report, _ = await process.communicate()
    server.close()
    said = report.decode()
    assert process.returncode == 0, said
    assert "145 passed, 0 skipped, 0 failed" in said
