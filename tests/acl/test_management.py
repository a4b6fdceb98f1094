"""Users and rules are changed as mqadmin means it, one after the other."""

import asyncio

import pytest

from ropeway.acl.administration import Rule, Rules, RulesError, User
from ropeway.acl.management import Management
from ropeway.acl.records import Records
from ropeway.acl.vault import FernetVault, new_key
from tests.acl.hooks import MemoryStore


class Bench:
    def __init__(self) -> None:
        self.store, vault = MemoryStore(), FernetVault([new_key()])
        self.records = Records(vault)
        self.store.watch(lambda: self.records.take(self.store.items()))
        self.management = Management(self.store, vault, self.records)

    def do(self, change):
        return asyncio.run(change)

    def refuse(self, change, match):
        with pytest.raises(RulesError, match=match):
            asyncio.run(change)


def rule(resource, *actions, allowed=True):
    return Rule(resource, actions or ("All",), allowed=allowed)


def test_users_are_made_changed_and_deleted():
    bench = Bench()
    users = bench.management
    bench.do(users.create_user(User("alice", "a")))
    bench.refuse(users.create_user(User("alice", "b")), "existed")
    bench.do(users.update_user("alice", password="c", super=True))
    assert users.users() == {"alice": User("alice", "c", super=True)}
    bench.do(users.update_user("alice", enabled=False))
    assert users.users()["alice"] == User("alice", "c", super=True, enabled=False)
    bench.refuse(users.update_user("bob", password="x"), "not exist")
    bench.do(users.add_rules(Rules("User:alice", (rule("Topic:a"),))))
    for _ in range(2):
        bench.do(users.delete_user("alice"))
    assert (users.users(), users.rules(), bench.store.kept) == ({}, {}, {})


@pytest.mark.parametrize(
    "name", ["", " ", "a/b", "a,b", "\u0430lice", "a\n", "x" * 129, "User:a"]
)
def test_names_are_plain(name):
    bench = Bench()
    bench.refuse(bench.management.create_user(User(name, "p")), "allowed")


@pytest.mark.parametrize("password", ["", "x" * 1025])
def test_passwords_have_bounds_and_are_not_repeated(password):
    bench = Bench()
    bench.refuse(
        bench.management.create_user(User("a", password)), f"of {len(password)} char"
    )


def test_rules_of_the_same_resource_are_replaced_and_others_stay():
    bench = Bench()
    rules = bench.management
    bench.do(rules.create_user(User("a", "p")))
    old, other = rule("Topic:x", "Pub"), rule("Topic:y", "Pub")
    bench.do(rules.add_rules(Rules("user:a", (old, other), (rule("*", "Get"),))))
    new = rule("topic:x", "Sub", allowed=False)
    bench.do(rules.add_rules(Rules("User:a", (new,))))
    kept = rules.rules()["User:a"]
    assert set(kept.custom) == {new, other}
    assert kept.default == (rule("*", "Get"),)
    bench.do(rules.delete_rules("User:a", resource="Topic:x"))
    assert rules.rules()["User:a"].custom == (other,)
    bench.do(rules.delete_rules("User:a", resource="Topic:y"))
    bench.do(rules.delete_rules("User:a", resource="*", default=True))
    assert rules.rules() == {}


def test_rules_need_a_user_and_a_sense():
    bench = Bench()
    rules = bench.management
    bench.refuse(rules.add_rules(Rules("User:a", (rule("Topic:x"),))), "not exist")
    bench.do(rules.create_user(User("a", "p")))
    bench.refuse(rules.add_rules(Rules("User:a")), "empty")
    bench.refuse(rules.add_rules(Rules("a", (rule("Topic:x"),))), "User:NAME")
    bench.refuse(rules.add_rules(Rules("User:a", (rule("Topic"),))), "allowed")
    bench.refuse(rules.delete_rules("User:a"), "not exist")
    many = tuple(rule(f"Topic:{number}") for number in range(1001))
    bench.refuse(rules.add_rules(Rules("User:a", many)), "more than 1000")


def test_what_is_damaged_is_said_and_can_be_deleted():
    bench = Bench()
    rules = bench.management
    bench.do(rules.create_user(User("a", "p")))
    bench.store.kept["rules,User:a"] = "{"
    bench.refuse(rules.add_rules(Rules("User:a", (rule("Topic:x"),))), "delete them")
    bench.do(rules.delete_rules("User:a"))
    bench.store.kept["user,a"] = "{"
    bench.refuse(rules.update_user("a", enabled=True), "cannot be read")


def test_rules_of_both_kinds_count_for_the_limit(monkeypatch):
    monkeypatch.setattr("ropeway.acl.management._MAX_RULES", 4)
    bench = Bench()
    rules = bench.management
    bench.do(rules.create_user(User("a", "p")))
    custom = tuple(rule(f"Topic:{n}") for n in range(2))
    bench.do(rules.add_rules(Rules("User:a", custom, (rule("Topic:*", "Get"),))))
    bench.do(rules.add_rules(Rules("User:a", (), (rule("Group:*", "Get"),))))
    with pytest.raises(RulesError, match="more than 4 rules"):
        bench.do(rules.add_rules(Rules("User:a", (rule("Topic:9"),))))
