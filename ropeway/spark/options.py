"""What a user asks for: the options of a source or sink, checked before anything runs.

Their names are as Spark's Kafka source has them, where it has them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from ropeway.client import Credentials
from ropeway.client.config import ClientConfig, ProducerConfig
from ropeway.client.subscription import Sql
from ropeway.client.tls import TlsFiles
from ropeway.gateway.wire import host_port
from ropeway.spark.credential_options import read_credentials
from ropeway.spark.option_names import NAMES, check_names
from ropeway.spark.saved_context import of_context

if TYPE_CHECKING:
    from collections.abc import Mapping

C = TypeVar("C", bound=ClientConfig)

EARLIEST, LATEST, COMMITTED = "earliest", "latest", "committed"
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"
DEFAULT_PREFIX = "ropeway"

Offsets = dict[str, dict[str, int]]
"""Topic to queue to offset; a queue is `broker:queue id`, as in Spark's checkpoints."""

_TIMEOUT_S = 30.0
"""A query that fails has to be started again, so jobs are more patient than clients."""

_OUTAGE_MS = 120_000
"""Source: `kafkaConsumer.pollTimeoutMs` of Spark's Kafka source, 4.0."""

_LEAST_OFFSETS = 1000
"""Reading so many takes about a tenth of what a task costs at least."""

_DELAY_MS = 15 * 60_000
"""Source: `maxTriggerDelay` of Spark's Kafka source, 4.0."""

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(rf"(\d{{1,9}}) ?({'|'.join(_UNITS_MS)})")

_MOST_PORT = 65535

_BOOLEANS = {"true": True, "false": False}


class Options(Struct, frozen=True, kw_only=True):
    """All options of one source or sink."""

    name_server: str
    """Empty where only a tier is read."""
    topics: tuple[str, ...]
    pattern: str | None = None
    """All topics are read whose whole name it matches."""
    tier: tuple[str, ...] = ()
    """URLs of brokers' tiers, which are read instead of brokers."""
    group: str | None = None
    """Whose stored offsets are read, and written after each batch of a stream."""
    group_prefix: str = DEFAULT_PREFIX
    tags: str = "*"
    """What brokers give: tags, or an `Sql` condition."""
    starting: str | Offsets | None = None
    ending: str | Offsets | None = None
    starting_ms: int | Offsets | None = None
    """A time, or one of each queue, in milliseconds since 1970."""
    ending_ms: int | Offsets | None = None
    needs_start: bool = False
    """Whether each queue must have a message of that time or a later one."""
    max_offsets: int | None = None
    """Messages of one batch of a stream, over all queues."""
    split_offsets: int | None = None
    """Longer ranges are read by several tasks."""
    least_offsets: int = _LEAST_OFFSETS
    """Shorter ranges share a task."""
    least_tasks: int | None = None
    """Tasks that ranges are split for, where that many messages are read."""
    least_of_batch: int | None = None
    """Messages that a batch of a stream waits for."""
    batch_delay_s: float = _DELAY_MS / 1000
    """How long it does, at most."""
    fail_on_data_loss: bool = True
    include_properties: bool = False
    include_headers: bool = False
    guarantee: str = EXACTLY_ONCE
    producer_id: str | None = None
    """Whose batches a stream commits; by default those of its query."""
    transaction: tuple[str, int] | None = None
    """Whose batch a table is, and its number."""
    outage_timeout_s: float = _OUTAGE_MS / 1000
    """How long servers may be away before the query fails."""
    credentials: Credentials | None = None
    tls: TlsFiles | None = None
    tls_server_name: str | None = None

    @property
    def reading_group(self) -> str:
        """In whose name queues are read."""
        return self.group or f"{self.group_prefix}-spark"

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
            outage_timeout_s=self.outage_timeout_s,
        )


def read_options(given: Mapping[str, str]) -> Options:
    """Check the options of a source or a sink.

    Raises:
        ValueError: Names the option, what came, and what is allowed.
    """
    check_names(given)
    # What Spark hands over finds names of any case, and has them in lower case.
    own = {name: given[name] for name in NAMES if name in given}
    given = {**of_context(own), **own}
    tier = tuple(part.strip() for part in given.get("tier", "").split(",") if part)
    topics = tuple(
        part.strip() for part in given.get("topic", "").split(",") if part.strip()
    )
    pattern = _pattern(given)
    if pattern is not None and (topics or tier):
        raise ValueError(
            f"option subscribePattern is {pattern!r}, and there is "
            f"{'topic' if topics else 'tier'}; allowed: one of them"
        )
    outage_ms = _number(given, "outageTimeoutMs", 0)
    return Options(
        name_server="" if tier else _name_server(given),
        tier=tier,
        topics=topics,
        pattern=pattern,
        group=given.get("group"),
        group_prefix=_required(given, "groupIdPrefix", "a name")
        if "groupIdPrefix" in given
        else DEFAULT_PREFIX,
        tags=_expression(given),
        starting=_offsets(given, "startingOffsets", (EARLIEST, LATEST, COMMITTED)),
        ending=_offsets(given, "endingOffsets", (LATEST,)),
        # As in Spark's Kafka source, a time for all comes before those of queues.
        starting_ms=_first(
            _number(given, "startingTimestamp", 0),
            _times(given, "startingOffsetsByTimestamp"),
        ),
        ending_ms=_first(
            _number(given, "endingTimestamp", 0),
            _times(given, "endingOffsetsByTimestamp"),
        ),
        needs_start=_choice(
            given,
            "startingOffsetsByTimestampStrategy",
            {"error": True, "latest": False},
            default=False,
        ),
        max_offsets=_number(given, "maxOffsetsPerTrigger", 1),
        split_offsets=_number(given, "maxOffsetsPerTask", 1),
        least_offsets=_number(given, "minOffsetsPerTask", 1) or _LEAST_OFFSETS,
        least_tasks=_number(given, "minPartitions", 1),
        least_of_batch=_least_of_batch(given),
        batch_delay_s=_duration_ms(given, "maxTriggerDelay", _DELAY_MS) / 1000,
        fail_on_data_loss=_choice(given, "failOnDataLoss", _BOOLEANS, default=True),
        include_properties=_choice(
            given, "includeProperties", _BOOLEANS, default=False
        ),
        include_headers=_choice(given, "includeHeaders", _BOOLEANS, default=False),
        guarantee=_choice(
            given,
            "guarantee",
            {EXACTLY_ONCE: EXACTLY_ONCE, AT_LEAST_ONCE: AT_LEAST_ONCE},
            default=EXACTLY_ONCE,
        ),
        producer_id=given.get("producerId"),
        transaction=_transaction(given),
        outage_timeout_s=(_OUTAGE_MS if outage_ms is None else outage_ms) / 1000,
        credentials=read_credentials(given),
        tls=_tls(given),
        tls_server_name=given.get("tlsServerName"),
    )


def require_endless(options: Options) -> None:
    """Refuse the options of a stream that would end it.

    Raises:
        ValueError: Names the option, and what is allowed.
    """
    of_time = "endingTimestamp"
    if isinstance(options.ending_ms, dict):
        of_time = "endingOffsetsByTimestamp"
    for name, value in (
        ("endingOffsets", options.ending),
        (of_time, options.ending_ms),
    ):
        if value is not None:
            raise ValueError(
                f"option {name} is given for a stream; allowed: for a table, and to "
                "end with what is there, trigger(availableNow=True)"
            )


def _tls(given: Mapping[str, str]) -> TlsFiles | None:
    files = TlsFiles(
        ca=given.get("tlsCa"),
        certificate=given.get("tlsCertificate"),
        key=given.get("tlsKey"),
    )
    named = files != TlsFiles() or "tlsServerName" in given
    return files if _choice(given, "tls", _BOOLEANS, default=named) else None


def require_topics(options: Options) -> None:
    """Refuse to read nothing.

    Raises:
        ValueError: No topic is named, nor a pattern of topics.
    """
    if not options.topics and options.pattern is None:
        raise ValueError(
            "option topic is missing; allowed: names, joined by commas, or "
            "subscribePattern"
        )


def _pattern(given: Mapping[str, str]) -> str | None:
    pattern = given.get("subscribePattern")
    if pattern is None:
        return None
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"option subscribePattern is {pattern!r}: {error}; allowed: a regular "
            "expression of Python, like orders-.*"
        ) from error
    return pattern


def _expression(given: Mapping[str, str]) -> str:
    tags, condition = given.get("tags", "*"), given.get("sql")
    if condition is None:
        return tags
    if tags.strip() != "*" or "tier" in given:
        other = "tier" if "tier" in given else "tags"
        raise ValueError(f"options sql and {other} are given; allowed: one of them")
    return Sql(_required(given, "sql", "a condition, like amount > 5"))


def _transaction(given: Mapping[str, str]) -> tuple[str, int] | None:
    name, version = given.get("txnAppId"), _number(given, "txnVersion", 0)
    if (name is None) != (version is None):
        raise ValueError("txnAppId and txnVersion: one is missing; allowed: both, none")
    return None if name is None or version is None else (name, version)


def _name_server(given: Mapping[str, str]) -> str:
    allowed = "host:port[;host:port...]"
    if not given:
        allowed += (
            ". A table in Spark's catalog keeps no options of sources in Python; a "
            "temporary view does"
        )
    found = _required(given, "nameServer", allowed)
    if not all(map(_is_address, filter(None, map(str.strip, found.split(";"))))):
        raise ValueError(f"option nameServer is {found!r:.200}; allowed: {allowed}")
    return found


def _is_address(text: str) -> bool:
    try:
        host, port = host_port.split(text)
    except ValueError:
        return False
    return bool(host) and 0 < port <= _MOST_PORT


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


def _least_of_batch(given: Mapping[str, str]) -> int | None:
    least = _number(given, "minOffsetsPerTrigger", 1)
    most = _number(given, "maxOffsetsPerTrigger", 1)
    if least is None and "maxTriggerDelay" in given:
        raise ValueError(
            "option maxTriggerDelay is given; allowed: with minOffsetsPerTrigger"
        )
    if least is not None and most is not None and least > most:
        raise ValueError(
            f"option minOffsetsPerTrigger is {least}; allowed: at most "
            f"maxOffsetsPerTrigger, {most}"
        )
    return least


def _duration_ms(given: Mapping[str, str], name: str, default: int) -> int:
    value = given.get(name)
    if value is None:
        return default
    found = _DURATION.fullmatch(value)
    if found is None:
        raise ValueError(
            f"option {name} is {value!r}; allowed: a whole number and a unit, like "
            f"90s, of {', '.join(_UNITS_MS)}"
        )
    return int(found[1]) * _UNITS_MS[found[2]]


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
    return _by_queue(name, value, "12", *words)


def _times(given: Mapping[str, str], name: str) -> Offsets | None:
    value = given.get(name)
    return None if value is None else _by_queue(name, value, "1767225600000")


def _first(for_all: int | None, by_queue: Offsets | None) -> int | Offsets | None:
    return by_queue if for_all is None else for_all


def _by_queue(name: str, value: str, like: str, *words: str) -> Offsets:
    try:
        return msgspec.json.decode(value, type=Offsets)
    except msgspec.DecodeError as error:
        allowed = ", ".join((*words, "or JSON" if words else "JSON"))
        raise ValueError(
            f"option {name} is {value!r:.200}; allowed: {allowed} "
            f'like {{"orders": {{"broker-0:3": {like}}}}}'
        ) from error
