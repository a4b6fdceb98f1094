"""`--watch`."""


def test_a_list_is_printed_again(run, ropeway_topic):
    group = f"g-{ropeway_topic}"
    run("topic", "create", ropeway_topic)
    run("group", "create", group)
    line = ["group", "list", "--lag", "--names", group]
    shown = run(*line, "--watch", "0.1", "--count", "2").stdout
    assert [part.split()[3] for part in shown.split("\n\n")] == [group, group]
    assert "--watch" in run(*line, "--watch", "0", code=2).stderr
