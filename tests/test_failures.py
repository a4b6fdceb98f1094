"""A test that failed shows what servers answered it, and what they logged."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ropeway.gateway.wire.commands.offsets import GetMaxOffset
from tests import answers
from tests.remoting import looped, running

if TYPE_CHECKING:
    import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest
from ropeway.testing import Gateway
from tests import answers
from tests.system.process import ServerProcess

PROGRAM = "echo no room on the disk; exec sleep 600"

@pytest.fixture
def servers(tmp_path):
    server = ServerProcess("server", ["sh", "-c", PROGRAM], tmp_path)
    server.wait_until(lambda: server.tail() != "")
    gateway = Gateway(tmp_path / "data")
    gateway._printed.write_text("a warning of the gateway")
    yield server, gateway
    server.kill()

def test_passes(servers):
    answers.note(30, 0, None)

def test_fails(servers):
    answers.note(30, 17, "topic[nowhere] not exist")
    assert False
"""


def test_a_failure_shows_what_servers_answered_and_logged(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\naddopts = -p tests.failures -p no:cacheprovider")
    pytester.makepyfile(TESTS)
    done = pytester.runpytest_subprocess()
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "*- what servers answered -*",
            "30 GET_MAX_OFFSET: 17 TOPIC_NOT_EXIST topic?nowhere? not exist",
            "*- log of test_fails0/data.stderr -*",
            "a warning of the gateway",
            "*- log of test_fails0/server.log -*",
            "no room on the disk",
        ]
    )
    done.stdout.no_fnmatch_line("*SUCCESS*")


@looped
async def test_answers_are_kept_with_code_and_remark(tmp_path: Path) -> None:
    began = time.time()
    async with running(tmp_path) as (_, client):
        await client.ask(GetMaxOffset("nowhere", 0))
    last = answers.since(began)[-1]
    assert last == "30 GET_MAX_OFFSET: 17 TOPIC_NOT_EXIST topic[nowhere] not exist"
