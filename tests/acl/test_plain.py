"""ACL 1.0 lets in who signed, for what the file says, and follows the file."""

import asyncio

import msgspec
import pytest
from structlog.testing import capture_logs

import ropeway.acl.plain
from ropeway.acl.api import (
    Action,
    Channel,
    Credentials,
    HookError,
    Principal,
    Refused,
    Source,
)
from ropeway.acl.plain import open_hook
from tests.acl.hooks import HERE, RULES, SECRET, cluster, group, setting, signing, topic
from tests.remoting import until

PUB, SUB, GET, CREATE = Action.PUB, Action.SUB, Action.GET, Action.CREATE


def with_hook(tmp_path, check, text=RULES):
    """Run a check with the hook, and the file that it follows."""
    path = tmp_path / "plain_acl.yml"
    path.write_text(text)
    changes = []

    async def main():
        given = setting("plain", {"file": str(path)}, changed=lambda: changes.append(1))
        hook = open_hook(given)
        try:
            await check(hook.authenticator, path, changes)
        finally:
            await hook.close()

    asyncio.run(main())


def test_who_signed_is_known_and_nobody_else(tmp_path):
    async def check(plain, *_):
        found = plain.authenticate(signing("RocketMQ", SECRET), HERE)
        assert isinstance(found, Principal)
        assert (found.name, found.super) == ("RocketMQ", False)
        assert plain.authenticate(signing("rocketmq2", "other-secret"), HERE).super
        wrong = plain.authenticate(signing("RocketMQ", "wrong"), HERE)
        assert isinstance(wrong, Refused)
        assert SECRET not in f"{wrong}"
        assert plain.authenticate(signing("nobody", SECRET), HERE) is None
        assert plain.authenticate(Credentials(), HERE) is None
        # A look-alike: the o's are Cyrillic.
        assert plain.authenticate(signing("R\u043ecketMQ", SECRET), HERE) is None

    with_hook(tmp_path, check)


def test_white_addresses_are_let_in_unsigned(tmp_path):
    async def check(plain, *_):
        friend = Source("10.10.103.5", Channel.REMOTING)
        assert plain.authenticate(Credentials(), friend).super
        office = Source("198.51.100.9", Channel.REMOTING)
        assert plain.authenticate(Credentials(access_key="RocketMQ"), office).super
        assert plain.authenticate(Credentials(), office) is None

    with_hook(tmp_path, check)


@pytest.mark.parametrize(
    ("need", "allowed"),
    [
        (topic("orders", PUB), True),
        (topic("orders", GET), True),
        (topic("prices", SUB), True),
        (topic("prices", PUB), False),
        (topic("prices", PUB, SUB), True),
        (topic("prices", SUB, GET), True),
        (topic("notices", GET), True),
        # What shows messages is for consumers.
        (topic("notices", SUB, GET), False),
        (topic("notices", PUB, SUB, GET), True),
        (topic("secret", SUB), False),
        (topic("secret", GET), False),
        (topic("orders", CREATE), False),
        (topic("notices", SUB, CREATE), False),
        (topic("*", Action.LIST), False),
        (group("any", SUB), True),
        (group("closed", SUB), False),
        (cluster(GET), False),
    ],
)
def test_permissions_are_those_of_the_file(tmp_path, need, allowed):
    async def check(plain, *_):
        who = plain.find("RocketMQ")
        assert plain.authorize(who, need, HERE).allowed is allowed
        assert plain.authorize(Principal("RocketMQ", "tokens"), need, HERE) is None

    with_hook(tmp_path, check)


def test_what_is_for_admins_says_so(tmp_path):
    async def check(plain, *_):
        refused = plain.authorize(plain.find("RocketMQ"), topic("orders", CREATE), HERE)
        assert refused.remark == "only an account with admin may"

    with_hook(tmp_path, check)


def test_a_changed_file_counts_and_a_broken_one_does_not(tmp_path):
    async def check(plain, path, changes):
        old = signing("RocketMQ", SECRET)
        for broken in (RULES[:150], "accounts: [", ""):
            path.write_text(broken)
            await plain.look_again()
            assert isinstance(plain.authenticate(old, HERE), Principal)
        path.unlink()
        await plain.look_again()
        assert isinstance(plain.authenticate(old, HERE), Principal)
        assert not changes
        path.write_text(RULES.replace(SECRET, "new-secret"))
        await plain.look_again()
        assert changes
        # What was signed before the change of keys is worth nothing.
        assert isinstance(plain.authenticate(old, HERE), Refused)
        assert plain.authenticate(signing("RocketMQ", "new-secret"), HERE)

    with_hook(tmp_path, check)


def test_a_changed_file_is_written_to_the_audit_log_without_secrets(tmp_path):
    async def check(plain, path, _):
        with capture_logs() as logs:
            await plain.look_again()
            path.write_text(
                RULES.replace(SECRET, "new-secret").replace("- closed", "- x")
            )
            for _ in range(2):
                await plain.look_again()
        (line,) = logs
        assert (line["event"], line["request"]) == ("changed", "ACCESS_FILE")
        assert line["resource"] == str(path)
        before, after = (line[one]["accounts"] for one in ("before", "after"))
        assert before["rocketmq2"] == after["rocketmq2"]
        assert before["RocketMQ"]["groupPerms"] == {"closed": "DENY"}
        assert after["RocketMQ"]["groupPerms"] == {"x": "DENY"}
        assert after["RocketMQ"]["secret"] == "another"
        assert not any(
            one in str(logs) for one in (SECRET, "new-secret", "other-secret")
        )

    with_hook(tmp_path, check)


def test_an_account_that_is_gone_may_do_nothing(tmp_path):
    async def check(plain, path, _):
        who = plain.find("RocketMQ")
        path.write_text("accounts: []\n")
        await plain.look_again()
        assert not plain.authorize(who, topic("orders", PUB), HERE).allowed

    with_hook(tmp_path, check)


@pytest.mark.parametrize("options", [{}, {"file": 7}, {"file": "x", "more": 1}])
def test_options_that_make_no_sense_are_named(options):
    with pytest.raises(HookError, match="allowed"):
        open_hook(setting("plain", options))


def test_a_file_that_cannot_be_used_at_the_start_stops_it(tmp_path):
    with pytest.raises(HookError, match="cannot read"):
        open_hook(setting("plain", {"file": str(tmp_path / "no.yml")}))


def test_a_principal_can_travel():
    who = Principal("a", "plain", super=True, roles=("x",))
    text = msgspec.json.encode(who)
    assert msgspec.json.decode(text, type=Principal) == who


def test_a_hook_that_is_closed_follows_its_file_no_more(tmp_path):
    path = tmp_path / "plain_acl.yml"
    path.write_text(RULES)

    async def main():
        hook = open_hook(setting("plain", {"file": str(path)}))
        assert len(asyncio.all_tasks()) == 2
        await hook.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_file_is_followed_at_its_pace(tmp_path, monkeypatch):
    # Not before the test has looked, however busy the machine is.
    monkeypatch.setattr("ropeway.acl.plain._LOOK_EVERY_S", 3600.0)
    old, new = signing("RocketMQ", SECRET), signing("RocketMQ", "new-secret")

    async def check(plain, path, changes):
        following = asyncio.ensure_future(plain.follow())
        path.write_text(RULES.replace(SECRET, "new-secret"))
        await asyncio.sleep(0.05)
        assert isinstance(plain.authenticate(old, HERE), Principal)
        following.cancel()
        monkeypatch.setattr("ropeway.acl.plain._LOOK_EVERY_S", 0.001)
        following = asyncio.ensure_future(plain.follow())
        for secret in (SECRET, "a-third-secret"):
            count = len(changes)
            await until(lambda count=count: len(changes) > count)
            path.write_text(RULES.replace(SECRET, secret))
        await until(
            lambda: isinstance(
                plain.authenticate(signing("RocketMQ", "a-third-secret"), HERE),
                Principal,
            )
        )
        assert isinstance(plain.authenticate(new, HERE), Refused)
        following.cancel()

    with_hook(tmp_path, check)


def test_a_file_is_followed_after_a_fault_that_nobody_foresaw(tmp_path, monkeypatch):
    monkeypatch.setattr("ropeway.acl.plain._LOOK_EVERY_S", 0.001)
    faults = iter([ValueError("a fault of this test")])
    look = ropeway.acl.plain._look

    def failing(path):
        for one in faults:
            raise one
        return look(path)

    async def check(plain, path, changes):
        monkeypatch.setattr("ropeway.acl.plain._look", failing)
        with capture_logs() as logs:
            following = asyncio.ensure_future(plain.follow())
            path.write_text(RULES.replace(SECRET, "new-secret"))
            await until(lambda: changes)
            following.cancel()
        told = [one for one in logs if one["log_level"] == "error"]
        assert [one["event"] for one in told] == ["access rules stay as they were"]

    with_hook(tmp_path, check)
