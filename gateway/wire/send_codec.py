"""What a send says, stores and is answered, in one step each.

A message is plain when it names its unique key and has no property that makes a broker
do more than store it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.batch import decode_batch
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RESPONSE_FLAG, RequestCode
from ropeway.gateway.wire.commands.send import SendMessage, SendMessageV2
from ropeway.gateway.wire.compiled import may_be_compiled
from ropeway.gateway.wire.errors import FrameError, HeaderError, MessageError
from ropeway.gateway.wire.frame import JSON, PREFIX, decode_envelope
from ropeway.gateway.wire.header import decode_fields, decode_request, row_of
from ropeway.gateway.wire.request_credentials import claims_in

if TYPE_CHECKING:
    from ropeway.gateway.wire.request_credentials import Claims

_encode_json = msgspec.json.Encoder().encode

NO_MARK = -1
"""For `plain_batch`: its messages have no property that counts them."""

_HOST_FLAGS = message.BORN_HOST_V6_FLAG | message.STORE_HOST_V6_FLAG

_SEND_STARTS = b'{"code":%d,' % RequestCode.SEND_MESSAGE_V2
_SEND = row_of(SendMessageV2)

# A `SendReply` as `encode_frame` would make it, with room for what differs.
_SENT = (
    b'{"code":0,"extFields":{%b"queueId":"%d","transactionId":%b,"msgId":"%b",'
    b'"TRACE_ON":"true","MSG_REGION":%b,"queueOffset":"%d"},"flag":1,'
    b'"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":%d}'
)


@may_be_compiled
def read_send(
    header: bytes,
    kind: type[SendMessage],  # noqa: ARG001 - whose decoder is at hand here
    /,
) -> tuple[int, bool, SendMessage, Claims | None] | None:
    """Read the JSON header of a send as clients make it.

    None where it is another request, a batch, or anything else to be looked at with
    more care. The compiled form also leaves those that no client makes: with spaces,
    fields that are twice there, or numbers that are not text; and text beyond ASCII.

    Args:
        header: As it came.
        kind: `SendMessageV2`.

    Returns:
        Its opaque, whether it is one-way, its own fields, and `signing.Claims`.
    """
    if not header.startswith(_SEND_STARTS):
        return None
    try:
        envelope = decode_envelope(JSON, header)
        if envelope.code != _SEND.code or envelope.flag & RESPONSE_FLAG:
            return None
        send: SendMessage = decode_request(_SEND, envelope.ext_fields)
        claims = claims_in(decode_fields(envelope.ext_fields), envelope.version)
    except (FrameError, HeaderError):
        return None
    if send.batch:
        return None
    return envelope.opaque, bool(envelope.flag & ONE_WAY_FLAG), send, claims


@may_be_compiled
def record_of(
    magic: int,
    topic: bytes,
    queue_id: int,
    sys_flag: int,
    born_ms: int,
    born_host: bytes,
    store_ms: int,
    store_host: bytes,
    reconsume_times: int,
    suffix: str,
    queue_offset: int,
    message_id: int,
    flag: int,
    body: bytes,
    text: str,
    only_plain: bool,
    /,
) -> tuple[bytes, int, list[str]] | None:
    """Make the record of a message; None where that cannot be, or is not wanted.

    Its properties may be too long, or not to be encoded.

    Args:
        magic: By `message.topic_field`.
        topic: Likewise, with its length.
        queue_id: Which queue of the topic.
        sys_flag: As sent; the bits of the hosts' lengths are set here.
        born_ms: When the producer made it, in milliseconds since 1970.
        born_host: By `message.pack_host`.
        store_ms: Now, in milliseconds since 1970.
        store_host: By `message.pack_host`.
        reconsume_times: How often a consumer has sent it back.
        suffix: Properties that the broker adds, in wire form.
        queue_offset: The offset it will have.
        message_id: The id it will have.
        flag: The application's flag.
        body: As it was sent.
        text: The properties in wire form, as they were sent.
        only_plain: Whether it is only wanted of a plain message.

    Returns:
        The stored message, the hash of its tag, and its keys with the unique one last.
    """
    if text and not text.endswith(properties.VALUE_END):
        text += properties.VALUE_END
    pairs = properties.parse(text)
    if only_plain and (
        properties.UNIQ_KEY not in pairs or not properties.RARE.isdisjoint(pairs)
    ):
        return None
    try:
        data = (text + suffix).encode()
    except UnicodeEncodeError:
        return None
    if len(data) > message.MAX_PROPERTIES_BYTES:
        return None
    tag = pairs.get(properties.TAGS)
    front = message.Front(
        magic,
        message.crc(body),
        queue_id,
        flag,
        queue_offset,
        message_id,
        sys_flag & ~_HOST_FLAGS | message.host_flags(born_host, store_host),
        born_ms,
        born_host,
        store_ms,
        store_host,
        reconsume_times,
    )
    return (
        message.assemble(front, body, topic, data),
        properties.tag_hash(tag) if tag else 0,
        properties.key_words(pairs),
    )


@may_be_compiled
def plain_batch(
    magic: int,
    topic: bytes,
    queue_id: int,
    sys_flag: int,
    born_ms: int,
    born_host: bytes,
    store_ms: int,
    store_host: bytes,
    reconsume_times: int,
    suffix: str,
    queue_offset: int,
    id_base: int,
    mark: int,
    data: bytes,
    /,
) -> list[tuple[bytes, int, list[str]]] | None:
    """Make the records of a batch of plain messages.

    None where one of them is not plain, or the batch is not one.

    Args:
        magic: This and those to `suffix` as in `record_of`.
        topic: See there.
        queue_id: See there.
        sys_flag: See there.
        born_ms: See there.
        born_host: See there.
        store_ms: See there.
        store_host: See there.
        reconsume_times: See there.
        suffix: See there.
        queue_offset: The offset that the first message will have.
        id_base: The id of the queue's first message.
        mark: Ends the suffix of the first message, as a property's value; that of each
            one behind it is one more. Negative: the suffix is whole.
        data: The batch, as in `gateway.wire.batch`.
    """
    try:
        entries = decode_batch(data)
    except MessageError:
        return None
    records = []
    for at, entry in enumerate(entries):
        offset = queue_offset + at
        end = f"{mark + at}{properties.VALUE_END}" if mark >= 0 else ""
        record = record_of(
            magic,
            topic,
            queue_id,
            sys_flag,
            born_ms,
            born_host,
            store_ms,
            store_host,
            reconsume_times,
            suffix + end,
            offset,
            id_base | offset,
            entry.flag,
            entry.body,
            entry.properties,
            True,
        )
        if record is None:
            return None
        records.append(record)
    return records


@may_be_compiled
def sent_frame(
    queue_id: int,
    unique_key: str,
    id_prefix: bytes,
    first_id: int,
    count: int,
    region: bytes,
    queue_offset: int,
    opaque: int,
    version: int,
    recall_handle: bytes,
    /,
) -> bytes:
    """Make the whole answer of a send that was stored.

    Args:
        queue_id: Where the message went, as it was asked for.
        unique_key: Its unique key.
        id_prefix: What comes before the 16 digits of a message id.
        first_id: The (first) message id.
        count: How many messages it was.
        region: The broker's region in JSON.
        queue_offset: The (first) offset.
        opaque: The request's.
        version: MQVersion's number.
        recall_handle: What the message can be recalled by; nothing for none.
    """
    ids = b",".join(
        b"%b%016X" % (id_prefix, one) for one in range(first_id, first_id + count)
    )
    handle = b'"recallHandle":"%b",' % recall_handle if recall_handle else b""
    header = _SENT % (
        *(
            handle,
            queue_id,
            _encode_json(unique_key),
            ids,
            region,
            queue_offset,
            opaque,
        ),
        version,
    )
    size = len(header)
    return PREFIX.pack(size + 4, size) + header
