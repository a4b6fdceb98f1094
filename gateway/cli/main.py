"""The `ropeway` command and its sub-commands."""

from __future__ import annotations

import signal
from importlib import import_module
from typing import Any

import click

from ropeway.gateway import __version__
from ropeway.gateway.cli import cluster_options, cluster_settings
from ropeway.gateway.cli.examples import example
from ropeway.gateway.fast_imports import killable

COMMANDS = {
    "serve": "Run a node until SIGTERM or Ctrl-C; a second one ends it at once.",
    "demo": "Start a gateway in a temporary directory; send and receive a message.",
    "produce": "Send MESSAGE to TOPIC, or files, or each line of the standard input.",
    "consume": "Print the messages of TOPIC, each on a line.",
    "bench": "Measure how fast messages are sent and received, and how late they are.",
    "top": "Print the busiest topics and groups, or VIEW alone, until Ctrl-C.",
    "context": "Save how clusters are reached, and choose the one that commands use.",
    "client": "Show connected clients, and what consumers say of themselves.",
    "cluster": "Show all brokers at a glance.",
    "broker": "Show brokers and their nodes, and drain and remove brokers.",
    "route": "Show and change the placement of queues and the masters of brokers.",
    "topic": "Create, change, show and delete topics.",
    "group": "Create, change, show and delete consumer groups.",
    "offset": "Show, reset, export and import consumer groups' offsets.",
    "message": "Find stored messages, send them, and send them again.",
    "transaction": "List transactions that are open.",
    "timer": "List and cancel messages that wait for their delivery time.",
    "quota": "Set limits for sending to topics and reading by groups, while nodes run.",
    "apply": "Create and change what a file declares: topics, groups, users and so on.",
    "diff": "Print what `ropeway apply` would do; exit code 1 if there is anything.",
    "acl": "Show and change users' policies, and explain access decisions.",
    "user": "Create, change, list and delete users of access control.",
    "log": "Show the state of nodes' logs, and verify one that no node has open.",
    "tier": "Manage the tier of an embedded log, or Pulsar's own offload.",
    "metrics": "Print the metrics of a node and its workers, a column for each.",
    "streams": "Run stream jobs: Python files with a StreamBuilder named `builder`.",
    "pipeline": "Ready-made pipelines on Spark.",
    "migrate": "Move from a running cluster of RocketMQ: a plan, mirrors, cut-overs.",
    "doctor": "Check a configuration, Pulsar, ZooKeeper, ports, nodes and clocks.",
    "schema": "Print the JSON Schema of what a command prints with --output json.",
    "mcp": "Serve the Model Context Protocol on stdin and stdout, for AI assistants.",
    "explain": "Explain why message MSG_ID was not delivered to GROUP, and what to do.",
    "completion": "Print the script that makes SHELL complete commands and names.",
}
"""Each is in the module of its name, and has this as its help."""


_INTERRUPTED = 128 + signal.SIGINT


class Commands(click.Group):
    """A group that imports a command when it is asked for, and not for its help.

    Most of them import the client, and some the gateway: a quarter of a second.
    """

    def list_commands(self, _: click.Context) -> list[str]:
        """List the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of a name; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        from ropeway.gateway.fast_imports import quickly  # noqa: PLC0415 - likewise

        with killable(), quickly():
            module = import_module(f"ropeway.gateway.cli.{cmd_name}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        _share(command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl-C ends it with the exit code that shells give it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(_INTERRUPTED) from None

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their help."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; options of clients before another one are refused."""
        if args[0] not in COMMANDS:
            _tell_nearest(ctx, args[0])
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not cluster_options.takes(command):
            for option in cluster_settings.given(ctx):
                flag = option.replace("_", "-")
                ctx.fail(f"--{flag}: `ropeway {name}` is no client of a cluster")
        return name, command, rest


def _tell_nearest(ctx: click.Context, wrong: str) -> None:
    """Refuse a command, if it is like others; click knows those that are imported."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for this

    if near := get_close_matches(wrong, COMMANDS):
        meant = " or ".join(map(repr, near))
        ctx.fail(f"No such command {wrong!r}. Did you mean {meant}?")


def _share(command: click.Command) -> None:
    """Let groups take the options of what is below them."""
    if isinstance(command, click.Group) and not cluster_options.takes(command):
        command.params += cluster_options.options(is_complete=False)
        for one in command.commands.values():
            _share(one)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=example(
        "ropeway serve --data ./data", "ropeway produce orders 'one coffee'"
    ),
)
@click.version_option(__version__, prog_name="ropeway")
def main() -> None:
    """Run a RocketMQ name server and broker on another log, and administer it."""


main.params += cluster_options.options(is_complete=True)

if __name__ == "__main__":
    main(prog_name="ropeway")
