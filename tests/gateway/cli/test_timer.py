"""`ropeway timer`."""

import json
import time


def test_what_waits_is_listed_and_can_be_cancelled(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "1")
    at = str(int(time.time() * 1000) + 3_600_000)
    sent = run("produce", ropeway_topic, "a", "--deliver-at", at, "--json")
    handle = json.loads(sent.stdout)["recall_handle"]
    run("produce", ropeway_topic, "b", "--delay", "7200")

    def listed() -> list[dict]:
        shown = run("timer", "list", "--topic", ropeway_topic, "--json")
        return json.loads(shown.stdout)

    give_up = time.monotonic() + 120
    while len(listed()) < 2 and time.monotonic() < give_up:
        time.sleep(0.05)
    first, second = listed()
    assert (first["recall_handle"], first["topic"]) == (handle, ropeway_topic)
    assert first["deliver_at"] < second["deliver_at"]
    cancelled = run("timer", "cancel", handle, "--yes")
    message = f"message {first['msg_id']} of topic {ropeway_topic} cancelled\n"
    assert cancelled.stdout == message
    while len(listed()) > 1 and time.monotonic() < give_up:
        time.sleep(0.05)
    assert listed() == [second]


def test_what_waits_at_delay_levels_is_listed_with_what_has_a_time(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "1")
    run("produce", ropeway_topic, "a", "--delay-level", "18")
    run("produce", ropeway_topic, "b", "--delay-level", "17")
    run("produce", ropeway_topic, "c", "--delay", "5400")
    sent = json.loads(
        run("produce", ropeway_topic, "d", "--delay-level", "18", "--json").stdout
    )

    def listed(*more: str) -> list[dict]:
        command = ("timer", "list", "--topic", ropeway_topic, "--json", *more)
        return json.loads(run(*command).stdout)

    give_up = time.monotonic() + 120
    while len(listed()) < 4 and time.monotonic() < give_up:
        time.sleep(0.05)
    assert [one["delay_level"] for one in listed()] == [17, None, 18, 18]
    last = listed()[-1]
    assert (last["msg_id"], last["recall_handle"]) == (sent["msg_id"], None)
    assert [one["delay_level"] for one in listed("--count", "1")] == [17, None, 18]


def test_what_is_no_handle_or_too_late_is_refused(run, ropeway_topic):
    assert (
        "recall handle is invalid"
        in run("timer", "cancel", "x", "--yes", code=2).stderr
    )
    run("topic", "create", ropeway_topic)
    sent = run("produce", ropeway_topic, "a", "--delay", "0.001")
    handle = sent.stdout.rpartition("recall=")[2].strip()
    time.sleep(0.01)
    late = run("timer", "cancel", handle, "--yes", code=1)
    assert "timestamp invalid: the message was due" in late.stderr


def test_two_delays_are_one_too_many(run, ropeway_topic):
    two = ["--delay", "1", "--deliver-at", "5"]
    refused = run("produce", ropeway_topic, "a", *two, code=2)
    assert "more than one of delay_level, delay_ms and deliver_ms" in refused.stderr
