"""`ropeway bench`, on a running node."""

import json
import time


def test_messages_are_sent_and_timed(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "2")
    load = ["--count", "50", "--size", "100", "--clients", "2", "--in-flight", "4"]
    found = json.loads(run("bench", "produce", ropeway_topic, *load, "--json").stdout)
    assert (found["messages"], found["failed"], found["bytes"]) == (50, 0, 5000)
    assert (found["clients"], found["in_flight"]) == (2, 4)
    assert 0 < found["min_ms"] <= found["p50_ms"] <= found["p99_ms"] <= found["max_ms"]
    assert found["messages_per_s"] > 0
    stats = json.loads(run("topic", "stats", ropeway_topic, "--json").stdout)
    assert stats["messages"] == 50


def test_messages_are_sent_in_batches_the_last_one_smaller(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    shown = run("bench", "produce", ropeway_topic, "--count", "25", "--batch", "10")
    assert shown.stdout.startswith("25 messages, 0 failed, in ")
    assert "p99.9 " in shown.stdout
    assert shown.stdout.splitlines()[2].endswith("#")


def test_a_rate_is_kept(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    load = ["--rate", "40", "--duration", "0.5", "--json"]
    began = time.monotonic()
    found = json.loads(run("bench", "produce", ropeway_topic, *load).stdout)
    assert time.monotonic() - began >= 0.45
    assert found["messages"] <= 21


def test_messages_that_come_in_one_answer_took_since_they_were_asked_for(
    run, ropeway_topic
):
    run("topic", "create", ropeway_topic, "--queues", "1")
    run("produce", ropeway_topic, "one")
    line = ["bench", "consume", ropeway_topic, "--count", "1", "--json"]
    found = json.loads(run(*line).stdout)
    # No message comes within a tenth of a millisecond of its look at the route.
    assert 0 < found["messages_per_s"] < 10_000


def test_messages_are_received_and_no_offset_is_left(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    run("bench", "produce", ropeway_topic, "--count", "40", "--size", "10")
    # Whoever has not received the last of the 80 does not wait for another.
    load = ["--count", "80", "--clients", "2", "--timeout", "3600", "--json"]
    found = json.loads(run("bench", "consume", ropeway_topic, *load).stdout)
    assert (found["messages"], found["bytes"]) == (80, 800)
    assert found["max_ms"] > 0
    offsets = run("offset", "show", "ropeway-bench", ropeway_topic, code=None)
    assert offsets.exit_code or all(
        not line.split()[3].strip("0") for line in offsets.stdout.splitlines()[1:]
    )


def test_sends_that_are_refused_end_it_in_one_line(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--perm", "4")
    refused = run("bench", "produce", ropeway_topic, "--count", "9", code=None)
    assert refused.exit_code in (1, 6)
    assert len(refused.stderr.splitlines()) == 1


def test_where_nothing_comes_that_is_an_error(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    line = ["bench", "consume", ropeway_topic, "--from", "last", "--timeout", "0.2"]
    assert "no message came within 0.2 s" in run(*line, code=1).stderr
    absent = run("bench", "consume", "nosuch", code=1)
    assert "does not exist" in absent.stderr
