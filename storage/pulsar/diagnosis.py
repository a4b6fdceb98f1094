"""What keeps a log from opening on Pulsar, all of it and not only the first.

It is looked at by the same functions as at a start, and nothing is changed but what
was asked to be mended.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from ropeway.common.reasons import reason_of
from ropeway.storage.api import LogError
from ropeway.storage.pulsar import leftovers, selftest
from ropeway.storage.pulsar import owner as owners
from ropeway.storage.pulsar.catalog import Catalog
from ropeway.storage.pulsar.cluster import open_admin, open_cluster
from ropeway.storage.pulsar.errors import ForeignPulsarError, PulsarError
from ropeway.storage.pulsar.pulsar_id import Expected, schema_topic
from ropeway.storage.pulsar.rest import AdminRefusedError, NotPermittedError
from ropeway.storage.pulsar.selftest import PUBLIC
from ropeway.storage.pulsar.service_url import ServiceUrl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.leftovers import Routed
    from ropeway.storage.pulsar.owner import Owner, Policies
    from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
    from ropeway.storage.pulsar.topic_names import Names

ANSWER_S = 10.0
MOST_NAMED = 8
"""Of partitions that are missing."""
_FIX = "ropeway doctor --config FILE --only-here --fix"
_START = "start Pulsar, or set pulsar.service_url and pulsar.admin_url to where it is"
_FOREIGN = (
    "take it out of pulsar.service_url or pulsar.admin_url; to go on there with what "
    "was replicated: docs/pulsar.md, Two clusters"
)
_UP = "start it, or take it out where it is gone; nodes use the others"
_SIGN_IN = "see docs/pulsar.md, Signing in and Rights"
_LISTENER = (
    "set pulsar.listener_name to one of the brokers' advertisedListeners, or leave it "
    "out"
)


class Finding(NamedTuple):
    """One thing that was looked at."""

    text: str
    advice: str = ""
    """What to do; nothing where it is well."""
    refused: bool = False
    """Whether a node cannot start so, or must not run."""
    mended: str = ""
    """The Pulsar topic that was changed, `persistent://...`; empty where none was."""


async def examine(
    settings: PulsarLogSettings,
    owner: Owner | None,
    expected: Sequence[Routed] | None = None,
    *,
    prepare: bool,
    fix: bool = False,
) -> list[Finding]:
    """Look at Pulsar as a node does at its start.

    Args:
        settings: Of the log.
        owner: The cluster; None where no node of it was ever started.
        expected: What its routes say; None: namespaces are not compared with them.
        prepare: Whether a start would make namespaces that are missing.
        fix: Whether to mend what does not fit the routes, as `leftovers.mend` does.

    Raises:
        OSError: A certificate cannot be read.
    """
    cluster = open_cluster(settings, ANSWER_S)
    try:
        found = [
            one
            async for one in _examine(
                *cluster, settings, owner, expected, prepare=prepare, fix=fix
            )
        ]
    finally:
        await cluster.close()
    # In another namespace, or for whom Pulsar refuses, there is no id to be seen.
    wanted = _pulsar_cluster(settings, owner)
    if wanted is None or any(one.refused for one in found):
        return found
    return found + [one async for one in _of_addresses(settings, wanted)]


def _pulsar_cluster(
    settings: PulsarLogSettings, owner: Owner | None
) -> Expected | None:
    """What Pulsar has to show to a cluster that has messages there; None: nothing."""
    space = f"{settings.tenant}/{settings.namespace}"
    ids = None if owner is None else owner.pulsar_ids
    if ids is None or ids.current is None or space == PUBLIC:
        return None
    return Expected(schema_topic(space), ids.current)


async def _of_addresses(
    settings: PulsarLogSettings, expected: Expected
) -> AsyncIterator[Finding]:
    """Look at each address by itself: nodes pass over one of another Pulsar cluster."""
    cluster = open_cluster(settings, ANSWER_S)
    cluster.client.expected = expected
    try:
        for address in ServiceUrl.parse(settings.service_url).addresses:
            try:
                await cluster.client.look_at(address)
            except ForeignPulsarError as error:
                yield Finding(str(error), _FOREIGN, refused=True)
            except PulsarError as error:
                yield Finding(f"Pulsar's broker {address} does not serve: {error}", _UP)
    finally:
        await cluster.close()
    scheme, _, hosts = settings.admin_url.partition("://")
    for host in hosts.split(","):
        one = structs.replace(settings, admin_url=f"{scheme}://{host}")
        admin = open_admin(one, ANSWER_S)
        try:
            complaint = expected.complaint(host, await admin.schema(expected.topic))
        except LogError as error:
            yield Finding(str(error), _UP)
        else:
            if complaint is not None:
                yield Finding(complaint, _FOREIGN, refused=True)
        finally:
            await admin.close()


async def _examine(
    admin: Admin,
    client: PulsarClient,
    settings: PulsarLogSettings,
    owner: Owner | None,
    expected: Sequence[Routed] | None,
    *,
    prepare: bool,
    fix: bool,
) -> AsyncIterator[Finding]:
    catalog = Catalog(admin, settings)
    try:
        broker = await selftest.check_brokers(admin)
        yield Finding(f"Pulsar's admin interface {settings.admin_url} answers")
        for space in catalog.spaces:
            policies = await owners.look(admin, space)
            if policies is None and prepare and space != PUBLIC:
                await _see_that_we_may_make(admin, space)
            if policies is not None:
                await catalog.load([space])
                yield await _signed_in(client, space)
            for one in _of_space(space, policies, broker, prepare=prepare):
                yield one
            for one in _of_owner(space, policies, owner, catalog):
                yield one
            is_ours = owner is not None and owners.owners(policies or {}).keys() == {
                owner.id
            }
            if is_ours and expected is not None:
                async for one in _of_routes(
                    admin, space, expected, catalog.names, fix=fix
                ):
                    yield one
    except NotPermittedError as error:
        yield Finding(str(error), _SIGN_IN, refused=True)
    except (LogError, OSError) as error:
        yield _refused(reason_of(error))


async def _see_that_we_may_make(admin: Admin, space: str) -> None:
    """See whether a start may make a namespace, and its tenant, which changes nothing.

    Raises:
        NotPermittedError: It may not.
    """
    try:
        # For admins of the tenant, as making a namespace is; so is the next for
        # superusers, as making a tenant.
        await admin.call("GET", f"namespaces/{space.partition('/')[0]}")
    except AdminRefusedError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        await admin.call("GET", "tenants")


async def _signed_in(client: PulsarClient, space: str) -> Finding:
    """Whether brokers take who we are where messages are sent, too."""
    try:
        # To be asked for a topic makes none.
        await client.broker_of(f"persistent://{space}/__ropeway_doctor")
    except PulsarError as error:
        what = f"Pulsar's brokers refuse namespace {space}: {error}"
        # Brokers have no code of their own for a listener that they do not know.
        advice = _LISTENER if "listener" in str(error) else _SIGN_IN
        return Finding(what, advice, refused=True)
    return Finding(
        f"Pulsar's brokers serve namespace {space} (authentication: {client.method})"
    )


def _of_space(
    space: str,
    policies: Policies | None,
    broker: Mapping[str, str],
    *,
    prepare: bool,
) -> Iterator[Finding]:
    if policies is None:
        if prepare and space != PUBLIC:
            yield Finding(f"the first start makes the namespace {space} of Pulsar")
        else:
            yield _refused(selftest.missing(space))
        return
    wrong = [text for _, text in selftest.complaints(space, policies, broker)]
    for text in wrong:
        yield _refused(text)
    if not wrong:
        yield Finding(f"namespace {space} of Pulsar has the policies that it needs")


def _of_owner(
    space: str, policies: Policies | None, owner: Owner | None, catalog: Catalog
) -> Iterator[Finding]:
    wrong = owners.complaints(owner, space, policies, catalog)
    for text in wrong:
        yield _refused(text)
    if wrong or policies is None or owner is None:
        return
    if owner.id in owners.owners(policies):
        yield Finding(f"namespace {space} of Pulsar is this cluster's, {owner.id}")
    else:
        yield Finding(
            f"namespace {space} of Pulsar does not say whose it is",
            f"set: {owners.command(space, owner)}",
        )


async def _of_routes(
    admin: Admin, space: str, expected: Sequence[Routed], names: Names, *, fix: bool
) -> AsyncIterator[Finding]:
    """Compare a namespace that is surely the cluster's own with its routes."""
    fits = True
    listed = await admin.topics(space)
    for one in leftovers.find(expected, names, space, listed):
        fits = False
        if isinstance(one, leftovers.Missing):
            numbers = ", ".join(map(str, one.partitions[:MOST_NAMED]))
            more = " and more" * (len(one.partitions) > MOST_NAMED)
            text = (
                f"topic {one.topic} has queues in {len(one.partitions)} partitions "
                f"that Pulsar has not: {numbers}{more}, of {one.name.local} in {space}"
            )
            advice = f"restore them, or have them made empty: {_FIX}"
            mended = "they were made, empty"
        else:
            text = f"Pulsar still has {one.name.local} in {space}, "
            if not one.is_ours:
                yield Finding(
                    f"{text}perhaps of a deleted topic",
                    "a native client may have made it, so it is left alone: look at "
                    "it, and delete it with pulsar-admin topics "
                    f"delete-partitioned-topic persistent://{space}/{one.name.local}",
                )
                continue
            text += "of a deleted topic"
            advice = f"have it deleted: {_FIX}"
            mended = "it was deleted"
        if fix:
            await leftovers.mend(admin, one)
            full = f"persistent://{space}/{one.name.local}"
            yield Finding(f"{text}; {mended}", mended=full)
        else:
            missing = isinstance(one, leftovers.Missing)
            yield Finding(text, advice, refused=missing)
    if fits:
        yield Finding(f"namespace {space} of Pulsar has what its routes say")


def _refused(text: str) -> Finding:
    """What a start ends with: what is wrong, and behind it what to do."""
    what, _, advice = text.partition("; ")
    return Finding(what, advice or _START, refused=True)
