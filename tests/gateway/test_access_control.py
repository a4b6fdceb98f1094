"""Hooks are found by their names, and a configuration that makes no sense says why."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from ropeway.acl.vault import new_key
from ropeway.gateway.access_control import cluster_secret, open_audit, open_guard
from ropeway.gateway.config import AclConfig, Config, ConfigError
from ropeway.gateway.processors.namesrv import handles  # noqa: F401 - the processors' table
from ropeway.routing.embedded import EmbeddedRoutes
from tests.acl.hooks import RULES


def opened(tmp_path, acl, environment=None):
    """Whether a guard was made of a configuration."""

    async def main():
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        try:
            async with AsyncExitStack() as stack:
                config = Config(acl=acl)
                guard = await open_guard(
                    config, routes, open_audit(config, stack), stack, environment or {}
                )
                return guard is not None
        finally:
            await routes.close()

    return asyncio.run(main())


def test_without_access_control_there_is_no_guard(tmp_path):
    assert not opened(tmp_path, None)


def test_hooks_are_opened_with_their_options(tmp_path):
    rules = tmp_path / "plain_acl.yml"
    rules.write_text(RULES)
    acl = AclConfig(hooks=("users", "plain"), options={"plain": {"file": str(rules)}})
    assert opened(tmp_path, acl, {"ROPEWAY_ACL_KEY": new_key()})


@pytest.mark.parametrize(
    ("acl", "complaint"),
    [
        (AclConfig(hooks=("nobody",)), "allowed: .*plain.*users"),
        (AclConfig(hooks=("users", "users")), "allowed: each once"),
        (AclConfig(hooks=("users",), options={"plain": {}}), "names in acl.hooks"),
        (AclConfig(hooks=("plain",)), "allowed: file"),
        (
            AclConfig(hooks=("users",), options={"users": {"superuser": "root"}}),
            "ROPEWAY_SUPERUSER_PASSWORD",
        ),
    ],
)
def test_what_makes_no_sense_is_a_complaint(tmp_path, acl, complaint):
    with pytest.raises(ConfigError, match=complaint):
        opened(tmp_path, acl)


def test_a_superuser_needs_a_key_that_hides_its_password(tmp_path):
    acl = AclConfig(hooks=("users",), options={"users": {"superuser": "root"}})
    password = {"ROPEWAY_SUPERUSER_PASSWORD": "hush-hush"}
    with pytest.raises(ConfigError, match="ROPEWAY_ACL_KEY"):
        opened(tmp_path, acl, password)
    with pytest.raises(ConfigError, match="ropeway acl key"):
        opened(tmp_path, acl, {**password, "ROPEWAY_ACL_KEY": "short"})
    missing = AclConfig(hooks=("users",), key_file=tmp_path / "none")
    with pytest.raises(ConfigError, match="cannot read"):
        opened(tmp_path, missing)


def test_all_nodes_have_one_secret_wherever_it_is_from(tmp_path):
    async def main():
        first = EmbeddedRoutes(tmp_path / "routes.db")
        second = EmbeddedRoutes(tmp_path / "routes.db")
        made = await cluster_secret(Config(), first, {})
        assert await cluster_secret(Config(), second, {}) == made
        assert len(made) > 40
        given = {"ROPEWAY_CLUSTER_SECRET": "x" * 16}
        assert await cluster_secret(Config(), first, given) == "x" * 16
        path = tmp_path / "secret"
        path.write_text("y" * 20 + "\n")
        config = Config(cluster_secret_file=path)
        assert await cluster_secret(config, first, given) == "y" * 20
        with pytest.raises(ConfigError, match="16 or more"):
            await cluster_secret(Config(), first, {"ROPEWAY_CLUSTER_SECRET": "short"})
        await first.close()
        await second.close()

    asyncio.run(main())
