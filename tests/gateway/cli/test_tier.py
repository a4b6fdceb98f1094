"""`ropeway tier`, and a node that has one."""

from __future__ import annotations

import json
import time

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from ropeway.testing import running_gateway
from tests.gateway.cli.printed import valid

LONG_S = 120


def invoke(*args: str, code: int = 0):
    result = CliRunner().invoke(main, args)
    assert result.exit_code == code, result.output
    if "--json" in args:
        valid(args, result.stdout)
    return result


def until(condition):
    end = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_a_node_with_a_tier_is_looked_after_by_its_directory(tmp_path):
    data, store = tmp_path / "data", tmp_path / "store"
    (tmp_path / "ropeway.toml").write_text(
        f'[tier]\nurl = "file://{store}"\nlevel = "FORCE"\ncommit_ms = 1\n'
    )

    def status():
        return json.loads(invoke("tier", "status", str(data), "--json").stdout)

    settings = ["--config", str(tmp_path / "ropeway.toml")]
    with running_gateway(data, settings) as gateway:
        where = ["--name-server", gateway.name_server]
        invoke("produce", "orders", "one coffee", *where)
        until(lambda: sum(one["end"] for one in status()["queues"]) == 1)
        assert [one["topic"] for one in status()["queues"]] == ["orders"]
        read = ["consume", "orders", "--from", "first", "--count", "1"]
        assert "one coffee" in invoke(*read, *where).stdout
        invoke("tier", "pause", str(data))
        assert "\npaused\n" in invoke("tier", "status", str(data)).stdout
        invoke("produce", "orders", "two coffees", *where)
        invoke("tier", "resume", str(data))
        until(lambda: sum(one["end"] for one in status()["queues"]) == 2)
        whole = invoke("tier", "verify", str(data)).stdout
        assert " 2 messages, " in whole
        assert whole.endswith(" 0 problems\n")
        invoke("tier", "backfill", str(data))
        until(lambda: not status()["backfill"])
    (path, *_) = store.rglob("*.data")
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    url = f"file://{store}/broker-0"
    damaged = invoke("tier", "verify", ".", "--url", url, "--topic", "orders", code=1)
    assert path.name in damaged.stdout
    assert damaged.stderr == f"Error: the tier at {url} is damaged\n"
    as_json = invoke("tier", "verify", str(data), "--json", code=1).stdout
    assert len(json.loads(as_json)["problems"]) == 1


def test_a_directory_without_a_tier_is_an_error(tmp_path):
    for command in ("status", "verify", "backfill", "pause", "resume"):
        refused = invoke("tier", command, str(tmp_path), code=1)
        assert "no tier in" in refused.stderr
        assert not (tmp_path / "tier").exists()
