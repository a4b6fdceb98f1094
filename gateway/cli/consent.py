"""Whether to go on with a destructive command: `--dry-run`, `--yes`, or the prompt.

Every command that deletes, moves or resets something has `destructive_options`; a test
walks all commands. It looks first, asks outside of the event loop, so that Ctrl-C ends
the prompt, and acts then.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from ropeway.gateway.cli.failures import CannotError
from ropeway.gateway.cli.output import print_json
from ropeway.gateway.cli.rows import Planned

if TYPE_CHECKING:
    from collections.abc import Callable

_INTERRUPTED = 130
"""What shells say of a command that Ctrl-C ended; click has 1 where it asks."""

F = TypeVar("F", bound="Callable[..., Any]")


class Consent(NamedTuple):
    """What the command line says about an action that destroys something."""

    yes: bool
    dry_run: bool

    def to(self, action: str, *, as_json: bool = False) -> bool:
        """Whether to go on; with --dry-run, print the action and do not.

        Args:
            action: What would be done, like `delete topic orders`.
            as_json: Print a dry run as `{"would": ACTION}`.

        Raises:
            CannotError: Nobody can be asked.
            click.Abort: The answer is no.
            SystemExit: It was Ctrl-C.
        """
        if self.dry_run:
            if as_json:
                print_json(Planned(would=action))
            else:
                click.echo(f"would {action}")
            return False
        if not self.yes:
            _ask(f"{action[0].upper()}{action[1:]}?")
        return True


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise CannotError(
            f"{question} Standard input is no terminal to ask at; --yes answers, "
            "--dry-run only shows what would be done"
        )
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            click.echo(err=True)
            raise SystemExit(_INTERRUPTED) from None
        raise


def destructive_options(function: F) -> F:
    """Give a command --dry-run and --yes; its function gets the `Consent` `consent`."""

    @functools.wraps(function)
    def called(*args: Any, yes: bool, dry_run: bool, **kwargs: Any) -> Any:
        if yes and dry_run:
            raise click.UsageError("give one of --yes and --dry-run")
        return function(*args, consent=Consent(yes, dry_run), **kwargs)

    yes_option = click.option(
        "--yes", is_flag=True, help="Do not ask for confirmation."
    )
    dry_option = click.option(
        "--dry-run", is_flag=True, help="Print what would be done, and change nothing."
    )
    return cast("F", dry_option(yes_option(called)))
