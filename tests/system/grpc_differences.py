"""Where Ropeway answers gRPC calls otherwise than RocketMQ's proxy, and why.

Those that users may notice stand in docs/grpc.md as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Difference(NamedTuple):
    """What each answers."""

    theirs: Any
    ours: Any
    reason: str


ONCE = "a receipt counts once, and only a message's last: others change nothing"
SAID = "where the proxy fails, or takes what it should not, we say what is wrong"
HIDDEN = "a property of the system, which has a field of its own, is not the user's"
EACH = "each message has an answer of its own, with its id and offset"
TOPIC = "what is wrong is that there is no such topic, not the type of the message"
ID = "queues keep their ids: the proxy counts from 0 those to be read only"
RETRIES = "there is a retry topic where a group may be made: clients ask before it is"
KIND = "a message of a type needs what the type needs"
LIMIT = "64 bytes are allowed, and not only 63; this topic takes no groups at all"
GOAWAY = "the call ends, and not the connection with all its other calls"

_BROKEN = "INTERNAL_SERVER_ERROR"
_INVALID = "INVALID_RECEIPT_HANDLE"
_CONFLICT = "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"
_ANSWER = {"status": "OK", "transaction_id": "is there"}


def _status(theirs: str, ours: str, reason: str = SAID) -> Difference:
    return Difference({"status": theirs}, {"status": ours}, reason)


def _ack(theirs: str, reason: str) -> Difference:
    return Difference([theirs] * 2, [_INVALID] * 2, reason)


def _batch(kind: str, count: int, first: int = 0) -> Difference:
    ids = [f"{kind}-{number}" for number in range(count)]
    theirs: dict[str, Any] = {"message_id": ",".join(ids), **_ANSWER}
    ours: list[dict[str, Any]] = [{"message_id": one, **_ANSWER} for one in ids]
    # 0 is not written.
    if first:
        theirs["offset"] = str(first)
    for offset, one in enumerate(ours, first):
        if offset:
            one["offset"] = str(offset)
    return Difference(
        {"entries": [theirs], "status": "OK"}, {"entries": ours, "status": "OK"}, EACH
    )


DIFFERENCES: dict[str, dict[str, Difference]] = {
    "routes": {
        "7, route": Difference(
            ["OK", "0 READ NORMAL", "1 READ NORMAL", "2 READ_WRITE NORMAL"],
            ["OK", "0 READ_WRITE NORMAL", "1 READ NORMAL", "2 READ NORMAL"],
            ID,
        ),
    },
    "refused_settings": {
        "a consumer that says it produces": Difference("OK", "INVALID_ARGUMENT", SAID),
        "no client type": Difference("INTERNAL", "INVALID_ARGUMENT", SAID),
    },
    "batches": {
        "three": _batch("NORMAL", 3),
        "of one group": _batch("FIFO", 2),
        "of two groups": _batch("FIFO", 2, first=2),
    },
    "recalls": {
        "empty": _status(_BROKEN, "BAD_REQUEST"),
        "forged": _status(_BROKEN, "BAD_REQUEST"),
        "of another topic": _status(_CONFLICT, "BAD_REQUEST"),
        "of an unknown topic": _status(_CONFLICT, "TOPIC_NOT_FOUND", TOPIC),
    },
    "transactions": {
        "forged id": Difference(_BROKEN, "INVALID_TRANSACTION_ID", SAID),
        "received, properties": Difference(
            {"__transactionId__": "TRANSACTION-0"}, {}, HIDDEN
        ),
    },
    "messages": {
        f"full, {time} time, properties": Difference(
            {"TRACE_CONTEXT": "00-trace-01", "user": "Grüße"}, {"user": "Grüße"}, HIDDEN
        )
        for time in ("first", "second")
    },
    "filters": {
        "no SQL": Difference(
            [{"status": _BROKEN}], [{"status": "ILLEGAL_FILTER_EXPRESSION"}], SAID
        ),
    },
    "acks": {
        "again": _ack("OK", ONCE),
        "one that counts, one that does not": Difference(
            ["OK"] * 3, ["MULTIPLE_RESULTS", _INVALID, "OK"], ONCE
        ),
        "none": Difference([_BROKEN], ["BAD_REQUEST"], SAID),
        "of one word": _ack(_BROKEN, SAID),
        "cut off": _ack(_BROKEN, SAID),
        "no number": _ack(_BROKEN, SAID),
        "no such queue": _ack(_BROKEN, SAID),
        "beyond the end": _ack(_BROKEN, SAID),
    },
    "changes": {
        "by no handle": _status(_BROKEN, _INVALID),
        "by the old handle": Difference(
            {"receipt_handle": "is there", "status": "OK"}, {"status": _INVALID}, ONCE
        ),
        "ack by the old handle": _ack("OK", ONCE),
        "changed after the ack": Difference(
            {"receipt_handle": "is there", "status": "OK"}, {"status": _INVALID}, ONCE
        ),
    },
    "dead_letters": {
        "by no handle": _status(_BROKEN, _INVALID),
        "ack afterwards": _ack("OK", ONCE),
    },
    "order": {
        f"{which}, properties": Difference({"__SHARDINGKEY": "one"}, {}, HIDDEN)
        for which in ("first", "second")
    },
    "limits": {
        "no message": Difference(
            [{"status": "MESSAGE_NOT_FOUND"}], [{"status": "BAD_REQUEST"}], SAID
        ),
        "less than none": Difference(
            [{"status": _BROKEN}], [{"status": "BAD_REQUEST"}], SAID
        ),
    },
    "names": {
        **{
            f"ack, group {what}": Difference("OK", _INVALID, ONCE)
            for what in (
                "a retry topic",
                "of the system",
                "unknown",
                "with a namespace's sign",
            )
        },
        **{
            f"{how} {what}": Difference(theirs, "TOPIC_NOT_FOUND", TOPIC)
            for how, theirs in (("ack, topic", _BROKEN), ("send to a topic", _CONFLICT))
            for what in ("of the system's groups", "unknown", "with a namespace's sign")
        },
        "ack, topic a retry topic": Difference(_BROKEN, _INVALID, SAID),
        **{
            f"{how} a retry topic": Difference("TOPIC_NOT_FOUND", "OK", RETRIES)
            for how in ("assignment, topic", "route of a topic", "send to a topic")
        },
    },
    "bad_messages": {
        "DELAY without a time": Difference("OK", _CONFLICT, KIND),
        "FIFO without a group": Difference("OK", _CONFLICT, KIND),
        "group of 64 bytes": Difference("ILLEGAL_MESSAGE_GROUP", _CONFLICT, LIMIT),
    },
    "all_lite_topics": {
        "subscribes to one": Difference(_BROKEN, "BAD_REQUEST", SAID),
    },
    "strangers": {
        "metadata of 100 KB": Difference("UNAVAILABLE", "RESOURCE_EXHAUSTED", GOAWAY),
        "receive without settings": Difference(
            [{"status": _BROKEN}], [{"status": "UNRECOGNIZED_CLIENT_TYPE"}], SAID
        ),
        "AckMessage of a stranger": Difference("OK", _INVALID, ONCE),
        "ChangeInvisibleDuration of a stranger": Difference(_BROKEN, _INVALID, SAID),
        "ForwardMessageToDeadLetterQueue of a stranger": Difference(
            _BROKEN, _INVALID, SAID
        ),
        "EndTransaction of a stranger": Difference(
            _BROKEN, "INVALID_TRANSACTION_ID", SAID
        ),
        "RecallMessage of a stranger": Difference(_CONFLICT, "BAD_REQUEST", SAID),
    },
}
"""By scenario, and by what is asked in it."""
