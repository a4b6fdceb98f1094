"""Every benchmark runs: shortly, with few cases, whatever time it takes."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import cases, pop, pulsar_cases, scale_out, table
from tests.system.rocketmq import QUICK

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SHORT = ["--rounds", "1", "--seconds", "0.1"]

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="the load generators are built with gcc"
)
needs_py_spy = pytest.mark.skipif(
    shutil.which("py-spy", path=Path(sys.executable).parent) is None,
    reason="set-up has not installed py-spy",
)


def run(name: str, *arguments: str) -> str:
    """What a program of benchmarks/ prints."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        # Java's second compiler takes a third of the CPU of servers that end so soon.
        env={**os.environ, "JDK_JAVA_OPTIONS": " ".join(QUICK)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(text: str) -> dict[str, list[str]]:
    """The lines of markdown tables, by their first cells."""
    cells = [line.strip("|").split("|") for line in text.splitlines() if "|" in line]
    return {first.strip(): [one.strip() for one in rest] for first, *rest in cells}


@needs_gcc
def test_a_version_is_compared_with_an_earlier_one() -> None:
    few = ["--pairs=1", "--messages=400", "--waiting=9"]
    found = rows(run("earlier", str(ROOT), "pop", "timers", *few))
    assert len(found) > 2 + len(pop.LOADS)
    for before, after, _ in [*found.values()][2:]:
        assert float(before) > 0
        assert float(after) > 0


def test_segments_are_measured_alone() -> None:
    script = [sys.executable, "-P", str(ROOT / "benchmarks" / "segments.py")]
    once = [*script, "--rounds", "1"]
    figures = json.loads(subprocess.check_output(once, cwd=ROOT))
    assert "offset by time in a tier" in figures
    assert min(figures.values()) > 0


def test_sealing_is_measured_for_any_number_of_partitions() -> None:
    found = rows(run("sealing", "--megabytes=1", "--partitions", "1", "3"))
    assert {"1", "3"} < set(found)


@needs_gcc
def test_ropeway_is_compared_with_nothing_where_rocketmq_is_left_out() -> None:
    words = ["single 128 B, 1 connection", "batch", "tail", "cold", "long poll"]
    found = rows(
        run("compare", *SHORT, "--warm-up", "0.1", "--ropeway-only", *words, "slow")
    )
    named = {case.name for case in cases.chosen([*words, "slow"])}
    assert named < set(found)
    for name in named:
        rate, other, ratio, *_ = found[name]
        assert float(rate.replace(",", "")) > 0
        assert (other, ratio) == ("-", "-")
    assert "memory at start, anonymous, MiB" in found


def test_the_command_is_compared_with_a_python_that_does_nothing() -> None:
    found = rows(run("commands", "--rounds", "1"))
    for command in ("--help", "topic list", "doctor"):
        ms, lowest, other, ratio = found[f"`ropeway {command}`"][:4]
        assert float(ms) >= float(lowest) > float(other) > 0
        assert float(ratio) > 1


@needs_gcc
def test_a_node_that_does_all_of_its_work_is_looked_at() -> None:
    found = rows(run("pauses", "--minutes", "0.02", "--timers", "50"))
    assert "sends" in found
    assert "what it did" in found


@needs_gcc
def test_growth_is_compared_with_the_smallest_size() -> None:
    found = run("growth", *SHORT, "--most", "100")
    for kind in ("queues", "connections", "consumer groups"):
        sizes = re.findall(rf"^\| {kind} +\|[^|]+\| +(\d+) \|", found, re.MULTILINE)
        assert {"1", "100"} <= set(sizes)


@needs_gcc
def test_stored_messages_are_there_after_a_kill() -> None:
    found = run("growth", *SHORT, "--most", "10000", "stored")
    assert re.search(r"longest start after a kill took [\d.]+ s", found)


@needs_gcc
def test_a_transaction_is_counted_in_sends() -> None:
    found = rows(run("transactions", *SHORT, "--ropeway-only"))
    for load in ("connections 1", "connections 64", "window 256"):
        name, *figures = found[load]
        assert name == "Ropeway"
        assert all(float(figure.replace(",", "")) > 0 for figure in figures)


@needs_gcc
def test_popping_is_measured_and_what_is_in_hand() -> None:
    few = ["--rounds", "1", "--messages", "400", "--in-hand", "200", "--seconds", "0.1"]
    found = rows(run("pop", *few, "--ropeway-only"))
    for name in ("32 a pop, 1 connection", "32 a pop, kept for longer"):
        rate, other, ours, *_ = found[name]
        assert float(rate.replace(",", "")) > 0
        assert (other, float(ours.split()[0]) > 0) == ("-", True)
    assert "200 messages in hand" in found


def test_grpc_is_measured_by_message() -> None:
    few = ["--rounds", "1", "--messages", "100", "--warm-up", "10"]
    found = rows(run("grpc", *few, "--ropeway-only"))
    for name in ("send, 1 connection, 1 call", "receive and acknowledge, 1 connection"):
        (row,) = [row for what, row in found.items() if what.startswith(name)]
        assert float(row[0].replace(",", "")) > 0
        assert row[1:4] == ["-", "-", "-"]


def test_the_ways_of_requests_are_counted() -> None:
    found = rows(run("paths"))
    for name in ("send", "gRPC send", "pull", "pop", "acknowledgement"):
        functions, files, switches = map(int, found[name])
        assert functions > files > 5 < switches


@needs_gcc
def test_one_worker_is_compared_with_two() -> None:
    found = run("workers", *SHORT)
    counts = re.findall(r"^\| send [^|]+\| (\d) \| [\d,]+ \|", found, re.MULTILINE)
    assert counts == ["1", "2"] * 2


@needs_gcc
@needs_py_spy
def test_a_profile_can_be_opened_in_speedscope(tmp_path: Path) -> None:
    out = tmp_path / "profile.speedscope.json"
    run("profile", "--seconds", "1", "--out", str(out), "pipelined")
    frames = json.loads(out.read_text())["shared"]["frames"]
    assert any(frame["name"].endswith("data_received") for frame in frames)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("acl", ["--rounds", "1", "--sends", "20"], "pulsar, token"),
        ("codec", ["tag_hash, cached"], "tag_hash, cached"),
        ("filters", ["--rounds", "1"], "us in a pull"),
        ("log", ["--seconds", "0.02"], "us CPU/append"),
        ("processing", ["--rounds", "1"], "pull of 32 x 1 KiB"),
        ("pop_pieces", ["--rounds", "1"], "kept for longer"),
        ("tokens", ["--rounds", "1"], "token, window of 64"),
    ],
)
def test_the_parts_are_measured_alone(
    name: str, arguments: list[str], says: str
) -> None:
    assert says in run(name, *arguments)


@pytest.mark.jvm
@pytest.mark.server
def test_both_servers_take_the_load_of_native_and_of_java_clients() -> None:
    words = ["single 128 B, 1 connection", "8 clients", "64 threads", "sync"]
    found = rows(run("compare", *SHORT, "--warm-up", "0.1", *words))
    for case in cases.chosen(words):
        ours, theirs, ratio, *_ = found[case.name]
        assert float(ours.replace(",", "")) > 0
        assert float(theirs.replace(",", "")) > 0
        assert re.fullmatch(r"[\d.]+ \[[\d.]+-[\d.]+\]", ratio)


@needs_gcc
@pytest.mark.jvm
@pytest.mark.server
@pytest.mark.slow
def test_ropeway_on_pulsar_is_compared_with_all_that_there_is() -> None:
    words = [
        *("single 128 B, 1 c", "batches of 100 x 128 B", "32 x 1 KiB, tail"),
        *("waits for each, 128 B", "perf, batched, 128 B", "cold"),
    ]
    said = run(
        *("on_pulsar", *SHORT, "--warm-up", "0.1"),
        *("--cold-messages", "2000", *words),
    )
    _, beside_embedded, *_ = said.split("\n\n")
    found = rows(beside_embedded)
    for case in pulsar_cases.chosen(words):
        assert float(found[case.name][0].replace(",", "")) > 0
    found = rows(said)
    assert float(found["pulsar-perf, batched, 128 B"][0].replace(",", "")) > 0
    assert float(found["cold, all from offset 0"][2]) > 0
    assert float(found["cold, half of it from a random offset"][2]) > 0


@needs_gcc
def test_a_mirror_is_compared_with_plain_pulls() -> None:
    few = ["--messages=3200", "--rounds=1", "--seconds=1", "--ropeway-only"]
    found = rows(run("mirroring", *few))
    for name in ("pull, C", "pull, Python", "mirror", "following"):
        assert float(found[name][0].replace(",", "")) > 0


@needs_gcc
@pytest.mark.jvm
@pytest.mark.server
@pytest.mark.slow
def test_one_node_and_two_get_the_same_load() -> None:
    said = run("scale_out", *SHORT, "--warm-up", "0.3")
    cells = [line.split("|")[1:4] for line in said.splitlines() if "|" in line][2:]
    assert [(what.strip(), int(nodes)) for what, nodes, _ in cells] == [
        (what, nodes) for what in scale_out.LOADS for nodes in scale_out.NODES
    ]
    assert all(float(rate.replace(",", "")) > 0 for _, _, rate in cells)


def test_rop_is_held_to_the_cases_that_it_was_measured_in() -> None:
    known = [one.name for one in pulsar_cases.CASES if pulsar_cases.rop(one)]
    assert known == [
        "single 128 B, 1 connection",
        "single 128 B, 64 connections",
        "single 1024 B, 1 connection",
        "single 1024 B, 64 connections",
        "pipelined 128 B, window 256",
        "pull of 32 x 1 KiB, tail",
        "pipelined 1024 B, window 256",
    ]


def test_no_two_cases_have_one_name() -> None:
    for all_of_them in (cases.CASES, pulsar_cases.CASES):
        names = [case.name for case in all_of_them]
        assert len(set(names)) == len(names)


def test_a_table_replaces_what_stood_between_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- x: written by a program -->\nold\n<!-- /x -->\nafter\n"
    )
    table.write("x", "new", page)
    assert page.read_text() == (
        "before\n<!-- x: written by a program -->\nnew\n<!-- /x -->\nafter\n"
    )
    with pytest.raises(ValueError, match=r"page\.md lacks <!-- y"):
        table.write("y", "new", page)


def test_the_page_has_a_place_for_every_table() -> None:
    text = table.PAGE.read_text()
    for name in ("compare", "growth", "on-pulsar-sync", "on-pulsar-async"):
        assert f"<!-- {name}: written by a program -->" in text
        assert f"<!-- /{name} -->" in text


@pytest.mark.parametrize(
    ("values", "most", "least"),
    [([0.5], "met", "missed"), ([1.0], "met", "met"), ([1.5], "missed", "met")],
)
def test_a_median_is_held_to_its_limit(
    values: list[float], most: str, least: str
) -> None:
    assert table.at_most(1.0, [*values, 0.0, 9.0]) == f"<= 1: {most}"
    assert table.at_least(1.0, [*values, 0.0, 9.0]) == f">= 1: {least}"


@pytest.mark.slow
@pytest.mark.jvm
@pytest.mark.usefixtures("spark_classes")
def test_topics_in_spark_are_compared_with_spark_alone() -> None:
    few = ["--rounds", "1", "--warm-ups", "0", "--batches", "4"]
    few += ["--messages", "4000", "--counted", "400", "--late", "50"]
    found = rows(run("spark", *few))
    assert {"read, Arrow batches, rows/s", "topic, count, topic, rows/s"} <= set(found)
    assert {"write, exactly-once", "read, with headers"} <= set(found)


@needs_gcc
def test_timed_messages_are_compared_with_plain_ones() -> None:
    few = ["--rounds", "1", "--messages", "500", "--waiting", "500"]
    found = rows(run("timers", *few))
    assert {"64 connections", "memory, MiB more", "start, s"} <= set(found)


@needs_gcc
def test_sends_and_cold_reads_are_measured_with_a_tier() -> None:
    few = ["--rounds", "1", "--seconds", "0.1"]
    found = rows(run("tiered_sends", *few, "--commit-ms", "50"))
    assert {"send size=128 window=256", "send size=1024 window=256"} <= set(found)
    found = rows(run("tiered_readers", *few, "--megabytes", "2"))
    assert float(found["8"][3].replace(",", "")) > 0


def test_many_topics_are_made_used_and_there_after_a_kill() -> None:
    words = ["--embedded", "--topics", "20", "--idle", "0.2", "--settle", "0"]
    found = rows(run("many_topics", *words))
    assert "0 REST" in found["make 20 topics of 8 queues"][0]
    assert "KiB each" in found["memory, 20 more open"][0]
    assert {"start after kill -9", "start after a stop"} <= set(found)
