"""What a node tells its clients: frames for remoting clients, commands for these.

Transactions that nobody has ended, a message to try, a look at threads. Answers come
back on the stream and go to whoever asked, as those of remoting clients do. Of queues
that are to be shared anew these clients need to know nothing: the broker hands out.

Source: GrpcClientChannel.java and ClientActivity.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.grpc import message_encoder
from ropeway.gateway.grpc.protocol import (
    Code,
    NotifyUnsubscribeLiteCommand,
    PrintThreadStackTraceCommand,
    RecoverOrphanedTransactionCommand,
    TelemetryCommand,
    VerifyMessageCommand,
)
from ropeway.gateway.node.calls import ClientAnswer
from ropeway.gateway.wire import bodies, message
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RequestCode, ResponseCode
from ropeway.gateway.wire.commands.callbacks import GetConsumerRunningInfo
from ropeway.gateway.wire.commands.lite import NotifyUnsubscribeLite
from ropeway.gateway.wire.commands.transactions import CheckTransactionState
from ropeway.gateway.wire.frame import PREFIX, decode_envelope
from ropeway.gateway.wire.header import from_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.grpc.protocol import (
        Status,
        ThreadStackTrace,
        VerifyMessageResult,
    )
    from ropeway.gateway.node.link import Link
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.wire.frame import Envelope

_HEADER_BYTES = 0xFFFFFF
_CONSUMED = {
    Code.OK: "CR_SUCCESS",
    Code.FAILED_TO_CONSUME_MESSAGE: "CR_LATER",
    Code.MESSAGE_CORRUPTED: "CR_THROW_EXCEPTION",
}


class _Consumed(bodies.Body, frozen=True, kw_only=True):
    """ConsumeMessageDirectlyResult."""

    order: bool = False
    auto_commit: bool = True
    consume_result: str
    remark: str = ""
    spent_time_mills: int = 0


class _Running(bodies.Body, frozen=True, kw_only=True):
    """ConsumerRunningInfo, of which these clients tell their threads alone."""

    jstack: str
    mq_table: dict[str, str] = msgspec.field(default_factory=dict)
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    status_table: dict[str, str] = msgspec.field(default_factory=dict)
    subscription_set: list[str] = msgspec.field(default_factory=list)


def command(node: Node, session: Link, frame: bytes) -> TelemetryCommand | None:
    """The command for a request to a client; None where it needs none."""
    _, word = PREFIX.unpack_from(frame)
    body_at = PREFIX.size + (word & _HEADER_BYTES)
    envelope = decode_envelope(word >> 24, frame[PREFIX.size : body_at])
    make = _COMMANDS.get(envelope.code)
    made = make(envelope, frame[body_at:]) if make is not None else None
    if made is None and not envelope.flag & ONE_WAY_FLAG:
        answer = ClientAnswer(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            f"clients of gRPC do not answer request {envelope.code}",
            b"",
        )
        node.calls.answered(session, envelope.opaque, answer)
    return made


def _recover(envelope: Envelope, body: bytes) -> TelemetryCommand | None:
    header = from_fields(CheckTransactionState, envelope.ext_fields)
    return TelemetryCommand(
        recover_orphaned_transaction_command=RecoverOrphanedTransactionCommand(
            message=message_encoder.message_of(message.decode(body)),
            transaction_id=header.offset_msg_id or "",
        )
    )


def _verify(envelope: Envelope, body: bytes) -> TelemetryCommand | None:
    return TelemetryCommand(
        verify_message_command=VerifyMessageCommand(
            nonce=str(envelope.opaque),
            message=message_encoder.message_of(message.decode(body)),
        )
    )


def _print_stack(envelope: Envelope, _: bytes) -> TelemetryCommand | None:
    if not from_fields(GetConsumerRunningInfo, envelope.ext_fields).jstack_enable:
        return None
    return TelemetryCommand(
        print_thread_stack_trace_command=PrintThreadStackTraceCommand(
            nonce=str(envelope.opaque)
        )
    )


def _unsubscribe(envelope: Envelope, _: bytes) -> TelemetryCommand | None:
    header = from_fields(NotifyUnsubscribeLite, envelope.ext_fields)
    return TelemetryCommand(
        notify_unsubscribe_lite_command=NotifyUnsubscribeLiteCommand(
            lite_topic=header.lite_topic
        )
    )


_COMMANDS: dict[int, Callable[[Envelope, bytes], TelemetryCommand | None]] = {
    RequestCode.CHECK_TRANSACTION_STATE: _recover,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: _verify,
    RequestCode.GET_CONSUMER_RUNNING_INFO: _print_stack,
    RequestCode.NOTIFY_UNSUBSCRIBE_LITE: _unsubscribe,
}


def verified(
    node: Node, session: Link, status: Status, result: VerifyMessageResult
) -> None:
    """A client has tried a message."""
    if status.code == Code.VERIFY_FIFO_MESSAGE_UNSUPPORTED:
        _answer(
            node,
            session,
            result.nonce,
            ClientAnswer(
                ResponseCode.NO_PERMISSION, "forbidden to verify message", b""
            ),
        )
        return
    consumed = _Consumed(
        consume_result=_CONSUMED.get(status.code, "CR_THROW_EXCEPTION"),
        remark=f"{status.message:.1000}",
    )
    answer = ClientAnswer(ResponseCode.SUCCESS, None, msgspec.json.encode(consumed))
    _answer(node, session, result.nonce, answer)


def stack_trace_came(
    node: Node, session: Link, status: Status, trace: ThreadStackTrace
) -> None:
    """A client has told what its threads do."""
    if status.code not in (Code.OK, Code.CODE_UNSPECIFIED):
        answer = ClientAnswer(ResponseCode.SYSTEM_ERROR, f"{status.message:.1000}", b"")
    else:
        running = _Running(jstack=trace.thread_stack_trace)
        answer = ClientAnswer(ResponseCode.SUCCESS, None, msgspec.json.encode(running))
    _answer(node, session, trace.nonce, answer)


def _answer(node: Node, session: Link, nonce: str, answer: ClientAnswer) -> None:
    if nonce.isdecimal():
        node.calls.answered(session, int(nonce), answer)
