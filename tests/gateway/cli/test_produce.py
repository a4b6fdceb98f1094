"""`ropeway produce`."""

import pytest

from tests.gateway.cli.conftest import objects


def test_a_message_goes_with_all_that_was_said_of_it(run, ropeway_topic):
    options = ["--tag", "paid", "--key", "k1", "--key", "k2", "--property", "a=b=c"]
    run("produce", ropeway_topic, "one coffee", *options)
    (found,) = objects(run("consume", ropeway_topic, "--count", "1", "--json"))
    assert (found["body"], found["tag"], found["keys"]) == (
        "one coffee",
        "paid",
        "k1 k2",
    )
    assert found["properties"]["a"] == "b=c"


def test_the_queue_and_the_place_are_printed(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "3")
    first = run("produce", ropeway_topic, "a", "--queue", "2")
    assert first.stdout.startswith("queue=2 offset=0 msg_id=")
    (second,) = objects(run("produce", ropeway_topic, "b", "--queue", "2", "--json"))
    assert (second["queue_id"], second["offset"], second["status"]) == (2, 1, "SEND_OK")


@pytest.mark.parametrize("batch", ["1", "4", "100"])
def test_lines_of_the_standard_input_are_messages(run, ropeway_topic, batch):
    run("topic", "create", ropeway_topic, "--queues", "1")
    stdin = b"".join(b"line %d\r\n\n" % number for number in range(10))
    sent = objects(
        run("produce", ropeway_topic, "--batch", batch, "--json", stdin=stdin)
    )
    assert [one["offset"] for one in sent] == list(range(10))
    shown = run("consume", ropeway_topic, "--count", "10")
    assert shown.stdout.splitlines() == [f"line {number}" for number in range(10)]


def test_a_delayed_message_goes_out_as_one(run, ropeway_topic):
    run("produce", ropeway_topic, "later", "--delay-level", "1")
    (found,) = objects(run("consume", ropeway_topic, "--count", "1", "--json"))
    assert found["store_ms"] - found["born_ms"] >= 1000


def test_a_queue_that_is_not_there_is_refused(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "2")
    result = run("produce", ropeway_topic, "a", "--queue", "2", code=2)
    assert result.stderr == (
        f"Error: topic {ropeway_topic} has no queue 2; allowed: 0, 1\n"
    )


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["t", ""], "Error: "),
        (["t", "m", "--property", "novalue"], "'novalue'; allowed: NAME=VALUE"),
        (["t", "m", "--delay-level", "-1"], "--delay-level"),
    ],
)
def test_what_cannot_be_sent_is_said_in_words(run, args, complaint):
    assert complaint in run("produce", *args, code=2).stderr
