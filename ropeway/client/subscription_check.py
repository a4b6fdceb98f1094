"""Asks a broker whether it can do what a subscription wants, before it counts.

Source: MQClientInstance.checkClientInBroker, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.client.routes import MASTER_ID
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.clients import CheckClientConfig

if TYPE_CHECKING:
    from ropeway.client.instance import Instance
    from ropeway.client.routes import Route
    from ropeway.client.subscription import Subscription


async def check(
    instance: Instance, group: str, wanted: Subscription, route: Route
) -> None:
    """See to it that a broker of the topic understands an SQL condition.

    Tags are understood everywhere, and nobody is asked.

    Raises:
        ResponseError: It does not, and says where.
        RemotingError: It does not answer.
    """
    if wanted.expression_type != bodies.SQL92:
        return
    body = bodies.CheckClientBody(
        client_id=instance.client_id, group=group, subscription_data=wanted.data()
    )
    masters = [one[MASTER_ID] for one in route.brokers.values() if MASTER_ID in one]
    for address in masters[:1]:
        await instance.connections.request(
            address, CheckClientConfig(), bodies.encode(body)
        )
