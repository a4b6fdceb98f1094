"""Log lines, as a process writes them."""

import json
import re
import socket
import subprocess
import sys

import pytest

PROGRAM = """
import logging, pathlib, structlog
from ropeway.gateway import logs
logs.configure({level!r}, {form!r})
log = structlog.get_logger()
log.debug("not wanted")
log.info("topic set up", topic="a b", queues=8, order=False, path=pathlib.Path("x"))
try:
    raise ValueError("no")
except ValueError as error:
    log.error("request failed", exc_info=error)
logging.getLogger("asyncio").warning("slow %s", "callback")
"""


HOSTILE = "x\r\ntime=2026 level=info event=forged \x1b[2J\x9b2J\u202e\u2028\x00\ud800"
QUOTING = """
import logging, structlog
from ropeway.gateway import logs
logs.configure("info", {form!r})
hostile = {hostile!r}
log = structlog.get_logger()
log.warning("refused", topic=hostile, reason=ValueError(hostile), settings=[hostile])
log.warning("refused: " + hostile)
logging.getLogger("grpc").warning("refused %s", hostile)
try:
    raise ValueError(hostile)
except ValueError as error:
    log.error("request failed", exc_info=error)
"""
REPEATING = """
import logging, structlog, time
from ropeway.gateway import logs
logs.configure("info", "json")
time.monotonic = lambda: 1.0
log = structlog.get_logger()
for number in range(150):
    log.warning("connection closed", client=number)
    logging.getLogger("asyncio").warning("slow %s", number)
log.info("another kind")
time.monotonic = lambda: 1.15
log.warning("connection closed", client="later")
log.warning("connection closed", client="too soon")
logging.getLogger("grpc").warning("no flood")
log.warning("refused", left_out=7)
for number in range(100):
    log.warning("refused", left_out=1)
time.monotonic = lambda: 2.0
log.warning("refused", left_out=7)
for number in range(2000):
    log.warning("kind " + str(number))
"""


def lines(level: str, form: str, program: str | None = None) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program or PROGRAM.format(level=level, form=form)],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert done.stdout == ""
    assert "\x1b" not in done.stderr
    return done.stderr.splitlines()


def test_text_is_key_value_with_time_level_and_event_first():
    first, second, *traceback, last = lines("info", "text")
    time = r"time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"
    assert re.fullmatch(
        f'{time} level=info event="topic set up" topic="a b" queues=8 '
        "order=false path=x",
        first,
    )
    assert re.fullmatch(f'{time} level=error event="request failed"', second)
    assert traceback[0] == "  Traceback (most recent call last):"
    assert traceback[-1] == "  ValueError: no"
    assert re.fullmatch(f'{time} level=warning event="slow callback"', last)


def test_json_is_an_object_a_line():
    first, second, third = (json.loads(line) for line in lines("info", "json"))
    assert list(first)[:3] == ["time", "level", "event"]
    assert (first["queues"], first["order"], first["path"]) == (8, False, "x")
    assert second["exception"].endswith("ValueError: no")
    assert third["event"] == "slow callback"


def test_less_important_lines_are_left_out():
    shown = lines("error", "text")
    assert "request failed" in shown[0]
    assert not any("slow" in line or "topic" in line for line in shown)
    assert any("not wanted" in line for line in lines("debug", "text"))


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_that_is_quoted_forges_a_line_or_commands_a_terminal(form: str):
    program = QUOTING.format(form=form, hostile=HOSTILE)
    shown = lines("info", form, program)
    own = [one for one in shown if not one.startswith("  ")]
    assert len(own) == 4
    assert all(one.isprintable() for one in shown)
    assert all(one.startswith("  ") for one in shown if one not in own)
    if form == "json":
        first = json.loads(own[0])
        assert first["topic"] == first["settings"][0]
        assert first["topic"].startswith("x\r\ntime=2026 level=info")
        assert HOSTILE in json.loads(own[3])["exception"]


def test_lines_of_one_kind_are_limited_and_those_left_out_counted():
    said = [json.loads(one) for one in lines("info", "json", REPEATING)]
    by_kind: dict[str, list[dict]] = {}
    for one in said:
        by_kind.setdefault(one["event"].split()[0], []).append(one)
    closed = by_kind["connection"]
    assert [one["client"] for one in closed] == [*range(100), "later"]
    assert closed[-1]["left_out"] == 50
    assert all("left_out" not in one for one in closed[:-1])
    assert len(by_kind["slow"]) == 100
    assert len(by_kind["another"]) == len(by_kind["no"]) == 1
    # The audit log's own count is added to.
    assert [one["left_out"] for one in by_kind["refused"]] == [7, *[1] * 99, 8]
    assert len(by_kind["kind"]) == 2000


def test_a_line_is_one_write_so_that_those_of_two_processes_never_mix():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        program = PROGRAM.format(level="info", form="text")
        subprocess.run([sys.executable, "-u", "-c", program], stderr=theirs, check=True)
        # A datagram for each write.
        written = [ours.recv(1 << 16).decode() for _ in range(3)]
    assert [one[-1:] for one in written] == ["\n"] * 3
    assert [re.findall(r"level=(\w+)", one) for one in written] == [
        ["info"],
        ["error"],
        ["warning"],
    ]
