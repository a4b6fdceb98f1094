"""Properties that are the system's: producers do not set, and consumers not see them.

Source: MessageConst.STRING_HASH_SET, RocketMQ 5.3.4, and those that have a field of
their own in the gRPC protocol.
"""

from ropeway.gateway.wire import properties

TRACE_CONTEXT = "TRACE_CONTEXT"
BORN_TIMESTAMP = "BORN_TIMESTAMP"

RESERVED = frozenset(
    {
        properties.TRACE_ON,
        properties.MSG_REGION,
        properties.KEYS,
        properties.TAGS,
        properties.WAIT,
        properties.DELAY,
        properties.RETRY_TOPIC,
        properties.REAL_TOPIC,
        properties.REAL_QUEUE_ID,
        properties.TRANSACTION_PREPARED,
        properties.PRODUCER_GROUP,
        "MIN_OFFSET",
        "MAX_OFFSET",
        "BUYER_ID",
        properties.ORIGIN_MESSAGE_ID,
        properties.TRANSFER_FLAG,
        "CORRECTION_FLAG",
        "MQ2_FLAG",
        properties.RECONSUME_TIME,
        properties.UNIQ_KEY,
        properties.MAX_RECONSUME_TIMES,
        "CONSUME_START_TIME",
        properties.POP_CK,
        "POP_CK_OFFSET",
        "1ST_POP_TIME",
        properties.TRANSACTION_PREPARED_QUEUE_OFFSET,
        properties.TRANSACTION_CHECK_TIMES,
        properties.TRANSACTION_ID,
        properties.CHECK_IMMUNITY_TIME,
        "DUP_INFO",
        "EXTEND_UNIQ_INFO",
        "INSTANCE_ID",
        properties.CORRELATION_ID,
        properties.REPLY_TO_CLIENT,
        "TTL",
        "ARRIVE_TIME",
        properties.PUSH_REPLY_TIME,
        properties.CLUSTER,
        "MSG_TYPE",
        "INNER_MULTI_QUEUE_OFFSET",
        properties.SHARDING_KEY,
        properties.PRIORITY,
        properties.LITE_TOPIC,
        properties.START_DELIVER_TIME,
        properties.TIMER_DELAY_MS,
        properties.TIMER_DELAY_SEC,
        properties.TIMER_DELIVER_MS,
        properties.TIMER_ENQUEUE_MS,
        properties.TIMER_DEQUEUE_MS,
        properties.TIMER_ROLL_TIMES,
        properties.TIMER_OUT_MS,
        properties.TIMER_DEL_UNIQKEY,
        "TIMER_DELAY_LEVEL",
        properties.BORN_HOST,
        BORN_TIMESTAMP,
        properties.DLQ_ORIGIN_TOPIC,
        properties.DLQ_ORIGIN_MESSAGE_ID,
        TRACE_CONTEXT,
        "__CRC32#",
    }
)
