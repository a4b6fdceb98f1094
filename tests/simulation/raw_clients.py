"""Clients that speak the protocol themselves, and the table of all kinds.

Each has one connection to one node, and makes another when it is lost.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from ropeway.gateway.node.names import GIVEN_UP_TOPIC
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateTopic
from ropeway.gateway.wire.commands.pop import AckMessage
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.commands.transactions import COMMIT, ROLLBACK, EndTransaction
from ropeway.gateway.wire.message_id import parse_offset_msg_id
from tests.gateway.pop.rig import Consumer, popped
from tests.remoting import Remoting
from tests.requests import sending
from tests.simulation.clients import (
    ANSWER_S,
    BROKER,
    DEALS,
    INVISIBLE_MS,
    ORDERS,
    OTHER,
    POPS,
    PORT,
    QUEUES,
    RETRY_TOPIC,
    body_of,
    consume,
    produce,
    produce_batches,
    produce_timed,
)
from tests.simulation.lateness import GIVEN_UP_S, LOOKS_S, SLOW_S, Waiting

if TYPE_CHECKING:
    import random

    from tests.simulation.clients import Load

SLOWLY = 0.3
"""How often who sends without waiting for answers waits between its sends."""
TOPICS = 6
"""How many topics are made."""


class Raw:
    """A raw client: one connection, made again when it is lost or does not answer.

    Args:
        load: Says which nodes there are.
        chance: Which of them it connects to, another one each time.
    """

    def __init__(self, load: Load, chance: random.Random) -> None:
        self._hosts = load.hosts
        self._copies = load.copies
        self._chance = chance
        self._host = 0
        self.client: Remoting | None = None

    @property
    def broker(self) -> int:
        """The number of the broker that it asks."""
        return self._host // self._copies

    async def connected(self) -> Remoting | None:
        """Its connection; None where there is none to be had now."""
        if self.client is None or not self.client.is_open:
            await self.close()
            others = [one for one in range(len(self._hosts)) if one != self._host]
            if others:
                self._host = self._chance.choice(others)
            try:
                async with asyncio.timeout(2.0):
                    host = self._hosts[self._host]
                    self.client = Remoting(*await asyncio.open_connection(host, PORT))
            except (OSError, TimeoutError):
                await asyncio.sleep(0.2)
        return self.client

    async def answers(self, asked: list[asyncio.Future[Any]]) -> bool:
        """Wait for answers for as long as a client would; False where some miss."""
        for one in asked:
            one.add_done_callback(_seen)
        done, waiting = await asyncio.wait(asked, timeout=ANSWER_S)
        if waiting or any(one.exception() for one in done):
            assert self.client is not None
            self.client.writer.transport.abort()
            await self.close()
            return False
        return True

    async def close(self) -> None:
        """Close the connection, if there is one."""
        client, self.client = self.client, None
        if client is not None:
            await client.close()
            client.check()


def _seen(answer: asyncio.Future[Any]) -> None:
    """Take an error that nobody else will: the connection was lost."""
    if not answer.cancelled():
        answer.exception()


async def pipeline(load: Load, name: str) -> None:
    """Send many requests on one connection, and take answers as they come."""
    chance = load.world.chance(name)
    raw = Raw(load, chance)
    async for number in load.turns(chance):
        if (client := await raw.connected()) is None:
            continue
        asked = []
        queue_id = chance.randrange(QUEUES)
        count, pause_s = chance.randint(1, 24), 0.0
        if chance.random() < SLOWLY:
            # For as long as a take-over takes.
            count, pause_s = chance.choice([(24, 0.1), (200, 0.02), (200, 0.005)])
        for at in range(count):
            body = load.body(f"{name}.{at}", number, chance)
            load.model.sending(body, ORDERS, f"{name}/{number}")
            header = sending(ORDERS, queue_id=queue_id)
            answer = client.send(header, body)
            answer.add_done_callback(partial(_stored, load, body, raw.broker))
            asked.append(answer)
            if pause_s:
                await asyncio.sleep(chance.expovariate(1 / pause_s))
        await raw.answers(asked)
    await raw.close()


def _stored(load: Load, body: bytes, broker: int, answer: asyncio.Future[Any]) -> None:
    """Tell the model what a send was answered."""
    if not answer.cancelled() and not answer.exception():
        found = answer.result()
        if found.code == ResponseCode.SUCCESS:
            reply = found.read(SendReply)
            there = broker * BROKER + reply.queue_id
            load.model.acknowledged(body, there, reply.queue_offset)


async def pop(load: Load, name: str) -> None:
    """Pop; acknowledge most of it, at once or late, and leave some of it."""
    chance = load.world.chance(name)
    raw = Raw(load, chance)
    loop = load.world.loop
    load.model.popping["poppers", POPS] = None
    while not load.done.is_set():
        if (client := await raw.connected()) is None:
            continue
        popper = Consumer(client, "poppers", POPS)
        asked_s = loop.time()
        header = popper.header(
            queue_id=-1,
            max_msg_nums=chance.randint(1, 16),
            invisible_time=INVISIBLE_MS,
            poll_time=chance.choice([0, 1500]),
            born_time=load.world.loop.wall_ns() // 1_000_000,
        )
        answer = client.send(header)
        if not await raw.answers([answer]):
            continue
        if answer.result().code == ResponseCode.SUCCESS:
            found = popped(answer.result())
            for one in found.messages:
                load.model.popped("poppers", body_of(one), asked_s, INVISIBLE_MS / 1000)
            await _acknowledge(load, raw, popper, found, chance)
        await asyncio.sleep(chance.uniform(0.01, 0.3))
        is_over = loop.time() > load.until_s
        if len(load.hosts) > 1 and (is_over or chance.random() < OTHER):
            # Each broker hands out what it has itself.
            await raw.close()
    await raw.close()


async def _acknowledge(
    load: Load, raw: Raw, popper: Consumer, found: Any, chance: random.Random
) -> None:
    """Acknowledge some messages, one after the other."""
    for one in found.messages:
        if chance.random() < 0.15 and load.world.loop.time() < load.until_s:
            continue
        # A message that came again has the receipt of its retry queue with it.
        receipt = properties.parse(one.properties).get("POP_CK")
        given = receipt or found.receipt(one.queue_offset, one.queue_id)
        *_, queue_id, offset = given.split(" ")
        header = AckMessage(
            consumer_group=popper.group,
            topic=RETRY_TOPIC if receipt else POPS,
            queue_id=int(queue_id),
            extra_info=given,
            offset=int(offset),
        )
        load.model.pop_acknowledging("poppers", body_of(one))
        answer = popper.client.send(header)
        if not await raw.answers([answer]):
            return
        if answer.result().code == ResponseCode.SUCCESS:
            load.model.pop_acknowledged("poppers", body_of(one))


async def deal(load: Load, name: str) -> None:
    """Send half messages, and commit them, roll them back, or forget them."""
    chance = load.world.chance(name)
    raw = Raw(load, chance)
    async for number in load.turns(chance):
        if (client := await raw.connected()) is None:
            continue
        body = load.body(name, number, chance)
        sent = load.model.sending(body, DEALS)
        sent.is_deal = True
        asked_s = load.world.loop.time()
        pairs = {"TRAN_MSG": "true", "PGROUP": "dealers", "UNIQ_KEY": f"{number:032X}"}
        asked = client.send(
            sending(DEALS, pairs=pairs, sys_flag=4, producer_group="dealers"), body
        )
        if not await raw.answers([asked]):
            continue
        if asked.result().code != ResponseCode.SUCCESS:
            continue
        how = chance.choice([COMMIT, COMMIT, ROLLBACK, None])
        if how is None:
            times = asked_s, load.world.loop.time(), GIVEN_UP_S, LOOKS_S + SLOW_S
            load.model.undecided.append(
                Waiting(body, GIVEN_UP_TOPIC, raw.broker, *times, is_timed=False)
            )
            continue
        reply = asked.result().read(SendReply)
        ending = EndTransaction(
            producer_group="dealers",
            tran_state_table_offset=reply.queue_offset,
            commit_log_offset=parse_offset_msg_id(reply.msg_id).message_id,
            commit_or_rollback=how,
            msg_id=reply.transaction_id,
        )
        ended = client.send(ending)
        if not await raw.answers([ended]):
            continue
        if ended.result().code == ResponseCode.SUCCESS:
            if how == COMMIT:
                load.model.promised(body)
            else:
                sent.never = True
    await raw.close()


async def make(load: Load, name: str) -> None:
    """Make topics, and have some of them get more queues."""
    chance = load.world.chance(name)
    raw = Raw(load, chance)
    async for _ in load.turns(chance):
        await raw.close()
        if (client := await raw.connected()) is None:
            continue
        topic = f"made-{chance.randrange(TOPICS)}"
        broker = f"broker-{raw.broker}"
        count = load.model.queues_of(topic, broker) + chance.randint(0, 1) or 1
        asked = client.send(
            CreateTopic(
                topic=topic,
                default_topic="TBW102",
                read_queue_nums=count,
                write_queue_nums=count,
                perm=6,
            )
        )
        good = await raw.answers([asked])
        if good and asked.result().code == ResponseCode.SUCCESS:
            load.model.made(topic, broker, count)
        await asyncio.sleep(chance.uniform(0, 0.3))
    await raw.close()


KINDS = {
    "producers": produce,
    "batches": produce_batches,
    "pipeliners": pipeline,
    "consumers": consume,
    "poppers": pop,
    "timed": produce_timed,
    "transactions": deal,
    "makers": make,
}
"""By the field of a plan that counts them."""
