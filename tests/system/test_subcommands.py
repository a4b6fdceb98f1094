"""Every sub-command of mqadmin 5.5.0: it works as on RocketMQ, or says why not."""

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ropeway.client import ConsumeFrom, Message, Producer, PushConsumer
from ropeway.gateway.processors.context import request_name
from ropeway.gateway.processors.unsupported import REASONS
from ropeway.testing import running_gateway
from tests.clients.fixtures import Server
from tests.ropeway.client.scenario import PATIENT_PRODUCER
from tests.system import printed
from tests.system.administration import TIMEOUT_S, MqAdmin
from tests.system.rocketmq import RocketMQ
from tests.system.ropeway import Ropeway
from tests.system.subcommands import (
    ASKING,
    CODES,
    COMPARED,
    FILES,
    HIDING,
    MAKING,
    UNTIL,
    name_of,
)

pytestmark = pytest.mark.jvm

MESSAGES = 4
EXPORTED = ("configs", "metadata", "topic", "subscriptionGroup", "metrics")


class Seen(NamedTuple):
    """What mqadmin printed and wrote for a server."""

    printed: list[tuple[str, str]]
    folder: Path


class Run:
    """Command lines on one server."""

    def __init__(self, admin: MqAdmin, server: Server, folder: Path) -> None:
        self._admin = admin
        self._server = server
        self.names = {
            "b": f"127.0.0.1:{server.broker_port}",
            "ns": server.name_server,
            "d": str(folder),
        }
        for name, text in FILES.items():
            (folder / name).write_text(text)
        self.seen = Seen([], folder)

    def run(self, line: str) -> None:
        """Run a line, and note what it printed."""
        given = line.format(**self.names)
        text = self._admin(given, self._server.name_server)
        give_up = time.monotonic() + TIMEOUT_S
        pattern = UNTIL.get(line, "")
        while "timeout" in text or not re.search(
            pattern, "\n".join(printed.comparable(line, text))
        ):
            assert time.monotonic() < give_up, text
            text = self._admin(given, self._server.name_server)
        self.seen.printed.append((line, text))

    async def run_all(self) -> Seen:
        """Run every line; clients are there from when there are topics for them."""
        loop = asyncio.get_running_loop()
        for line in MAKING:
            await loop.run_in_executor(None, self.run, line)
        done: list[bytes] = []
        consumer = PushConsumer(
            self._server.name_server, "readers", consume_from=ConsumeFrom.FIRST_OFFSET
        )
        consumer.subscribe("L2", "*", lambda one: done.append(one.body))
        async with (
            consumer,
            Producer(
                self._server.name_server, "writers", config=PATIENT_PRODUCER
            ) as producer,
        ):
            for number in range(MESSAGES):
                sent = await producer.send(Message("L2", b"%d" % number, "tagA", ()))
            self.names |= {"id": sent.offset_msg_id, "key": sent.msg_id}
            async with asyncio.timeout(TIMEOUT_S):
                while len(done) < MESSAGES:  # noqa: ASYNC110 - a thread fills it
                    await asyncio.sleep(0.05)
            for line in COMPARED:
                # The clients' heartbeats go on meanwhile.
                await loop.run_in_executor(None, self.run, line)
        return self.seen


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Seen, Seen]:
    """What came of all lines on RocketMQ, and on Ropeway."""
    make = tmp_path_factory.mktemp
    servers = (RocketMQ(make("rocketmq")), Ropeway(make("ropeway")))
    seen = []
    try:
        for server in servers:
            server.start()
        for server in servers:
            with MqAdmin(make("mqadmin")) as admin:
                run = Run(admin, server, make("files"))
                seen.append(asyncio.run(run.run_all()))
    finally:
        for server in servers:
            server.kill()
    return seen[0], seen[1]


def each_of(names: list[str]) -> list:
    return [
        pytest.param(name, marks=pytest.mark.mqadmin(name))
        for name in sorted(set(names))
    ]


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize("name", each_of(list(map(name_of, MAKING + COMPARED))))
def test_both_servers_print_the_same(both: tuple[Seen, Seen], name: str) -> None:
    theirs, ours = both
    tried = [
        (line, *printed.agree(line, text, other))
        for (line, text), (_, other) in zip(theirs.printed, ours.printed, strict=True)
        if name_of(line) == name
    ]
    for line, expected, found in tried:
        assert found == expected, line


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize("name", EXPORTED)
def test_the_same_is_exported_of_both(both: tuple[Seen, Seen], name: str) -> None:
    theirs, ours = (printed.exported(seen.folder / f"{name}.json") for seen in both)
    for part, expected in theirs.items():
        if part in ("brokers", "metrics"):
            assert is_part(ours[part], expected)
        else:
            assert ours[part] == expected


def is_part(ours: object, theirs: object) -> bool:
    """Whether everything of ours is in theirs: we do not know all that they know."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return all(
            name in theirs and is_part(one, theirs[name]) for name, one in ours.items()
        )
    return ours == theirs


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What a gateway has mqadmin print of what it does not do."""
    folder = tmp_path_factory.mktemp("asked")
    with running_gateway() as gateway, MqAdmin(folder) as admin:
        address = gateway.name_server
        for line in (
            f"updateTopic -t T1 -b {address}",
            f"updateSubGroup -b {address} -g G1",
        ):
            assert "success" in admin(line, address)
        yield {
            name_of(line): admin(line.format(b=address, ns=address, d=folder), address)
            for line in ASKING
        }


@pytest.mark.parametrize("name", each_of(list(map(name_of, ASKING))))
def test_what_is_refused_says_why(asked: dict[str, str], name: str) -> None:
    code = CODES[name]
    refusal = f"request type {request_name(code)} not supported"
    if reason := REASONS.get(code):
        hidden = name in HIDING
        assert hidden or f"{refusal}: {reason}" in asked[name], asked[name]
    else:
        assert refusal not in asked[name]
