"""Receipts over the wire: the bytes that clients sent, and what they are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.wire.codes import ResponseCode
from tests.gateway.pop.rig import TOPIC, renewed, rigged
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_an_ack_is_answered_as_by_a_real_broker(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1)
        found = await rig.consumer.take(1)
        fields = {
            "queueId": "0",
            "offset": "0",
            "bname": "broker-0",
            "topic": TOPIC,
            "consumerGroup": "readers",
            "extraInfo": found.receipt(0),
        }
        answer = await rig.consumer.client.ask(200051, fields=fields)
        assert (answer.code, answer.remark, answer.fields) == (0, None, {})
        again = await rig.consumer.client.ask(200051, fields=fields)
        assert again.code == ResponseCode.NO_MESSAGE
        assert "by that receipt" in (again.remark or "")


@looped
async def test_a_change_is_answered_with_the_parts_of_the_next_receipt(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1)
        found = await rig.consumer.take(1)
        rig.clock.now_ms += 7
        changed = await rig.consumer.change(found.receipt(0), 0, 20_000)
        assert changed.code == 0
        assert changed.fields == {
            "invisibleTime": "20000",
            "popTime": str(rig.clock()),
            "reviveQid": "0",
        }
        next_one = renewed(found.receipt(0), changed)
        assert (await rig.consumer.change(found.receipt(0), 0, 1)).code == 208
        changed = await rig.consumer.change(next_one, 0, 30_000)
        assert await rig.consumer.ack_by(renewed(next_one, changed), 0) == 0


@looped
async def test_what_is_no_longer_in_memory_is_changed_likewise(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1)
        found = await rig.consumer.take(1)
        await rig.to_ledger()
        changed = await rig.consumer.change(found.receipt(0), 0, 20_000)
        assert changed.code == 0
        assert changed.fields["invisibleTime"] == "20000"
        assert (await rig.consumer.change(found.receipt(0), 0, 1)).code == 208
        assert await rig.consumer.ack_by(renewed(found.receipt(0), changed), 0) == 0


@looped
async def test_fields_that_are_missing_are_said(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        for code in (200050, 200051, 200052, 200053, 200054, 200055):
            answer = await rig.consumer.client.ask(code, fields={"topic": TOPIC})
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "is missing" in (answer.remark or "")
