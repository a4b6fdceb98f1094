"""`ropeway message resend`: a message once more, for all or for one consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ropeway.client import Admin, admin_messages
from ropeway.gateway.cli.clients import confirm, run, yes_option
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_names, topic_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import print_facts

if TYPE_CHECKING:
    from ropeway.client import ReceivedMessage
    from ropeway.gateway.cli.target import Target

_GROUP = "ropeway-cli"


@click.command(
    epilog=example(
        "ropeway message resend 7F000001000026940000000000000007",
        "ropeway message resend 7F000001000026940000000000000007 "
        "--group kitchen --client 10.0.0.7@4711",
    )
)
@click.argument("msg_id")
@click.option(
    "--topic", help="Its topic, where it is known.", shell_complete=topic_names
)
@click.option(
    "--to-topic", help="Send it to this topic instead.", shell_complete=topic_names
)
@click.option(
    "--group",
    help="Hand it to a consumer of this group, with --client; nothing is stored.",
    shell_complete=group_names,
)
@click.option("--client", help="The consumer; `ropeway group members` has them.")
@yes_option
@cluster_options
@json_option
def resend(
    msg_id: str,
    topic: str | None,
    to_topic: str | None,
    group: str | None,
    client: str | None,
    yes: bool,
    cluster: Target,
    as_json: bool,
) -> None:
    """Send a message once more: all groups of its topic get it again, as a new one."""
    if (group is None) != (client is None) or (group and to_topic):
        raise MisusedError(
            "give --group and --client together, and not with --to-topic"
        )

    async def work() -> dict[str, Any]:
        async with cluster.admin() as admin:
            found = await admin_messages.find(admin, msg_id, topic)
            target = to_topic or found.topic
            if group and client:
                confirm(f"Have {client} handle the message again?", yes=yes)
                return await _hand(admin, group, client, found)
            confirm(f"Send the message to topic {target} again?", yes=yes)
            await admin_messages.note_resend(admin, found, target)
        async with cluster.producer(_GROUP) as producer:
            sent = await producer.send(admin_messages.copy_of(found, to_topic))
        return {
            "topic": sent.queue.topic,
            "broker": sent.queue.broker_name,
            "queue_id": sent.queue.queue_id,
            "offset": sent.queue_offset,
            "msg_id": sent.msg_id,
            "offset_msg_id": sent.offset_msg_id,
        }

    print_facts(run(cluster, work()), as_json=as_json)


async def _hand(
    admin: Admin, group: str, client: str, found: ReceivedMessage
) -> dict[str, Any]:
    handled = await admin_messages.hand_to(admin, group, client, found)
    return {
        "group": group,
        "client": client,
        "result": handled.consume_result,
        "remark": handled.remark,
        "took_ms": handled.spent_time_mills,
    }
