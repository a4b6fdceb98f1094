"""Log lines, as a process writes them."""

import json
import re
import subprocess
import sys

PROGRAM = """
import logging, pathlib, structlog
from gateway import logs
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


def lines(level: str, form: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(level=level, form=form)],
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
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-1] == "ValueError: no"
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
