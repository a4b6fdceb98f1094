"""The names of options: ours, Spark's own, and those of its Kafka source."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from ropeway.spark import credential_options

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = (
    *("nameServer", "tier", "topic", "group", "tags", "startingOffsets"),
    *("endingOffsets", "startingTimestamp", "endingTimestamp", "maxOffsetsPerTrigger"),
    *("maxOffsetsPerTask", "minOffsetsPerTask", "failOnDataLoss", "includeProperties"),
    *("minPartitions", "minOffsetsPerTrigger", "maxTriggerDelay"),
    *("startingOffsetsByTimestamp", "endingOffsetsByTimestamp"),
    "startingOffsetsByTimestampStrategy",
    *("subscribePattern", "groupIdPrefix", "includeHeaders", "sql"),
    *("txnAppId", "txnVersion"),
    *("guarantee", "producerId", "outageTimeoutMs"),
    *credential_options.NAMES,
    "context",
    *("tls", "tlsCa", "tlsCertificate", "tlsKey", "tlsServerName"),
)
_OF_SPARK = ("checkpointLocation", "queryName", "asyncProgressTrackingEnabled")
"""What Spark itself reads of a writer's options, and hands on."""

_ELSEWHERE = {
    "kafka.bootstrap.servers": "nameServer",
    "subscribe": "topic",
    "assign": "topic",
    "path": "topic",
    "maxrecordsperpartition": "maxOffsetsPerTask",
    "kafkaconsumer.polltimeoutms": "outageTimeoutMs",
    "fetchoffset.numretries": "outageTimeoutMs",
    "fetchoffset.retryintervalms": "outageTimeoutMs",
    "kafka.group.id": "group",
    "kafka.security.protocol": "tls",
    "kafka.ssl": "tls",
    "kafka.sasl": "accessKey",
}
"""What Spark's Kafka source calls an option, or how all such names begin, and `path`,
which is what `load` and `save` are given: our name of it."""

_OF_TABLES = "option."
"""How Spark begins the names of a table's options in its catalog.

Source: TableCatalog.OPTION_PREFIX, Spark 4.2.
"""


def check_names(given: Mapping[str, str]) -> None:
    """Refuse what is no option.

    Raises:
        ValueError: Names it, and what is allowed.
    """
    if any(name.lower().startswith(_OF_TABLES) for name in given):
        raise ValueError(
            "CREATE TABLE is given options, which Spark's catalog does not keep for "
            "sources in Python; allowed: CREATE TEMPORARY VIEW, with USING and OPTIONS "
            "likewise"
        )
    # Spark's options are of any case.
    known = {name.lower(): name for name in (*NAMES, *_OF_SPARK)}
    for came in given:
        name = came.lower()
        if name not in known:
            near = _meant(name) or next(
                (known[one] for one in get_close_matches(name, known, 1)), None
            )
            others = ", ".join(NAMES)
            raise ValueError(
                f"option {came} is unknown; allowed: "
                + (f"{near}, or one of {others}" if near else others)
            )


def _meant(name: str) -> str | None:
    """What Spark's Kafka source calls so."""
    part = ".".join(name.split(".")[:2])
    return _ELSEWHERE.get(name) or _ELSEWHERE.get(part)
