"""ACL 2.0 knows users by their signatures, and judges them by their policies."""

import asyncio

import pytest

from ropeway.acl.administration import Rule, Rules, User
from ropeway.acl.api import (
    Action,
    Credentials,
    HookError,
    Principal,
    Refused,
    StoreError,
)
from ropeway.acl.users import open_hook
from tests.acl.hooks import HERE, MemoryStore, cluster, group, setting, signing, topic

PUB, SUB, GET = Action.PUB, Action.SUB, Action.GET


def opened(**more):
    return asyncio.run(open_hook(setting(**more)))


async def with_alice(hook):
    await hook.administration.create_user(User("alice", "hush"))
    await hook.administration.add_rules(
        Rules(
            "User:alice",
            (
                Rule("Topic:orders*", ("Pub", "Sub"), allowed=True),
                Rule("Topic:orders-secret", ("All",), allowed=False),
            ),
            (Rule("Group:*", ("Sub",), allowed=True),),
        )
    )


def test_who_signed_is_known_and_nobody_else():
    hook = opened()
    asyncio.run(with_alice(hook))
    users = hook.authenticator
    found = users.authenticate(signing("alice", "hush"), HERE)
    assert found == Principal("alice", "users", rule="user alice")
    assert isinstance(users.authenticate(signing("alice", "x"), HERE), Refused)
    assert users.authenticate(signing("bob", "hush"), HERE) is None
    assert users.authenticate(Credentials(), HERE) is None
    assert users.authenticate(signing("\u0430lice", "hush"), HERE) is None


def test_changes_count_at_once_and_old_signatures_no_more():
    told = []
    hook = opened(changed=lambda: told.append(1))
    asyncio.run(with_alice(hook))
    users, old = hook.authenticator, signing("alice", "hush")
    assert isinstance(users.authenticate(old, HERE), Principal)
    asyncio.run(hook.administration.update_user("alice", password="new"))
    assert isinstance(users.authenticate(old, HERE), Refused)
    new = signing("alice", "new")
    assert isinstance(users.authenticate(new, HERE), Principal)
    asyncio.run(hook.administration.update_user("alice", enabled=False))
    assert isinstance(users.authenticate(new, HERE), Refused)
    asyncio.run(hook.administration.delete_user("alice"))
    assert users.authenticate(new, HERE) is None
    assert len(told) >= 4


@pytest.mark.parametrize(
    ("need", "allowed"),
    [
        (topic("orders-1", PUB), True),
        (topic("orders-1", GET), False),
        (topic("orders-secret", PUB), False),
        (topic("other", SUB), False),
        (group("readers", SUB), True),
        (cluster(GET), False),
    ],
)
def test_policies_decide_and_nothing_that_matches_denies(need, allowed):
    hook = opened()
    asyncio.run(with_alice(hook))
    decision = hook.authorizer.authorize(hook.find("alice"), need, HERE)
    assert decision.allowed is allowed
    assert decision.rule


def test_principals_of_other_hooks_are_judged_where_it_is_asked_for():
    need = topic("orders-1", PUB)
    for options, outcome in (({}, None), ({"principals_of": ["tokens"]}, True)):
        hook = opened(options=options)
        asyncio.run(with_alice(hook))
        found = hook.authorizer.authorize(Principal("alice", "tokens"), need, HERE)
        assert (found.allowed if found else None) is outcome
        stranger = Principal("bob", "tokens")
        assert hook.authorizer.authorize(stranger, need, HERE) is None


@pytest.mark.parametrize(
    "options", [{"supreme": "x"}, {"principals_of": "tokens"}, {"superuser": "root"}]
)
def test_options_that_make_no_sense_are_named(options):
    with pytest.raises(HookError, match=r"allowed|ROPEWAY_SUPERUSER_PASSWORD"):
        opened(options=options)


def test_the_superuser_of_the_configuration_is_there_once():
    store = MemoryStore()
    for password in ("first", "second"):
        hook = opened(
            options={"superuser": "root"},
            store=store,
            environment={"ROPEWAY_SUPERUSER_PASSWORD": password},
            vault=VAULT,
        )
        # Who changed the password meanwhile keeps the change.
        found = hook.authenticator.authenticate(signing("root", "first"), HERE)
        assert found.super


def test_a_store_that_takes_nothing_stops_the_start_and_is_named():
    class Refusing(MemoryStore):
        async def change(self, *_):
            raise StoreError("the routes are gone")

    with pytest.raises(HookError, match="users: the routes are gone"):
        opened(
            options={"superuser": "root"},
            store=Refusing(),
            environment={"ROPEWAY_SUPERUSER_PASSWORD": "first"},
        )


class _Plain:
    """A vault that shows everything, for a test of another thing."""

    def seal(self, secret):
        return secret

    unseal = seal


VAULT = _Plain()


def test_secrets_are_sealed_where_they_are_kept():
    store = MemoryStore()
    hook = opened(store=store)
    asyncio.run(with_alice(hook))
    assert "hush" not in repr(store.kept)
    assert "hush" not in repr(hook.administration.users())
