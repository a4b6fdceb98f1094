"""`ropeway doctor` sees what stops a cluster on Pulsar, and what serves no more."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.client import Admin
from ropeway.gateway.wire import host_port
from tests.remoting import looped
from tests.ropeway.client.scenario import PATIENT
from tests.storage.pulsar.logs import until
from tests.system.process import START_SECONDS, free_ports
from tests.system.ropeway import ROOT
from tests.system.test_namespaces import (
    FOREIGN,
    name,
    options,
    owners,
    place_order,
    policies,
    refused,
    running,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.ropeway import Ropeway

__all__ = ["name"]
pytestmark = [pytest.mark.jvm, pytest.mark.server]

UNWELL = 4
MACHINE = {"disk", "data", "port"}
"""What a machine that tests run on may be short of."""


def config_of(
    directory: Path, pulsar: Pulsar, routes: str, cluster: str, more: str = ""
) -> Path:
    """The configuration of a node of a cluster."""
    path = directory / f"{cluster}.toml"
    path.write_text(
        f"routes = '{routes}'\ncluster = '{cluster}'\n[[listeners]]\nport = 0\n"
        f"[pulsar]\nservice_url = '{pulsar.service_url}'\n"
        f"admin_url = '{pulsar.admin_url}'\n{more}"
    )
    return path


def looked(*arguments: str) -> list[tuple[str, str, str]]:
    """Text and advice of each problem and warning, behind its check."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ropeway.gateway.cli.main",
            "doctor",
            "--json",
            *arguments,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    problems = any(one["state"] == "problem" for one in found)
    assert done.returncode == (UNWELL if problems else 0), done.stderr
    return [
        (one["check"], one["text"], one["advice"])
        for one in found
        if one["state"] != "ok" and one["check"] not in MACHINE
    ]


def here(config: Path | str) -> list[tuple[str, str, str]]:
    return looked("--only-here", "--config", str(config))


def seen(node: Ropeway) -> list[tuple[str, str, str]]:
    """What it says of a cluster, through a node."""
    return looked("--name-server", node.name_server)


@looped
async def test_it_looks_at_namespaces_as_a_start_does_and_changes_nothing(
    tmp_path: Path, pulsar: Pulsar, chroot: str, name: str
):
    config = config_of(tmp_path, pulsar, chroot, name)
    assert here(config) == []
    if "rocketmq" in pulsar.admin("GET", "tenants"):
        assert f"rocketmq/{name}" not in pulsar.admin("GET", "namespaces/rocketmq")
    with running(tmp_path / "node", *options(pulsar, chroot, name)) as node:
        await place_order(node, b"one")
    space = f"rocketmq/{name}"
    before = policies(pulsar, space)
    assert here(config) == []
    assert policies(pulsar, space) == before
    for policy, value, said in (
        ("deduplication", False, "set-deduplication --enable"),
        (
            "retention",
            {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0},
            "set-retention --time 72h",
        ),
    ):
        pulsar.admin("POST", f"namespaces/{space}/{policy}", value)
        *_, (check, text, advice) = here(config)
        assert (check, space in text, said in advice) == ("pulsar", True, True)
    assert len(here(config)) == 2
    # Of another cluster, before and after it was told so by a start.
    other = config_of(tmp_path, pulsar, f"{chroot}-other", name)
    (ours,) = owners(pulsar, space)
    texts = [text for _, text, _ in here(other)]
    assert any(f"{ours}, and this one has no id yet" in text for text in texts)
    given = options(pulsar, f"{chroot}-other", name)
    assert refused(tmp_path / "other", *given)[0] == FOREIGN
    found = [(text, advice) for _, text, advice in here(other)]
    assert any("belongs to another" in text and ours in tip for text, tip in found)
    # Of this cluster, and nothing is there.
    typo = config_of(
        tmp_path, pulsar, chroot, name, f"namespace = '{name}-typo'\nprepare = false\n"
    )
    found = [(text, advice) for _, text, advice in here(typo)]
    assert any("has no namespace" in text and "create" in tip for text, tip in found)
    assert any("and it is not there" in text and "empty" in tip for text, tip in found)


@looped
async def test_it_sees_a_broker_that_is_gone(
    tmp_path: Path, pulsar: Pulsar, chroot: str, name: str
):
    one, other = (
        [*options(pulsar, chroot, name), "--broker", broker] for broker in ("a", "b")
    )
    with running(tmp_path / "one", *one) as node:
        with running(tmp_path / "other", *other):
            await place_order(node, b"one")
            # Each node hears of the other a little after that is ready.
            await until(lambda: [check for check, *_ in seen(node)] == ["standby"] * 2)
        gone: list[tuple[str, str, str]] = []
        await until(
            lambda: bool(
                gone.extend(one for one in seen(node) if one[0] == "broker") or gone
            )
        )
        ((_, text, advice),) = gone
        assert text.startswith("broker b has queues of ")
        assert "--broker b" in advice


@looped
async def test_it_sees_another_process_that_has_the_name(
    tmp_path: Path, pulsar: Pulsar, chroot: str, name: str
):
    given = options(pulsar, chroot, name)
    here_, elsewhere = (tmp_path / one for one in ("here", "elsewhere"))
    for directory in (here_, elsewhere):
        directory.mkdir()
    with running(tmp_path / "node", *given) as node:
        host, port = host_port.split(node.name_server)
        own, other = (
            config_of(directory, pulsar, chroot, name)
            for directory in (here_, elsewhere)
        )
        for config, its in ((own, port), (other, free_ports(1)[0])):
            text = config.read_text().replace("port = 0", f"port = {its}")
            config.write_text(f"node = 'node'\n{text}")
        assert here(own) == []
        ((check, text, advice),) = here(other)
        assert (check, "--node" in advice) == ("node", True)
        assert f"at {host}:{port}" in text
        code, said = refused(tmp_path / "copy", *given)
        assert (code, "runs already" in said) == (1, True)


@looped
async def test_what_does_not_fit_the_routes_is_seen_and_mended_when_asked(
    tmp_path: Path, pulsar: Pulsar, chroot: str, name: str
):
    audit = tmp_path / "audit.jsonl"
    config = config_of(tmp_path, pulsar, chroot, name, f"[audit]\nfile = '{audit}'\n")
    space = f"rocketmq/{name}"

    def there() -> set[str]:
        full = pulsar.admin("GET", f"persistent/{space}")
        return {one.rpartition("/")[2] for one in full}

    one, other = (
        [*options(pulsar, chroot, name), "--broker", broker] for broker in ("a", "b")
    )
    with running(tmp_path / "one", *one) as node:
        with running(tmp_path / "other", *other):
            await place_order(node, b"one")
        assert here(config) == []
        async with Admin(node.name_server, config=PATIENT) as admin:
            await admin.create_topic("bills", 1)
            await admin.delete_topic("orders")
            await place_order(node, b"two")
            await admin.delete_topic("orders")
        await until(lambda: not any(one.startswith("orders") for one in there()))
        ((check, text, advice),) = here(config)
        assert (check, "--broker b" in advice) == ("routes", True)
        assert text.startswith("broker b does not run, and has not heard that 1 topics")
    assert {one for one in there() if one.startswith("bills")} == {"bills-partition-0"}
    whole = there()
    pulsar.admin("DELETE", f"persistent/{space}/bills-partition-0?force=true")
    pulsar.admin("PUT", f"persistent/{space}/orders%401/partitions", body=2)
    await until(lambda: "orders@1-partition-1" in there())
    found = here(config)
    assert found[0] == (check, text, advice)
    assert [text.partition(" in ")[0] for _, text, _ in found[1:]] == [
        "topic bills has queues",
        "Pulsar still has orders@1",
    ]
    assert here(config) == found
    assert not audit.exists()
    mended = looked("--only-here", "--config", str(config), "--fix")
    lines = [json.loads(one) for one in audit.read_text().splitlines()]
    assert [(one["event"], one["request"], one["resource"]) for one in lines] == [
        ("changed", "DOCTOR_FIX", f"PulsarTopic:persistent://{space}/{one}")
        for one in ("bills", "orders@1")
    ]
    assert mended == here(config) == found[:1]
    assert there() == whole
