"""`ropeway message tail`."""


def test_the_newest_messages_of_each_queue_come_first(run, ropeway_topic):
    run("topic", "create", ropeway_topic, "--queues", "1")
    run("produce", ropeway_topic, stdin=b"1\n2\n3\n4\n5\n")
    run("produce", ropeway_topic, "6", "--tag", "paid")
    some = ["message", "tail", ropeway_topic, "--format", "{body}"]
    assert run(*some, "--last", "2", "--count", "2").stdout == "5\n6\n"
    assert run(*some, "--last", "9", "--count", "6").stdout == "1\n2\n3\n4\n5\n6\n"
    assert run(*some, "--tag", "paid", "--count", "1").stdout == "6\n"
