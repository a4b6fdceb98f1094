"""What a node keeps nobody but its user can read, whatever the umask is."""

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from ropeway.client import Admin, ConsumeFrom, Message, Producer, PullConsumer
from tests.ropeway.client import scenario
from tests.system.ropeway import PATIENT, Ropeway

NOBODY = 65534
WAIT_S = 60.0
OPEN = ("sh", "-c", f'umask 0; exec {sys.executable} "$@"', "sh")
"""A shell that lets everybody read what is made."""


def settings(public: Path) -> Path:
    path = public / "ropeway.toml"
    path.write_text(
        f"[tier]\nurl = '{(public / 'data' / 'objects').as_uri()}'\ncommit_ms = 50\n"
        f"[audit]\nfile = '{public / 'data' / 'audit.log'}'\n"
        "[log]\nsegment_bytes = 1048576\n[pop]\n[acl]\nhooks = ['users']\n"
        f"dry_run = true\n{PATIENT}"
    )
    return path


async def use(address: str) -> None:
    """Send and receive, so that everything that is made has been made."""
    later = Message("orders", b"later", delay_ms=3_600_000)
    async with Producer(
        address, "producer", config=scenario.PATIENT_PRODUCER
    ) as producer:
        for one in (*[Message("orders", b"x")] * 3, later):
            await producer.send(one, timeout_s=WAIT_S)
    consumer = PullConsumer(
        address,
        "group",
        consume_from=ConsumeFrom.FIRST_OFFSET,
        config=scenario.PATIENT_CONSUMER,
    )
    consumer.subscribe("orders")
    async with consumer:
        assert await consumer.poll(WAIT_S)
        await consumer.commit()
    async with Admin(address, config=scenario.PATIENT) as admin:
        assert await admin.topics()


def kept(public: Path) -> dict[Path, int]:
    """What there is, with its mode, while the node makes files and deletes some."""
    found: dict[Path, int] = {}
    # Unlike `Path.rglob`, a walk goes on where a folder is gone meanwhile.
    for folder, _, names in os.walk(public / "data"):
        for one in (Path(folder), *(Path(folder, name) for name in names)):
            with contextlib.suppress(FileNotFoundError):
                found[one] = one.stat().st_mode
    return found


def readable_by_nobody(paths: Iterable[Path]) -> list[str]:
    """What a process with nobody's rights can read, of some files and directories."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        found = []
        for path in paths:
            try:
                os.close(os.open(path, os.O_RDONLY))
            except OSError:
                continue
            found.append(str(path))
        os.write(writing, "\n".join(found).encode()[:60_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_what_a_node_keeps_nobody_else_can_read(public, workers):
    options = ["--config", str(settings(public)), *workers]
    node = Ropeway(public, python=OPEN, options=options)
    node.start()
    try:
        asyncio.run(use(node.name_server))
        paths = kept(public)
        names = {one.name for one in paths}
        assert {"log", "offsets.db", "offsets.db-wal", "routes.db", "timer"} <= names
        wrong = {
            f"{one} {stat.filemode(mode)}"
            for one, mode in paths.items()
            if mode & 0o077
        }
        assert not wrong
        if os.geteuid() == 0:
            assert readable_by_nobody(paths) == []
    finally:
        node.stop()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_what_an_older_node_left_for_all_is_taken_from_them(public):
    node = Ropeway(public)
    node.start()
    node.stop()
    for one, mode in kept(public).items():
        one.chmod(0o755 if stat.S_ISDIR(mode) else 0o644)
    data = public / "data"
    assert readable_by_nobody([data / "routes.db", data / "offsets.db"])
    node.start()
    try:
        assert set(readable_by_nobody(kept(public))) <= {str(data)}
    finally:
        node.stop()
