"""What Pulsar refuses, and which refusals a later try may undo."""


class PulsarError(Exception):
    """Pulsar refused: with its own words where it sent some."""


class PulsarUnavailableError(PulsarError):
    """No connection, no answer in time, or a broker that is not ready: try again."""


class ForeignPulsarError(PulsarUnavailableError):
    """An address is of another Pulsar cluster; other addresses may not be."""


class ProducerBusyError(PulsarError):
    """Another producer has the topic, or this one's name; it may leave."""


class TopicNotFoundError(PulsarError):
    """The topic does not exist and may not be made, or was deleted and made again."""


class FencedError(PulsarError):
    """Another producer has taken the topic over: this one can never write again."""


class NotAllowedError(PulsarError):
    """Who we are is not accepted or may not do this, or a policy forbids it."""


class WireError(PulsarError):
    """What came is not Pulsar's protocol; the connection cannot be used any more."""


class EntryError(PulsarError):
    """One stored entry cannot be read by this client; the others can."""


RETRYABLE = (PulsarUnavailableError, ProducerBusyError)
"""Errors after which the same request may succeed."""

CHECKSUM = 9
SERVER_ERRORS: dict[int, tuple[str, type[PulsarError]]] = {
    0: ("UnknownError", PulsarUnavailableError),
    1: ("MetadataError", PulsarUnavailableError),
    2: ("PersistenceError", PulsarUnavailableError),
    3: ("AuthenticationError", NotAllowedError),
    4: ("AuthorizationError", NotAllowedError),
    5: ("ConsumerBusy", PulsarUnavailableError),
    6: ("ServiceNotReady", PulsarUnavailableError),
    7: ("ProducerBlockedQuotaExceededError", PulsarError),
    8: ("ProducerBlockedQuotaExceededException", PulsarError),
    CHECKSUM: ("ChecksumError", PulsarError),
    10: ("UnsupportedVersionError", PulsarError),
    11: ("TopicNotFound", TopicNotFoundError),
    12: ("SubscriptionNotFound", PulsarUnavailableError),
    13: ("ConsumerNotFound", PulsarUnavailableError),
    14: ("TooManyRequests", PulsarUnavailableError),
    15: ("TopicTerminatedError", PulsarError),
    16: ("ProducerBusy", ProducerBusyError),
    17: ("InvalidTopicName", PulsarError),
    18: ("IncompatibleSchema", PulsarError),
    19: ("ConsumerAssignError", PulsarError),
    22: ("NotAllowedError", NotAllowedError),
    25: ("ProducerFenced", FencedError),
}
"""Name and class of each code of `ServerError` in PulsarApi.proto, 4.0.8.

Those of transactions are not here: nothing of ours takes part in one.
"""


def server_error(code: int, message: str) -> PulsarError:
    """The error for a code and a text that a broker sent."""
    name, kind = SERVER_ERRORS.get(code, (f"server error {code}", PulsarError))
    return kind(f"{name}: {message}" if message else name)
