"""`ropeway tier`: look after the tier of an embedded log."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ropeway.gateway.cli.cluster_options import json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError, MisusedError, reported
from ropeway.gateway.cli.offload import config_option, offload, show_offloads
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.cli.rows.offloads import Offloads
from ropeway.gateway.config_file import load
from ropeway.storage.tiered import dispatcher, object_names
from ropeway.storage.tiered.metadata import NAME, Metadata
from ropeway.storage.tiered.providers import open_provider
from ropeway.storage.tiered.status import Status
from ropeway.storage.tiered.status import status as status_of
from ropeway.storage.tiered.verify import Verified
from ropeway.storage.tiered.verify import verify as verify_tier

if TYPE_CHECKING:
    from collections.abc import Iterator


_TIER = "tier"
"""The metadata's place within a node's data directory."""

directory_argument = click.argument(
    "directory", type=click.Path(path_type=Path, exists=True, file_okay=False)
)


@click.group(epilog=example("ropeway tier status ./data"))
def tier() -> None:
    """Manage the tier of an embedded log, or Pulsar's own offload."""


tier.add_command(offload)


@contextmanager
def _metadata(directory: Path) -> Iterator[Metadata]:
    if not (directory / _TIER / NAME).exists():
        raise CannotError(
            f"no tier in {directory}: a node makes one whose configuration has [tier]"
        )
    with reported():
        metadata = Metadata(directory / _TIER)
        try:
            yield metadata
        finally:
            metadata.close()


@tier.command(
    epilog=example(
        "ropeway tier status ./data", "ropeway tier status --config ropeway.toml"
    )
)
@click.argument(
    "directory",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=False,
)
@config_option
@json_option(Status, Offloads)
def status(directory: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Show what the tier of the node with data in DIRECTORY has.

    Where the node's log is on Pulsar, show what Pulsar has offloaded by itself.
    """
    if directory is None:
        if config_file is None:
            raise MisusedError("neither DIRECTORY nor --config is given; allowed: one")
        with reported():
            config = load(config_file, {})
        if config.pulsar is not None:
            show_offloads(config, as_json=as_json)
            return
        directory = config.data
    with _metadata(directory) as metadata:
        found = status_of(metadata)
    if as_json:
        print_json(found)
        return
    print_rows(found.queues, as_json=False)
    click.echo(f"{found.url}: all before position {found.position} is there")
    if found.paused:
        click.echo("paused")
    if found.backfill:
        click.echo("a backfill will begin")
    if found.failure is not None:
        click.echo(f"uploads fail: {found.failure}")


@tier.command(
    epilog=example(
        "ropeway tier verify ./data",
        "ropeway tier verify . --url s3://bucket/ropeway/broker-0 --topic orders",
    )
)
@directory_argument
@click.option("--url", help="The folder of a broker's tier, instead of DIRECTORY's.")
@click.option("--topic", help="Only this topic.")
@json_option(Verified)
def verify(directory: Path, url: str | None, topic: str | None, as_json: bool) -> None:
    """Check every object of the tier of the node with data in DIRECTORY.

    It changes nothing. Damage is printed line by line, and the exit code is 1.
    """
    if url is None:
        with _metadata(directory) as metadata:
            url = status_of(metadata).url
    with reported():
        found = asyncio.run(_verify(url, topic))
    if as_json:
        print_json(found)
    else:
        for problem in found.problems:
            click.echo(problem)
        click.echo(
            f"{found.segments} segments, {found.records} messages, "
            f"{found.bytes} bytes, "
            f"{found.left_over} left over, {len(found.problems)} problems"
        )
    if found.problems:
        raise CannotError(f"the tier at {url} is damaged")


async def _verify(url: str, topic: str | None) -> Verified:
    provider = open_provider(url)
    try:
        return await verify_tier(
            provider, object_names.topic_prefix(topic) if topic else ""
        )
    finally:
        await provider.close()


@tier.command(epilog=example("ropeway tier backfill ./data"))
@directory_argument
def backfill(directory: Path) -> None:
    """Have the node with data in DIRECTORY upload what the tier has not of its log."""
    with _metadata(directory) as metadata:
        metadata.put_state(dispatcher.BACKFILL, "asked")
    click.echo("the node goes over its log from the beginning")


@tier.command(epilog=example("ropeway tier pause ./data"))
@directory_argument
def pause(directory: Path) -> None:
    """Stop uploads and deletions of the node with data in DIRECTORY."""
    with _metadata(directory) as metadata:
        metadata.put_state(dispatcher.PAUSED, "asked")
    click.echo("paused")


@tier.command(epilog=example("ropeway tier resume ./data"))
@directory_argument
def resume(directory: Path) -> None:
    """Let the node with data in DIRECTORY go on after a pause."""
    with _metadata(directory) as metadata:
        metadata.put_state(dispatcher.PAUSED, None)
    click.echo("resumed")
