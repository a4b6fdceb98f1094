"""Addresses as text, both ways."""

import pytest

from ropeway.gateway.wire import host_port


@pytest.mark.parametrize(
    ("host", "port", "text"),
    [
        ("127.0.0.1", 9876, "127.0.0.1:9876"),
        ("broker.example.org", 0, "broker.example.org:0"),
        ("::1", 65535, "[::1]:65535"),
        ("", 1, ":1"),
    ],
)
def test_addresses_go_to_text_and_back(host: str, port: int, text: str) -> None:
    assert host_port.join(host, port) == text
    assert host_port.split(text) == (host, port)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("no address " * 30, ("no address " * 30)[:255]),
    ],
)
def test_one_client_has_a_whole_network_of_ipv6(address: str, network: str) -> None:
    assert host_port.network(address) == network


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "[::1]", "h:p"])
def test_an_address_without_a_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        host_port.split(text)


@pytest.mark.parametrize(
    ("host", "plain"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("fe80::1%eth0", "fe80::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
    ],
)
def test_a_clients_address_has_one_form(host: str, plain: str) -> None:
    assert host_port.plain_ip(host) == plain


@pytest.mark.parametrize("host", ["", "localhost", "10.0.0.7:80"])
def test_what_is_no_address_has_none(host: str) -> None:
    with pytest.raises(ValueError, match="IPv4 or IPv6"):
        host_port.plain_ip(host)
