"""What `ropeway tier` does where the log is on Pulsar: Pulsar's own offload."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from ropeway.gateway.cli.cluster_options import json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import UnwellError, reported
from ropeway.gateway.cli.output import print_json
from ropeway.gateway.cli.rows.offloads import Offload, OffloadPolicy, Offloads
from ropeway.gateway.cli.tables import print_table
from ropeway.gateway.config_file import load
from ropeway.gateway.on_pulsar import open_offloading

if TYPE_CHECKING:
    from ropeway.gateway.config import Config
    from ropeway.storage.pulsar.offload import PartitionOffload, Policy

_FAILED = "ERROR"

config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="The node's configuration; needed where its log is on Pulsar.",
)


def show_offloads(config: Config, *, as_json: bool) -> None:
    """Print what Pulsar has offloaded, and when it does."""

    async def look() -> tuple[list[Policy], list[PartitionOffload]]:
        async with open_offloading(config) as offloading:
            return await offloading.policies(), await offloading.status()

    with reported():
        policies, partitions = asyncio.run(look())
    if as_json:
        rules = [OffloadPolicy(**asdict(one)) for one in policies]
        print_json(Offloads(policies=rules, partitions=_rows(partitions)))
        return
    print_table([_row(one) for one in partitions])
    for one in partitions:
        _print_error(one)
    for policy in policies:
        click.echo(_in_words(policy))


@click.command(
    epilog=example(
        "ropeway tier offload orders --config ropeway.toml",
        "ropeway tier offload orders --config ropeway.toml --no-wait",
    )
)
@click.argument("topic")
@config_option
@click.option("--wait/--no-wait", default=True, help="Until Pulsar has done it.")
@json_option(list[Offload])
def offload(topic: str, config_file: Path | None, wait: bool, as_json: bool) -> None:
    """Have Pulsar offload TOPIC, all but the ledgers that it writes to."""

    async def ask(config: Config) -> list[PartitionOffload]:
        async with open_offloading(config) as offloading:
            return await offloading.offload(topic, wait=wait)

    with reported():
        found = asyncio.run(ask(load(config_file, {})))
    if as_json:
        print_json(_rows(found))
    else:
        print_table([_row(one) for one in found])
    failed = [one for one in found if one.status == _FAILED]
    if failed:
        for one in failed if not as_json else ():
            _print_error(one)
        raise UnwellError(
            f"Pulsar did not offload {len(failed)} of {len(found)} partitions; its "
            "brokers need managedLedgerOffloadDriver and Pulsar's archive of offloaders"
        )


def _rows(found: list[PartitionOffload]) -> list[Offload]:
    return [Offload(**asdict(one)) for one in found]


def _row(one: PartitionOffload) -> dict[str, object]:
    """A line of the table; errors are too long for one."""
    row = asdict(one)
    del row["error"]
    return row


def _print_error(one: PartitionOffload) -> None:
    if one.error:
        click.echo(f"{one.topic}, partition {one.partition}: {one.error}")


def _in_words(policy: Policy) -> str:
    conditions = [
        f"what is more than {policy.threshold_bytes} bytes of a topic"
        if policy.threshold_bytes >= 0
        else "",
        f"what is older than {policy.threshold_s} s" if policy.threshold_s >= 0 else "",
    ]
    when = " and ".join(filter(None, conditions)) or "nothing, unless it is asked to"
    where = f", with driver {policy.driver}" if policy.driver else ""
    return f"{policy.namespace}: Pulsar offloads {when}{where}"
