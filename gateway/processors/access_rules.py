"""Rules of ACL 2.0: made, changed, deleted, listed and explained.

Source: AdminBrokerProcessor.createAcl and its likes, and AclConverter, RocketMQ 5.5.0.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from ropeway.acl.administration import Rule, Rules
from ropeway.acl.api import Action, Channel, Need, Resource, ResourceKind, Source
from ropeway.gateway.processors.access_users import administration, changing
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import GET, UPDATE, on_cluster
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.access_bodies import (
    AccessExplanation,
    AclInfo,
    PolicyEntryInfo,
    PolicyInfo,
)
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.auth import (
    CreateAcl,
    DeleteAcl,
    GetAcl,
    ListAcls,
    UpdateAcl,
)
from ropeway.gateway.wire.commands.explain import ExplainAccess

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CUSTOM, _DEFAULT = "Custom", "Default"
_ALLOW, _DENY = "Allow", "Deny"


@handles(CreateAcl, on_cluster(UPDATE))
@handles(UpdateAcl, on_cluster(UPDATE))
async def put_rules(request: CreateAcl | UpdateAcl, context: Context) -> Answer:
    """Add rules to a subject, or replace those of the same resources."""
    rules = administration(context)
    given = bodies.decode(AclInfo, context.body or b"{}")
    subject = request.subject or given.subject
    if not subject or not given.policies:
        raise _bad("The body of acl is null")
    return await changing(
        rules.add_rules(
            Rules(
                subject,
                tuple(_rules(given.policies, default=False)),
                tuple(_rules(given.policies, default=True)),
            )
        )
    )


def _rules(policies: Iterable[PolicyInfo], *, default: bool) -> Iterator[Rule]:
    for policy in policies:
        if _is_default(policy.policy_type) is not default:
            continue
        for entry in policy.entries or ():
            decision = (entry.decision or "").lower()
            if decision not in (_ALLOW.lower(), _DENY.lower()):
                raise _bad("The decision is null or illegal.")
            if not entry.resource:
                raise _bad("The resource is null.")
            yield Rule(
                entry.resource,
                tuple(entry.actions or ()),
                decision == _ALLOW.lower(),
                tuple(entry.source_ips or ()),
            )


def _is_default(policy_type: str | None) -> bool:
    lower = (policy_type or _CUSTOM).lower()
    if lower not in (_CUSTOM.lower(), _DEFAULT.lower()):
        raise _bad(f"policyType is {policy_type!r:.40}; allowed: {_CUSTOM}, {_DEFAULT}")
    return lower == _DEFAULT.lower()


@handles(DeleteAcl, on_cluster(UPDATE))
async def delete_rules(request: DeleteAcl, context: Context) -> Answer:
    """Delete a subject's rules, or that of one resource."""
    rules = administration(context)
    return await changing(
        rules.delete_rules(
            request.subject or "",
            resource=request.resource or None,
            default=_is_default(request.policy_type or None),
        )
    )


@handles(GetAcl, on_cluster(GET))
def get_rules(request: GetAcl, context: Context) -> Answer:
    """A subject's rules; nothing where there are none."""
    found = administration(context).rules().get(request.subject or "")
    return Answer(body=bodies.encode(_info(found, "")) if found else b"")


@handles(ListAcls, on_cluster(GET))
def list_rules(request: ListAcls, context: Context) -> Answer:
    """Rules of all subjects, or of those with a text in subject or resource."""
    wanted, resource = request.subject_filter or "", request.resource_filter or ""
    found = [
        info
        for subject, rules in sorted(administration(context).rules().items())
        if wanted in subject and (info := _info(rules, resource)).policies
    ]
    return Answer(body=bodies.encode(found) if found else b"")


def _info(rules: Rules, resource: str) -> AclInfo:
    policies = [
        PolicyInfo(policy_type=name, entries=entries)
        for name, given in ((_CUSTOM, rules.custom), (_DEFAULT, rules.default))
        if (entries := [_entry(one) for one in given if resource in one.resource])
    ]
    return AclInfo(subject=rules.subject, policies=policies)


def _entry(rule: Rule) -> PolicyEntryInfo:
    return PolicyEntryInfo(
        resource=rule.resource,
        actions=list(rule.actions),
        source_ips=list(rule.sources),
        decision=_ALLOW if rule.allowed else _DENY,
    )


@handles(ExplainAccess, on_cluster(GET), anywhere=True)
async def explain(request: ExplainAccess, context: Context) -> Answer:
    """What would be decided, and why."""
    guard = context.node.guard
    if guard is None:
        raise Refusal(
            ResponseCode.ILLEGAL_OPERATION,
            "access control is off: everybody may do everything",
        )
    acl = context.node.config.acl
    found = await guard.explain(
        request.principal, _need(request), Source(_address(request), Channel.REMOTING)
    )
    return Answer(
        body=bodies.encode(
            AccessExplanation(
                principal=str(found.principal) if found.principal else None,
                allowed=found.decision.allowed,
                rule=found.decision.rule,
                reason=found.decision.reason,
                hook=found.hook,
                dry_run=acl is not None and acl.dry_run,
            )
        )
    )


def _need(request: ExplainAccess) -> Need:
    kinds = {one.lower(): one for one in ResourceKind}
    actions = {one.lower(): one for one in Action}
    kind, colon, name = request.resource.partition(":")
    if kind.lower() not in kinds or not colon or not name:
        raise _bad(
            f"resource is {request.resource!r:.80}; allowed: KIND:NAME, KIND being "
            f"{', '.join(kinds)}"
        )
    if request.action.lower() not in actions:
        raise _bad(f"action is {request.action!r:.40}; allowed: {', '.join(Action)}")
    resource = Resource(kinds[kind.lower()], name)
    return Need(resource, (actions[request.action.lower()],))


def _address(request: ExplainAccess) -> str:
    try:
        return str(ipaddress.ip_address(request.address))
    except ValueError as error:
        raise _bad(
            f"address is {request.address!r:.80}; allowed: an IP address"
        ) from error


def _bad(remark: str) -> Refusal:
    return Refusal(ResponseCode.INVALID_PARAMETER, remark)
