"""`ropeway broker drain`, `undrain` and `remove`: a broker leaves its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import structs

from ropeway.client import admin_drains
from ropeway.client.admin_drains import Waiting
from ropeway.gateway.cli.clients import ask, run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import broker_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.cli.rebalance import row
from ropeway.gateway.cli.rows import Planned
from ropeway.gateway.cli.rows.brokers import (
    BrokerDrained,
    BrokerRemovedRow,
    DrainPlan,
)
from ropeway.gateway.cli.tables import print_table

if TYPE_CHECKING:
    from ropeway.client.admin_moves import Move
    from ropeway.gateway.cli.target import Target
    from ropeway.gateway.wire.commands.drains import DrainState

broker_argument = click.argument("broker", shell_complete=broker_names)


@click.command(
    epilog=example(
        "ropeway broker drain broker-1 --dry-run", "ropeway broker drain broker-1"
    )
)
@broker_argument
@click.option(
    "--no-wait",
    is_flag=True,
    help="End when all queues have moved that can move now, and say what waits.",
)
@destructive_options
@cluster_options
@json_option(BrokerDrained, DrainPlan)
def drain(
    broker: str, no_wait: bool, consent: Consent, cluster: Target, as_json: bool
) -> None:
    """Empty BROKER for good: move its queues, and wait until nothing waits there.

    From the first moment on it gets nothing new. Break it off and begin again as you
    like; `ropeway broker undrain` takes it back. Only on Pulsar.
    """
    if not _wanted(broker, consent, cluster, as_json=as_json):
        return
    moved: list[Move] = []
    told = ""

    async def work() -> DrainState | None:
        nonlocal told
        async with cluster.admin() as admin:
            async for one in admin_drains.drain(admin, broker):
                if not isinstance(one, Waiting):
                    moved.append(one)
                    continue
                if no_wait and one.state is not None:
                    return one.state
                if (text := _waiting(one)) != told:
                    told = text
                    click.echo(f"waiting: {text}", err=True)
        return None

    left: DrainState | None = None
    try:
        left = run(cluster, work())
    finally:
        # What has moved stays so, whatever came after it.
        rows = [row(one) for one in moved]
        if as_json:
            print_json(BrokerDrained(broker=broker, moved=rows, left=_left(left)))
        else:
            print_rows(rows, as_json=False)
    if left is not None:
        raise CannotError(f"broker {broker} has yet: {_text(_left(left))}")
    if not as_json:
        click.echo(
            f"nothing is left on {broker}; stop its nodes, then: "
            f"ropeway broker remove {broker}"
        )


def _wanted(broker: str, consent: Consent, cluster: Target, *, as_json: bool) -> bool:
    if consent.yes:
        # A node that is away for a moment is waited for.
        return True
    state = ask(cluster, lambda admin: admin_drains.look(admin, broker))
    if consent.dry_run:
        _print_state(state, as_json=as_json)
        return False
    queues = sum(state.queues.values())
    return consent.to(f"move {queues} queues away from broker {broker}")


def _print_state(state: DrainState, *, as_json: bool) -> None:
    if as_json:
        print_json(
            DrainPlan(
                draining=state.draining,
                queues=state.queues,
                waiting=state.waiting,
                stuck=state.stuck,
            )
        )
        return
    rows = [
        *({"what": name, "queues": count} for name, count in state.queues.items()),
        *({"what": name, "waiting": count} for name, count in state.waiting.items()),
    ]
    print_table([{"what": "", "queues": "", "waiting": "", **each} for each in rows])
    for name, why in sorted(state.stuck.items()):
        click.echo(f"cannot move: {name}: {why}")


def _left(state: DrainState | None) -> dict[str, int]:
    """What a broker has yet, in few words."""
    if state is None:
        return {}
    queues = sum(state.queues.values())
    return {**({"queues": queues} if queues else {}), **state.waiting}


def _waiting(one: Waiting) -> str:
    return "; ".join(filter(None, (_text(_left(one.state)), one.trouble)))


def _text(left: dict[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in left.items())


@click.command(epilog=example("ropeway broker undrain broker-1"))
@broker_argument
@cluster_options
def undrain(broker: str, cluster: Target) -> None:
    """Let BROKER get queues again; those that have moved stay where they are."""
    ask(cluster, lambda admin: admin_drains.undrain(admin, broker))
    click.echo(
        f"broker {broker} gets queues again; spread those that are there with: "
        "ropeway route rebalance --all"
    )


@click.command(
    epilog=example(
        "ropeway broker remove broker-1", "ropeway broker remove broker-1 --gone --yes"
    )
)
@click.argument("broker")
@click.option(
    "--gone",
    is_flag=True,
    help="It was not drained, and never comes back: give up what waits there.",
)
@destructive_options
@cluster_options
@json_option(BrokerRemovedRow, Planned)
def remove(
    broker: str, gone: bool, consent: Consent, cluster: Target, as_json: bool
) -> None:
    """Remove BROKER, of which no node runs, from the routes.

    Its own topics leave the routes, and deletions of topics no longer wait for it.
    """
    given_up = " with what waits there: delayed messages, retries, open transactions"
    action = f"remove broker {broker}{given_up if gone else ''}"
    if not consent.to(action, as_json=as_json):
        return
    removed = ask(cluster, lambda one: admin_drains.remove(one, broker, gone=gone))
    if as_json:
        print_json(BrokerRemovedRow(broker=broker, **structs.asdict(removed)))
    else:
        click.echo(
            f"broker {broker}: {removed.own_topics} of its own topics removed, "
            f"{removed.deletions} deletions done"
        )
    if removed.left:
        raise CannotError(
            f"broker {broker} has queues of {len(removed.left)} topics, like "
            f"{min(removed.left)}; they are there for a node of it that comes back, "
            "and go with their topics (ropeway topic delete)"
        )
