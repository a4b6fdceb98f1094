"""`ropeway acl`."""

import asyncio
import json
import os
import subprocess
import sys

from click.testing import CliRunner

from ropeway.acl.vault import FernetVault
from ropeway.gateway.cli.acl import acl
from tests.guarded import ALICE, PASSWORD, ROOT, allow, guarded


def test_a_key_is_one_for_a_vault():
    printed = CliRunner().invoke(acl, ["key"])
    vault = FernetVault(printed.stdout.split())
    assert vault.unseal(vault.seal("hush")) == "hush"


def test_a_key_is_written_for_its_owner_alone_and_over_no_other(tmp_path):
    path = tmp_path / "acl.key"
    before = os.umask(0)
    try:
        assert CliRunner().invoke(acl, ["key", "--out", str(path)]).exit_code == 0
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    made = path.read_text()
    assert FernetVault(made.split())
    refused = CliRunner().invoke(acl, ["key", "--out", str(path)])
    assert refused.exit_code
    assert path.read_text() == made


def test_where_nothing_is_guarded_that_is_said(run):
    asked = ["--principal", "a", "--action", "PUB", "--resource", "topic:orders"]
    refused = run("acl", "check", *asked, code=1)
    assert "everybody may do everything" in refused.stderr


def test_half_of_the_credentials_is_none(run):
    asked = ["--principal", "a", "--action", "PUB", "--resource", "topic:orders"]
    refused = run("acl", "check", *asked, "--access-key", "x", code=2)
    assert "go together" in refused.stderr


async def check(address: str, *more: str) -> tuple[int | None, str]:
    """The exit code of `ropeway acl check`, and what it prints."""
    given = ["--principal", ALICE, "--name-server", address, *more]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ropeway.gateway.cli.main", "acl", "check", *given),
        env={
            **os.environ,
            "ROPEWAY_ACCESS_KEY": ROOT,
            "ROPEWAY_SECRET_KEY": PASSWORD,
        },
        stdout=subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    return process.returncode, printed.decode()


def test_a_decision_is_printed_with_its_rule(tmp_path):
    async def main():
        async with guarded(tmp_path, allow("Topic:orders", "Pub")) as (app, _):
            address = app.server.listeners[0].advertised
            orders = ("--action", "pub", "--resource", "topic:orders")
            secret = ("--action", "SUB", "--resource", "topic:secret", "--json")
            code, printed = await check(address, *orders)
            denied, line = await check(address, *secret)
        assert (code, denied) == (0, 1)
        assert printed.splitlines() == [
            "allowed: users:alice PUB topic:orders from 127.0.0.1",
            "rule: Custom policy Topic:orders Pub allow (hook users)",
        ]
        assert json.loads(line)["rule"] == "no policy matches"

    asyncio.run(main())
