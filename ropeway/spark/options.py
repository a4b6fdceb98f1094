"""What a user asks for: the options of a source or sink, checked before anything runs.

Their names are as Spark's Kafka source has them, where it has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from ropeway.client import Credentials
from ropeway.client.config import ClientConfig, ProducerConfig
from ropeway.client.tls import TlsFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

C = TypeVar("C", bound=ClientConfig)

EARLIEST, LATEST, COMMITTED = "earliest", "latest", "committed"
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"
DEFAULT_GROUP = "ropeway-spark"

Offsets = dict[str, dict[str, int]]
"""Topic to queue to offset; a queue is `broker:queue id`, as in Spark's checkpoints."""

_TIMEOUT_S = 30.0
"""A query that fails has to be started again, so jobs are more patient than clients."""

_LEAST_OFFSETS = 1000
"""Reading so many takes about a tenth of what a task costs at least."""

_BOOLEANS = {"true": True, "false": False}


class Options(Struct, frozen=True, kw_only=True):
    """All options of one source or sink."""

    name_server: str
    """Empty where only a tier is read."""
    topics: tuple[str, ...]
    tier: tuple[str, ...] = ()
    """URLs of brokers' tiers, which are read instead of brokers."""
    group: str | None = None
    """Whose stored offsets are read, and written after each batch of a stream."""
    tags: str = "*"
    starting: str | Offsets | None = None
    ending: str | Offsets | None = None
    starting_ms: int | None = None
    ending_ms: int | None = None
    max_offsets: int | None = None
    """Messages of one batch of a stream, over all queues."""
    split_offsets: int | None = None
    """Longer ranges are read by several tasks."""
    least_offsets: int = _LEAST_OFFSETS
    """Shorter ranges share a task."""
    fail_on_data_loss: bool = True
    include_properties: bool = False
    guarantee: str = EXACTLY_ONCE
    producer_id: str | None = None
    """Whose batches a stream commits; by default those of its query."""
    credentials: Credentials | None = None
    tls: TlsFiles | None = None
    tls_server_name: str | None = None

    def client_config(self) -> ClientConfig:
        """How clients are set up."""
        return self._config(ClientConfig)

    def producer_config(self) -> ProducerConfig:
        """How producers are set up."""
        return self._config(ProducerConfig)

    def _config(self, kind: type[C]) -> C:
        return kind(
            tls=self.tls.context() if self.tls else None,
            tls_server_name=self.tls_server_name,
            credentials=self.credentials,
            connect_timeout_s=_TIMEOUT_S,
            request_timeout_s=_TIMEOUT_S,
        )


def read_options(given: Mapping[str, str]) -> Options:
    """Check the options of a source or a sink.

    Raises:
        ValueError: Names the option, what came, and what is allowed.
    """
    key, secret = given.get("accessKey"), given.get("secretKey")
    if (key is None) != (secret is None):
        raise ValueError("accessKey and secretKey: one is missing; allowed: both, none")
    tier = tuple(part.strip() for part in given.get("tier", "").split(",") if part)
    return Options(
        name_server=""
        if tier
        else _required(given, "nameServer", "host:port[;host:port...]"),
        tier=tier,
        topics=tuple(
            part.strip() for part in given.get("topic", "").split(",") if part.strip()
        ),
        group=given.get("group"),
        tags=given.get("tags", "*"),
        starting=_offsets(given, "startingOffsets", (EARLIEST, LATEST, COMMITTED)),
        ending=_offsets(given, "endingOffsets", (LATEST,)),
        starting_ms=_number(given, "startingTimestamp", 0),
        ending_ms=_number(given, "endingTimestamp", 0),
        max_offsets=_number(given, "maxOffsetsPerTrigger", 1),
        split_offsets=_number(given, "maxOffsetsPerTask", 1),
        least_offsets=_number(given, "minOffsetsPerTask", 1) or _LEAST_OFFSETS,
        fail_on_data_loss=_choice(given, "failOnDataLoss", _BOOLEANS, default=True),
        include_properties=_choice(
            given, "includeProperties", _BOOLEANS, default=False
        ),
        guarantee=_choice(
            given,
            "guarantee",
            {EXACTLY_ONCE: EXACTLY_ONCE, AT_LEAST_ONCE: AT_LEAST_ONCE},
            default=EXACTLY_ONCE,
        ),
        producer_id=given.get("producerId"),
        credentials=None
        if key is None or secret is None
        else Credentials(access_key=key, secret_key=secret),
        tls=_tls(given),
        tls_server_name=given.get("tlsServerName"),
    )


def _tls(given: Mapping[str, str]) -> TlsFiles | None:
    files = TlsFiles(
        ca=given.get("tlsCa"),
        certificate=given.get("tlsCertificate"),
        key=given.get("tlsKey"),
    )
    named = files != TlsFiles() or "tlsServerName" in given
    return files if _choice(given, "tls", _BOOLEANS, default=named) else None


def require_topics(options: Options) -> tuple[str, ...]:
    """The topics to read.

    Raises:
        ValueError: There are none.
    """
    if not options.topics:
        raise ValueError("option topic is missing; allowed: names, joined by commas")
    return options.topics


def _required(given: Mapping[str, str], name: str, allowed: str) -> str:
    value = given.get(name, "").strip()
    if not value:
        raise ValueError(f"option {name} is missing; allowed: {allowed}")
    return value


def _number(given: Mapping[str, str], name: str, least: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not value.strip().isdigit() or int(value) < least:
        raise ValueError(
            f"option {name} is {value!r}; allowed: a whole number from {least}"
        )
    return int(value)


def _choice(
    given: Mapping[str, str], name: str, allowed: Mapping[str, Any], *, default: Any
) -> Any:
    value = given.get(name)
    if value is None:
        return default
    if value.lower() not in allowed:
        raise ValueError(
            f"option {name} is {value!r}; allowed: {', '.join(sorted(allowed))}"
        )
    return allowed[value.lower()]


def _offsets(
    given: Mapping[str, str], name: str, words: tuple[str, ...]
) -> str | Offsets | None:
    value = given.get(name)
    if value is None or value in words:
        return value
    try:
        return msgspec.json.decode(value, type=Offsets)
    except msgspec.DecodeError as error:
        raise ValueError(
            f"option {name} is {value!r:.200}; allowed: {', '.join(words)}, or JSON "
            'like {"orders": {"broker-0:3": 12}}'
        ) from error
