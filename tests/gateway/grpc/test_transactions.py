"""Transactions: committed, rolled back, asked for, and ended by strangers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.config import TransactionsConfig
from ropeway.gateway.grpc.protocol import (
    Code,
    EndTransactionRequest,
    MessageType,
    Resource,
    TransactionResolution,
    TransactionSource,
)
from tests.gateway.grpc.thin import Thin, consumer, create, producer, serving
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

HALF = MessageType.TRANSACTION


async def end(
    client: Thin, transaction_id: str, how: TransactionResolution, topic: str = "orders"
) -> Code:
    request = EndTransactionRequest(
        topic=Resource(name=topic),
        message_id="any",
        transaction_id=transaction_id,
        resolution=how,
        source=TransactionSource.SOURCE_CLIENT,
    )
    return (await client.call("EndTransaction", request)).status.code


@looped
async def test_only_what_was_committed_is_received(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders", "TRANSACTION")
        ids = {}
        for body in (b"rolled back", b"committed", b"open"):
            sent = await client.send("orders", body, message_type=HALF)
            (entry,) = sent.entries
            ids[body] = entry.transaction_id
        back = await end(client, ids[b"rolled back"], TransactionResolution.ROLLBACK)
        kept = await end(client, ids[b"committed"], TransactionResolution.COMMIT)
        assert (back, kept) == (Code.OK, Code.OK)
        stream, _ = await client.telemetry(consumer("orders"))
        found = await client.receive("orders", wait_s=10)
        assert [one.body for one in found] == [b"committed"]
        stream.cancel()


@looped
async def test_a_producer_is_asked_and_its_answer_counts(tmp_path: Path):
    soon = TransactionsConfig(timeout_ms=50, check_interval_ms=50, check_max=1000)
    async with serving(tmp_path, transactions=soon) as (app, client):
        await create(app, "orders", "TRANSACTION")
        stream, _ = await client.telemetry(producer("orders"))
        sent = await client.send("orders", b"forgotten", message_type=HALF, tag="T")
        command = (await stream.read()).recover_orphaned_transaction_command
        assert command.message.body == b"forgotten"
        assert command.message.topic.name == "orders"
        assert command.message.system_properties.tag == "T"
        identity = command.message.system_properties.message_id
        assert identity == sent.entries[0].message_id
        done = await end(client, command.transaction_id, TransactionResolution.COMMIT)
        assert done == Code.OK
        reader = Thin(app.server.listeners[0].advertised, "reader")
        reading, _ = await reader.telemetry(consumer("orders"))
        (found,) = await reader.receive("orders", wait_s=10)
        assert found.body == b"forgotten"
        assert found.system_properties.message_type == HALF
        stream.cancel()
        reading.cancel()
        await reader.close()


@looped
async def test_strange_transaction_ids_are_refused(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        await create(app, "orders", "TRANSACTION")
        await create(app, "others", "TRANSACTION")
        commit = TransactionResolution.COMMIT
        for forged in ("", "x", "F" * 32, "0" * 31):
            assert await end(client, forged, commit) == Code.INVALID_TRANSACTION_ID
        sent = await client.send("orders", message_type=HALF)
        ours = sent.entries[0].transaction_id
        other = await end(client, ours, commit, topic="others")
        assert other == Code.INTERNAL_SERVER_ERROR
        assert await end(client, ours, commit) == Code.OK
