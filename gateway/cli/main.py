"""The `ropeway` command and its sub-commands."""

from __future__ import annotations

import click

from gateway import __version__
from gateway.cli.acl import acl
from gateway.cli.broker import broker
from gateway.cli.cluster import cluster
from gateway.cli.completion import completion
from gateway.cli.consume import consume
from gateway.cli.demo import demo
from gateway.cli.doctor import doctor
from gateway.cli.examples import example
from gateway.cli.explain import explain
from gateway.cli.group import group
from gateway.cli.log import log
from gateway.cli.message import message
from gateway.cli.metrics import metrics
from gateway.cli.offset import offset
from gateway.cli.pipeline import pipeline
from gateway.cli.produce import produce
from gateway.cli.quota import quota
from gateway.cli.route import route
from gateway.cli.serve import serve
from gateway.cli.streams import streams
from gateway.cli.tier import tier
from gateway.cli.timer import timer
from gateway.cli.topic import topic


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=example(
        "ropeway serve --data ./data", "ropeway produce orders 'one coffee'"
    ),
)
@click.version_option(__version__, prog_name="ropeway")
def main() -> None:
    """Serve RocketMQ clients from another log, and look after what is served."""


for command in (
    *(serve, demo, produce, consume),
    *(cluster, broker, route, topic, group, offset, message, timer, quota, acl),
    *(log, tier),
    metrics,
    *(streams, pipeline),
    *(doctor, explain, completion),
):
    main.add_command(command)

if __name__ == "__main__":
    main(prog_name="ropeway")
