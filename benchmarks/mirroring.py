"""The mirror of a migration beside plain pulls of the same RocketMQ broker, by turns.

    python -m benchmarks.mirroring [--messages 200000] [--rounds 3] [--seconds 20]

Then messages are sent at a rate for so many seconds, and it is measured how old the
oldest one is that the mirror lacks. Messages have bodies of 1 KiB, in eight queues.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import aclosing
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import cases, counters, load, servers
from ropeway.client import Admin, Message, Producer
from ropeway.client.admin_migration_status import standings
from ropeway.client.admin_mirrors import Mirror, pull

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.servers import Server
    from ropeway.client.admin_mirrors import Pair
    from ropeway.client.message import MessageQueue

TOPIC, QUEUES, PULLED, BATCH = "bench", 8, 32, 100
POLL_S = 0.2
"""As of the command."""
SENDERS, SEND_S = 10, 0.1
"""So many batches are sent each so often."""


class Row(NamedTuple):
    """One way, one time."""

    per_s: float
    client_us: float
    """CPU a message of who reads."""
    source_us: float
    target_us: float


async def _pull_all(admin: Admin, queue: MessageQueue) -> None:
    offset, end = 0, (await admin.span(queue)).end
    while offset < end:
        offset = (await pull(admin, queue, offset)).next_offset


async def _copy(mirror: Mirror, pair: Pair) -> None:
    offset = await mirror.next_offset(pair)
    async with aclosing(mirror.copies(pair, offset)) as copies:
        async for _ in copies:
            pass


async def _timed(
    source: Server, target: Server, messages: int, work: Callable[[], Awaitable[object]]
) -> Row:
    def cpu_s() -> list[float]:
        ours = time.process_time()
        return [ours, *(counters.cpu_s(one.pid) for one in (source, target))]

    before, began = cpu_s(), time.perf_counter()
    await work()
    seconds = time.perf_counter() - began
    used = [
        (after - one) * 1e6 / messages
        for one, after in zip(before, cpu_s(), strict=True)
    ]
    return Row(messages / seconds, *used)


async def _fast(
    source: Server, target: Server, messages: int, rounds: int
) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {"pull, C": [], "pull, Python": [], "mirror": []}
    async with (
        Admin(source.started.name_server) as there,
        Admin(target.started.name_server) as here,
    ):
        await there.create_topic(TOPIC, QUEUES)
        words = f"{cases.FILL} topic={TOPIC} queues={QUEUES} count={messages // BATCH}"
        await asyncio.to_thread(load.run, "load", source.port, words)
        mirror = Mirror(there, here)
        pairs = await mirror.prepare(TOPIC)
        asks = messages // PULLED
        words = f"pull connections={QUEUES} queues={QUEUES} topic={TOPIC} count={asks}"

        async def of_c() -> None:
            await asyncio.to_thread(load.run, "load", source.port, words)

        async def of_python() -> None:
            await asyncio.gather(*(_pull_all(there, one.source) for one in pairs))

        async def mirrored() -> None:
            await asyncio.gather(*(_copy(mirror, pair) for pair in pairs))

        works = dict(zip(found, (of_c, of_python, mirrored), strict=True))
        for _ in range(rounds):
            for name, work in works.items():
                found[name].append(await _timed(source, target, messages, work))
            await here.delete_topic(TOPIC)
            await mirror.prepare(TOPIC)
    return found


async def _lags(
    source: Server, target: Server, rate: int, seconds: float
) -> tuple[Row, list[float]]:
    """What a mirror takes that follows, and how far it was behind, each time."""
    lags: list[float] = []
    async with (
        Admin(source.started.name_server) as there,
        Admin(target.started.name_server) as here,
        Producer(source.started.name_server, "bench") as producer,
    ):
        mirror = Mirror(there, here)
        pairs = await mirror.prepare(TOPIC)
        await asyncio.gather(*(_copy(mirror, pair) for pair in pairs))

        async def follow(pair: Pair) -> None:
            while True:
                await _copy(mirror, pair)
                await asyncio.sleep(POLL_S)

        async def send(number: int) -> None:
            each = round(rate * SEND_S / SENDERS)
            batch = [Message(TOPIC, b"x" * cases.KIB) for _ in range(each)]
            queue = pairs[number % QUEUES].source
            due = time.monotonic() + SEND_S * number / SENDERS
            while True:
                await asyncio.sleep(due - time.monotonic())
                await producer.send_batch(batch, queue=queue)
                due += SEND_S

        async def look() -> None:
            while True:
                (found,) = await standings(there, here, mirror, [TOPIC], POLL_S)
                assert found.behind_s is not None
                lags.append(found.behind_s)

        async def work() -> None:
            async with asyncio.TaskGroup() as tasks:
                doing = [tasks.create_task(follow(pair)) for pair in pairs]
                doing += [tasks.create_task(send(one)) for one in range(SENDERS)]
                doing += [tasks.create_task(look())]
                await asyncio.sleep(seconds)
                for one in doing:
                    one.cancel()

        return await _timed(source, target, round(rate * seconds), work), lags


def _print(name: str, rows: Sequence[Row]) -> None:
    rates = ", ".join(f"{row.per_s:,.0f}" for row in rows)
    cpu = (median(column) for column in list(zip(*rows, strict=True))[1:])
    print(f"| {name} | {rates} | {' | '.join(f'{us:.1f}' for us in cpu)} |")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--ropeway-only", action="store_true", help="needs no JVM")
    given = parser.parse_args()
    with (
        servers.running(
            servers.ropeway if given.ropeway_only else servers.rocketmq
        ) as source,
        servers.running(servers.ropeway) as target,
    ):
        found = asyncio.run(_fast(source, target, given.messages, given.rounds))
        following, lags = asyncio.run(_lags(source, target, given.rate, given.seconds))
        print("| | messages/s | CPU µs a message: who reads | source | target |")
        print("|---|---|---|---|---|")
        for name, rows in found.items():
            _print(name, rows)
        _print("following", [following])
        print(
            f"\n{given.rate:,} messages a second for {given.seconds:g} s: behind by "
            f"{median(lags):.1f} s, {max(lags):.1f} s at most, of {len(lags)} looks"
        )


if __name__ == "__main__":
    main()
