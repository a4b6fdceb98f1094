"""The `ropeway` command and its sub-commands."""

from __future__ import annotations

from importlib import import_module

import click

from gateway import __version__
from gateway.cli.examples import example
from gateway.importing import quickly

COMMANDS = (
    *("serve", "demo", "produce", "consume"),
    *("cluster", "broker", "route", "topic", "group", "offset", "message", "timer"),
    *("quota", "acl", "log", "tier", "metrics", "streams", "pipeline"),
    *("doctor", "explain", "completion"),
)
"""Each is in the module of its name."""


class Commands(click.Group):
    """A group that imports a command when it is asked for.

    All of them import the gateway and its libraries: a quarter of a second each time.
    """

    def list_commands(self, _: click.Context) -> list[str]:
        """List the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of a name; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        with quickly():
            module = import_module(f"gateway.cli.{cmd_name}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=example(
        "ropeway serve --data ./data", "ropeway produce orders 'one coffee'"
    ),
)
@click.version_option(__version__, prog_name="ropeway")
def main() -> None:
    """Serve RocketMQ clients from another log, and look after what is served."""


if __name__ == "__main__":
    main(prog_name="ropeway")
