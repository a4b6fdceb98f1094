"""plain_acl.yml is understood as it is, and what is not one changes nothing."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acl.plain_file import MAX_BYTES, PUB, SUB, RuleFileError, parse, read
from tests.acl.hooks import RULES


def test_the_file_of_rocketmq_is_understood():
    rules = parse(RULES.encode())
    account = rules.accounts["RocketMQ"]
    assert account.topics == {"orders": PUB | SUB, "prices": SUB}
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
    assert time.monotonic() - began < 30


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
    "change", ["orders=PUB", "orders=ALL", "orders", "=PUB", "orders=PUB|SUB|DENY"]
)
def test_permissions_are_one_of_few(change):
    text = RULES.replace("- orders=PUB|SUB", f"- {change}")
    if change == "orders=PUB":
        assert parse(text.encode()).accounts["RocketMQ"].topics["orders"] == PUB
    else:
        with pytest.raises(RuleFileError, match="allowed"):
            parse(text.encode())


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
