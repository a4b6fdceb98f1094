"""`ropeway doctor`."""

import json


def test_a_node_that_is_well_has_no_problem_but_its_machines_disk(run):
    result = run("doctor", "--all", "--json", code=None)
    found = json.loads(result.stdout)
    problems = [one["check"] for one in found if one["state"] == "problem"]
    assert problems in ([], ["disk"])
    assert result.exit_code == (4 if problems else 0)
    assert {"node", "clock", "leader"} <= {one["check"] for one in found}
    shown = run("doctor", code=result.exit_code).stdout
    assert shown.rstrip().endswith(f"{len(problems)} problems")


def test_each_problem_says_what_to_do_and_the_exit_code_tells(run, tmp_path):
    config = tmp_path / "ropeway.toml"
    config.write_text('routes = "zookeeper://127.0.0.1:1/ropeway"\n')
    result = run("doctor", "--only-here", "--config", str(config), code=4)
    lines = result.stdout.splitlines()
    at = lines.index(
        "problem zookeeper: no ZooKeeper at 127.0.0.1:1: Connection refused"
    )
    assert lines[at + 1] == "  -> start it, or set `routes` to where it is"
    assert "found a problem" in result.stderr


def test_no_name_server_is_a_finding_too(run):
    result = run("doctor", "--name-server", "127.0.0.1:1", "--json", code=4)
    (found,) = json.loads(result.stdout)
    assert (found["check"], found["state"]) == ("name-server", "problem")


def test_what_is_to_be_mended_needs_a_configuration(run):
    result = run("doctor", "--fix", code=2)
    assert "--fix needs --config" in result.stderr
