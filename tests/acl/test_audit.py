"""Refusals are written, but no more of them than the rate allows, and none is lost."""

import os
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from ropeway.acl.api import Channel, Principal, Source
from ropeway.acl.audit import ATTEMPTS, MAX_TEXT, Audit, shown


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines(path):
    return [msgspec.json.decode(one) for one in path.read_bytes().splitlines()]


def test_lines_go_to_the_file_and_the_log(tmp_path):
    path = tmp_path / "audit.jsonl"
    audit = Audit(60, Clock(), lambda: 7, path)
    with capture_logs() as logs:
        audit.attempt("refused", principal="alice", rule="r", reason="")
    audit.close()
    assert lines(path) == [
        {"time_ms": 7, "event": "refused", "principal": "alice", "rule": "r"}
    ]
    assert logs[0]["principal"] == "alice"


def test_the_file_is_its_owners_alone_whatever_the_umask_is(tmp_path):
    path = tmp_path / "audit.jsonl"
    before = os.umask(0)
    try:
        Audit(60, Clock(), lambda: 7, path).close()
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_beyond_the_rate_is_counted(tmp_path):
    clock, path = Clock(), tmp_path / "audit.jsonl"
    audit = Audit(6, clock, lambda: 0, path)
    for _ in range(100):
        audit.attempt("refused")
    assert (audit.counts["attempt"], len(lines(path))) == ((100, 94), 6)
    clock.now = 10.0
    audit.attempt("refused")
    assert lines(path)[-1]["left_out"] == 94
    clock.now = 20.0
    audit.attempt("refused")
    assert "left_out" not in lines(path)[-1]
    audit.close()


def test_what_clients_say_is_short_and_moves_no_cursor(tmp_path):
    path = tmp_path / "audit.jsonl"
    audit = Audit(60, Clock(), lambda: 0, path)
    audit.attempt("refused", resource="\x1b[2J\nfake line" + "x" * 10_000)
    audit.close()
    (line,) = lines(path)
    assert line["resource"].startswith("\\x1b[2J\\nfake")
    assert line["resource"].endswith("... of 10014")
    assert len(line["resource"]) < MAX_TEXT + 20


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        Audit(60, Clock(), lambda: 0, tmp_path / "no" / "audit.jsonl")


def test_the_rate_counts_from_the_line_before_wherever_the_clock_began(tmp_path):
    clock, path = Clock(), tmp_path / "audit.jsonl"
    clock.now = 1e6
    audit = Audit(6, clock, lambda: 0, path)
    for _ in range(20):
        audit.attempt("refused")
    assert len(lines(path)) == 6
    clock.now += 9.9
    audit.attempt("refused")
    assert len(lines(path)) == 6
    clock.now += 0.1
    audit.attempt("refused")
    assert len(lines(path)) == 7
    audit.close()


def test_a_change_says_who_what_before_and_after(tmp_path):
    path = tmp_path / "audit.jsonl"
    audit = Audit(60, Clock(), lambda: 7, path)
    source = Source("192.0.2.7", Channel.REMOTING)
    principal = Principal("alice", "users")
    audit.change("17 X", principal, source, "Topic:a", {"perm": 6}, None)
    audit.change("17 X", None, None, "Topic:a", failure="SYSTEM_ERROR")
    audit.close()
    assert lines(path) == [
        {
            "time_ms": 7,
            "event": "changed",
            "request": "17 X",
            "principal": "users:alice",
            "address": "192.0.2.7",
            "channel": "remoting",
            "resource": "Topic:a",
            "before": {"perm": 6},
        },
        {
            "time_ms": 7,
            "event": "change failed",
            "request": "17 X",
            "resource": "Topic:a",
            "reason": "SYSTEM_ERROR",
        },
    ]


def test_refusals_crowd_out_no_change_and_no_change_another(tmp_path):
    path = tmp_path / "audit.jsonl"
    audit = Audit(6, Clock(), lambda: 0, path, 10)
    for _ in range(100):
        audit.attempt("refused")
        audit.change("370 RECALL", None, None, "Topic:a")
        # What failed and changed nothing is as cheap to cause as a refusal.
        audit.change("17 CREATE", None, None, "Topic:a", failure="INVALID")
    audit.change("17 CREATE", None, None, "Topic:a", None, {"perm": 6})
    assert audit.counts == {"attempt": (200, 194), "change": (101, 90)}
    assert lines(path)[-1]["after"] == {"perm": 6}
    audit.close()
    *_, refusals, recalls = lines(path)
    assert refusals["event"] == recalls["event"] == "left out"
    assert (refusals["request"], refusals["left_out"]) == (ATTEMPTS, 194)
    assert (recalls["request"], recalls["left_out"]) == ("370 RECALL", 90)


def test_a_change_is_shown_in_bounds_and_nothing_unknown_of_it():
    secret = object()
    assert shown({"a\n": secret, "b": [None, True, 1.5]}) == {
        "a\\n": "***",
        "b": [None, True, 1.5],
    }
    assert shown(list(range(100)))[-2:] == [63, "... of 100"]
    assert shown({str(key): 0 for key in range(100)})["..."] == 100
    assert shown("x" * 1000) == "x" * MAX_TEXT + "... of 1000"


def test_a_file_that_takes_nothing_is_counted_and_the_log_has_the_line():
    with capture_logs() as logs:
        audit = Audit(60, Clock(), lambda: 0, Path("/dev/full"))
        audit.change("17 X", None, None, "Topic:a")
        audit.close()
    assert audit.unwritten == 1
    assert [one["event"] for one in logs] == [
        "changed",
        "the audit file cannot be written",
    ]
