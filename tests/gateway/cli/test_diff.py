"""`ropeway diff`; with users and policies in `test_apply.py`."""


def test_it_prints_what_differs_and_its_exit_code_says_so(run, ropeway_topic):
    file = f"topics: {{{ropeway_topic}: {{queues: 3}}}}\n".encode()
    shown = run("diff", "-f", "-", code=1, stdin=file)
    assert shown.stdout == f"+ topic {ropeway_topic}\n    queues: 3\n"
    assert shown.stderr == ""
    run("topic", "create", ropeway_topic, "--queues", "2")
    shown = run("diff", "-f", "-", code=1, stdin=file)
    assert shown.stdout == (
        f"~ topic {ropeway_topic} on broker-0\n    queues: 2 -> 3\n"
    )
    run("topic", "expand", ropeway_topic, "--queues", "3")
    assert run("diff", "-f", "-", stdin=file).output == ""
    refused = run("diff", "-f", "-", code=2, stdin=b"topics: 1")
    assert "allowed: topics, groups, users, policies, quotas" in refused.stderr
