"""`ropeway message resend`: a message once more, for all or for one consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client import Admin, admin_messages
from ropeway.gateway.cli.clients import ask, run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_names, topic_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import print_facts
from ropeway.gateway.cli.produce import sent_row
from ropeway.gateway.cli.rows import Planned
from ropeway.gateway.cli.rows.messages import HandledMessage, SentMessage
from ropeway.gateway.cli.target import ANSWER_S

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
@destructive_options
@cluster_options
@json_option(SentMessage, HandledMessage, Planned)
def resend(
    msg_id: str,
    topic: str | None,
    to_topic: str | None,
    group: str | None,
    client: str | None,
    consent: Consent,
    cluster: Target,
    as_json: bool,
) -> None:
    """Send a message once more: all groups of its topic get it again, as a new one."""
    if (group is None) != (client is None) or (group and to_topic):
        raise MisusedError(
            "give --group and --client together, and not with --to-topic"
        )

    found = ask(cluster, lambda admin: admin_messages.find(admin, msg_id, topic))
    target = to_topic or found.topic
    action = (
        f"have {client} handle the message again"
        if client
        else f"send the message to topic {target} again"
    )
    if not consent.to(action, as_json=as_json):
        return

    async def work() -> SentMessage | HandledMessage:
        async with cluster.admin() as admin:
            if group and client:
                return await _hand(admin, group, client, found)
            await admin_messages.note_resend(admin, found, target)
        async with cluster.producer(_GROUP) as producer:
            again = admin_messages.copy_of(found, to_topic)
            sent = await producer.send(again, timeout_s=ANSWER_S)
        return sent_row(sent)

    print_facts(run(cluster, work()), as_json=as_json)


async def _hand(
    admin: Admin, group: str, client: str, found: ReceivedMessage
) -> HandledMessage:
    handled = await admin_messages.hand_to(admin, group, client, found)
    return HandledMessage(
        group=group,
        client_id=client,
        result=handled.consume_result,
        remark=handled.remark,
        took_ms=handled.spent_time_mills,
    )
