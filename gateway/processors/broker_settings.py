"""Settings that change while a broker runs: the switches of popping, and no others.

Source: AdminBrokerProcessor.updateBrokerConfig, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.pop.switches import NAMES, VALUES
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import UPDATE, on_cluster
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.broker_admin import UpdateBrokerConfig

if TYPE_CHECKING:
    from collections.abc import Iterator


@handles(UpdateBrokerConfig, on_cluster(UPDATE))
async def update_broker_config(_: UpdateBrokerConfig, context: Context) -> Answer:
    """Turn switches; all that are asked for, or none."""
    values = dict(_lines(context.body))
    others = [name for name in values if name not in NAMES]
    if others or not values:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"setting {', '.join(others) or 'none'}: only {' and '.join(NAMES)} change "
            "while a broker runs; the others are in the configuration file, and are "
            "read when a node starts",
        )
    for name, value in values.items():
        if value not in VALUES:
            raise Refusal(
                ResponseCode.INVALID_PARAMETER,
                f"{name} is {value!r:.80}; allowed: {' or '.join(VALUES)}",
            )
    await context.node.pop.switches.turn(values)
    return Answer()


def _lines(body: bytes) -> Iterator[tuple[str, str]]:
    """The settings in Java's properties form."""
    for line in body.decode(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() and not line.startswith("#"):
            yield name.strip(), value.strip().lower()
