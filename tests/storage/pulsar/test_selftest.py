"""What is missing is named, with the command that sets it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.pulsar.admin import Admin
from ropeway.storage.pulsar.selftest import (
    POLICIES,
    PulsarUnfitError,
    _check_size,
    _check_version,
    check,
    check_indexes,
    retention_ms,
)
from tests.storage.pulsar.test_admin import Rest, run

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

GOOD = {
    "deduplicationEnabled": True,
    "retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
    "inactive_topic_policies": {"deleteWhileInactive": False},
    "autoTopicCreationOverride": {"allowAutoTopicCreation": False},
}
GOOD_BROKER = {
    "brokerDeduplicationEnabled": "true",
    "defaultRetentionTimeInMinutes": "60",
    "defaultRetentionSizeInMB": "-1",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "allowAutoTopicCreation": "false",
}


def complaints(policies: dict[str, Any], broker: dict[str, str]) -> list[str]:
    return [p.path for p in POLICIES if p.complaint(policies, broker) is not None]


def test_policies_that_fit_are_taken() -> None:
    assert complaints(GOOD, {}) == []
    assert complaints({}, GOOD_BROKER) == []


def test_pulsars_own_defaults_do_not_fit() -> None:
    assert complaints({}, {}) == [p.path for p in POLICIES]


@pytest.mark.parametrize(
    ("policy", "value", "path"),
    [
        ("deduplicationEnabled", False, "deduplication"),
        (
            "retention_policies",
            {"retentionTimeInMinutes": 0, "retentionSizeInMB": -1},
            "retention",
        ),
        (
            "retention_policies",
            {"retentionTimeInMinutes": 60, "retentionSizeInMB": 0},
            "retention",
        ),
        (
            "inactive_topic_policies",
            {"deleteWhileInactive": True},
            "inactiveTopicPolicies",
        ),
        (
            "autoTopicCreationOverride",
            {"allowAutoTopicCreation": True},
            "autoTopicCreation",
        ),
    ],
)
def test_a_namespace_overrides_the_broker(
    policy: str, value: object, path: str
) -> None:
    assert complaints(GOOD | {policy: value}, GOOD_BROKER) == [path]


def test_what_prepare_sets_is_what_the_check_wants() -> None:
    names = [*GOOD]
    for policy, name in zip(POLICIES, names, strict=True):
        assert policy.complaint({name: policy.value}, {}) is None


@pytest.mark.parametrize("version", ["2.10.4", "2.11.0", "x"])
def test_an_old_version_is_refused(version: str) -> None:
    with pytest.raises(
        PulsarUnfitError, match=rf"version {version}; allowed: from 3\.0"
    ):
        _check_version(version)


@pytest.mark.parametrize("version", ["3.0.1", "4.0.8", "4.2.4-SNAPSHOT", "5.0.0"])
def test_newer_versions_are_taken(version: str) -> None:
    _check_version(version)


def test_messages_of_full_size_must_fit() -> None:
    _check_size({"maxMessageSize": "5242880"})
    _check_size({})
    with pytest.raises(PulsarUnfitError, match=r"maxMessageSize is 1048576; allowed"):
        _check_size({"maxMessageSize": "1048576"})


@pytest.mark.jvm
@pytest.mark.server
def test_a_real_namespace_is_refused_until_it_is_prepared(pulsar: Pulsar) -> None:
    async def main() -> None:
        space = "public/unprepared"
        admin = Admin(pulsar.admin_url)

        async def look(*, prepare: bool) -> None:
            policies = {space: await admin.policies(space)}
            await check(admin, policies, prepare=prepare)

        try:
            with pytest.raises(PulsarUnfitError, match=f"namespaces create {space}"):
                await look(prepare=False)
            await admin.make_namespace(space)
            with pytest.raises(
                PulsarUnfitError, match="set-deduplication --enable pub"
            ):
                await look(prepare=False)
            await admin.set_policy(space, "deduplication", value=True)
            with pytest.raises(PulsarUnfitError, match="set-retention --time 72h"):
                await look(prepare=False)
            await look(prepare=True)
            await look(prepare=False)
        finally:
            await admin.close()

    asyncio.run(main())


def test_who_may_not_set_a_policy_is_told_the_command() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        with pytest.raises(
            PulsarUnfitError, match="set: pulsar-admin namespaces set-de"
        ):
            await check(admin, {"public/x": {}}, prepare=True)

    run(
        {
            ("GET", "/admin/v2/brokers/version"): [(200, "4.0.8")],
            ("GET", "/admin/v2/brokers/configuration/runtime"): [(403, None)],
            ("POST", "/admin/v2/namespaces/public/x/deduplication"): [(403, None)],
        },
        test,
    )


def test_brokers_that_count_are_taken_and_others_refused_with_the_settings() -> None:
    interceptors = "org.x.AppendBrokerTimestamp,org.x.AppendIndexMetadataInterceptor"
    good = {
        "brokerEntryMetadataInterceptors": interceptors,
        "exposingBrokerEntryMetadataToClientEnabled": "true",
    }
    hidden = {**good, "exposingBrokerEntryMetadataToClientEnabled": "false"}
    uncounted = {**good, "brokerEntryMetadataInterceptors": ""}

    async def test(admin: Admin, _: Rest) -> None:
        await check_indexes(admin)
        for _ in range(2):
            with pytest.raises(PulsarUnfitError, match=r"AppendIndex.*exposing"):
                await check_indexes(admin)
        # Who may not see the settings finds out by the entries.
        await check_indexes(admin)

    path = "/admin/v2/brokers/configuration/runtime"
    answers = [(200, good), (200, hidden), (200, uncounted), (403, None)]
    run({("GET", path): answers}, test)


def test_retention_is_the_namespaces_or_else_the_brokers() -> None:
    async def test(admin: Admin, _: Rest) -> None:
        assert await retention_ms(admin, "t/n") is None
        assert await retention_ms(admin, "t/n") == 3_600_000

    run(
        {
            ("GET", "/admin/v2/namespaces/t/n"): [(200, GOOD), (200, {})],
            ("GET", "/admin/v2/brokers/configuration/runtime"): [
                (200, GOOD_BROKER),
                (200, GOOD_BROKER),
            ],
        },
        test,
    )
