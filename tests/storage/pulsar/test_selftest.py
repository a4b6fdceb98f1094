"""What is missing is named, with the command that sets it."""

from __future__ import annotations

from typing import Any

import pytest

from storage.pulsar.selftest import (
    POLICIES,
    PulsarUnfitError,
    _check_size,
    _check_version,
)

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
