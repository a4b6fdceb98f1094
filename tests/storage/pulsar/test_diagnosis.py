"""All that a start would be refused for is found at once, and nothing is changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.diagnosis import Finding, examine
from ropeway.storage.pulsar.owner import Owner
from ropeway.storage.pulsar.pulsar_choice import note
from ropeway.storage.pulsar.pulsar_id import PulsarIds
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from ropeway.storage.pulsar.selftest import POLICIES, PUBLIC
from tests.storage.pulsar.logs import settings_for

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

OWNER = Owner("aa", "c", frozenset({"orders"}))


def found(
    settings: PulsarLogSettings, owner: Owner | None = None, *, prepare: bool = True
) -> list[Finding]:
    return asyncio.run(examine(settings, owner, prepare=prepare))


def test_nobody_there_is_one_finding() -> None:
    dead = PulsarLogSettings(admin_url="http://127.0.0.1:1")
    (one,) = found(dead)
    assert one.refused
    assert one.text.startswith("Pulsar's admin REST at http://127.0.0.1:1 does not")
    assert one.advice.startswith("start Pulsar")


@pytest.mark.jvm
@pytest.mark.server
def test_every_policy_that_does_not_fit_is_found_with_its_command(
    pulsar: Pulsar,
) -> None:
    space = "public/unexamined"
    settings = settings_for(pulsar, space)
    assert [one.refused for one in found(settings)] == [False, False]
    (_, missing) = found(settings, prepare=False)
    assert missing.refused
    assert f"pulsar-admin namespaces create {space}" in missing.advice
    pulsar.admin("PUT", f"namespaces/{space}")
    before: Any = pulsar.admin("GET", f"namespaces/{space}")
    wrong = [one for one in found(settings) if one.refused]
    # Inactive topics stay by the broker's own setting.
    remedies = [one.remedy for one in POLICIES if one.path != "inactiveTopicPolicies"]
    for one, remedy in zip(wrong, remedies, strict=True):
        assert one.advice == f"set: pulsar-admin namespaces {remedy} {space}"
    assert pulsar.admin("GET", f"namespaces/{space}") == before


@pytest.mark.jvm
@pytest.mark.server
def test_whose_a_namespace_is_is_told(pulsar: Pulsar, pulsar_namespace: str) -> None:
    settings = settings_for(pulsar, pulsar_namespace)
    properties = f"namespaces/{pulsar_namespace}/properties"

    def last(owner: Owner | None) -> Finding:
        return found(settings, owner)[-1]

    bare = Owner("aa", "c", frozenset())
    assert not last(bare).refused
    assert f"-k ropeway.cluster.aa -v c {pulsar_namespace}" in last(bare).advice
    assert last(OWNER).refused
    assert "and it has none of them" in last(OWNER).text
    pulsar.admin("PUT", properties, {"ropeway.cluster.aa": "c"})
    assert last(bare).text.endswith("is this cluster's, aa")
    assert last(bare).advice == ""
    assert "belongs to another cluster, c of the id aa" in last(None).text
    assert last(None).refused
    assert last(Owner("bb", "c", frozenset())).refused


@pytest.mark.jvm
@pytest.mark.server
def test_an_address_of_another_pulsar_cluster_is_named(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    """It shows another id than the routes have, or none."""
    settings = settings_for(pulsar, pulsar_namespace)
    for policy in POLICIES:
        pulsar.admin(
            "POST", f"namespaces/{pulsar_namespace}/{policy.path}", policy.value
        )

    def said(current: str | None) -> list[str]:
        owner = Owner("aa", "c", frozenset(), pulsar_ids=PulsarIds(current, "bb"))
        return [one.text for one in found(settings, owner) if one.refused]

    async def noted() -> None:
        admin = Admin(pulsar.admin_url)
        try:
            assert await note(admin, pulsar_namespace, "cc") == "cc"
        finally:
            await admin.close()

    hosts = [url.partition("://")[2] for url in (pulsar.service_url, pulsar.admin_url)]
    for shown, current in (("without an id", "cc"), ("id cc", "dd")):
        assert [one.partition(" than")[0] for one in said(current)] == [
            f"{host} is of another Pulsar cluster ({shown})" for host in hosts
        ]
        asyncio.run(noted())
    assert said("cc") == said(None) == []


@pytest.mark.jvm
@pytest.mark.server
def test_a_listener_that_brokers_do_not_have_is_told(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    settings = settings_for(pulsar, pulsar_namespace, listener_name="absent")
    (told,) = (one for one in found(settings) if "absent" in one.text)
    assert told.refused
    assert "pulsar.listener_name" in told.advice


@pytest.mark.jvm
@pytest.mark.server
def test_pulsars_default_namespace_is_told_as_nobodys(pulsar: Pulsar) -> None:
    settings = settings_for(pulsar, PUBLIC)
    *_, last = found(settings, Owner("aa", "c", frozenset()))
    assert last.text == f"namespace {PUBLIC} of Pulsar does not say whose it is"
    assert last.advice.endswith(f"-k ropeway.cluster.aa -v c {PUBLIC}")
    missing = [one for one in found(settings, prepare=True) if one.refused]
    # Its policies are left alone, so they are named and not set.
    assert all(f"{PUBLIC}" in one.advice for one in missing)
