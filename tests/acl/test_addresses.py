"""Rules for addresses match what RocketMQ's match, and nothing by accident."""

import pytest

from ropeway.acl.addresses import AddressError, parse_networks, parse_plain


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("*", ["192.0.2.1", "2001:db8::1"], []),
        ("*.*.*.*", ["192.0.2.1"], []),
        ("", [], ["192.0.2.1", ""]),
        ("192.0.2.1", ["192.0.2.1"], ["192.0.2.10", "192.0.2.11", "::1"]),
        ("10.0.*.*", ["10.0.0.0", "10.0.255.1"], ["10.1.0.0", "110.0.0.1"]),
        ("10.0.*", ["10.0.3.4"], ["10.1.3.4"]),
        ("10.0.1-3.*", ["10.0.1.9", "10.0.3.9"], ["10.0.4.9", "10.0.0.9"]),
        ("10.0.0.250-255", ["10.0.0.250", "10.0.0.255"], ["10.0.0.249"]),
        ("10.0.0.{1,7}", ["10.0.0.1", "10.0.0.7"], ["10.0.0.2"]),
        ("10.0.0.1,10.0.0.2", ["10.0.0.2"], ["10.0.0.3"]),
        ("10.0.0.0/8", ["10.200.0.1"], ["11.0.0.1"]),
        ("2001:db8::*", ["2001:db8::5"], ["2001:db9::5", "192.0.2.1"]),
        ("2001:db8::1-20", ["2001:db8::20"], ["2001:db8::21"]),
        ("1:2:3:4:5:6:7:*", ["1:2:3:4:5:6:7:8"], ["1:2:3:4:5:6:8:8"]),
        ("*.*.*.1", ["10.0.0.1"], ["10.0.0.2", "", "a client", "10.0.0"]),
    ],
)
def test_a_rule_matches_its_addresses_and_no_others(text, inside, outside):
    matches = parse_plain(text)
    assert all(matches(one) for one in inside)
    assert not any(matches(one) for one in outside)


@pytest.mark.parametrize(
    "text",
    [
        "10.0",
        "10.x.*",
        "10.0.0.256",
        "10.0.0.5-1",
        "10.0.0.{1",
        "host",
        "10.0.0.1,",
        "1.2.3.4.*",
    ],
)
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(AddressError, match="allowed"):
        parse_plain(text)


def test_networks_match_both_kinds_of_addresses():
    matches = parse_networks(["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"])
    assert matches("10.1.2.3")
    assert matches("2001:db8::9")
    assert matches("192.0.2.7")
    assert not matches("192.0.2.8")
    assert not matches("no address")
    with pytest.raises(AddressError, match="allowed"):
        parse_networks(["10.0.0.0/33"])


def test_a_rule_names_256_addresses_at_most():
    many = ",".join(f"10.0.0.{number}" for number in range(256))
    assert parse_plain(many)("10.0.0.255")
    for text in (f"{many},10.0.1.0", f"10.0.0.{{{'1,' * 256}1}}"):
        with pytest.raises(AddressError, match="allowed"):
            parse_plain(text)
