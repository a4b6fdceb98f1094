"""A cluster's namespaces in Pulsar are its own, and nothing is made anew by mistake."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from ropeway.gateway.wire.commands.pull import PullReply
from ropeway.storage.pulsar.owner import PREFIX
from tests.remoting import looped
from tests.requests import pulling, sending
from tests.system.fixtures import numbers
from tests.system.process import START_SECONDS
from tests.system.ropeway import PATIENT, ROOT, Ropeway
from tests.system.test_cluster import reach

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]

FOREIGN = 5
"""The exit code where the namespace is not this cluster's."""
UNFIT = 1


@pytest.fixture
def name() -> str:
    """The name of a cluster that no other test uses, and of its namespace so."""
    return f"own-{os.getpid()}-{next(numbers)}"


def options(pulsar: Pulsar, routes: str, name: str) -> list[str]:
    """A command line as docs/deployment.md has it, on the defaults of all else."""
    return [
        *["--pulsar", pulsar.service_url, "--pulsar-admin", pulsar.admin_url],
        *["--routes", routes, "--cluster", name, "--node", "node"],
    ]


@contextmanager
def running(directory: Path, *given: str) -> Iterator[Ropeway]:
    node = Ropeway(directory, options=given)
    node.start()
    try:
        yield node
    finally:
        node.stop()


def refused(directory: Path, *given: str) -> tuple[int, str]:
    """The exit code of a node that does not start, and its last line."""
    done = subprocess.run(
        [
            *[sys.executable, "-m", "ropeway.gateway.cli.main", "serve"],
            *["--listen", "127.0.0.1:0", "--data", str(directory), *given],
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    return done.returncode, done.stderr.strip().splitlines()[-1]


def policies(pulsar: Pulsar, space: str) -> Any:
    return pulsar.admin("GET", f"namespaces/{space}")


def owners(pulsar: Pulsar, space: str) -> dict[str, str]:
    found = policies(pulsar, space)["properties"]
    return {key.removeprefix(PREFIX): value for key, value in found.items()}


def delete_topics(pulsar: Pulsar, space: str) -> None:
    for full in pulsar.admin("GET", f"persistent/{space}/partitioned"):
        local = quote(full.removeprefix(f"persistent://{space}/"), safe="")
        path = f"persistent/{space}/{local}/partitions?force=true"
        pulsar.admin("DELETE", path)


async def place_order(node: Ropeway, body: bytes) -> None:
    async with reach(node) as client:
        assert (await client.ask(sending("orders"), body)).code == 0


async def bodies(node: Ropeway) -> list[bytes]:
    found: list[bytes] = []
    offset = -1
    async with reach(node) as client:
        while True:
            answer = await client.ask(pulling("orders", max(offset, 0)))
            reply = answer.read(PullReply)
            # A pull answers as soon as there is something. Offsets go on where they
            # ended, also where what was before them is gone.
            found += [one.body for one in answer.messages()]
            if reply.next_begin_offset in (offset, reply.max_offset):
                return found
            offset = reply.next_begin_offset


@looped
async def test_a_second_cluster_of_the_same_name_does_not_stop_the_first(
    tmp_path: Path, pulsar: Pulsar, chroot: str, name: str
):
    public = policies(pulsar, "public/default")
    space = f"rocketmq/{name}"
    first = options(pulsar, chroot, name)
    with running(tmp_path / "first", *first) as node:
        await place_order(node, b"one")
        ((ours, label),) = owners(pulsar, space).items()
        assert label == name
        second = options(pulsar, f"{chroot}-second", name)
        code, said = refused(tmp_path / "second", *second)
        assert code == FOREIGN
        assert f"namespace {space} of Pulsar belongs to another cluster" in said
        assert said.endswith(f"--adopt {ours}")
        await place_order(node, b"two")
        assert await bodies(node) == [b"one", b"two"]
        assert owners(pulsar, space) == {ours: name}
        # Who is told of another id is told again.
        wrong = refused(tmp_path / "second", *second, "--adopt", "0123")
        assert wrong == (code, said)
        code, said = refused(tmp_path / "workers", *second, "--workers", "2")
        assert (code, said.endswith(f"--adopt {ours}")) == (FOREIGN, True)
    # Now the first runs no more.
    with running(tmp_path / "second", *second, "--adopt", ours) as node:
        ((theirs, _),) = owners(pulsar, space).items()
        assert theirs != ours
        # A topic that is made again is the one that was.
        await place_order(node, b"three")
        assert await bodies(node) == [b"one", b"two", b"three"]
    code, said = refused(tmp_path / "first", *first)
    assert (code, theirs in said) == (FOREIGN, True)
    assert policies(pulsar, "public/default") == public


@looped
async def test_of_clusters_that_start_at_once_in_a_new_namespace_one_goes_on(
    tmp_path: Path, pulsar: Pulsar, chroot: str, name: str
):
    nodes = [
        Ropeway(tmp_path / str(one), options=options(pulsar, f"{chroot}-{one}", name))
        for one in range(4)
    ]

    def come(node: Ropeway) -> tuple[int, str] | None:
        """The exit code and the last line of a node that does not start."""
        try:
            node.start()
        except RuntimeError as error:
            assert node._process is not None
            code = node._process._process.returncode
            return code, str(error).strip().splitlines()[-1]
        return None

    try:
        came = await asyncio.gather(*(asyncio.to_thread(come, one) for one in nodes))
        (first,) = [one for one, told in zip(nodes, came, strict=True) if told is None]
        others = [told for told in came if told is not None]
        assert {code for code, _ in others} == {FOREIGN}
        # Each is told whose it is.
        (won,) = {said.rpartition("--adopt ")[2] for _, said in others}
        first.stop()
        first.start()
        assert owners(pulsar, f"rocketmq/{name}") == {won: name}
        await place_order(first, b"one")
        assert await bodies(first) == [b"one"]
    finally:
        for node in nodes:
            node.stop()


@looped
async def test_a_namespace_that_lost_all_topics_is_refused_unless_they_are_given_up(
    tmp_path: Path, pulsar: Pulsar, chroot: str, name: str
):
    given = options(pulsar, chroot, name)
    with running(tmp_path / "node", *given) as node:
        await place_order(node, b"one")
    with running(tmp_path / "node", *given) as node:
        assert await bodies(node) == [b"one"]
    # One that another place is named for, where nothing is.
    config = tmp_path / "elsewhere.toml"
    config.write_text(f'[pulsar]\nnamespace = "{name}-typo"\n')
    code, said = refused(tmp_path / "node" / "data", "--config", str(config), *given)
    assert code == FOREIGN
    assert f"routes say that namespace rocketmq/{name}-typo of Pulsar has " in said
    assert "and it is not there; set pulsar.tenant" in said
    assert f"rocketmq/{name}-typo" not in pulsar.admin("GET", "namespaces/rocketmq")
    # One that was emptied.
    space = f"rocketmq/{name}"
    delete_topics(pulsar, space)
    code, said = refused(tmp_path / "node" / "data", *given)
    assert (code, "has none of them" in said) == (FOREIGN, True)
    assert pulsar.admin("GET", f"persistent/{space}/partitioned") == []
    with running(tmp_path / "node", *given, "--adopt", "empty") as node:
        assert await bodies(node) == []
        await place_order(node, b"two")
    with running(tmp_path / "node", *given) as node:
        assert await bodies(node) == [b"two"]
    told = (tmp_path / "node" / "ropeway.log").read_text()
    (line,) = (one for one in told.splitlines() if "request=ADOPT" in one)
    assert f"resource=Namespace:{space}" in line
    assert "'adopt': 'empty'" in line


@looped
async def test_public_default_is_used_where_it_is_named_and_never_changed(
    tmp_path: Path, pulsar: Pulsar, chroot: str, name: str
):
    config = tmp_path / "public.toml"
    config.write_text(f'{PATIENT}[pulsar]\ntenant = "public"\nnamespace = "default"\n')
    given = ["--config", str(config), *options(pulsar, chroot, name)]
    before = policies(pulsar, "public/default")
    code, said = refused(tmp_path / "node", *given)
    assert code == UNFIT
    assert "set: pulsar-admin namespaces set-deduplication --enable public/def" in said
    assert policies(pulsar, "public/default") == before
    space = "namespaces/public/default"
    keep = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    made = {"allowAutoTopicCreation": False}
    pulsar.admin("POST", f"{space}/deduplication", body=True)
    pulsar.admin("POST", f"{space}/retention", keep)
    pulsar.admin("POST", f"{space}/autoTopicCreation", made)
    before = policies(pulsar, "public/default")
    try:
        for number in range(2):
            with running(tmp_path / "node", *given) as node:
                await place_order(node, b"%d" % number)
                assert len(await bodies(node)) == 1 + number
        assert policies(pulsar, "public/default") == before
        assert "another cluster can take" in (tmp_path / "node/ropeway.log").read_text()
    finally:
        for one in ("deduplication", "retention", "autoTopicCreation"):
            pulsar.admin("DELETE", f"{space}/{one}")
        delete_topics(pulsar, "public/default")
