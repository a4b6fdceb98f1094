"""A third server beside the two: its column, and what it is told."""

from __future__ import annotations

import tomllib
from pathlib import Path

from benchmarks import cases
from benchmarks.compare import RUST, rust_rows
from benchmarks.rounds import Result
from benchmarks.rust_broker import CONF, RustBroker


def test_ratios_are_of_the_rounds_in_which_both_ran() -> None:
    (case,) = cases.chosen(["single 128 B, 1 connection"])
    ours = [Result(2000.0, 10.0, 1.0, 2.0, 0), Result(3000.0, 10.0, 1.0, 2.0, 0)]
    theirs = [Result(1000.0, 40.0, 5.0, 9.0, 0), Result(1000.0, 20.0, 5.0, 9.0, 0)]
    (row,) = rust_rows({case: {"Ropeway": ours, RUST: theirs}})
    assert row == [
        *(case.name, "1,000", "2.50 [2.00-3.00]", "30.00", "0.38 [0.25-0.50]"),
        "5 / 9",
    ]


def test_a_broker_in_rust_is_told_its_ports_and_when_to_answer(tmp_path: Path) -> None:
    broker = RustBroker(tmp_path, Path("program"), sync_flush=True)
    broker._write("broker.toml", CONF)
    told = tomllib.loads((tmp_path / "broker.toml").read_text())
    assert told["broker"]["listenPort"] == broker.broker_port
    assert told["broker"]["namesrvAddr"] == broker.name_server
    assert told["store"]["flushDiskType"] == "SYNC_FLUSH"
