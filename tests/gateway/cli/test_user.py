"""`ropeway user`, and the policies of users with `ropeway acl`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from ropeway.gateway.cli.main import main
from tests.gateway.cli.secured import PASSWORD, ROOT, secured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Asked = Callable[..., Result]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Run a command line as the superuser, or as somebody with the same password."""
    with secured(tmp_path_factory.mktemp("users")) as node:

        def run(
            line: str, *, who: str = ROOT, code: int = 0, stdin: str = ""
        ) -> Result:
            environment = node.environment(who)
            done = CliRunner().invoke(main, line.split(), env=environment, input=stdin)
            assert done.exit_code == code, (line, done.output, done.exception)
            return done

        yield run


def test_a_user_is_made_given_rights_and_taken_them_again(asked):
    asked("topic create orders")
    asked("user create alice --password-file -", stdin=f"{PASSWORD}\n")
    asked("topic show orders", who="alice", code=6)
    given = "acl create alice --resource Topic:orders --action Pub --action Get"
    assert "Pub,Get on Topic:orders is allowed" in asked(given).stdout
    (rule,) = json.loads(asked("acl list --user alice --json").stdout)
    assert rule == {
        "user": "alice",
        "resource": "Topic:orders",
        "actions": ["Pub", "Get"],
        "decision": "Allow",
        "sources": [],
        "policy": "Custom",
    }
    asked("produce orders x", who="alice")
    asked("acl create alice --resource Topic:orders --action Pub --deny")
    asked("produce orders x", who="alice", code=6)
    asked("acl delete alice --yes")
    assert json.loads(asked("acl list --user alice --json").stdout) == []
    assert "has no policy" in asked("acl delete alice --yes", code=1).stderr


def test_a_user_is_changed_listed_and_deleted_and_its_password_is_not_shown(asked):
    asked("user create bobby --super --password-file -", stdin=f"{PASSWORD}\n")
    asked("topic list", who="bobby")
    asked("user update bobby --disable --normal")
    listed = asked("user list --json").stdout
    assert PASSWORD not in listed
    found = {one["user"]: one for one in json.loads(listed)}
    assert found["bobby"] == {"user": "bobby", "type": "Normal", "status": "disable"}
    asked("topic list", who="bobby", code=6)
    asked("user delete bobby", stdin="n\n", code=1)
    asked("user delete bobby --yes")
    refused = asked("user delete bobby --yes", code=1).stderr
    assert refused == "Error: user bobby does not exist\n"


def test_what_makes_no_sense_is_refused(asked):
    assert "nothing to change" in asked("user update root", code=2).stderr
    taken = asked("user create root --password-file -", stdin="x\n", code=1)
    assert taken.stderr == "Error: user root exists already\n"
    nobody = asked("acl create nobody --resource Topic:a --action Pub", code=1)
    assert nobody.stderr == "Error: User:nobody does not exist\n"
    gone = asked("user update nobody --disable", code=1)
    assert gone.stderr == "Error: user nobody does not exist\n"
    given = "acl delete root --resource Topic:nosuch --yes"
    assert "has no policy of Topic:nosuch" in asked(given, code=1).stderr
    check = "acl check --action PUB --resource topic:a --principal"
    assert "--principal is ':'" in asked(f"{check} :", code=2).stderr


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("--resource nowhere --action Pub", "resource 'nowhere'; allowed: * or Topic:"),
        ("--resource Topic: --action Pub", "resource 'Topic:'; allowed"),
        ("--resource Topic:a*b --action Pub", "with * at the end alone"),
        ("--resource Topic:a --action Send", "action 'Send'; allowed: Pub, Sub"),
        ("--resource Topic:a --action Pub --source 300.1.1.1", "address '300.1.1.1'"),
    ],
)
def test_what_is_no_policy_is_said_and_not_that_it_is_not_allowed(
    asked, given, complaint
):
    said = asked(f"acl create {ROOT} {given}", code=2).stderr
    assert complaint in said
    assert "not allowed" not in said


def test_who_may_not_read_delay_levels_is_told_what_has_a_time(asked):
    asked("topic create times")
    asked("produce times x --delay-level 18")
    asked("user create dora --password-file -", stdin=f"{PASSWORD}\n")
    for resource in ("Topic:times", "Cluster:*"):
        asked(f"acl create dora --resource {resource} --action Get")
    found = asked("timer list --topic times", who="dora")
    assert "without those at delay levels: " in found.stderr
    assert "SCHEDULE_TOPIC_XXXX" in found.stderr
    assert found.stdout == ""
    assert len(asked("timer list --topic times").stdout.splitlines()) == 2


def test_a_policy_that_is_deleted_must_be_there(asked):
    asked("user create carol --password-file -", stdin=f"{PASSWORD}\n")
    asked("acl create carol --resource Topic:orders --action Pub")
    wrong = asked("acl delete carol --resource Topic:menu --yes", code=1).stderr
    assert wrong == "Error: User:carol has no policy of Topic:menu\n"
    asked("acl delete carol --resource Topic:orders --yes")
