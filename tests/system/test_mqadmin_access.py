"""mqadmin's user and acl sub-commands, signed by a superuser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.acl.vault import new_key
from ropeway.testing import running_gateway
from tests.system.administration import MqAdmin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECRET = "hush-hush-hush"
SETTINGS = """\
[acl]
hooks = ["users"]
key_file = "{folder}/key"
[acl.options.users]
superuser = "root"
superuser_password_file = "{folder}/password"
"""
pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def mqadmin(tmp_path_factory) -> Iterator[Callable[[str], str]]:
    """Mqadmin as the superuser; {b} in a line stands for the broker."""
    folder = tmp_path_factory.mktemp("mqadmin")
    (folder / "key").write_text(new_key())
    (folder / "password").write_text(SECRET)
    (folder / "ropeway.toml").write_text(SETTINGS.format(folder=folder))
    (folder / "conf").mkdir()
    tools = f"accessKey: root\nsecretKey: {SECRET}\n"
    (folder / "conf" / "tools.yml").write_text(tools)
    options = ["--config", f"{folder}/ropeway.toml"]
    with running_gateway(options=options) as gateway, MqAdmin(folder) as admin:
        address = gateway.name_server
        yield lambda line: admin(line.format(b=address), address)


def cells(printed: str) -> list[list[str]]:
    """The lines of a table, by words."""
    return [
        line.split()
        for line in printed.splitlines()
        if line.strip() and not line.startswith("#")
    ]


@pytest.mark.mqadmin(
    "createUser", "updateUser", "getUser", "listUser", "deleteUser", "copyUser"
)
def test_users_are_made_changed_shown_and_deleted(mqadmin):
    made = mqadmin("createUser -b {b} -u alice -p first-secret -t Normal")
    assert "create user to" in made
    assert "success" in made
    shown = mqadmin("getUser -b {b} -u alice")
    assert "alice" in shown
    assert "Normal" in shown
    assert "enable" in shown
    # Who may copy users has to read their passwords.
    assert "first-secret" in shown
    assert "success" in mqadmin("updateUser -b {b} -u alice -s disable")
    assert "disable" in mqadmin("getUser -b {b} -u alice")
    listed = mqadmin("listUser -b {b}")
    assert {"alice", "root"} <= {line[0] for line in cells(listed)}
    assert "Exception" not in mqadmin("copyUser -f {b} -t {b}")
    assert "success" in mqadmin("deleteUser -b {b} -u alice")
    assert "alice" not in mqadmin("listUser -b {b}")


@pytest.mark.mqadmin(
    "createAcl", "updateAcl", "getAcl", "listAcl", "deleteAcl", "copyAcl"
)
def test_rules_are_made_changed_shown_and_deleted(mqadmin):
    mqadmin("createUser -b {b} -u bob -p first-secret -t Normal")
    rule = "-s User:bob -r Topic:orders"
    made = mqadmin(f"createAcl -b {{b}} {rule} -a Pub,Sub -i 10.0.0.7 -d Allow")
    assert "create acl to" in made
    assert "success" in made
    shown = mqadmin("getAcl -b {b} -s User:bob")
    assert "Topic:orders" in shown
    assert "10.0.0.7" in shown
    assert "Allow" in shown
    assert "success" in mqadmin(f"updateAcl -b {{b}} {rule} -a Pub -d Deny")
    listed = mqadmin("listAcl -b {b}")
    assert "User:bob" in listed
    assert "Deny" in listed
    assert "Exception" not in mqadmin("copyAcl -f {b} -t {b}")
    assert "success" in mqadmin("deleteAcl -b {b} -s User:bob -r Topic:orders")
    assert "Topic:orders" not in mqadmin("listAcl -b {b}")


def test_who_signs_wrongly_is_told_so(mqadmin, tmp_path):
    # The other sub-commands sign, too.
    assert "broker-0" in mqadmin("clusterList")
    said = mqadmin("createUser -b {b} -u root -p another-one -t Super")
    assert "success" not in said
