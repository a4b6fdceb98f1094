"""What `ropeway doctor` checks on this machine."""

import socket
import tempfile
import threading
from pathlib import Path

import pytest

from ropeway.gateway.cli import checks

ACL = "[acl]\nhooks = ['users']\n"


def states(config: Path, text: str) -> list[tuple[str, str]]:
    config.write_text(text)
    return [(one.check, one.state) for one in checks.examine(config)]


@pytest.fixture
def config(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ropeway.toml"


def test_what_can_be_used_is_well(config):
    assert states(config, "[[listeners]]\nport = 0\n") == [
        ("configuration", "ok"),
        ("data", "ok"),
        ("secrets", "ok"),
        ("port", "ok"),
    ]


@pytest.mark.parametrize(("acl", "state"), [("", "warning"), (ACL, "problem")])
def test_secrets_that_everybody_can_read_are_told(config, acl, state):
    with tempfile.TemporaryDirectory(prefix="ropeway-open-") as name:
        Path(name).chmod(0o755)
        secret = Path(name, "secret")
        secret.write_text("x" * 32)
        secret.chmod(0o644)
        config.write_text(f"cluster_secret_file = '{secret}'\n{acl}")
        (found,) = (one for one in checks.examine(config) if one.check == "secrets")
    assert found.state == state
    assert f"{secret} has mode 0644" in found.text
    assert "chmod 600" in found.advice


def test_a_configuration_that_cannot_be_read_ends_it(config):
    config.write_text("brokr = 1\n")
    (found,) = checks.examine(config)
    assert (found.check, found.state) == ("configuration", "problem")
    assert "brokr" in found.text


def test_a_data_directory_that_nobody_may_write_is_a_problem(config):
    found = states(config, 'data = "ropeway.toml/data"\n[[listeners]]\nport = 0\n')
    assert ("data", "problem") in found


def test_a_port_may_be_taken_free_or_out_of_reach(config):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config.write_text(f"[[listeners]]\nport = {port}\n")
        (found,) = (one for one in checks.examine(config) if one.check == "port")
    assert found.state == "ok"
    assert "is taken" in found.text
    away = '[[listeners]]\nhost = "192.0.2.1"\nport = 0\n'
    assert ("port", "problem") in states(config, away)


def test_certificates_that_are_not_there_are_a_problem(config):
    found = states(config, '[tls]\ncertificate = "c.pem"\nkey = "k.pem"\n')
    assert ("tls", "problem") in found


def test_a_pulsar_that_does_not_answer_is_told_for_each_of_its_doors(config):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = (
            f'[pulsar]\nservice_url = "pulsar://127.0.0.1:1,127.0.0.1:{port}"\n'
            'admin_url = "http://127.0.0.1:1"\n'
        )
        found = [one[1] for one in states(config, text) if one[0] == "pulsar"]
    assert found == ["problem", "ok", "problem"]
    gone = '[pulsar]\nservice_url = "pulsar://h.invalid"\nadmin_url = "http://127.0.0.1:1"\n'
    found = [one[1] for one in states(config, gone) if one[0] == "pulsar"]
    assert found == ["problem", "problem"]


def test_what_cannot_be_read_for_pulsar_is_named(config):
    place = '[pulsar]\nadmin_url = "http://127.0.0.1:1"\n'
    for key in ("token_file", "ca_certificate"):
        config.write_text(f'{place}{key} = "absent"\n')
        found = [one for one in checks.examine(config) if one.check == "pulsar"]
        assert (found[-1].state, bool(found[-1].advice)) == ("problem", True)
        assert "No such file" in found[-1].text
    config.write_text(f'cluster = "a|b"\n{place}')
    *_, found_last = checks.examine(config)
    assert "pulsar.namespace is 'a|b'" in found_last.text


def test_a_zookeeper_says_what_it_is_where_it_may(config):
    def answer(server: socket.socket) -> None:
        for reply in (b"", b"Zookeeper version: 3\nMode: leader\nNode count: 5\n"):
            connection, _ = server.accept()
            with connection:
                if reply:
                    connection.recv(4)
                    connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        place = f"127.0.0.1:{server.getsockname()[1]}"
        config.write_text(f'routes = "zookeeper://{place},127.0.0.1:1/ropeway"\n')
        found = [one for one in checks.examine(config) if one.check == "zookeeper"]
        thread.join()
    assert found[0].text == f"ZooKeeper at {place} answers and is leader"
    assert (found[0].state, found[1].state) == ("ok", "problem")
