"""The table of clients and features."""

from tests.compatibility import Table


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
