"""`ropeway offset export` and `import`."""

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


def committed(run, group) -> int:
    (row,) = json.loads(run("offset", "show", group, "--json").stdout)
    offset: int = row["committed"]
    return offset


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_what_is_exported_is_imported(run, group, ropeway_topic, tmp_path, more):
    file = tmp_path / "offsets"
    file.write_text(run("offset", "export", group, ropeway_topic, *more).stdout)
    run("offset", "reset", group, ropeway_topic, "--to", "latest", "--yes")
    line = ["offset", "import", group, str(file), "--json"]
    planned = json.loads(run(*line, "--dry-run").stdout)
    assert [(one["before"], one["after"]) for one in planned] == [(5, 2)]
    assert committed(run, group) == 5
    assert json.loads(run(*line, "--yes").stdout) == planned
    assert committed(run, group) == 2


def test_where_nothing_moves_nothing_is_asked(run, group):
    exported = run("offset", "export", group).stdout.encode()
    moved = run("offset", "import", group, "-", "--json", stdin=exported)
    (row,) = json.loads(moved.stdout)
    assert (row["before"], row["after"]) == (2, 2)
    assert moved.stderr == ""


def test_a_group_takes_the_offsets_of_another_one(run, group, ropeway_topic):
    other = f"o-{ropeway_topic}"
    run("group", "create", other)
    exported = run("offset", "export", group).stdout.encode()
    run("offset", "import", other, "-", "--yes", stdin=exported)
    assert committed(run, other) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{topic}\tbroker-0\t0\t6", "offset 6 of queue 0 of topic {topic}; allowed: 0"),
        ("{topic}\tbroker-0\t1\t0", "topic {topic} has no queue 1 on broker broker-0"),
        ("none\tbroker-0\t0\t0", "topic 'none' does not exist"),
    ],
)
def test_nothing_is_moved_where_a_line_does_not_fit(
    run, group, ropeway_topic, line, said
):
    first = "" if line.endswith("6") else f"{ropeway_topic}\tbroker-0\t0\t1\n"
    data = (first + line.format(topic=ropeway_topic)).encode()
    refused = run("offset", "import", group, "-", "--yes", code=1, stdin=data)
    assert said.format(topic=ropeway_topic) in refused.stderr
    assert committed(run, group) == 2


def test_no_group_and_no_offsets_are_errors(run):
    assert "does not exist" in run("offset", "export", "nosuch", code=1).stderr
    refused = run("offset", "import", "nosuch", "-", "--yes", code=2, stdin=b"")
    assert "has no offsets" in refused.stderr
