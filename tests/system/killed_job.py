"""A stream job on Spark whose parts are killed at random moments, and its result.

    $ python -m tests.system.killed_job --rounds 20

Each round sends numbers for some keys, and kills the job's driver, one of its Python
workers, or the gateway, while it counts them. The gateway is away for some seconds. The
job says `key n` for the n-th number of a key, so a record that was lost or counted
twice shows, and so does a result that was sent twice.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from ropeway.client import BulkReader, Message, Producer
from ropeway.testing import Gateway
from tests.ropeway.client.scenario import PATIENT, PATIENT_PRODUCER
from tests.spark_session import QUICK_JVM, Topics
from tests.system.process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JOB = """
from ropeway.streams import StreamBuilder

builder = StreamBuilder("killed")
(
    builder.source("numbers")
    .key_by(lambda line: line.split()[0])
    .count()
    .sink("counts", lambda key, count: f"{key} {count}".encode())
)
"""
KEYS = 5
QUEUES = 2
EACH_ROUND = 120
A_BATCH = 40
TIMEOUT_S = 600.0
LOOK_S = 0.3
"""How often results are counted, which takes a connection and 15 ms of CPU."""
VICTIMS = ("driver", "worker", "gateway")
AWAY_S = 3.0
"""Longer than the longest wait between two attempts of a job."""


def main() -> None:
    """Kill, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--mirror", action="store_true", help="and lose checkpoints")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ropeway-killed-") as folder:
        wrong = run(
            Path(folder), given.rounds, given.seed, print, is_mirrored=given.mirror
        )
    print(f"seed {given.seed}, {time.monotonic() - began:.0f} s: {wrong or 'all once'}")
    sys.exit(bool(wrong))


def run(
    folder: Path,
    rounds: int,
    seed: int,
    show: Callable[[str], object],
    *,
    is_mirrored: bool = False,
) -> str:
    """Kill so many times; returns what is wrong with the result, or nothing.

    Args:
        folder: For all data.
        rounds: How often; drivers, workers and the gateway take turns.
        seed: Of the moments.
        show: Takes a line for each round.
        is_mirrored: Whether each driver takes its checkpoint with it, so that the job
            goes on from its mirror.
    """
    chance = random.Random(seed)
    gateway = Gateway(folder / "data")
    gateway.start()
    topics = Topics(gateway.name_server)
    topics.extend("numbers", QUEUES)
    topics.extend("counts", QUEUES)
    job = Job(
        folder,
        folder / "checkpoint",
        _command(folder, gateway.name_server, is_mirrored=is_mirrored),
    )
    sent = 0
    try:
        for number in range(rounds):
            seen = results(topics)
            asyncio.run(send(topics, sent, EACH_ROUND))
            sent += EACH_ROUND
            job.go_on_until(lambda seen=seen: results(topics) > seen)
            time.sleep(chance.uniform(0, 1.5))
            victim = VICTIMS[number % len(VICTIMS)]
            if victim == "gateway":
                gateway.kill()
                time.sleep(chance.uniform(0, AWAY_S))
                gateway.start()
            killed = job.kill(victim, chance)
            if is_mirrored and victim == "driver":
                job.lose_checkpoint()
            show(f"round {number + 1}: {victim} {killed} of {results(topics)} results")
        job.go_on_until(lambda: results(topics) >= sent)
    finally:
        job.end()
        found = Counter(topics.read("counts"))
        gateway.kill()
    wanted = {
        f"k{key} {count + 1}": 1
        for key in range(KEYS)
        for count in range(len(range(key, sent, KEYS)))
    }
    twice = [one for one, times in found.items() if times > 1]
    lost = sorted(wanted.keys() - found.keys())
    strange = sorted(found.keys() - wanted.keys())
    if twice or lost or strange:
        return f"twice {twice}, lost {lost}, never asked for {strange}"
    return ""


async def send(topics: Topics, begin: int, count: int) -> None:
    """Send numbers, spread over keys and queues."""
    async with Producer(
        topics.name_server, "killed", config=PATIENT_PRODUCER
    ) as producer:
        queues = await producer.queues("numbers")
        for at in range(begin, begin + count):
            message = Message("numbers", f"k{at % KEYS} {at}".encode())
            await producer.send(message, queues[at // KEYS % QUEUES])


def results(topics: Topics) -> int:
    """How many results there are."""
    return ended(topics, "counts")


def ended(topics: Topics, topic: str) -> int:
    """How many messages a topic has had."""

    async def ask() -> int:
        async with BulkReader(topics.name_server, "killed", config=PATIENT) as reader:
            queues = await reader.queues(topic)
            return sum([await reader.end_offset(queue) for queue in queues])

    return asyncio.run(ask())


def _command(folder: Path, name_server: str, *, is_mirrored: bool) -> list[str]:
    job, checkpoint = folder / "job.py", folder / "checkpoint"
    job.write_text(JOB)
    return [
        *(sys.executable, "-m", "ropeway.gateway.cli.main", "streams", "run"),
        *(str(job), "--checkpoint", str(checkpoint)),
        *("--master", "local[2,8]", "--name-server", name_server),
        *("--option", "startingOffsets=earliest"),
        *("--option", f"maxOffsetsPerTrigger={A_BATCH}"),
        *("--set", f"spark.local.dir={folder / 'scratch'}"),
        *("--set", "spark.driver.memory=600m"),
        *("--set", f"spark.driver.extraJavaOptions={QUICK_JVM}"),
        *(["--mirror"] if is_mirrored else []),
    ]


class Job:
    """The command that runs a job; it is started again whenever it has ended.

    Args:
        folder: For its log and what Spark unpacks.
        checkpoint: What it keeps on disk.
        command: Starts it.
    """

    def __init__(self, folder: Path, checkpoint: Path, command: Sequence[str]) -> None:
        self._folder = folder
        self._checkpoint = checkpoint
        self._command = command
        (folder / "scratch").mkdir()
        self._process: ServerProcess | None = None
        self.starts = 0
        """How often it was started."""

    def go_on_until(self, done: Callable[[], bool]) -> None:
        """Let the job run until something is so."""
        give_up = time.monotonic() + TIMEOUT_S
        while not done():
            if time.monotonic() > give_up:
                tail = self._process.tail() if self._process else ""
                raise TimeoutError(f"the job does not go on: {tail}")
            if self._process is None or not psutil.pid_exists(self._process.pid):
                self._start()
            elif psutil.Process(self._process.pid).status() == psutil.STATUS_ZOMBIE:
                # It gave up because of what was killed; a supervisor starts it again.
                self._process.kill()
                self._start()
            time.sleep(LOOK_S)

    def _start(self) -> None:
        self.starts += 1
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = ServerProcess(
            "job",
            self._command,
            self._folder,
            {"PYTHONPATH": paths, "TMPDIR": str(self._folder / "scratch")},
        )

    def kill(self, victim: str, chance: random.Random) -> int:
        """Kill the driver with its JVM, an executor, or one of the Python processes.

        Returns:
            How many processes of the job that were; the gateway is none.
        """
        assert self._process is not None
        if victim == "gateway":
            return 0
        driver = psutil.Process(self._process.pid)
        below = driver.children(recursive=True)
        if victim in ("worker", "executor"):
            is_it = _is_worker if victim == "worker" else _is_executor
            some = [one for one in below if is_it(one)]
            chosen = [chance.choice(some)] if some else []
        else:
            # Both halves of the driver; its workers and executors see that and end.
            jvms = [one for one in below if _is_jvm(one) and not _is_executor(one)]
            chosen = [driver, *jvms]
        for one in chosen:
            with suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)
        return len(chosen)

    def lose_checkpoint(self) -> None:
        """Delete all that the job has kept on disk; its driver has been killed."""
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def end(self) -> None:
        """Stop the job."""
        if self._process is None:
            return
        with suppress(psutil.NoSuchProcess):
            driver = psutil.Process(self._process.pid)
            for one in (*driver.children(recursive=True), driver):
                with suppress(psutil.NoSuchProcess):
                    one.kill()
        self._process.kill()


def _is_jvm(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.name() == "java"
    return False


def _is_executor(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
    return False


def _is_worker(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "python" in process.name() and "pyspark" in " ".join(process.cmdline())
    return False


if __name__ == "__main__":
    main()
