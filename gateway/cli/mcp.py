"""`ropeway mcp`: what commands look up, as tools for programs that speak MCP.

The Model Context Protocol over the standard input and output. Each call of a tool is a
client of the cluster, as each command is: signed by the credentials of who started the
command, decided by the brokers' access control, and written in their audit logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import structs, to_builtins

from ropeway.client import (
    admin_dlq,
    admin_doctor,
    admin_explain,
    admin_groups,
    admin_offsets,
)
from ropeway.gateway import __version__
from ropeway.gateway.cli.clients import diagnosed, run
from ropeway.gateway.cli.cluster_options import cluster_options
from ropeway.gateway.cli.dlq import letter_row, letter_rows
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import reported
from ropeway.gateway.cli.group import queue_row
from ropeway.gateway.cli.names import pattern_of
from ropeway.gateway.cli.offset import moment_ms
from ropeway.gateway.cli.output import whole
from ropeway.gateway.cli.rows.messages import Explained, FindingRow
from ropeway.gateway.cli.seeks import moved_rows
from ropeway.gateway.cli.top import busiest_groups, busiest_topics
from ropeway.gateway.extras import package

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from ropeway.client import Admin
    from ropeway.gateway.cli.rows.groups import GroupQueue, OffsetMove
    from ropeway.gateway.cli.rows.messages import DeadLetterRow
    from ropeway.gateway.cli.rows.topics import TopicRow
    from ropeway.gateway.cli.target import Target

T = TypeVar("T")
Result = dict[str, Any]

_GROUP = "ropeway-mcp"
_INSTRUCTIONS = (
    "Tools that look at a RocketMQ cluster served by Ropeway. Begin with `doctor`; "
    "`lag` finds groups that are behind, `explain` says why a message did not arrive."
)


@click.command(epilog=example("ropeway mcp", "ropeway mcp --writable --context prod"))
@click.option(
    "--writable", is_flag=True, help="Also offer tools that change something."
)
@cluster_options
def mcp(writable: bool, cluster: Target) -> None:
    """Serve the Model Context Protocol on stdin and stdout, for AI assistants."""
    with reported():
        server = package("mcp.server", "mcp").MCPServer(
            "ropeway",
            version=__version__,
            instructions=_INSTRUCTIONS,
            log_level="ERROR",
        )
        hints = package("mcp.types", "mcp").ToolAnnotations
    tools = Tools(cluster)
    for tool in tools.reading():
        server.add_tool(tool, annotations=hints(read_only_hint=True))
    for tool in tools.writing() if writable else ():
        server.add_tool(tool, annotations=hints(destructive_hint=True))
    run(cluster, server.run_stdio_async())


class Tools:
    """What a cluster is asked; the docstring of each tool is what its users read."""

    def __init__(self, cluster: Target) -> None:
        self._cluster = cluster

    def reading(self) -> Sequence[Callable[..., object]]:
        """Tools that change nothing."""
        return self.doctor, self.explain, self.topics, self.lag, self.dead_letters

    def writing(self) -> Sequence[Callable[..., object]]:
        """Tools that change something."""
        return self.replay_dead_letters, self.reset_offsets

    async def doctor(self) -> Result:
        """Check name servers, brokers, nodes and clocks; findings say what to do."""
        return {"checks": await self._ask(admin_doctor.examine)}

    async def explain(self, msg_id: str, group: str, topic: str = "") -> Result:
        """Explain why a message was or was not delivered to a consumer group.

        The topic is needed for the id that the message's producer gave it.
        """

        async def look(admin: Admin) -> Explained:
            found = await admin_explain.explain(admin, msg_id, group, topic or None)
            return Explained(
                findings=[FindingRow(**structs.asdict(one)) for one in found.findings],
                message=whole(found.message) if found.message else None,
            )

        answer: Result = await self._ask(look)
        return answer

    async def topics(self, names: str = ".*") -> Result:
        """List topics with queues, messages stored, and messages sent per second.

        The busiest is first. `names` is a regular expression for whole names.
        """

        async def look(admin: Admin) -> list[TopicRow]:
            return await busiest_topics(admin, pattern_of(names))

        return {"topics": await self._ask(look)}

    async def lag(self, group: str = "") -> Result:
        """Show the lag of all consumer groups, the largest first, or of one by queue.

        Lag is the number of messages that are not yet acknowledged.
        """

        async def look(admin: Admin) -> list[GroupQueue]:
            await admin_groups.known(admin, group)
            return [queue_row(lag) for lag in await admin.describe_group(group)]

        if group:
            return {"queues": await self._ask(look)}
        return {"groups": await self._ask(lambda admin: busiest_groups(admin, None))}

    async def dead_letters(self, group: str, count: int = 20) -> Result:
        """List messages that a consumer group gave up on, the oldest first."""
        return {
            "dead_letters": await self._ask(
                lambda admin: letter_rows(admin, group, count)
            )
        }

    async def replay_dead_letters(self, group: str, count: int) -> Result:
        """Send up to `count` of a group's dead letters to the group again.

        Each gets all its retries; they stay where they are and count as replayed.
        """

        async def work(admin: Admin) -> list[DeadLetterRow]:
            await admin_groups.known(admin, group)
            async with self._cluster.producer(_GROUP) as sender:
                return [
                    letter_row(letter, sent.msg_id)
                    async for letter, sent in admin_dlq.replay(
                        admin, sender, group, most=count
                    )
                ]

        return {"replayed": await self._ask(work)}

    async def reset_offsets(
        self, group: str, topic: str, to: str, dry_run: bool = True
    ) -> Result:
        """Move a group's offsets in a topic: it reads messages again, or skips them.

        `to` is `earliest`, `latest`, or a time like 2027-01-31T12:00:00. Unless
        `dry_run` is false, nothing is moved, and the answer is what would be.
        """

        async def work(admin: Admin) -> list[OffsetMove]:
            moved = await admin_offsets.reset(
                admin, group, topic, time_ms=moment_ms(to), dry_run=dry_run
            )
            return moved_rows(moved)

        return {"moved": await self._ask(work), "dry_run": dry_run}

    async def _ask(self, work: Callable[[Admin], Coroutine[Any, Any, T]]) -> Any:
        """What an administrator's client returns, as JSON has it; errors are told."""

        async def look() -> T:
            async with self._cluster.admin() as admin:
                return await work(admin)

        try:
            with reported():
                return to_builtins(await diagnosed(self._cluster, look()))
        except (click.ClickException, ValueError) as error:
            text = getattr(error, "message", str(error))
            failed = package("mcp.server.mcpserver.exceptions", "mcp").ToolError
            raise failed(text) from error
