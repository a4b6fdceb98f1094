"""Message properties: text in pairs, and the names that brokers give a meaning.

On the wire and in the log they are `name 0x01 value 0x02 name 0x01 value 0x02 ...`.

Source: MessageDecoder.string2messageProperties and MessageConst.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ropeway.gateway.wire.compiled import may_be_compiled

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME_END = "\x01"
VALUE_END = "\x02"

KEYS = "KEYS"
TAGS = "TAGS"
WAIT = "WAIT"
DELAY = "DELAY"
RETRY_TOPIC = "RETRY_TOPIC"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE_ID = "REAL_QID"
TRANSACTION_PREPARED = "TRAN_MSG"
PRODUCER_GROUP = "PGROUP"
TRANSACTION_ID = "__transactionId__"
TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
TRANSACTION_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
CHECK_IMMUNITY_TIME = "CHECK_IMMUNITY_TIME_IN_SECONDS"
MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
RECONSUME_TIME = "RECONSUME_TIME"
MSG_REGION = "MSG_REGION"
TRACE_ON = "TRACE_ON"
UNIQ_KEY = "UNIQ_KEY"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
CLUSTER = "CLUSTER"
SHARDING_KEY = "__SHARDINGKEY"
POP_CK = "POP_CK"
FIRST_POP_TIME = "1ST_POP_TIME"
BORN_HOST = "__BORNHOST"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
TIMER_DELAY_MS = "TIMER_DELAY_MS"
START_DELIVER_TIME = "__STARTDELIVERTIME"
TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY"
DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
CORRELATION_ID = "CORRELATION_ID"
PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
TRANSFER_FLAG = "TRANSFER_FLAG"
PRIORITY = "_SYS_MSG_PRIORITY_"
LITE_TOPIC = "__LITE_TOPIC"

RARE = frozenset(
    {
        TRANSACTION_PREPARED,
        TIMER_DELIVER_MS,
        TIMER_DELAY_SEC,
        TIMER_DELAY_MS,
        START_DELIVER_TIME,
        POP_CK,
        DELAY,
        REPLY_TO_CLIENT,
    }
)
"""Those that make a broker do more with a message than store it."""

_HASH_MASK = 0xFFFFFFFF
_HASH_SIGN = 0x80000000
REMEMBERED_CHARACTERS = 255
"""Of texts that clients choose, longer ones are in no cache: no name is so long, and
thousands of them would fill the memory."""


@may_be_compiled
def parse(text: str, /) -> dict[str, str]:
    """Read properties; pairs without a name or a value are passed over, as in Java."""
    pairs = {}
    for pair in text.split(VALUE_END):
        name, _, value = pair.partition(NAME_END)
        if name and value:
            pairs[name] = value
    return pairs


def dump(properties: Mapping[str, str]) -> str:
    """Write properties."""
    return "".join(
        f"{name}{NAME_END}{value}{VALUE_END}" for name, value in properties.items()
    )


def ended(text: str) -> tuple[str, dict[str, str]]:
    """End properties in wire form where they were not, and take them apart.

    A receipt is left out that came with them from a pop: who pops the message would
    acknowledge by it whatever its sender chose.
    """
    if text and not text.endswith(VALUE_END):
        text += VALUE_END
    pairs = parse(text)
    if pairs.pop(POP_CK, None) is not None:
        text = dump(pairs)
    return text, pairs


def key_words(properties: Mapping[str, str]) -> list[str]:
    """The keys to find a message by: the words of KEYS, and the unique key."""
    keys = properties.get(KEYS, "").split()
    if unique := properties.get(UNIQ_KEY):
        keys.append(unique)
    return keys


def tags_of(expression: str) -> frozenset[str]:
    """The tags that an expression like `a || b` names."""
    return frozenset(tag.strip() for tag in expression.split("||")) - {""}


def tag_hash(tag: str) -> int:
    """Java's `String.hashCode`, which consumers compute too; 0 for no tag."""
    return (_hash if len(tag) <= REMEMBERED_CHARACTERS else _hash.__wrapped__)(tag)


@lru_cache(maxsize=65536)
def _hash(tag: str) -> int:
    value = 0
    data = tag.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(data), 2):
        value = (value * 31 + (data[index] << 8 | data[index + 1])) & _HASH_MASK
    return value - (1 << 32) if value & _HASH_SIGN else value
