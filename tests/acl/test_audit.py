"""Refusals are written, but no more of them than the rate allows, and none is lost."""

import msgspec
import pytest
from structlog.testing import capture_logs

from acl.audit import MAX_TEXT, Audit


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
        audit.write("refused", principal="alice", rule="r", reason="")
    audit.close()
    assert lines(path) == [
        {"time_ms": 7, "event": "refused", "principal": "alice", "rule": "r"}
    ]
    assert logs[0]["principal"] == "alice"


def test_what_is_beyond_the_rate_is_counted(tmp_path):
    clock, path = Clock(), tmp_path / "audit.jsonl"
    audit = Audit(6, clock, lambda: 0, path)
    for _ in range(100):
        audit.write("refused")
    assert (audit.refused, audit.left_out, len(lines(path))) == (100, 94, 6)
    clock.now = 10.0
    audit.write("refused")
    assert lines(path)[-1]["left_out"] == 94
    clock.now = 20.0
    audit.write("refused")
    assert "left_out" not in lines(path)[-1]
    audit.close()


def test_what_clients_say_is_short_and_moves_no_cursor(tmp_path):
    path = tmp_path / "audit.jsonl"
    audit = Audit(60, Clock(), lambda: 0, path)
    audit.write("refused", claimed="\x1b[2J\nfake line" + "x" * 10_000)
    audit.close()
    (line,) = lines(path)
    assert line["claimed"].startswith("\\x1b[2J\\nfake")
    assert len(line["claimed"]) < MAX_TEXT + 20


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        Audit(60, Clock(), lambda: 0, tmp_path / "no" / "audit.jsonl")


def test_the_rate_counts_from_the_line_before_wherever_the_clock_began(tmp_path):
    clock, path = Clock(), tmp_path / "audit.jsonl"
    clock.now = 1e6
    audit = Audit(6, clock, lambda: 0, path)
    for _ in range(20):
        audit.write("refused")
    assert len(lines(path)) == 6
    clock.now += 9.9
    audit.write("refused")
    assert len(lines(path)) == 6
    clock.now += 0.1
    audit.write("refused")
    assert len(lines(path)) == 7
    audit.close()
