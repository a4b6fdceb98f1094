"""`ropeway broker drain`, `undrain` and `remove`."""


def test_a_broker_with_an_embedded_log_cannot_be_drained(run):
    refused = run("broker", "drain", "broker-0", "--yes", code=1)
    assert "brokers on Pulsar can be drained" in refused.stderr
    absent = run("broker", "drain", "absent", "--yes", code=1)
    assert "there is no broker absent; there are broker-0" in absent.stderr


def test_what_is_on_a_broker_is_printed_and_stays(run, ropeway_topic):
    run("topic", "create", ropeway_topic)
    shown = run("broker", "drain", "broker-0", "--dry-run")
    assert f"{ropeway_topic}  " in shown.stdout
    assert "cannot move: " in shown.stdout
    assert "no broker can take topic" in shown.stdout
    as_json = run("broker", "drain", "broker-0", "--dry-run", "--json")
    assert '"draining":false' in as_json.stdout
    assert run("broker", "list").stdout.endswith("ok\n")
    assert "gets queues again" in run("broker", "undrain", "broker-0").stdout


def test_a_broker_that_runs_is_not_removed(run):
    refused = run("broker", "remove", "broker-0", "--yes", code=1)
    assert "broker-0 runs; stop its nodes first" in refused.stderr
    unknown = run("broker", "remove", "absent", "--gone", "--yes", code=1)
    assert "there is no broker absent" in unknown.stderr
    asked = run("broker", "remove", "absent", "--gone", code=None, stdin=b"n\n")
    assert asked.exit_code == 1
    assert "with what waits there: delayed messages" in asked.stderr
