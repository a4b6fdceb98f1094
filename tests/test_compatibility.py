"""The table of clients and features."""

from ropeway.gateway.processors.unsupported import REASONS
from ropeway.gateway.wire.codes import RequestCode
from tests import listings
from tests.compatibility import Table
from tests.system.subcommands import SUB_COMMANDS


def test_a_gap_is_explained_below_the_table_once() -> None:
    table = Table()
    table.add("send", "B", ("works", ""))
    table.add("send", "A", ("not supported", "no such call"))
    table.add("pull", "A", ("not supported", "no such call"))
    lines = table.markdown().splitlines()
    assert lines[-6:] == [
        "| feature | A | B |",
        "|---|---|---|",
        "| send | not supported (1) | works |",
        "| pull | not supported (1) | - |",
        "",
        "1. no such call",
    ]


def test_a_feature_is_as_good_as_its_worst_test() -> None:
    table = Table()
    for cell in ("works", "fails", "works"):
        table.add("send", "A", (cell, ""))
    assert "| send | fails |" in table.markdown()


def test_every_code_is_listed_with_what_comes_of_it() -> None:
    rows = listings.request_codes().splitlines()
    assert "| 10 | SEND_MESSAGE | handled |" in rows
    for code, reason in REASONS.items():
        name = RequestCode(code).name
        assert f"| {int(code)} | {name} | refused: {reason} |" in rows
    assert not any("ROPEWAY" in row for row in rows)


def test_every_sub_command_is_listed_with_what_came_of_it() -> None:
    shown = {
        "topicList": ("works", "test_a"),
        "topicRoute": ("fails", "test_b"),
        "switchTimerEngine": ("works", "test_c"),
    }
    rows = listings.sub_commands(shown).splitlines()
    reason = REASONS[RequestCode.SWITCH_TIMER_ENGINE]
    assert "| `topicList` | works | `test_a` |" in rows
    assert "| `topicRoute` | fails | `test_b` |" in rows
    assert f"| `switchTimerEngine` | refused: {reason} | `test_c` |" in rows
    assert "| `statsAll` | not tried | - |" in rows
    assert len([row for row in rows if row.startswith("| `")]) == len(SUB_COMMANDS)
