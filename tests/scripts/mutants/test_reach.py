"""The lines that were run are noted, of the files that are asked for alone."""

from __future__ import annotations

import threading
from typing import Any

from scripts.mutants.reach import Reach

SOURCE = b"""
def f(a):
    if a:
        return 1
    return 2
"""


def made(path: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(SOURCE, path, "exec"), names)
    return names["f"]


def test_lines_are_noted_anew_after_each_look():
    f, other = made("one.py"), made("other.py")
    reach = Reach(["one.py"])
    reach.start()
    f(True)
    other(True)
    reach.stop()
    f(False)
    assert reach.note() == {("one.py", 2), ("one.py", 3), ("one.py", 4)}
    reach.start()
    f(False)
    f(False)
    reach.stop()
    assert reach.note() == {("one.py", 2), ("one.py", 3), ("one.py", 5)}
    assert reach.note() == set()


def test_lines_that_a_thread_runs_are_noted():
    f = made("one.py")
    reach = Reach(["one.py"])
    reach.start()
    thread = threading.Thread(target=f, args=(False,))
    thread.start()
    thread.join()
    reach.stop()
    assert ("one.py", 5) in reach.note()
