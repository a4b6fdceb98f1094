"""The `ropeway` command and its sub-commands."""

from __future__ import annotations

import click

from gateway.cli.serve import serve


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ropeway")
def main() -> None:
    """Serve RocketMQ clients from another log, and look after what is served."""


main.add_command(serve)

if __name__ == "__main__":
    main()
