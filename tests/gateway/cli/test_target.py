"""Which cluster a command talks to, and as whom."""

import subprocess
import sys
import time

import pytest

from ropeway.client import Credentials
from ropeway.client.tls import TlsFiles
from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.context_file import Context, Contexts
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.target import (
    NO_SECRET,
    choose,
    name_servers,
    secret_in,
    target,
)
from ropeway.testing import running_gateway
from tests.system.process import stopped
from tests.waiting import WAIT_S

STALL_S = 4.0
"""Longer than clients wait for an answer by default."""


@pytest.fixture
def saved() -> None:
    """Two contexts; `test` is the current one."""
    prod = Context(name_server="prod:1", access_key="ops", secret_key="a")
    test = Context(name_server="test:1", token="t", tls_ca="/ca", output="json")
    context_file.save(Contexts("test", {"prod": prod, "test": test}))


def test_without_anything_it_is_a_node_on_this_machine_and_nobody_asks():
    found = target(choose({}))
    assert (found.name_server, found.credentials, found.tls) == (
        "127.0.0.1:9876",
        None,
        None,
    )


@pytest.mark.usefixtures("saved")
@pytest.mark.parametrize(
    ("options", "environment", "name_server", "source"),
    [
        ({}, {}, "test:1", "context test"),
        ({}, {"ROPEWAY_CONTEXT": "prod"}, "prod:1", "context prod"),
        ({}, {"ROPEWAY_NAME_SERVER": "env:1"}, "env:1", "environment"),
        ({"context": "prod"}, {"ROPEWAY_NAME_SERVER": "e:1"}, "prod:1", "context prod"),
        ({"context": "prod"}, {"ROPEWAY_CONTEXT": "test"}, "prod:1", "context prod"),
        (
            {"context": "prod", "name_server": "o:1"},
            {"ROPEWAY_NAME_SERVER": "e:1"},
            "o:1",
            "option",
        ),
    ],
)
def test_the_strongest_place_wins(
    monkeypatch, options, environment, name_server, source
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = choose(options)["name_server"]
    assert (found.value, found.source) == (name_server, source)


@pytest.mark.usefixtures("saved")
def test_each_setting_is_chosen_by_itself():
    found = target(choose({"name_server": "other"}))
    assert found.name_server == "other:9876"
    assert found.credentials == Credentials(access_key="t", secret_key=NO_SECRET)
    assert found.tls == TlsFiles(ca="/ca")


@pytest.mark.usefixtures("saved")
def test_a_token_and_keys_in_two_places_are_no_conflict(monkeypatch, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s\n")
    keys = {"access_key": "alice", "secret_key_file": str(secret)}
    alice = Credentials(access_key="alice", secret_key="s")
    assert target(choose(keys)).credentials == alice
    monkeypatch.setenv("ROPEWAY_TOKEN", "env-token")
    found = target(choose({"context": "prod"})).credentials
    assert found == Credentials(access_key="ops", secret_key="a")
    found = target(choose({"context": "prod", "token_file": str(secret)})).credentials
    assert found == Credentials(access_key="s", secret_key=NO_SECRET)


def test_a_secret_of_the_environment_goes_with_an_access_key_of_an_option(monkeypatch):
    monkeypatch.setenv("ROPEWAY_SECRET_KEY", "s")
    found = target(choose({"access_key": "alice"})).credentials
    assert found == Credentials(access_key="alice", secret_key="s")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"access_key": "a"}, "go together"),
        ({"secret_key_file": __file__}, "go together"),
        ({"access_key": "a", "token_file": __file__}, "both given"),
        ({"tls_key": "k"}, "without --tls-cert"),
        ({"context": "none"}, "context 'none' does not exist; there are: none"),
        ({"token_file": "/none"}, "no secret can be read from /none"),
    ],
)
def test_what_does_not_fit_together_is_refused(options, said):
    with pytest.raises(MisusedError, match=said):
        target(choose(options))


@pytest.mark.parametrize(
    ("name", "value"), [("ROPEWAY_TLS", "perhaps"), ("ROPEWAY_OUTPUT", "xml")]
)
def test_a_wrong_value_of_the_environment_is_refused(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(MisusedError, match=f"{name} is '{value}'; allowed"):
        choose({})


@pytest.mark.parametrize(
    ("options", "environment", "files"),
    [
        ({}, "", None),
        ({"tls": True}, "", TlsFiles()),
        ({}, "true", TlsFiles()),
        ({"tls_ca": "/ca"}, "", TlsFiles(ca="/ca")),
        ({"tls_ca": "/ca"}, "0", None),
        ({"tls_ca": "/ca", "tls": False}, "1", None),
        (
            {"tls_cert": "/c", "tls_key": "/k"},
            "",
            TlsFiles(certificate="/c", key="/k"),
        ),
    ],
)
def test_tls_is_spoken_where_it_is_asked_for_or_implied(
    monkeypatch, options, environment, files
):
    monkeypatch.setenv("ROPEWAY_TLS", environment)
    assert target(choose(options)).tls == files


@pytest.mark.parametrize(
    ("given", "complete"),
    [
        ("127.0.0.1", "127.0.0.1:9876"),
        ("mq-1:9000", "mq-1:9000"),
        ("a; b:1;", "a:9876;b:1"),
        ("[::1]", "[::1]:9876"),
        ("[::1]:9000", "[::1]:9000"),
    ],
)
def test_name_servers_have_a_port(given, complete):
    assert name_servers(given) == complete


@pytest.mark.parametrize(
    "given", ["", ";", "a:", "a:b", "a:0", "a:65536", "::1", "a:1,b:2", "a b", "h/p:1"]
)
def test_what_is_no_address_is_refused_with_what_is_allowed(given):
    with pytest.raises(MisusedError, match="allowed: HOST"):
        name_servers(given)


@pytest.mark.parametrize("text", [b"", b"\n", b"\xff"])
def test_a_file_without_a_secret_is_refused(tmp_path, text):
    file = tmp_path / "secret"
    file.write_bytes(text)
    with pytest.raises(MisusedError, match="no secret can be read"):
        secret_in(str(file))


def test_spark_gets_the_same(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s")
    options = {"access_key": "a", "secret_key_file": str(secret), "tls_ca": "/ca"}
    assert target(choose(options)).source_options() == {
        "nameServer": "127.0.0.1:9876",
        "accessKey": "a",
        "secretKey": "s",
        "tls": "true",
        "tlsCa": "/ca",
    }


@pytest.mark.slow
def test_commands_wait_for_a_gateway_that_stands_still_for_some_seconds(monkeypatch):
    with running_gateway(topics=["orders"]) as gateway:
        monkeypatch.setenv("ROPEWAY_NAME_SERVER", gateway.name_server)
        assert gateway.pid is not None
        with stopped(gateway.pid):
            commands = [
                subprocess.Popen(
                    [sys.executable, "-m", "ropeway.gateway.cli.main", *words],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                for words in (["topic", "list"], ["produce", "orders", "hello"])
            ]
            # Not a wait for something: this is the fault.
            time.sleep(STALL_S)
        for one in commands:
            said, _ = one.communicate(timeout=WAIT_S)
            assert one.returncode == 0, said
