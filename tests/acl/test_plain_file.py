"""plain_acl.yml is understood as it is, and what is not one changes nothing."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ropeway.acl.plain_file import (
    MAX_BYTES,
    MAX_DEPTH,
    PUB,
    SUB,
    RuleFileError,
    parse,
    read,
)
from tests.acl.hooks import RULES


def test_the_file_of_rocketmq_is_understood():
    rules = parse(RULES.encode())
    account = rules.accounts["RocketMQ"]
    assert account.topics == {"orders": PUB | SUB, "prices": SUB, "notices": PUB}
    assert account.groups == {"closed": 0}
    assert (account.default_topic, account.default_group) == (0, SUB)
    assert account.white("198.51.100.9")
    assert not account.admin
    assert rules.accounts["rocketmq2"].admin
    ((text, matches),) = rules.white
    assert (text, matches("10.10.103.5"), matches("10.10.104.5")) == (
        "10.10.103.*",
        True,
        False,
    )


def test_an_account_does_not_show_its_secret():
    assert "12345678" not in repr(parse(RULES.encode()))


def test_a_bomb_of_aliases_is_refused_before_it_grows():
    layers = "\n".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)
    )
    began = time.monotonic()
    with pytest.raises(RuleFileError, match="aliases"):
        parse(f"a0: &a0 [x]\n{layers}\n".encode())
    with pytest.raises(RuleFileError, match="of what is not there yet"):
        parse(b"accounts: &a [*a]")
    assert time.monotonic() - began < 30


def test_aliases_count_all_values_that_they_stand_for():
    values = ", ".join(["x"] * 998)
    for aliases, complaint in ((8, "accounts"), (10, "aliases")):
        more = ", ".join(["*a"] * aliases)
        text = f"a: &a [{values}]\nb: [{more}]\naccounts: 7\n"
        with pytest.raises(RuleFileError, match=complaint):
            parse(text.encode())


def test_aliases_and_merges_are_read_as_yaml_has_them():
    rules = parse(
        b"accounts:\n"
        b"- &one {accessKey: account-1, secretKey: hush-hush, topicPerms: &p [a=PUB]}\n"
        b"- {<<: *one, accessKey: account-2}\n"
        b"- {accessKey: account-3, secretKey: hush-hush, topicPerms: *p}\n"
    )
    assert [one.topics for one in rules.accounts.values()] == [{"a": PUB}] * 3
    assert rules.accounts["account-2"].secret == b"hush-hush"


def test_deep_and_large_files_are_refused():
    with pytest.raises(RuleFileError, match="deeper"):
        parse(b"accounts: " + b"[" * 5000 + b"]" * 5000)
    with pytest.raises(RuleFileError, match="allowed: 1048576"):
        parse(b"#" * (MAX_BYTES + 1))


def test_no_object_of_python_is_made():
    with pytest.raises(RuleFileError):
        parse(b"accounts: !!python/object/apply:os.system ['exit 3']")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty"),
        ("[]", "empty"),
        ("accounts: 7", "not a file of rules"),
        ("accounts:\n- secretKey: abcdefgh", "accessKey"),
        ("accounts:\n- {accessKey: abcdefg, secretKey: short}", "more than 6"),
        ("accounts:\n- {accessKey: short, secretKey: abcdefgh}", "more than 6"),
        ("accounts:\n- accessKey: 'broken\n  secretKey: hush-hush", "line"),
        ("globalWhiteRemoteAddresses: [nowhere]", "allowed: "),
    ],
)
def test_what_is_wrong_is_said_without_a_secret(text, complaint):
    with pytest.raises(RuleFileError, match=complaint) as raised:
        parse(text.encode())
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "permission"),
    [
        ("orders=PUB", PUB),
        ("orders==PUB", PUB),
        ("orders= SUB|PUB", PUB | SUB),
        # RocketMQ takes for DENY what is none of its own.
        *((f"orders={one}", 0) for one in ("ALL", "ANY", "pub", "PUB|SUB|DENY")),
        *((one, None) for one in ("orders", "=PUB", "orders=", "a=PUB=SUB", "' =PUB'")),
    ],
)
def test_permissions_are_one_of_few(change, permission):
    text = RULES.replace("- orders=PUB|SUB", f"- {change}")
    if permission is None:
        with pytest.raises(RuleFileError, match="allowed"):
            parse(text.encode())
    else:
        with capture_logs() as logs:
            found = parse(text.encode()).accounts["RocketMQ"].topics["orders"]
        assert found == permission
        assert bool(logs) == (not permission)


def account(key: str, value: str) -> bytes:
    """A file with one account, and what it says of one key."""
    said = {"accessKey": "account-1", "secretKey": "hush-hush", key: value}
    lines = "\n  ".join(map(": ".join, said.items()))
    return f"accounts:\n- {lines}\n".encode()


def one_of(rules):
    (found,) = rules.accounts.values()
    return found


@pytest.mark.parametrize(
    ("written", "secret", "is_said"),
    [
        ("12345678", "12345678", False),
        ("-1234567", "-1234567", False),
        ("'01234567'", "01234567", False),
        ("abcdefg", "abcdefg", False),
        ("0123abcd", "0123abcd", False),
        ("01234567", "01234567", True),
        ("0x12345678", "0x12345678", True),
        ("1_234_567", "1_234_567", True),
        ("12345678.5", "12345678.5", True),
        ("1e5000000", "1e5000000", True),
        ("190:20:30", "190:20:30", True),
        ("2024-01-01", "2024-01-01", True),
    ],
)
@pytest.mark.parametrize("key", ["accessKey", "secretKey"])
def test_a_plain_value_is_the_text_that_stands_there(key, written, secret, is_said):
    with capture_logs() as logs:
        found = one_of(parse(account(key, written)))
    assert (found.name if key == "accessKey" else found.secret.decode()) == secret
    assert bool(logs) == is_said
    assert secret not in str(logs)


@pytest.mark.parametrize("nothing", ["null", "~", "", "NULL"])
def test_a_key_that_is_nothing_is_refused(nothing):
    for key in ("accessKey", "secretKey"):
        with pytest.raises(RuleFileError):
            parse(account(key, nothing))


@pytest.mark.parametrize(
    ("written", "admin"),
    [
        *((one, True) for one in ("true", "TRUE", "yes", "on", "'true'")),
        *((one, False) for one in ("false", "no", "OFF", "", "~", '"false"')),
        *((one, None) for one in ("1", "0", "y", "maybe", "[true]")),
    ],
)
def test_who_is_admin_is_said_by_true_or_false(written, admin):
    if admin is None:
        with pytest.raises(RuleFileError):
            parse(account("admin", written))
    else:
        assert one_of(parse(account("admin", written))).admin is admin


def test_accounts_as_rocketmqs_tools_write_them_are_read():
    tagged = b"- !!org.apache.rocketmq.common.PlainAccessConfig\n  accessKey"
    rules = parse(account("admin", "true").replace(b"- accessKey", tagged))
    assert one_of(rules).admin


def test_an_account_stands_there_once():
    twice = RULES + "- {accessKey: RocketMQ, secretKey: another-one}\n"
    with pytest.raises(RuleFileError, match="twice"):
        parse(twice.encode())


@given(st.integers(0, len(RULES) - 1))
def test_a_half_written_file_is_refused_or_gives_nobody_more(cut):
    """Whatever is cut off, no account gets what it does not have in the whole file."""
    try:
        rules = parse(RULES[:cut].encode())
    except RuleFileError:
        return
    whole = parse(RULES.encode())
    for name, account in rules.accounts.items():
        had = whole.accounts.get(name)
        assert had is not None
        assert not account.admin or had.admin
        for topic, permission in account.topics.items():
            assert permission | had.topics[topic] == had.topics[topic]


@given(st.binary(max_size=200))
def test_garbage_raises_nothing_else(data):
    with contextlib.suppress(RuleFileError):
        parse(data)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RuleFileError, match=r"no\.yml"):
        read(tmp_path / "no.yml")


def test_many_accounts_are_not_deep_and_depth_has_a_limit():
    accounts = [
        f"- {{accessKey: account-{n}, secretKey: secret-of-it, topicPerms: [a=PUB]}}"
        for n in range(5 * MAX_DEPTH)
    ]
    rules = parse("\n".join(["accounts:", *accounts]).encode())
    assert len(rules.accounts) == 5 * MAX_DEPTH
    for depth, complaint in (
        (MAX_DEPTH, "not a file of rules"),
        (MAX_DEPTH + 1, "deeper"),
    ):
        nested = "[" * (depth - 1) + "]" * (depth - 1)
        with pytest.raises(RuleFileError, match=complaint):
            parse(f"accounts: {nested}".encode())
