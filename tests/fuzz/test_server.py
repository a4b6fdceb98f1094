"""A running node under damaged requests: every whole one answered once, nothing leaked.

`ROPEWAY_FUZZ_ROUNDS` works as in `test_wire`.
"""

from __future__ import annotations

import asyncio
import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.processors import pop, pull
from ropeway.gateway.wire.codes import RESPONSE_FLAG
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from ropeway.gateway.wire.frame import JSON, ROCKETMQ
from tests.captures import Capture, load_all
from tests.chance import fixed_and_fresh
from tests.fuzz.mutate import NUMBERS, mutate
from tests.remoting import connect, looped, running, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remoting import Remoting

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("ROPEWAY_FUZZ_ROUNDS", "1"))


@pytest.fixture(autouse=True)
def waits_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server hold no request for as long as a random number may ask."""
    monkeypatch.setattr(pull, "MAX_SUSPEND_MS", 20)
    monkeypatch.setattr(pop, "MAX_POLL_MS", 20)


WORDS = ("", "0", "-1", "true", "null", "*", "a||b", "TBW102", "%RETRY%g", "x" * 300)
PIPELINED = 40


def damaged_fields(chance: random.Random, capture: Capture) -> dict[str, str]:
    """A real request's fields, one or two of them missing, exchanged or absurd."""
    fields = {name: str(value) for name, value in capture.request.fields.items()}
    for _ in range(chance.randint(0, 2)):
        if not fields:
            break
        name = chance.choice(list(fields))
        match chance.randrange(4):
            case 0:
                del fields[name]
            case 1:
                fields[name] = str(chance.choice(NUMBERS) * chance.choice((1, 1 << 31)))
            case 2:
                fields[name] = chance.choice(WORDS)
            case _:
                fields[name] = chance.choice(list(fields.values()))
    return fields


def whole_request(
    chance: random.Random, capture: Capture
) -> tuple[int, bytes, dict[str, Any]]:
    """A request that can be answered, whatever is wrong with it."""
    body = capture.request.raw.body
    if chance.random() < 0.3:
        body = mutate(
            chance, body or b"{}", [one.request.raw.body for one in load_all()]
        )
    code = capture.code
    if chance.random() < 0.05:
        code = chance.choice((0, -1, 9999, 32_767))
    serialize_type = chance.choice((JSON, JSON, ROCKETMQ))
    if code > 32_767:
        serialize_type = JSON
    more = {
        "fields": damaged_fields(chance, capture),
        "serialize_type": serialize_type,
    }
    return code, body[: 1 << 16], more


@fixed_and_fresh
@looped
async def test_every_whole_request_is_answered_once(seed: int, tmp_path: Path):
    chance = random.Random(seed)
    captures = [one for one in load_all() if not one.request.header["flag"] & 1]
    async with running(tmp_path) as (app, bystander):
        listener = app.server.listeners[0]
        for _ in range(100 * ROUNDS):
            async with connect(listener) as client:
                futures = []
                for _ in range(PIPELINED):
                    code, body, more = whole_request(chance, chance.choice(captures))
                    futures.append(client.send(code, body, **more))
                async with asyncio.timeout(60):
                    await asyncio.gather(*futures)
                assert len(client.answers) == PIPELINED
                for answer in client.answers:
                    assert answer.flag & RESPONSE_FLAG
                    # What it says of an exception that nobody foresaw.
                    assert "the broker failed" not in (answer.remark or "")
            assert (await bystander.ask(GetAllTopicList())).code == 0
        await nothing_left(app, bystander)


@fixed_and_fresh
@looped
async def test_damaged_streams_end_and_nothing_is_left_of_them(
    seed: int, tmp_path: Path
):
    chance = random.Random(seed)
    frames = [one.request.data for one in load_all()]
    async with running(tmp_path) as (app, bystander):
        await bystander.ask(sending("orders"), b"x")
        listener = app.server.listeners[0]
        for _ in range(150 * ROUNDS):
            async with connect(listener) as client:
                for _ in range(chance.randint(1, 5)):
                    frame = chance.choice(frames)
                    if chance.random() < 0.7:
                        frame = mutate(chance, frame, frames)
                    if client.writer.is_closing():
                        break
                    client.writer.write(frame)
                    if chance.random() < 0.5:
                        await asyncio.sleep(0)
                if chance.random() < 0.3:
                    client.writer.transport.abort()
            assert (await bystander.ask(sending("orders"), b"x")).code == 0
        await nothing_left(app, bystander)


async def nothing_left(app: Any, bystander: Remoting) -> None:
    """Of all that came and went, only the bystander's connection is there."""
    listener = app.server.listeners[0]
    await until(lambda: len(listener.connections) == 1)
    await until(lambda: not app.node.tasks)
    (connection,) = listener.connections
    assert connection.address == bystander.address
    assert connection.in_flight == 0
    assert len(app.node.pull_hold) == 0
    assert not app.node.pull_hold._owned
    clients = app.node.clients
    assert not clients._groups_of_link
    assert not clients.consumer_groups()
    assert not clients.producer_groups()
