"""The log on Apache Pulsar: a Pulsar topic a partition, a pack of records a message.

`pack` is what one message carries, `appender` sends packs, `reading` brings them back,
`finding` knows where they are, `opening` makes a node the sole writer of a partition.
FORMAT.md has every byte.
"""

from ropeway.storage.pulsar.log import PulsarLog, open_log
from ropeway.storage.pulsar.offsets import PulsarOffsets
from ropeway.storage.pulsar.owner import Owner
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from ropeway.storage.pulsar.selftest import PulsarUnfitError

__all__ = [
    "Owner",
    "PulsarLog",
    "PulsarLogSettings",
    "PulsarOffsets",
    "PulsarUnfitError",
    "open_log",
]
