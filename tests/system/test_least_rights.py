"""The rights in docs/pulsar.md are enough, and its commands give them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.commands.admin import DeleteTopic
from tests.acl.pulsar.issuing import token
from tests.gateway.test_config import GUIDE
from tests.remoting import looped
from tests.system import guarded_deployments
from tests.system.pulsar_admin import pulsar_admin
from tests.system.ropeway import PATIENT
from tests.system.test_cluster import reach
from tests.system.test_doctor import here
from tests.system.test_namespaces import (
    UNFIT,
    bodies,
    owners,
    place_order,
    refused,
    running,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.ropeway import Ropeway

pytestmark = [pytest.mark.jvm, pytest.mark.server]

ROOT, ROLE, LESSER = guarded_deployments.ROOT, "ropeway", "lesser"
SPACE = "rocketmq/DefaultCluster"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    made = guarded_deployments.secured_pulsar(tmp_path_factory.mktemp("pulsar"))
    try:
        made.start()
        yield made
    finally:
        made.kill()


def commands() -> list[list[str]]:
    """The command lines of each block of the section on rights."""
    text = GUIDE.with_name("pulsar.md").read_text()
    section = text.partition("\n## Rights\n")[2].partition("\n## ")[0]
    return [
        block.strip().splitlines()
        for block in re.findall(r"```\n(.*?)```", section, re.DOTALL)
    ]


async def works(node: Ropeway) -> None:
    """Topics are made, used and deleted."""
    await place_order(node, b"one")
    assert await bodies(node) == [b"one"]
    async with reach(node) as client:
        assert (await client.ask(DeleteTopic(topic="orders"))).code == 0


@looped
async def test_the_commands_of_the_guide_give_all_rights_that_are_needed(
    tmp_path: Path, secured: Pulsar
):
    def options_of(role: str, *more: str, prepare: bool = True) -> list[str]:
        (tmp_path / "token").write_text(token({"sub": role}))
        (tmp_path / "token").chmod(0o600)
        config = tmp_path / "ropeway.toml"
        config.write_text(
            f"data = '{tmp_path}/node/data'\n[[listeners]]\nport = 0\n"
            f"[pulsar]\nservice_url = '{secured.service_url}'\n"
            f"admin_url = '{secured.admin_url}'\ntoken_file = '{tmp_path}/token'\n"
            f"prepare = {str(prepare).lower()}\n{PATIENT}"
        )
        return ["--config", str(config), "--node", "node", *more]

    def as_superuser(line: str) -> None:
        pulsar_admin(secured, tmp_path, line, token({"sub": ROOT}))

    (tenant,), namespace = commands()
    code, said = refused(tmp_path / "none", *options_of(ROLE))
    assert (code, "pulsar-admin tenants create rocketmq" in said) == (UNFIT, True)
    as_superuser(tenant)
    code, said = refused(tmp_path / "none", *options_of(ROLE, prepare=False))
    assert (code, f"namespaces create {SPACE}" in said) == (UNFIT, True)
    for line in namespace:
        code, said = refused(tmp_path / "none", *options_of(ROLE, prepare=False))
        assert code == UNFIT
        assert line in f"{said} {SPACE}"
        as_superuser(line)
    # By hand, and as the node does it by itself.
    for prepare, more in ((False, []), (True, ["--cluster", "another"])):
        options = options_of(ROLE, *more, prepare=prepare)
        with running(tmp_path / "-".join(["node", *more]), *options) as node:
            await works(node)
    assert list(owners(secured, SPACE).values()) == ["DefaultCluster"]
    # Who may use all topics of the namespace may not make one.
    as_superuser(
        f"pulsar-admin namespaces grant-permission --role {LESSER} "
        f"--actions produce,consume {SPACE}"
    )
    code, said = refused(tmp_path / "lesser", *options_of(LESSER))
    assert (code, "its role an admin of the tenant: pulsar-a" in said) == (UNFIT, True)
    code, said = refused(tmp_path / "invalid", *options_of(""))
    assert (code, "who signs in must be known" in said) == (UNFIT, True)
    # And doctor says of each token what a start does.
    for role in (ROLE, LESSER, ""):
        (_, config, *_) = options_of(role)
        found = [(text, tip) for check, text, tip in here(config) if check == "pulsar"]
        assert len(found) == (role != ROLE)
        for text, tip in found:
            assert text.startswith("Pulsar does not permit GET /admin/v2/")
            assert "who signs in must be known, and its role an admin of" in tip
