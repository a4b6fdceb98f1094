"""Tables for people."""

import re
from pathlib import Path

import pytest

from ropeway.gateway.cli.tables import LEFT_OUT_FIRST, print_table, shown_columns

GUIDE = Path(__file__).parents[3] / "docs" / "cli.md"
NODE = {
    "cluster": "DefaultCluster",
    "broker": "broker-0",
    "rank": 0,
    "node": "node-a.mq.example.com",
    "address": "10.20.30.40:9876",
    "role": "master",
    "version": "0.1.0",
    "state": "ok",
}


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of a width."""

    def made(width: int) -> None:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(width))

    return made


def test_a_pipe_gets_all_of_it(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    print_table([NODE])
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == list(NODE)
    assert line.split() == [str(value) for value in NODE.values()]


def test_a_terminal_gets_the_columns_that_fit_and_the_names_of_the_others(
    capsys, terminal
):
    terminal(75)
    print_table([NODE])
    printed = capsys.readouterr()
    head, line = printed.out.splitlines()
    assert head.split() == ["broker", "rank", "node", "address", "role", "state"]
    assert len(line) <= 75
    assert printed.err.startswith("left out: cluster, version; ")


def test_a_wide_one_gets_all_of_it(capsys, terminal):
    terminal(200)
    print_table([NODE])
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].split() == list(NODE)
    assert printed.err == ""


def test_where_too_little_fits_each_row_is_lines_and_nothing_is_broken(
    capsys, terminal
):
    terminal(40)
    handle = "djEgb3JkZXJzIGJyb2tlci0wIDE4MzI1ODA5MTQ2NDggN0YwMDAwMDE="
    row = {"deliver_at": "2026", "msg_id": "7F" * 16, "recall_handle": handle}
    print_table([row, row])
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        f"msg_id         {'7F' * 16}",
        f"recall_handle  {handle}",
        "",
        f"msg_id         {'7F' * 16}",
        f"recall_handle  {handle}",
    ]
    assert "deliver_at" in printed.err


def test_the_last_column_stays():
    assert shown_columns([{"cluster": "x" * 99}], 10) == ["cluster"]


def test_no_rows_print_nothing(capsys):
    print_table([])
    assert capsys.readouterr().out == ""


def test_the_guide_has_the_order():
    sentence = re.search(r"left out in this order: (.+?)\. ", GUIDE.read_text())
    assert sentence is not None
    assert re.findall(r"`(\w+)`", sentence[1]) == list(LEFT_OUT_FIRST)
