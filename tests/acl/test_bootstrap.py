"""The first users come from the configuration and from ACL 1.0, once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from structlog.testing import capture_logs

from ropeway.acl.administration import Rule, User
from ropeway.acl.api import Action, Hook, HookError
from ropeway.acl.bootstrap import PASSWORD_VARIABLE
from ropeway.acl.users import open_hook
from ropeway.acl.vault import FernetVault, new_key
from tests.acl.hooks import (
    HERE,
    RULES,
    SECRET,
    MemoryStore,
    group,
    setting,
    signing,
    topic,
)

PUB, SUB, GET = Action.PUB, Action.SUB, Action.GET


def opened(options, **more):
    return asyncio.run(open_hook(setting(options=options, **more)))


def test_accounts_become_users_with_the_same_permissions(tmp_path):
    path = tmp_path / "plain_acl.yml"
    path.write_text(RULES)
    hook = opened({"migrate_from": str(path)})
    found = hook.authenticator.authenticate(signing("RocketMQ", SECRET), HERE)
    for need, allowed in (
        (topic("orders", PUB), True),
        (topic("prices", PUB), False),
        (topic("prices", SUB), True),
        (topic("other", SUB), False),
        (group("readers", SUB), True),
        (group("closed", SUB), False),
        (topic("orders", GET), True),
    ):
        assert hook.authorizer.authorize(found, need, HERE).allowed is allowed
    assert hook.find("rocketmq2").super


def test_who_is_there_stays_as_it_is(tmp_path):
    path = tmp_path / "plain_acl.yml"
    path.write_text(RULES)
    given = setting(options={"migrate_from": str(path)})

    async def main():
        hook = await open_hook(given)
        await hook.administration.update_user("RocketMQ", password="changed")
        await hook.administration.delete_rules("User:RocketMQ")
        again = await open_hook(given)
        assert again.authenticator.authenticate(signing("RocketMQ", "changed"), HERE)
        assert again.administration.rules().get("User:RocketMQ") is None

    with capture_logs() as logs:
        asyncio.run(main())
    migrated = [one["users"] for one in logs if "migrated" in one["event"]]
    assert migrated == [["RocketMQ", "rocketmq2"], []]


def test_an_account_whose_rules_make_no_sense_may_do_nothing(tmp_path):
    path = tmp_path / "plain_acl.yml"
    path.write_text(RULES.replace("orders=PUB|SUB", "\u043erders=PUB"), "utf-8")
    with capture_logs() as logs:
        hook = opened({"migrate_from": str(path)})
    assert any("may do nothing" in one["event"] for one in logs)
    who = hook.find("RocketMQ")
    assert not hook.authorizer.authorize(who, topic("prices", SUB), HERE).allowed


def test_the_superuser_has_its_password_from_a_file(tmp_path):
    path = tmp_path / "password"
    path.write_text("hush-hush\n")
    options = {"superuser": "root", "superuser_password_file": str(path)}
    hook = opened(options)
    assert hook.administration.users() == {
        "root": User("root", "hush-hush", super=True)
    }


def test_users_that_another_key_has_encrypted_are_told_and_can_be_deleted():
    async def main() -> None:
        store, password = MemoryStore(), {PASSWORD_VARIABLE: "hush-hush"}

        def opening(superuser: str, vault: FernetVault) -> Coroutine[Any, Any, Hook]:
            options, more = {"superuser": superuser}, {"environment": password}
            return open_hook(setting(options=options, store=store, vault=vault, **more))

        old, new = new_key(), new_key()
        await opening("root", FernetVault([old]))
        with pytest.raises(HookError, match="root is kept and cannot be read"):
            await opening("root", FernetVault([new]))
        hook = await opening("root", FernetVault([new, old]))
        assert hook.find("root")

        other = await opening("other", FernetVault([new]))
        await other.administration.delete_user("root")
        assert (await opening("root", FernetVault([new]))).find("root")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"superuser": "root"}, "has no password"),
        ({"superuser": "root", "superuser_password_file": "no"}, "cannot read no"),
        ({"migrate_from": "no.yml"}, "cannot read no.yml"),
    ],
)
def test_what_is_missing_is_said(options, complaint):
    with pytest.raises(HookError, match=complaint):
        opened(options)


def test_a_password_is_read_as_utf_8_whatever_the_locale(tmp_path):
    path = tmp_path / "password"
    options = {"superuser": "root", "superuser_password_file": str(path)}
    path.write_bytes("şifre-µ\n".encode())
    assert opened(options).administration.users()["root"].password == "şifre-µ"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(HookError, match="not UTF-8"):
        opened(options)


def test_a_cluster_without_a_superuser_is_told_so():
    with capture_logs() as logs:
        opened({})
    assert "no superuser" in logs[0]["event"]


def test_rules_read_as_people_write_them(tmp_path):
    path = tmp_path / "plain_acl.yml"
    path.write_text(RULES)
    hook = opened({"migrate_from": str(path)})
    rules = hook.administration.rules()["User:RocketMQ"]
    assert Rule("Group:closed", ("All",), allowed=False) in rules.custom
    assert rules.default[0] == Rule("Topic:*", ("All",), allowed=False)
