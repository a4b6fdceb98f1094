"""`ropeway topic trim`, on a running node."""

import json

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from ropeway.testing import running_gateway


@pytest.fixture
def topic(run, ropeway_topic) -> str:
    """A topic with five messages in its one queue; a group has read one."""
    run("topic", "create", ropeway_topic, "--queues", "1")
    run("produce", ropeway_topic, "--key", "k", stdin=b"1\n2\n3\n4\n5\n")
    run("consume", ropeway_topic, "--group", f"g-{ropeway_topic}", "--count", "1")
    return ropeway_topic


def read(run, topic: str) -> list[str]:
    return run("consume", topic, "--exit-at-end").stdout.splitlines()


def lag(run, topic: str) -> int:
    found = json.loads(run("group", "show", f"g-{topic}", "--json").stdout)
    return found["lag"]


def test_a_queue_is_trimmed_up_to_an_offset(run, topic):
    to = ["topic", "trim", topic, "--queue", "0", "--to-offset", "3"]
    planned = run(*to, "--dry-run", "--json").stdout
    (row,) = json.loads(planned)
    assert (row["before"], row["after"], row["trimmed"]) == (0, 3, 3)
    assert read(run, topic) == ["1", "2", "3", "4", "5"]
    asked = run(*to, code=1)
    assert f"Delete 3 messages of topic {topic}?" in asked.stderr
    assert lag(run, topic) == 4
    assert run(*to, "--yes", "--json").stdout == planned
    assert read(run, topic) == ["4", "5"]
    assert lag(run, topic) == 2
    found = run("message", "query", topic, "k", "--json").stdout.splitlines()
    assert [json.loads(one)["body"] for one in found] == ["4", "5"]
    begins = json.loads(run("topic", "stats", topic, "--json").stdout)
    assert (begins["queues"][0]["begin"], begins["messages"]) == (3, 2)
    # The group goes on behind what is gone, and not at the end.
    group = f"g-{topic}"
    assert run("consume", topic, "--group", group, "--count", "2").stdout == "4\n5\n"
    # Nothing is left to be asked about.
    (row,) = json.loads(run(*to, "--json").stdout)
    assert (row["before"], row["trimmed"]) == (3, 0)


def test_a_message_that_was_trimmed_is_found_by_no_id(run, topic):
    sent = json.loads(run("produce", topic, "6", "--json").stdout)
    run("topic", "trim", topic, "--to", "latest", "--yes")
    assert read(run, topic) == []
    assert lag(run, topic) == 0
    for more in ([], ["--topic", topic]):
        run("message", "view", sent["offset_msg_id"], *more, code=1)
    run("message", "view", sent["msg_id"], "--topic", topic, code=1)
    assert run("message", "search", topic).stdout == ""
    assert json.loads(run("produce", topic, "7", "--json").stdout)["offset"] == 6
    assert read(run, topic) == ["7"]


def test_a_topic_is_trimmed_by_time(run, topic):
    run("topic", "trim", topic, "--to", "1h", "--yes")
    assert len(read(run, topic)) == 5
    run("topic", "trim", topic, "--to", "0s", "--yes")
    assert read(run, topic) == []


@pytest.mark.slow
def test_a_trim_survives_a_restart_and_is_in_the_audit_log(tmp_path):
    settings = tmp_path / "ropeway.toml"
    audit = tmp_path / "audit.jsonl"
    settings.write_text(f'[audit]\nfile = "{audit}"\n')

    def asked(gateway, line: str) -> str:
        done = CliRunner().invoke(main, [*line.split(), "-n", gateway.address])
        assert done.exit_code == 0, done.output
        return done.stdout

    for number in range(2):
        options = ["--config", str(settings)]
        with running_gateway(tmp_path / "data", options) as gateway:
            if not number:
                asked(gateway, "topic create orders --queues 1")
                for body in "123":
                    asked(gateway, f"produce orders {body}")
                asked(gateway, "topic trim orders --queue 0 --to-offset 2 --dry-run")
                asked(gateway, "topic trim orders --queue 0 --to-offset 2 --yes")
            assert asked(gateway, "consume orders --exit-at-end") == "3\n"
    lines = [json.loads(one) for one in audit.read_text().splitlines()]
    (line,) = (one for one in lines if "TRIM_TOPIC" in one.get("request", ""))
    assert line["resource"] == "Topic:orders"
    assert (line["before"], line["after"]) == ({"0": 0}, {"0": 2})


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ([], "give one of --to and --to-offset"),
        (["--to", "latest", "--to-offset", "1"], "give one of"),
        (["--to-offset", "1"], "give --queue"),
        (["--to", "earliest"], "allowed: latest, how long ago, like 10m; milliseconds"),
    ],
)
def test_what_makes_no_sense_is_refused(run, args, complaint):
    assert complaint in run("topic", "trim", "t", *args, "--yes", code=2).stderr


def test_what_cannot_be_trimmed_says_why(run, ropeway_topic):
    every = ["--to", "latest", "--yes"]
    assert "does not exist" in run("topic", "trim", "nosuch", *every, code=1).stderr
    compacted = ["--attribute", "cleanup.policy=COMPACTION"]
    run("topic", "create", ropeway_topic, *compacted, "--queues", "1")
    run("produce", ropeway_topic, "1", "--key", "a")
    refused = run("topic", "trim", ropeway_topic, *every, code=1)
    assert "is compacted" in refused.stderr
    own = run("topic", "trim", "SCHEDULE_TOPIC_XXXX", *every, code=1)
    assert "is the broker's own" in own.stderr
    queue = [ropeway_topic, "--queue", "7", "--to-offset", "1", "--yes"]
    assert "allowed: 0 to 0" in run("topic", "trim", *queue, code=1).stderr
