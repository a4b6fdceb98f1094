"""Where the `ropeway` command begins: Ctrl-C during imports ends it without a word."""

from __future__ import annotations

from ropeway.gateway.fast_imports import killable


def main() -> None:
    """Run the command."""
    with killable():
        from ropeway.gateway.cli.main import main as command  # noqa: PLC0415 - see above

    command(prog_name="ropeway")
