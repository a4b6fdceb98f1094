"""Taking topics that were cut over back to their source, with what was sent here since.

What is stored here from the cut-over on is sent to the source, queue by queue in order,
where it gets offsets of the source's own. Each copy says in a property, `ORIGIN`, which
offset it has here. So what the source has tells where to go on, and groups' offsets are
translated exactly, without a journal. When little is left, producers wait for a moment,
the last messages are copied, and from the next one on all are sent on to the source.
Consumers follow when they have read what is left here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from ropeway.client import admin_copies, admin_offsets, admin_topics
from ropeway.client.admin_copies import ORIGIN
from ropeway.client.admin_cut_over import SETTLE_S
from ropeway.client.admin_finish import Finish
from ropeway.client.admin_mirrors import PULLED_AT_ONCE
from ropeway.client.admin_undelivered import Undelivered
from ropeway.client.errors import AdminError, ResponseError, TopicNotFoundError
from ropeway.client.routes import PERM_READ, PERM_WRITE
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import HELD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.client.admin import Admin
    from ropeway.client.admin_mirrors import Mirror, Pair
    from ropeway.gateway.wire.bodies import TopicConfig
    from ropeway.gateway.wire.message import Message

CUT_OVER, SENT_BACK, RETURNED = "cut_over", "sent_back", "returned"
"""Where a topic stands: clients use it here; producers' messages are sent on to the
source, consumers read here; clients are led to the source. The last two are as of
`routing.api.Topic.writes`."""
_LOOK_S = 0.5
_NEAR = 500
"""So few messages are copied while producers wait: a request each at worst."""
_ATTEMPTS = 20


class Placed(NamedTuple):
    """Where a group goes on in a queue."""

    group: str
    pair: Pair
    here: int
    at_source: int


class RolledBack(NamedTuple):
    """What a rollback did."""

    sent: dict[str, int]
    """Messages that were sent to the source, by topic."""
    paused_s: float
    """How long producers were held; 0 where that had happened before."""
    placed: list[Placed]
    waiting: dict[str, int]
    """Messages that wait here, by topic: they are stored here when they are due."""


class Rollback:
    """Takes topics back, all that are named together; it keeps nothing itself.

    Args:
        source: Where they came from.
        target: A Ropeway, where they were cut over to.
        mirror: Knows the queues of both.
        settle_s: How long groups have to read what is left at the target, in seconds.
    """

    def __init__(
        self, source: Admin, target: Admin, mirror: Mirror, settle_s: float = SETTLE_S
    ) -> None:
        self._source = source
        self._target = target
        self._mirror = mirror
        self._settle_s = settle_s
        self._finish = Finish(source, target)
        self._sent: dict[Pair, int] = {}
        """One past the last offset here whose copy was acknowledged."""

    async def stage(self, topic: str) -> str:
        """Return where a topic stands.

        Raises:
            AdminError: It is not at the target, was not cut over, or is finished.
            RemotingError: A server cannot be reached, or refused.
        """
        return _stage(topic, await self._config(topic))

    async def _config(self, topic: str) -> TopicConfig:
        try:
            found = await admin_topics.configs(self._target, topic)
        except TopicNotFoundError as error:
            raise AdminError(f"topic {topic} is not at the target") from error
        return next(iter(found.values()))

    async def roll_back(
        self, topics: Sequence[str], groups: Sequence[str], say: Callable[[str], None]
    ) -> RolledBack:
        """Have topics' messages be stored at the source, and their consumers follow.

        Args:
            topics: Those of which `stage` tells something.
            groups: Go on at the source where they do here; they exist at both.
            say: Told which step begins.

        Raises:
            AdminError: A topic has not as many queues at both; or the source's do not
                come close enough. What is sent is stored at the target still.
            RemotingError: A server cannot be reached, or refused; likewise, or it is
                sent on to the source. Rolling back again goes on.
        """
        stages = {topic: await self.stage(topic) for topic in topics}
        pairs = {topic: await self._mirror.pairs(topic) for topic in topics}
        sent = dict.fromkeys(topics, 0)
        paused_s = 0.0
        # A rollback that was killed may have sent what is not shown yet.
        brokers = {pair.source.broker_name for some in pairs.values() for pair in some}
        for broker in sorted(brokers):
            await admin_copies.until_shown(self._source, broker)
        for topic in topics:
            if stages[topic] == CUT_OVER:
                if late := await self._finish.bring(topic):
                    say(f"{late:,} late messages of {topic} were brought here")
                await admin_topics.update(
                    self._source, topic, perm=PERM_READ | PERM_WRITE
                )
            say(f"send to the source what is stored of {topic} here")
            sent[topic] += await self._copy(pairs[topic])
        for topic in topics:
            if stages[topic] == CUT_OVER:
                say(f"send on to the source what producers of {topic} send")
                copied, held_s = await self._send_back(topic, pairs[topic])
                sent[topic] += copied
                paused_s = max(paused_s, held_s)
        left = [topic for topic in topics if stages[topic] != RETURNED]
        waiting = [pair for topic in left for pair in pairs[topic]]
        placed: list[Placed] = []
        if groups and waiting:
            say("wait until groups have read what is left here")
            await self._until_read(waiting, groups)
        for topic in left:
            # What came due here meanwhile.
            sent[topic] += await self._copy(pairs[topic])
            for group in groups:
                placed += [
                    one
                    for pair in pairs[topic]
                    if (one := await self._place(group, pair))
                ]
            say(f"lead clients of {topic} to the source")
            await admin_topics.lead_writes(self._target, topic, RETURNED)
        counts = {topic: await self._waiting(topic) for topic in topics}
        return RolledBack(sent, paused_s, placed, counts)

    async def _send_back(self, topic: str, pairs: Sequence[Pair]) -> tuple[int, float]:
        """From one message to the next: how many were copied, and how long it took."""
        clock = asyncio.get_running_loop().time
        copied = 0
        for _ in range(_ATTEMPTS):
            await self._finish.bring(topic)
            copied += await self._copy(pairs)
            ends = await self._ends(pairs)
            if sum(await self._nexts(pairs)) + _NEAR < sum(ends):
                continue
            hold, began = str(uuid4()), clock()
            try:
                await admin_topics.lead_writes(self._target, topic, HELD, hold)
                copied += await self._copy(pairs)
                done = ",".join(map(str, await self._nexts(pairs)))
                await admin_topics.lead_writes(
                    self._target, topic, SENT_BACK, hold, ends=done
                )
            except ResponseError as error:
                if error.code != ResponseCode.INVALID_PARAMETER:
                    raise
                # It took longer than senders are held, or another node leads.
                continue
            return copied, clock() - began
        raise AdminError(
            f"the source did not get all messages of topic {topic} in {_ATTEMPTS} "
            "attempts; send fewer, or try again"
        )

    async def _copy(self, pairs: Sequence[Pair]) -> int:
        """Send what the source lacks, all queues at a time; how many messages."""
        return sum(await asyncio.gather(*map(self._copy_queue, pairs)))

    async def _copy_queue(self, pair: Pair) -> int:
        begin, end = await self._next(pair), (await self._end(pair))
        count = 0
        found = admin_copies.messages(self._target, pair.target, begin, end)
        async for some in admin_copies.together(found):
            given = [(one, {ORIGIN: _origin(pair, one.queue_offset)}) for one in some]
            await admin_copies.send_all(self._source, pair.source, given)
            self._sent[pair] = some[-1].queue_offset + 1
            count += len(given)
        return count

    async def _end(self, pair: Pair) -> int:
        return (await self._target.span(pair.target)).end

    async def _ends(self, pairs: Sequence[Pair]) -> list[int]:
        return await asyncio.gather(*map(self._end, pairs))

    async def _nexts(self, pairs: Sequence[Pair]) -> list[int]:
        return await asyncio.gather(*map(self._next, pairs))

    async def _cut(self, pair: Pair) -> int:
        """From where on messages were stored here first; the source's end then."""
        queue = pair.target
        config = await self._config(queue.topic)
        cuts = config.cut_offsets
        if not isinstance(cuts, list):
            raise AdminError(f"topic {queue.topic} was finished meanwhile")
        # It may have got more queues since, which began at 0.
        return cuts[queue.queue_id] if queue.queue_id < len(cuts) else 0

    async def _next(self, pair: Pair) -> int:
        """The first offset here of which the source has no copy.

        The last copy is looked for from the source's end on, where it is but for what
        others have sent there. RocketMQ shows what it has acknowledged a moment later.
        """
        end = (await self._source.span(pair.source)).end
        shown = await self._behind_copies(pair, end)
        return max(shown or await self._cut(pair), self._sent.get(pair, 0))

    async def _behind_copies(self, pair: Pair, end: int) -> int | None:
        """The offset here behind the last copy before one of the source, if any is."""
        begin = max(await self._cut(pair), (await self._source.span(pair.source)).begin)
        while end > begin:
            at = max(begin, end - PULLED_AT_ONCE)
            last = None
            async for message in admin_copies.messages(
                self._source, pair.source, at, end
            ):
                found = origin_of(message, pair)
                last = found if found is not None else last
            if last is not None:
                return last + 1
            end = at
        return None

    async def _until_read(self, pairs: Sequence[Pair], groups: Sequence[str]) -> None:
        clock = asyncio.get_running_loop().time
        end_s = clock() + self._settle_s
        while True:
            lags = []
            for group in groups:
                for pair in pairs:
                    await self._follow(group, pair)
                    lags.append(await self._lag(group, pair))
            if not any(lags) or clock() >= end_s:
                return
            await asyncio.sleep(_LOOK_S)

    async def _follow(self, group: str, pair: Pair) -> None:
        """Have a group go on here behind what it has read of the copies.

        Clients look at routes every 30 s. Who had not come here yet reads at the source
        what is sent there, and would read it here again.
        """
        here = await admin_offsets.committed(self._target, group, pair.target)
        there = await admin_offsets.committed(self._source, group, pair.source)
        if here is None or there is None:
            return
        read = await self._behind_copies(pair, there)
        if read is not None and read > here:
            await admin_offsets.commit(self._target, group, pair.target, read)

    async def _lag(self, group: str, pair: Pair) -> int:
        at = await admin_offsets.committed(self._target, group, pair.target)
        # Who has committed nothing may not read it at all.
        return 0 if at is None else await self._end(pair) - at

    async def _place(self, group: str, pair: Pair) -> Placed | None:
        """Have a group go on at the source where it does here, if it does."""
        await self._follow(group, pair)
        here = await admin_offsets.committed(self._target, group, pair.target)
        if here is None:
            return None
        at_source = await self.translated(pair, here)
        await admin_offsets.commit(self._source, group, pair.source, at_source)
        return Placed(group, pair, here, at_source)

    async def translated(self, pair: Pair, here: int) -> int:
        """The offset at the source behind the copy of the message before this one.

        Raises:
            RemotingError: A server cannot be reached, or refused.
        """
        cut = await self._cut(pair)
        if here <= cut:
            return here
        span = await self._source.span(pair.source)
        low, high = max(cut, span.begin), span.end
        # Of copies, later ones have later offsets here; others are passed over.
        while low < high:
            middle = (low + high) // 2
            async for message in admin_copies.messages(
                self._source, pair.source, middle, high
            ):
                found = origin_of(message, pair)
                if found is None:
                    continue
                if found < here:
                    low = message.queue_offset + 1
                else:
                    high = middle
                break
            else:
                # There is no copy from the middle on.
                high = middle
        return low

    async def _waiting(self, topic: str) -> int:
        """Messages that are not due here, or whose transactions are open."""
        ((broker, _),) = (await admin_topics.configs(self._target, topic)).items()
        here = Undelivered(self._target)
        return (
            await here.delayed(topic, broker)
            + await here.timed(topic, [broker])
            + await here.half(topic, [broker])
        )


def origin_of(message: Message, pair: Pair) -> int | None:
    """The offset that a message of the source has here, if it is a copy from here."""
    text = names.parse(message.properties).get(ORIGIN, "")
    prefix = _origin(pair, "")
    rest = text.removeprefix(prefix)
    return int(rest) if rest != text and rest.isascii() and rest.isdigit() else None


def _origin(pair: Pair, offset: int | str) -> str:
    return f"{pair.target.topic}/{pair.target.queue_id}/{offset}"


def _stage(topic: str, config: TopicConfig) -> str:
    if config.mirrored is True:
        if config.writes in (SENT_BACK, RETURNED):
            return str(config.writes)
        raise AdminError(f"topic {topic} has not moved; its source has it")
    if not isinstance(config.cut_offsets, list):
        raise AdminError(f"topic {topic} was not cut over here, or is finished")
    return CUT_OVER
