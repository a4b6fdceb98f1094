"""The part of `ropeway acl` that lists and changes the policies of users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client import admin_users
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.access import PolicyRow
from ropeway.gateway.wire.access_bodies import PolicyEntryInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.gateway.cli.target import Target

_CREATE = "ropeway acl create alice --resource Topic:orders --action Pub --action Sub"


@click.command(
    "list", epilog=example("ropeway acl list", "ropeway acl list --user alice")
)
@click.option("--user", default="", help="Only users with this text in their names.")
@click.option("--resource", default="", help="Only resources with this text.")
@cluster_options
@json_option(list[PolicyRow])
def list_(user: str, resource: str, cluster: Target, as_json: bool) -> None:
    """Print the policies of users."""
    found = ask(cluster, lambda admin: admin_users.policies(admin, user, resource))
    rows = [
        PolicyRow(
            user=(subject.subject or "").removeprefix("User:"),
            resource=entry.resource,
            actions=entry.actions or [],
            decision=entry.decision,
            sources=entry.source_ips or [],
            policy=policy.policy_type,
        )
        for subject in found
        for policy in subject.policies or ()
        for entry in policy.entries or ()
    ]
    print_rows(rows, as_json=as_json)


@click.command(epilog=example(_CREATE))
@click.argument("user")
@click.option(
    "--resource",
    required=True,
    metavar="KIND:NAME",
    help="Topic:NAME, Group:NAME or Cluster:NAME; NAME may end in *.",
)
@click.option(
    "--action",
    "actions",
    multiple=True,
    required=True,
    help="All, Pub, Sub, Create, Update, Delete, Get or List; may be repeated.",
)
@click.option(
    "--source", "sources", multiple=True, metavar="IP[/BITS]", help="Only from there."
)
@click.option("--deny", is_flag=True, help="Deny it, where it would be allowed.")
@cluster_options
def create(
    user: str,
    resource: str,
    actions: tuple[str, ...],
    sources: tuple[str, ...],
    deny: bool,
    cluster: Target,
) -> None:
    """Add a policy to USER, or replace the one of the same resource."""
    refuse_malformed(resource, actions, sources)
    entry = PolicyEntryInfo(
        resource=resource,
        actions=list(actions),
        source_ips=list(sources),
        decision="Deny" if deny else "Allow",
    )
    ask(cluster, lambda admin: admin_users.put_policy(admin, f"User:{user}", entry))
    word = "denied" if deny else "allowed"
    click.echo(f"user {user}: {','.join(actions)} on {resource} is {word}")


def refuse_malformed(
    resource: str, actions: Sequence[str], sources: Sequence[str] = ()
) -> None:
    """Refuse what is no policy; brokers answer that it is not allowed, as RocketMQ's.

    Raises:
        MisusedError: Says what came and what is allowed.
    """
    # Only who writes policies needs to know what they are.
    from ropeway.acl.administration import Rule, Rules, RulesError  # noqa: PLC0415
    from ropeway.acl.policies import Policies  # noqa: PLC0415

    rule = Rule(resource, tuple(actions), allowed=True, sources=tuple(sources))
    try:
        Policies(Rules("", custom=(rule,)))
    except RulesError as error:
        raise MisusedError(str(error)) from error


@click.command(epilog=example("ropeway acl delete alice --resource Topic:orders --yes"))
@click.argument("user")
@click.option("--resource", metavar="KIND:NAME", help="Only the policy of this one.")
@destructive_options
@cluster_options
def delete(user: str, resource: str | None, consent: Consent, cluster: Target) -> None:
    """Delete the policies of USER."""
    what = f"the policy for {resource}" if resource else "all policies"
    subject = f"User:{user}"
    ask(cluster, lambda one: admin_users.known_policies(one, subject, resource))
    if consent.to(f"delete {what} of user {user}"):
        ask(cluster, lambda one: admin_users.delete_policies(one, subject, resource))
        click.echo(f"user {user}: {what} deleted")
