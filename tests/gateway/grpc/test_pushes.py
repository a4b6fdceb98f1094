"""What the node asks of its clients: to try a message, and what threads do."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from ropeway.gateway.grpc.protocol import (
    Code,
    Status,
    TelemetryCommand,
    ThreadStackTrace,
    VerifyMessageResult,
)
from ropeway.gateway.wire import message_id
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.callbacks import (
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
)
from ropeway.gateway.wire.commands.group_admin import GetConsumerStatus
from tests.gateway.grpc.thin import consumer, create, serving
from tests.remoting import connect, looped
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_an_administrator_has_a_client_try_a_message(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders")
        stream, _ = await client.telemetry(consumer("orders"))
        async with connect(app.server.listeners[0]) as remoting:
            await remoting.ask(sending("orders"), b"try me")
            host, _, port = app.server.listeners[0].advertised.rpartition(":")
            served = app.node.topics.get("orders")
            identity = message_id.format_offset_msg_id(
                host, int(port), served.id_bases[0]
            )
            request = ConsumeMessageDirectly(
                consumer_group="readers",
                client_id="thin",
                msg_id=identity,
                broker_name="broker-0",
                topic="orders",
            )
            for code, result in [
                (Code.OK, "CR_SUCCESS"),
                (Code.FAILED_TO_CONSUME_MESSAGE, "CR_LATER"),
            ]:
                asked = asyncio.create_task(remoting.ask(request))
                command = (await stream.read()).verify_message_command
                assert command.message.body == b"try me"
                tried = VerifyMessageResult(nonce=command.nonce)
                await stream.write(
                    TelemetryCommand(
                        status=Status(code=code), verify_message_result=tried
                    )
                )
                answer = await asked
                assert json.loads(answer.body)["consumeResult"] == result
            asked = asyncio.create_task(remoting.ask(request))
            command = (await stream.read()).verify_message_command
            tried = VerifyMessageResult(nonce=command.nonce)
            refusal = Status(code=Code.VERIFY_FIFO_MESSAGE_UNSUPPORTED)
            await stream.write(
                TelemetryCommand(status=refusal, verify_message_result=tried)
            )
            assert (await asked).code == ResponseCode.NO_PERMISSION
        stream.cancel()


@looped
async def test_an_administrator_sees_what_threads_do(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders")
        stream, _ = await client.telemetry(consumer("orders"))
        async with connect(app.server.listeners[0]) as remoting:
            request = GetConsumerRunningInfo(
                consumer_group="readers", client_id="thin", jstack_enable=True
            )
            asked = asyncio.create_task(remoting.ask(request))
            command = (await stream.read()).print_thread_stack_trace_command
            for nonce in ("not a number", "12345678", command.nonce):
                trace = ThreadStackTrace(nonce=nonce, thread_stack_trace="main: idle")
                await stream.write(TelemetryCommand(thread_stack_trace=trace))
            assert json.loads((await asked).body)["jstack"] == "main: idle"
            # What such a client cannot say is answered for it, at once.
            request = GetConsumerRunningInfo(
                consumer_group="readers", client_id="thin", jstack_enable=False
            )
            answer = await remoting.ask(request)
            assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            status = GetConsumerStatus(topic="orders", group="readers")
            assert (await remoting.ask(status)).code == ResponseCode.SUCCESS
        stream.cancel()
