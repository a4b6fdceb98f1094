"""Files with secrets that others can read are found, and refused with access control.

They lie in a directory that everybody may enter: one that is closed keeps them, too.
"""

import asyncio
import base64
import os

import pytest

from ropeway.gateway import secret_files
from ropeway.gateway.app import App
from ropeway.gateway.config import (
    AclConfig,
    Config,
    ConfigError,
    TlsConfig,
    ZooKeeperConfig,
)
from ropeway.gateway.pulsar_config import OAuth2Config, PulsarConfig
from tests import remoting
from tests.acl.hooks import RULES


def put(path, mode, text=RULES):
    path.write_text(text)
    path.chmod(mode)
    return path


def guarded(public, rules, **acl):
    hooks = AclConfig(hooks=("plain",), options={"plain": {"file": str(rules)}}, **acl)
    return remoting.config(public / "data", acl=hooks)


def start(config):
    async def main():
        async with App(config):
            pass

    asyncio.run(main())


def test_a_node_with_access_control_refuses_secrets_that_others_can_read(
    public,
):
    rules = put(public / "plain_acl.yml", 0o644)
    complaint = r"acl.options.plain.file: .*plain_acl.yml has mode 0644.*allowed: 0600"
    with pytest.raises(ConfigError, match=complaint):
        start(guarded(public, rules))
    rules.chmod(0o640)
    start(guarded(public, rules))


def test_without_access_control_or_in_a_dry_run_it_says_so_and_starts(public, capsys):
    rules = put(public / "plain_acl.yml", 0o644)
    start(guarded(public, rules, dry_run=True))
    assert "plain_acl.yml has mode 0644" in capsys.readouterr().out
    secret = put(public / "secret", 0o644, "x" * 32)
    start(remoting.config(public / "data", cluster_secret_file=secret))
    assert "cluster_secret_file: " in capsys.readouterr().out


def test_every_file_with_secrets_is_looked_at(public):
    names = ["cluster", "tls", "token", "password", "client", "keys", "admin", "hmac"]
    names += ["pulsar", "pulsar password", "credentials"]
    at = {name: put(public / name, 0o644, "x") for name in names}
    certificate = put(public / "certificate", 0o644, "x")
    put(public / "routes.db", 0o644, "")
    options = {
        "users": {"superuser": "root", "superuser_password_file": str(at["admin"])},
        "pulsar": {
            "token_secret_key": at["hmac"].as_uri(),
            "ca_certificate": str(public),
            "refresh_s": 1.0,
        },
        "other": {"key": "data:;base64," + base64.b64encode(b"x" * 999).decode()},
    }
    config = Config(
        data=public,
        tls=TlsConfig(certificate=certificate, key=at["tls"]),
        pulsar=PulsarConfig(
            service_url="",
            admin_url="",
            token_file=at["token"],
            key=at["pulsar"],
            password_file=at["pulsar password"],
            oauth2=OAuth2Config(issuer_url="", credentials_file=at["credentials"]),
            ca_certificate=certificate,
        ),
        zookeeper=ZooKeeperConfig(
            password_file=at["password"], key=at["client"], ca_certificate=certificate
        ),
        acl=AclConfig(hooks=tuple(options), options=options, key_file=at["keys"]),
        cluster_secret_file=at["cluster"],
    )
    found = {one.path.name for one in secret_files.exposed(config) if one.to_others}
    assert found == {*names, "routes.db"}


def test_a_link_counts_as_what_it_leads_to(public):
    """Kubernetes mounts secrets as links with mode 0777."""
    (public / "..data").mkdir()
    link = public / "secret"
    link.symlink_to(put(public / "..data" / "secret", 0o400, "x"))
    assert list(secret_files.exposed(Config(cluster_secret_file=link))) == []
    link.resolve().chmod(0o440)
    (one,) = secret_files.exposed(Config(cluster_secret_file=link))
    assert (one.mode, one.to_others) == (0o440, False)
    link.resolve().chmod(0o444)
    (one,) = secret_files.exposed(Config(cluster_secret_file=link))
    assert (one.mode, one.to_others) == (0o444, True)


def test_a_file_that_a_group_gives_to_the_node_is_as_it_should_be(public, monkeypatch):
    """Kubernetes mounts secrets as root's, for the pod's group."""
    secret = put(public / "secret", 0o440, "x" * 32)
    config = Config(public / "data", cluster_secret_file=secret)
    owner = secret.stat()
    monkeypatch.setattr(os, "getegid", lambda: owner.st_gid)
    assert [one.path for one in secret_files.exposed(config)] == [secret]
    monkeypatch.setattr(os, "geteuid", lambda: owner.st_uid + 1)
    assert [*secret_files.exposed(config)] == []
    secret.chmod(0o444)
    assert [one.to_others for one in secret_files.exposed(config)] == [True]


def test_a_closed_directory_keeps_what_is_in_it(public):
    closed = public / "closed"
    closed.mkdir(0o700)
    secret = put(closed / "secret", 0o644, "x")
    assert list(secret_files.exposed(Config(cluster_secret_file=secret))) == []
