"""Hit a deployment with faults, one after the other, and account for every message.

    $ python -m benchmarks.faults                         200 faults, about an hour
    $ python -m benchmarks.faults --count 12 --seed 7     shorter; the faults of a seed
    $ python -m benchmarks.faults --kind unload --kind reset --each 5

Three nodes of two brokers run on a Pulsar and a ZooKeeper. Senders wait for each
message before the next, through the master or through any node of its broker; others
send more often, to measure. All that is stored is read and held against the ledger of
what was sent and how it was answered, and a group consumes it, too. After each fault
all queues must serve, all nodes be in their places, and all that was acknowledged be
read before the next one comes. The first that is wrong is printed at once; with any,
the program exits with 1.

The table says for each kind how long the broker that was hit answered no send, and how
long its slowest queue did.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import table
from benchmarks.faults.kinds import KINDS, Kind
from benchmarks.faults.ledger import TRY_S
from benchmarks.faults.place import Place
from benchmarks.faults.soak import Measured, Soak

COUNT = 200


def chosen(words: list[str] | None) -> list[Kind]:
    """The kinds whose names contain one of the words; all, without any."""
    return [
        one for one in KINDS if not words or any(word in one.name for word in words)
    ]


def drawn(kinds_of: list[Kind], count: int, seed: int) -> list[Kind]:
    """Each kind once, and then by their weights, in an order of the seed."""
    dice = random.Random(seed)
    rest = max(0, count - len(kinds_of))
    found = [
        *dice.sample(kinds_of, min(count, len(kinds_of))),
        *dice.choices(kinds_of, [one.weight for one in kinds_of], k=rest),
    ]
    dice.shuffle(found)
    return found


def told(measured: list[Measured]) -> str:
    """The table of all faults."""
    rows = []
    for kind in KINDS:
        these = [one for one in measured if one.kind == kind.name]
        if these:
            broker_s = [one.broker_s for one in these]
            queue_s = [one.queue_s for one in these]
            rows.append(
                [
                    kind.name,
                    str(len(these)),
                    *(f"{statistics.median(broker_s):.2f}", f"{max(broker_s):.2f}"),
                    *(f"{statistics.median(queue_s):.2f}", f"{max(queue_s):.2f}"),
                ]
            )
    head = [
        *("fault", "number", "broker: median s", "worst s"),
        *("slowest queue: median s", "worst s"),
    ]
    return table.table(head, rows)


async def hit_all(soak: Soak, given: argparse.Namespace) -> list[Measured]:
    """Do all faults, and end the load when all is read."""
    measured = []
    await soak.settle(time.monotonic())
    kinds_of = chosen(given.kind)
    count = given.each * len(kinds_of) if given.each else given.count
    for number, kind in enumerate(drawn(kinds_of, count, given.seed), 1):
        one = await soak.hit(kind)
        measured.append(one)
        line: dict[str, Any] = {"n": number, **one._asdict()}
        print(json.dumps(line), flush=True)
        if given.until and time.strftime("%H:%M") >= given.until:
            break
    soak.stop_sends.set()
    await asyncio.sleep(TRY_S)
    await soak.catch_up()
    soak.stop.set()
    return measured


async def run(given: argparse.Namespace, folder: Path) -> int:
    """Run all faults; how many things were wrong."""
    place = Place(folder)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(place.kill)
        await place.start()
        soak = Soak(place, given.seed)
        await soak.prepare()
        load = asyncio.create_task(soak.load())
        hits = asyncio.create_task(hit_all(soak, given))
        await asyncio.wait([load, hits], return_when=asyncio.FIRST_COMPLETED)
        if not hits.done():
            await load  # which has failed
        measured = await hits
        await load
    print(told(measured))
    sums = {
        name: sum(one.counts[name] for one in soak.ledgers)
        for name in soak.ledgers[0].counts
    }
    print(f"{len(measured)} faults, seed {given.seed}; sends: {sums}")
    print(f"received by the group {len(soak.received)}, again {soak.again}")
    print(f"wrong: {len(soak.wrong)}")
    for what in soak.wrong:
        print(f"  {what}")
    return len(soak.wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--each", type=int, help="so many of each kind")
    parser.add_argument("--kind", action="append", help="a word of its name")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--until", help="HH:MM; no fault begins later")
    parser.add_argument("--folder", type=Path, help="keep data and logs there")
    given = parser.parse_args()
    print(f"seed: --seed {given.seed} repeats the faults", flush=True)
    # That a node cannot be reached is no news here.
    logging.getLogger("ropeway").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="ropeway-faults-") as made:
        wrong = uvloop.run(run(given, given.folder or Path(made)))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
