"""`ropeway route rebalance`."""


def test_queues_of_an_embedded_log_stay_with_their_broker(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    for options in (
        [ropeway_topic, "--yes"],
        [ropeway_topic, "--dry-run"],
        ["--all", "--yes"],
        [ropeway_topic, "--by-load"],
    ):
        refused = run("route", "rebalance", *options, code=1)
        assert "log, which no other broker can open" in refused.stderr
    assert "not both" in run("route", "rebalance", code=2).stderr
    both = run("route", "rebalance", ropeway_topic, "--all", code=2)
    assert "not both" in both.stderr
    absent = run("route", "rebalance", "absent", "--yes", "--json", code=1)
    assert "No topic in the route store" in absent.stderr
    assert absent.stdout == "[]\n"
