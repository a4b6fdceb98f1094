"""Programs that speak MCP get what commands print, under the same rights.

The client is that of the official SDK, over the pipes of a `ropeway mcp` of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from ropeway.client import Message, Producer
from ropeway.gateway.cli.main import main
from ropeway.testing import running_gateway
from tests.gateway.cli.secured import NOBODY, ROOT, secured
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from ropeway.testing import Gateway
    from tests.gateway.cli.secured import Secured

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("mcp") is None, reason="set-up has not installed mcp"),
]

READING = {"doctor", "explain", "topics", "lag", "dead_letters"}
WRITING = {"replay_dead_letters", "reset_offsets"}


@asynccontextmanager
async def serving(environment: Mapping[str, str], *options: str) -> AsyncIterator[Any]:
    """The SDK's client, connected to a `ropeway mcp` with this environment."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    command = ["-m", "ropeway.gateway.cli.main", "mcp", *options]
    parameters = StdioServerParameters(
        command=sys.executable,
        args=command,
        env={"XDG_CONFIG_HOME": os.devnull, **environment},
    )
    async with Client(parameters) as client:
        yield client


async def called(client: Any, tool: str, **arguments: Any) -> Any:
    """What a tool answers, as data."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content
    return found.structured_content


async def refused(client: Any, tool: str, **arguments: Any) -> str:
    """What a tool says that fails."""
    found = await client.call_tool(tool, arguments)
    assert found.is_error
    (said,) = found.content
    text: str = said.text
    assert "\n" not in text
    return text


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with running_gateway(topics=["orders:2"]) as found:
        yield found


def prepared(gateway: Gateway, group: str) -> str:
    """Have a group with a dead letter and an acknowledged message; the latter's id."""
    run = runner({"ROPEWAY_NAME_SERVER": gateway.name_server})
    run(f"group create {group} --retries 1")
    sent = asyncio.run(_sent(gateway.name_server, group))

    def is_consumed() -> bool:
        run(f"consume orders --group {group} --timeout 0.5")
        ends = run("topic stats orders --json")["queues"]
        read = run(f"group show {group} --json")["queues"]
        return sum(one["end"] for one in ends) == sum(
            one["committed"] for one in read if one["topic"] == "orders"
        )

    until(is_consumed)
    return sent


async def _sent(name_server: str, group: str) -> str:
    async with Producer(name_server, "p") as producer:
        letter = Message(f"%DLQ%{group}", b"bad", properties={"RETRY_TOPIC": "orders"})
        await producer.send(letter)
        sent = await producer.send(Message("orders", b"good"))
    return sent.msg_id


def runner(environment: Mapping[str, str]) -> Callable[[str], Any]:
    """Run a command, and read what it prints where that is JSON."""

    def run(line: str) -> Any:
        done = CliRunner().invoke(main, line.split(), env=environment)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout) if line.endswith("--json") else None

    return run


def test_tools_answer_what_commands_print(gateway):
    environment = {"ROPEWAY_NAME_SERVER": gateway.name_server}
    sent = prepared(gateway, "shown")

    async def ask() -> dict[str, Any]:
        async with serving(environment) as client:
            tools = (await client.list_tools()).tools
            assert {one.name for one in tools} == READING
            assert all(one.annotations.read_only_hint for one in tools)
            assert all(one.description for one in tools)
            one = {"msg_id": sent, "group": "shown", "topic": "orders"}
            return {
                "explain": await called(client, "explain", **one),
                **await called(client, "doctor"),
                **await called(client, "topics", names="ord.*"),
                **await called(client, "lag"),
                **await called(client, "lag", group="shown"),
                **await called(client, "dead_letters", group="shown"),
            }

    said = asyncio.run(ask())
    run = runner(environment)
    assert said["explain"] == run(f"explain {sent} shown --topic orders --json")
    assert [one["check"] for one in said["checks"]] == [
        one["check"] for one in run("doctor --json")
    ]
    assert [(one["topic"], one["queues"]) for one in said["topics"]] == [("orders", 2)]
    assert "shown" in [one["group"] for one in said["groups"]]
    assert said["queues"] == run("group show shown --json")["queues"]
    assert said["dead_letters"] == run("message dlq list shown --json")
    assert [one["replayed"] for one in said["dead_letters"]] == [False]


def test_what_is_wrong_is_told_in_one_line(gateway):
    async def ask() -> None:
        async with serving({"ROPEWAY_NAME_SERVER": gateway.name_server}) as client:
            assert "nosuch" in await refused(client, "lag", group="nosuch")
            assert "regular expression" in await refused(client, "topics", names="(")
            # It can be asked again.
            await called(client, "lag")
        async with serving({"ROPEWAY_NAME_SERVER": "127.0.0.1:1"}) as client:
            assert "nobody listens" in await refused(client, "lag")
            (check,) = (await called(client, "doctor"))["checks"]
            assert "nobody listens" in check["text"]

    asyncio.run(ask())


def test_nothing_can_be_changed_unless_it_is_switched_on(gateway):
    environment = {"ROPEWAY_NAME_SERVER": gateway.name_server}
    prepared(gateway, "moved")
    move = {"group": "moved", "topic": "orders", "to": "earliest"}

    async def lag(client: Any) -> int:
        queues = (await called(client, "lag", group="moved"))["queues"]
        return sum(one["lag"] for one in queues if one["topic"] == "orders")

    async def ask() -> None:
        async with serving(environment) as client:
            for tool in WRITING:
                assert "Unknown tool" in await refused(client, tool)
        async with serving(environment, "--writable") as client:
            tools = (await client.list_tools()).tools
            assert {one.name for one in tools} == READING | WRITING
            writing = {one.name for one in tools if one.annotations.destructive_hint}
            assert writing == WRITING
            assert (await called(client, "reset_offsets", **move))["dry_run"]
            assert await lag(client) == 0
            await called(client, "reset_offsets", **move, dry_run=False)
            assert await lag(client) >= 1
            letters = {"group": "moved", "count": 10}
            replayed = await called(client, "replay_dead_letters", **letters)
            assert [bool(one["new_msg_id"]) for one in replayed["replayed"]] == [True]
            left = await called(client, "dead_letters", **letters)
            assert left["dead_letters"] == []

    asyncio.run(ask())


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("mcp")) as node:
        run = runner({**node.environment(ROOT), "XDG_CONFIG_HOME": os.devnull})
        run("topic create orders")
        run("group create kitchen")
        run("produce orders one")
        run("consume orders --group kitchen --count 1 --timeout 60")
        yield node


def test_the_credentials_of_who_started_it_decide(guarded):
    environment = guarded.environment(NOBODY)
    move = {"group": "kitchen", "topic": "orders", "to": "earliest", "dry_run": False}

    async def ask() -> None:
        async with serving(environment, "--writable") as client:
            for tool, arguments in {
                "lag": {},
                "topics": {},
                "dead_letters": {"group": "kitchen"},
                "replay_dead_letters": {"group": "kitchen", "count": 1},
                "reset_offsets": move,
            }.items():
                said = await refused(client, tool, **arguments)
                assert "not allowed" in said
                assert "hush" not in said
        async with serving(guarded.environment(ROOT), "--writable") as client:
            assert await called(client, "lag", group="kitchen")
            assert (await called(client, "reset_offsets", **move))["moved"]

    asyncio.run(ask())
    audit = (guarded.folder / "audit.jsonl").read_text().splitlines()
    (moved,) = [
        one
        for one in map(json.loads, audit)
        if "RESET" in one.get("request", "") and one["event"] == "changed"
    ]
    assert moved["principal"] == f"users:{ROOT}"
