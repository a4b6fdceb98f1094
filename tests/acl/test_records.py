"""What is kept of users and rules is read back, and damage lets nobody in."""

import msgspec
import pytest
from structlog.testing import capture_logs

from ropeway.acl.administration import Rule, Rules, User
from ropeway.acl.records import Records, dump_rules, dump_user
from ropeway.acl.vault import FernetVault, new_key

VAULT = FernetVault([new_key()])
ALICE = User("alice", "hush", super=True, enabled=False)
RULES = Rules("User:alice", (Rule("Topic:a", ("Pub",), allowed=True),))


def test_rules_are_shown_as_people_read_them():
    deny = Rule("Group:*", ("Sub", "Get"), allowed=False, sources=("10.0.0.1", "::1"))
    assert Rules("User:alice", RULES.custom, (deny,)).shown() == {
        "custom": ["Allow Pub Topic:a"],
        "default": ["Deny Sub,Get Group:* from 10.0.0.1,::1"],
    }


def test_users_and_rules_come_back():
    records = Records(VAULT)
    records.take(
        {"user,alice": dump_user(ALICE, VAULT), "rules,User:alice": dump_rules(RULES)}
    )
    assert records.users == {"alice": ALICE}
    assert records.rules == {"User:alice": RULES}
    records.take({})
    assert (records.users, records.rules, records.policies) == ({}, {}, {})


@pytest.mark.rule(
    "acl.md", "A record that cannot be read is left out: nobody gets in by damage."
)
def test_what_is_damaged_is_left_out_and_said_without_secrets():
    records = Records(VAULT)
    other = dump_user(ALICE, FernetVault([new_key()]))
    with capture_logs() as logs:
        records.take(
            {
                "user,alice": other,
                "user,bob": "{",
                "rules,User:alice": '{"subject":"User:alice"}',
                "rules,User:bob": '{"subject":"User:bob","custom":[{"resource":"x",'
                '"actions":["Pub"],"allowed":true}]}',
                "something else": "x",
            }
        )
    assert records.users == {}
    assert list(records.rules) == ["User:alice"]
    assert len(logs) == 3
    assert "hush" not in repr(logs)
    with capture_logs() as logs:
        records.take({"user,bob": "{"})
    assert not logs


def test_what_is_damaged_later_is_left_out_as_it_was_before_too():
    records = Records(VAULT)
    records.take(
        {"user,alice": dump_user(ALICE, VAULT), "rules,User:alice": dump_rules(RULES)}
    )
    records.take({"user,alice": "{", "rules,User:alice": "{"})
    assert (records.users, records.rules, records.policies) == ({}, {}, {})


def test_what_is_not_said_of_a_user_makes_it_no_super_user_and_lets_it_in():
    records = Records(VAULT)
    kept = dump_user(User("bob", "hush", super=False, enabled=True), VAULT)
    assert set(msgspec.json.decode(kept)) == {"sealed"}
    records.take({"user,bob": kept})
    assert (records.users["bob"].super, records.users["bob"].enabled) == (False, True)
