"""Reading the configuration: what comes first, and what errors say."""

import re
from pathlib import Path

import pytest

from ropeway.gateway.config import Config, ConfigError, ListenerConfig, TlsConfig
from ropeway.gateway.config_file import (
    load,
    parse_address,
    parse_listener,
    parse_topic,
    read,
)


def test_nothing_given_is_the_defaults():
    assert load(None, {}) == Config()


def test_the_command_line_comes_before_the_file(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text('broker = "a"\ncluster = "c"\n[log]\nflush = "sync"\n')
    config = load(path, {"broker": "b", "log": {"segment_bytes": 1 << 20}})
    assert (config.broker, config.cluster) == ("b", "c")
    assert (config.log.flush, config.log.segment_bytes) == ("sync", 1 << 20)


def test_tables_lists_and_paths_are_read():
    config = read(
        {
            "data": "here",
            "listeners": [{"port": 1}, {"host": "::1", "advertised_port": 2}],
            "tls": {"certificate": "c.pem", "key": "k.pem"},
            "log": {"retention_hours": 1},
        }
    )
    assert config.data == Path("here")
    assert config.listeners == (
        ListenerConfig(port=1),
        ListenerConfig(host="::1", advertised_port=2),
    )
    assert config.tls == TlsConfig(Path("c.pem"), Path("k.pem"))
    assert config.log.retention_hours == 1.0


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"brokr": "x"}, "brokr is not a setting; the nearest is broker"),
        (
            {"limits": {"frame_byte": 1}},
            "limits.frame_byte is not a setting; the nearest is limits.frame_bytes",
        ),
        ({"log": 5}, "log is 5; allowed: a table of settings"),
        ({"log": {"flush": "now"}}, "log.flush is 'now'; allowed: async, sync"),
        (
            {"limits": {"frame_bytes": 0}},
            "limits.frame_bytes is 0; allowed: a whole number from 1",
        ),
        (
            {"limits": {"frame_bytes": "1"}},
            "limits.frame_bytes is '1'; allowed: a whole number from 1",
        ),
        (
            {"log": {"retention_hours": 0}},
            "log.retention_hours is 0; allowed: a number above 0",
        ),
        (
            {"topics": {"auto_create": 1}},
            "topics.auto_create is 1; allowed: true or false",
        ),
        ({"data": ""}, "data is ''; allowed: a path"),
        ({"region": 7}, "region is 7; allowed: text"),
        (
            {"broker": "a b"},
            "broker is 'a b'; allowed: 1 to 127 of a-z, A-Z, 0-9, _, -, % and |",
        ),
        ({"listeners": []}, "listeners is []; allowed: a list of at least one"),
        (
            {"listeners": [{}, {"port": 65536}]},
            "listeners[1].port is 65536; allowed: a whole number from 0 to 65535",
        ),
        (
            {"log": {"retention_bytes": "all"}},
            "log.retention_bytes is 'all'; allowed: a whole number from 1",
        ),
        ({"tls": {"certificate": "c.pem"}}, "tls.key is missing"),
    ],
)
def test_errors_say_which_setting_what_came_and_what_is_allowed(settings, complaint):
    with pytest.raises(ConfigError, match=f"^{re.escape(complaint)}$"):
        read(settings)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read .*none\.toml: No such file"):
        load(tmp_path / "none.toml", {})


@pytest.mark.parametrize("content", [b"a =", b"\xff = 1"])
def test_a_file_that_is_not_toml_is_named(tmp_path, content):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"bad\.toml is not TOML: "):
        load(path, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.0.0.0:1", {"host": "0.0.0.0", "port": 1}),
        (":1", {"port": 1}),
        ("[::1]:1", {"host": "::1", "port": 1}),
        (
            "127.0.0.1:1=mq.example.com:2",
            {
                "host": "127.0.0.1",
                "port": 1,
                "advertised_host": "mq.example.com",
                "advertised_port": 2,
            },
        ),
        ("h:1=mq", {"host": "h", "port": 1, "advertised_host": "mq"}),
        (
            "[::]:1=[2001:db8::1]:2",
            {
                "host": "::",
                "port": 1,
                "advertised_host": "2001:db8::1",
                "advertised_port": 2,
            },
        ),
    ],
)
def test_listeners_are_read(text, expected):
    assert parse_listener(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "host", "host:", "host:x", "::1", "[::1:1", "[::1]1", "h:1=", "h:1=a:b"],
)
def test_what_is_no_listener_is_refused(text):
    with pytest.raises(ConfigError, match=r"allowed: HOST:PORT or "):
        parse_listener(text)


def test_an_address_is_a_listener_without_an_advertised_one():
    assert parse_address("127.0.0.1:8080") == {"host": "127.0.0.1", "port": 8080}
    assert parse_address(":0") == {"port": 0}
    assert parse_address("[::1]:1") == {"host": "::1", "port": 1}


@pytest.mark.parametrize("text", ["", "8080", "h:x", "h:1=h:2"])
def test_what_is_no_address_is_refused_with_its_form(text):
    with pytest.raises(ConfigError, match="HOST:PORT"):
        parse_address(text)


def test_a_topic_to_create_may_say_how_many_queues_it_gets():
    assert parse_topic("orders") == ("orders", 8)
    assert parse_topic("orders:16") == ("orders", 16)


@pytest.mark.parametrize(
    "text", ["", ":8", "orders:", "orders:x", "orders:-1", "a:1:2"]
)
def test_what_is_no_topic_to_create_is_refused_with_its_form(text):
    with pytest.raises(ConfigError, match="allowed: NAME or NAME:QUEUES"):
        parse_topic(text)


def test_topics_of_the_command_line_are_added_to_the_files(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text("[topics]\ncreate = { a = 1, b = 2 }\n")
    assert load(path, {"topics": {"create": {"b": 3, "c": 4}}}).topics.create == {
        "a": 1,
        "b": 3,
        "c": 4,
    }
