"""`ropeway offset`."""

import json

import pytest


@pytest.fixture
def group(run, ropeway_topic) -> str:
    """A group that has read two of five messages."""
    name = f"g-{ropeway_topic}"
    run("topic", "create", ropeway_topic, "--queues", "1")
    run("produce", ropeway_topic, stdin=b"1\n2\n3\n4\n5\n")
    run("consume", ropeway_topic, "--group", name, "--count", "2")
    return name


def test_progress_is_shown_and_moved(run, group, ropeway_topic):
    (row,) = json.loads(run("offset", "show", group, ropeway_topic, "--json").stdout)
    assert (row["committed"], row["end"], row["lag"]) == (2, 5, 3)
    assert row["done_until"]
    assert json.loads(run("offset", "show", group, "--json").stdout) == [row]

    def moved(*args: str) -> tuple[int, int]:
        done = run("offset", *args, "--yes", "--json").stdout
        (one,) = json.loads(done)
        return one["before"], one["after"]

    where = (group, ropeway_topic)
    assert moved("reset", *where, "--to", "latest") == (2, 5)
    assert moved("rewind", *where, "--by", "1h") == (5, 0)
    assert moved("reset", *where, "--queue", "0", "--to-offset", "4") == (0, 4)
    assert moved("reset", *where, "--to", "earliest") == (4, 0)
    assert moved("rewind", *where, "--by", "0s") == (0, 0)
    assert moved("reset", *where, "--to", "2100-01-01T00:00:00") == (0, 5)


def test_a_move_is_asked_back(run, group, ropeway_topic):
    kept = run(
        "offset", "reset", group, ropeway_topic, "--to", "latest", stdin=b"n\n", code=1
    )
    assert f"Move group {group} in topic {ropeway_topic}?" in kept.stderr
    (row,) = json.loads(run("offset", "show", group, "--json").stdout)
    assert row["committed"] == 2


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ([], "give one of --to and --to-offset"),
        (["--to", "latest", "--to-offset", "1"], "give one of"),
        (["--to-offset", "1"], "give --queue"),
        (["--to", "tomorrow"], "allowed: earliest, latest, milliseconds"),
    ],
)
def test_what_makes_no_sense_is_refused(run, args, complaint):
    refused = run("offset", "reset", "g", "t", *args, "--yes", code=2)
    assert complaint in refused.stderr


@pytest.mark.parametrize("more", [["--dry-run"], ["--yes"]])
def test_a_group_that_is_not_there_is_not_moved(run, ropeway_topic, more):
    run("topic", "create", ropeway_topic, "--queues", "1")
    for how in (["reset", "--to", "latest"], ["rewind", "--by", "1h"]):
        command, *by = how
        moved = run("offset", command, "nosuch", ropeway_topic, *by, *more, code=1)
        assert moved.stderr == "Error: group nosuch does not exist\n"


def test_a_duration_has_a_unit(run):
    refused = run("offset", "rewind", "g", "t", "--by", "10", code=2)
    assert "allowed: a whole number and s, m, h or d, like 15m" in refused.stderr
