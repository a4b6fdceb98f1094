"""Asking producers how their transactions ended, and giving up those that never say.

Whatever comes of a look, the half message is stored again first: so it is never the
oldest for long, retention does not reach it, and a start reads little.

Source: TransactionalMessageServiceImpl.check and
AbstractTransactionalMessageCheckListener, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import structlog

from ropeway.gateway.node import names
from ropeway.gateway.node.transactions import half_message as half_messages
from ropeway.gateway.node.transactions import records
from ropeway.gateway.node.transactions.end_records import End
from ropeway.gateway.wire import host_port, message
from ropeway.gateway.wire.commands.transactions import CheckTransactionState
from ropeway.gateway.wire.errors import MessageError, WireError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.gateway.config import TransactionsConfig
    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.clients import Clients, Member
    from ropeway.gateway.node.link import Link
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.transactions.half_message import Half
    from ropeway.gateway.node.transactions.open_transactions import OpenTransactions
    from ropeway.gateway.node.transactions.writer import EndsWriter
    from ropeway.storage.api import LogError

    Ask = Callable[[Link, CheckTransactionState, bytes], None]
    Permitted = Callable[[Member, str], Awaitable[bool]]

log = structlog.get_logger(__name__)

_BATCH = 64
_RETRY_MS = 1000
_COMPLAIN_EVERY_MS = 30_000


class Producers(NamedTuple):
    """Whom to ask how a transaction ended, and how."""

    clients: Clients
    ask: Ask
    """Sends a producer the question."""
    permitted: Permitted | None
    """Says whether a producer may send to a topic, and so may know what others send
    there; None: all may."""


class Checks:
    """Looks at half messages when it is time.

    Args:
        broker: Whose they are.
        config: When that is.
        book: Tells which are due.
        writer: Is told of those that are given up.
        producers: Are asked.
    """

    def __init__(
        self,
        broker: BrokerContext,
        config: TransactionsConfig,
        book: OpenTransactions,
        writer: EndsWriter,
        producers: Producers,
    ) -> None:
        self._config = config
        self._name = broker.name
        self._book = book
        self._writer = writer
        self._topics = broker.topics
        self._clients, self._ask, self._permitted = producers
        self._now_ms = broker.clock
        self._turn = 0
        self._unasked: Counter[str] = Counter()
        self._complain_ms = 0

    def look_ms(self, half: Half) -> int:
        """When to look at a half message that was just stored, or read."""
        config = self._config
        due_ms = half.due_ms(config.timeout_ms, config.check_interval_ms)
        return min(due_ms, half.store_ms + config.check_interval_ms)

    async def look(self) -> None:
        """Look at all that are due.

        Raises:
            LogError: They cannot be read or stored now; they are due again soon.
            RouteError: Likewise, of the topic for those that are given up.
        """
        topic = self._topics.get(names.HALF_TOPIC)
        if topic is None:
            return
        due = self._book.take_due(self._now_ms())
        for at in range(0, len(due), _BATCH):
            try:
                await self._look_at(topic, due[at : at + _BATCH])
            except BaseException:
                for offset in due[at:]:
                    self._book.put_off(offset, self._now_ms() + _RETRY_MS)
                raise
        self._complain()

    async def _look_at(self, topic: ServedTopic, offsets: list[int]) -> None:
        stored: list[asyncio.Future[None]] = []
        asked: list[bytes] = []
        now_ms = self._now_ms()
        config = self._config
        for offset in offsets:
            half = await self._read(topic, offset)
            if half is None:
                continue
            if not self._book.is_undecided(half.origin):
                # Should its end fail, it is looked at again.
                self._book.put_off(offset, now_ms + config.check_interval_ms)
                continue
            due = half.due_ms(config.timeout_ms, config.check_interval_ms) <= now_ms
            if due and half.checks >= config.check_max:
                stored.append(await self._give_up(half))
                continue
            try:
                stored.append(self._store_again(half, topic, asked, due=due))
            except MessageError:
                # Older versions took what leaves no room for a copy.
                stored.append(await self._give_up(half))
        await asyncio.gather(*stored)
        await self._ask_all(topic, asked)

    async def _read(self, topic: ServedTopic, offset: int) -> Half | None:
        partition = topic.partitions[0]
        chunk = await partition.read(offset, 1, 1)
        if chunk.records == 0 or offset not in self._book:
            if offset in self._book:
                self._lose(offset, "it is not in the log any more")
            return None
        try:
            half = half_messages.read(chunk.data[0])
        except WireError as error:
            self._lose(offset, str(error))
            return None
        if half.offset != offset:
            self._lose(offset, "it is not in the log any more")
            return None
        return half

    def _lose(self, offset: int, reason: str) -> None:
        log.error("open transaction lost", half_offset=offset, reason=reason)
        self._book.drop(offset)

    def _store_again(
        self,
        half: Half,
        topic: ServedTopic,
        asked: list[bytes],
        *,
        due: bool,
    ) -> asyncio.Future[None]:
        store_ms = self._now_ms()
        checks = half.checks + due
        record = records.copy(half, topic, store_ms, checks=checks)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stored = partial(
            self._stored_again,
            half,
            record.data if due else None,
            store_ms,
            asked,
            done,
        )
        topic.partitions[0].append([record], store_ms, stored)
        return done

    def _stored_again(
        self,
        half: Half,
        question: bytes | None,
        store_ms: int,
        asked: list[bytes],
        done: asyncio.Future[None],
        offset: int,
        error: LogError | None,
    ) -> None:
        if not done.cancelled():
            done.set_result(None)
        if self._book.current(half.origin) != half.offset:
            return
        if error is not None:
            log.warning("half message waits to be stored again", reason=str(error))
            self._book.put_off(half.offset, store_ms + _RETRY_MS)
            return
        interval_ms = self._config.check_interval_ms
        look_ms = store_ms + interval_ms
        if question is None:
            due_ms = half.due_ms(self._config.timeout_ms, interval_ms)
            look_ms = min(look_ms, due_ms)
        elif self._book.is_undecided(half.origin):
            asked.append(question)
        self._book.add(offset, half.origin, look_ms)

    async def _give_up(self, half: Half) -> asyncio.Future[None]:
        topic = await self._topics.ensure_derived(names.GIVEN_UP_TOPIC, 1)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._book.is_undecided(half.origin):
            self._book.put_off(half.offset, self._now_ms() + _RETRY_MS)
            done.set_result(None)
            return done
        store_ms = self._now_ms()
        record = records.given_up(half, topic, store_ms)
        stored = partial(self._given_up, half, done)
        topic.partitions[0].append([record], store_ms, stored)
        self._book.ending.add(half.origin)
        return done

    def _given_up(
        self,
        half: Half,
        done: asyncio.Future[None],
        _offset: int,
        error: LogError | None,
    ) -> None:
        if not done.cancelled():
            done.set_result(None)
        if error is not None:
            self._book.ending.discard(half.origin)
            self._book.put_off(half.offset, self._now_ms() + _RETRY_MS)
            log.warning("half message waits to be given up", reason=str(error))
            return
        log.warning(
            "half message given up: nobody knows how its transaction ended",
            topic=half.topic,
            group=half.group,
            unique_key=half.unique_key,
            checks=half.checks,
            kept_in=names.GIVEN_UP_TOPIC,
        )
        self._writer.add(half.origin, End.GIVEN_UP)

    async def _ask_all(self, topic: ServedTopic, asked: list[bytes]) -> None:
        found: dict[tuple[str, str], list[Member]] = {}
        for record in asked:
            half = half_messages.read(record)
            place = half.group, half.topic
            producers = found.get(place)
            if producers is None:
                producers = found[place] = await self._producers(*place)
            if not producers:
                self._unasked[half.group] += 1
                continue
            self._ask(self._choose(producers, half).link, *self._question(topic, half))

    async def _producers(self, group: str, topic: str) -> list[Member]:
        """Those of a group that may send to a topic now."""
        members = self._clients.producers(group)
        if self._permitted is None:
            return members
        found = []
        for number, one in enumerate(members, 1):
            if await self._permitted(one, topic):
                found.append(one)
            if number % _BATCH == 0:
                # Anybody can be a producer of any group; so others have their turn.
                await asyncio.sleep(0)
        return found

    def _choose(self, producers: list[Member], half: Half) -> Member:
        """Who sent the message, at first; then one after the other."""
        if half.checks <= 1:
            sender = host_port.join(*half.message.born_host)
            for one in producers:
                if one.link.address == sender:
                    return one
        self._turn += 1
        return producers[self._turn % len(producers)]

    def _complain(self) -> None:
        """Say which groups have no producer, now and then."""
        now_ms = self._now_ms()
        if self._unasked and now_ms >= self._complain_ms:
            for group, count in self._unasked.items():
                log.warning(
                    "no producer is connected to ask about transactions",
                    group=group,
                    questions=count,
                )
            self._unasked.clear()
            self._complain_ms = now_ms + _COMPLAIN_EVERY_MS

    def _question(
        self, topic: ServedTopic, half: Half
    ) -> tuple[CheckTransactionState, bytes]:
        one = half.message
        identity = one.message_id
        host = message.pack_host(*one.store_host).hex().upper()
        header = CheckTransactionState(
            tran_state_table_offset=half.offset,
            commit_log_offset=identity,
            msg_id=half.unique_key,
            transaction_id=half.unique_key,
            offset_msg_id=f"{host}{identity:016X}",
            topic=topic.name,
            bname=self._name,
        )
        return header, records.for_producer(half)
