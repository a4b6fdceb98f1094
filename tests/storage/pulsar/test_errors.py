"""Codes of brokers become errors that say what can be done next."""

import pytest

from ropeway.storage.pulsar.errors import (
    RETRYABLE,
    SERVER_ERRORS,
    FencedError,
    NotAllowedError,
    PulsarError,
    server_error,
)


def test_an_error_says_its_name_and_the_words_of_the_broker():
    error = server_error(25, "Topic epoch has already moved")
    assert isinstance(error, FencedError)
    assert str(error) == "ProducerFenced: Topic epoch has already moved"
    assert str(server_error(4, "")) == "AuthorizationError"
    assert isinstance(server_error(4, ""), NotAllowedError)


def test_an_unknown_code_is_an_error_that_is_not_tried_again():
    error = server_error(99, "who knows")
    assert type(error) is PulsarError
    assert str(error) == "server error 99: who knows"


@pytest.mark.parametrize("name", ["ServiceNotReady", "ProducerBusy", "MetadataError"])
def test_what_passes_by_itself_is_tried_again(name):
    (kind,) = [kind for known, kind in SERVER_ERRORS.values() if known == name]
    assert issubclass(kind, RETRYABLE)


@pytest.mark.parametrize("name", ["ProducerFenced", "AuthorizationError"])
def test_what_does_not_pass_is_not_tried_again(name):
    (kind,) = [kind for known, kind in SERVER_ERRORS.values() if known == name]
    assert not issubclass(kind, RETRYABLE)


def test_codes_have_the_names_of_the_protocol():
    # ServerError of PulsarApi.proto, Pulsar 4.0.8, without transactions.
    names = {code: str(server_error(code, "")) for code in SERVER_ERRORS}
    assert names == {
        0: "UnknownError",
        1: "MetadataError",
        2: "PersistenceError",
        3: "AuthenticationError",
        4: "AuthorizationError",
        5: "ConsumerBusy",
        6: "ServiceNotReady",
        7: "ProducerBlockedQuotaExceededError",
        8: "ProducerBlockedQuotaExceededException",
        9: "ChecksumError",
        10: "UnsupportedVersionError",
        11: "TopicNotFound",
        12: "SubscriptionNotFound",
        13: "ConsumerNotFound",
        14: "TooManyRequests",
        15: "TopicTerminatedError",
        16: "ProducerBusy",
        17: "InvalidTopicName",
        18: "IncompatibleSchema",
        19: "ConsumerAssignError",
        22: "NotAllowedError",
        25: "ProducerFenced",
    }
