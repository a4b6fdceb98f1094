"""What others notice of an attack: how much of the server's time a send waits for.

    $ python -m benchmarks.hostile
    $ python -m benchmarks.hostile --seconds 2 "never end" bombs

For each attack it starts Ropeway with access control, gRPC and the page, and has
another process send its worst. Meanwhile a bystander sends a message each 100 ms over
remoting, every tenth time on a new connection, and looks how much CPU time the server
uses until it is accepted. This does not depend on what else runs on the machine; the
time by the clock does, and so does what the server refuses because it has waited for
too long by the clock. So the bystander sends again at once what is refused, as
RocketMQ's producer does, and its wait goes on until it is accepted; a producer gives up
what is refused three times. The attack is over when for a second every send was
accepted at once, and none has waited for more than 33 ms; and the server is at rest
when it has taken no more than that of a tenth of a second, as it goes on with what was
sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import uvloop

from benchmarks import counters, requests
from benchmarks.attacks import ALL, KNOWN, Attack
from benchmarks.attacks.attack import ATTACKER, BYSTANDER, RULES, Target, run
from benchmarks.attacks.brokers import send
from ropeway.gateway.wire.codes import ResponseCode
from tests.system.process import free_ports

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
SECONDS = 60.0
EVERY_S = 0.1
LOOK_S = 0.02
CALM_CPU_S = EVERY_S / 3
CALM_S = 1.0
OVER_S = 30.0
"""So long is waited for it to be over."""
START_S = 180.0
TRIES = 3
"""Source: `retryTimesWhenSendFailed` of DefaultMQProducer.java, RocketMQ 5.3.3: 2."""
MOST_CPU_MS, MOST_MIB, MOST_OVER_S = 250, 256, 1.0
"""What is aimed at."""
_MIB = 1 << 20
_PAGE = os.sysconf("SC_PAGE_SIZE")
HEADINGS = [
    *("attack", "by", "waits, CPU ms", "its 99th of 100", "by the clock, ms"),
    *("refused", "given up", "why", "MiB more", "over after s", "at rest after s", ""),
]


class Server(NamedTuple):
    """Ropeway, running."""

    port: int
    http_port: int
    pid: int
    log: Path

    def cpu_s(self) -> float:
        """CPU time of all its threads so far."""
        return time.clock_gettime((~self.pid << 3) | counters.CPU_CLOCK)

    def rss_bytes(self) -> int:
        """Memory that it has now."""
        statm = Path(f"/proc/{self.pid}/statm").read_text()
        return int(statm.split()[1]) * _PAGE


class Found(NamedTuple):
    """What one attack did."""

    attack: str
    by: str
    cpu_ms: list[float]
    """Of the server, until each send of the bystander was accepted; ascending."""
    clock_ms: float
    """The longest send, by the clock."""
    refused: int
    """Tries of the bystander that were not accepted."""
    given_up: int
    """Sends of the bystander that a producer would have given up."""
    why: str
    """What the first try that was refused was told."""
    more_mib: float
    """The most memory during the attack and until it was over, above the start."""
    over_s: float
    rest_s: float

    @property
    def is_held(self) -> bool:
        """Whether all is as it should be."""
        return (
            self.cpu_ms[-1] <= MOST_CPU_MS
            and self.more_mib <= MOST_MIB
            and self.over_s <= MOST_OVER_S
        )

    def row(self) -> list[str]:
        """Its row of the table."""
        return [
            self.attack,
            self.by,
            f"{self.cpu_ms[-1]:,.0f}",
            f"{self.cpu_ms[int(len(self.cpu_ms) * 0.99) - 1]:,.0f}",
            f"{self.clock_ms:,.0f}",
            f"{self.refused} of {len(self.cpu_ms)}",
            f"{self.given_up}",
            self.why,
            f"{self.more_mib:,.0f}",
            f"{self.over_s:.1f}",
            f"{self.rest_s:.1f}",
            "" if self.is_held else "MISSED",
        ]


@contextmanager
def serving(directory: Path) -> Iterator[Server]:
    """Ropeway with all that can be attacked, and an empty log."""
    directory.chmod(0o700)
    port, http_port = free_ports(2)
    rules, file = directory / "plain_acl.yml", directory / "ropeway.toml"
    rules.write_text(RULES)
    rules.chmod(0o600)
    file.write_text(
        f'data = "{directory / "data"}"\ngrpc = true\n[[listeners]]\nport = {port}\n'
        f'[http]\nport = {http_port}\n[acl]\nhooks = ["plain"]\n'
        f'[acl.options.plain]\nfile = "{rules}"\n'
    )
    log = directory / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "ropeway.gateway.cli.main",
                "serve",
                "--config",
                str(file),
            ],
            cwd=HERE.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        for number in (port, http_port):
            _connected(process, number, log).close()
        yield Server(port, http_port, process.pid, log)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _connected(process: subprocess.Popen[bytes], port: int, log: Path) -> socket.socket:
    give_up = time.monotonic() + START_S
    while True:
        try:
            return requests.connect(port)
        except ConnectionRefusedError:
            if time.monotonic() > give_up or process.poll() is not None:
                raise SystemExit(f"not started: {log.read_text()}") from None
            time.sleep(0.02)


@contextmanager
def attacking(attack: Attack, target: Target) -> Iterator[subprocess.Popen[str]]:
    """A process that has prepared an attack, and begins when told."""
    what = json.dumps([attack.name, *target])
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.hostile", "--be", what],
        cwd=HERE.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit(f"{attack.name} could not be prepared")
        yield process
    finally:
        process.kill()
        process.communicate()


def _be(what: str) -> None:
    """Attack until killed."""
    name, *given = json.loads(what)
    attack, target = ALL[name], Target(*given)
    if attack.prepare is not None:
        attack.prepare(target)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(attack, target))


class Memory(threading.Thread):
    """Looks how much memory a server takes."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._server, self._ended = server, threading.Event()
        self.start_bytes = self.most_bytes = server.rss_bytes()
        self.start()

    def run(self) -> None:
        """Look again and again."""
        while not self._ended.wait(LOOK_S):
            with suppress(OSError, IndexError):
                self.most_bytes = max(self.most_bytes, self._server.rss_bytes())

    def more_mib(self) -> float:
        """Look no more; how much was it, above the start."""
        self._ended.set()
        self.join()
        return (self.most_bytes - self.start_bytes) / _MIB


class Bystander:
    """Sends one message after the other, and takes the server's time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        target = Target(server.port, server.http_port, BYSTANDER)
        self._frame = target.request(send("quiet"), b"hello")
        self._connection = requests.connect(server.port)
        self.cpu_ms: list[float] = []
        self.clock_ms = 0.0
        self.refused = self.given_up = 0
        self.why = ""
        for _ in range(20):
            self.send()
        self.cpu_ms.clear()
        self.clock_ms, self.why = 0.0, ""
        self.refused = self.given_up = 0

    def send(self) -> bool:
        """Send one message, as often as it takes; whether it was accepted at once."""
        before_s, began = self._server.cpu_s(), time.monotonic()
        if len(self.cpu_ms) % 10 == 9:
            self._connection.close()
            self._connect()
        tries = 1
        while not self._try():
            if time.monotonic() > began + OVER_S:
                raise SystemExit(f"no send is accepted: {self.why}")
            tries += 1
        self.cpu_ms.append((self._server.cpu_s() - before_s) * 1000)
        self.clock_ms = max(self.clock_ms, (time.monotonic() - began) * 1000)
        self.given_up += tries > TRIES
        return tries == 1

    def _try(self) -> bool:
        try:
            answer = requests.answer_to(self._connection, self._frame)
            code, why = answer.code, answer.remark or ""
        except OSError as error:
            code, why = int(ResponseCode.SYSTEM_ERROR), str(error)
            self._connection.close()
            self._connect()
        self.refused += bool(code)
        if code and not self.why:
            self.why = why
        return not code

    def _connect(self) -> None:
        with suppress(OSError):
            self._connection = requests.connect(self._server.port)

    def send_until(self, end: float) -> None:
        """Send each tenth of a second, and once on a machine that stands still."""
        while True:
            now = time.monotonic()
            self.send()
            if now >= end:
                return
            time.sleep(max(now + EVERY_S - time.monotonic(), 0))

    def over_s(self) -> tuple[float, float]:
        """How long it takes until it is over, and until the server is at rest."""
        began = calm_since = time.monotonic()
        rest_s = None
        while (now := time.monotonic()) < began + OVER_S:
            if rest_s is not None and now > calm_since + CALM_S:
                break
            before_s = self._server.cpu_s()
            if not self.send() or self.cpu_ms[-1] > CALM_CPU_S * 1000:
                calm_since = time.monotonic()
            time.sleep(max(now + EVERY_S - time.monotonic(), 0))
            if rest_s is None and self._server.cpu_s() - before_s < CALM_CPU_S:
                rest_s = now - began
        return calm_since - began, OVER_S if rest_s is None else rest_s

    def close(self) -> None:
        """Send no more."""
        self._connection.close()


def measure(attack: Attack, by: str, seconds: float, server: Server) -> Found:
    """Attack a server for so long."""
    user = ATTACKER if by == KNOWN else None
    with attacking(attack, Target(server.port, server.http_port, user)) as attacker:
        bystander = Bystander(server)
        memory = Memory(server)
        assert attacker.stdin is not None
        attacker.stdin.write("go\n")
        attacker.stdin.flush()
        bystander.send_until(time.monotonic() + seconds)
        assert attacker.poll() is None, "the attacker gave up"
        attacker.send_signal(signal.SIGKILL)
        attacker.wait()
        during_ms = sorted(bystander.cpu_ms)
        refused, given_up = bystander.refused, bystander.given_up
        why = bystander.why
        over_s, rest_s = bystander.over_s()
    bystander.close()
    return Found(
        attack.name,
        by,
        during_ms,
        bystander.clock_ms,
        refused,
        given_up,
        why,
        memory.more_mib(),
        over_s,
        rest_s,
    )


def chosen(words: list[str]) -> Iterator[tuple[Attack, str]]:
    """Attacks whose name, or who does them, has all words of an argument."""
    for attack in ALL.values():
        for by in attack.by:
            text = f"{attack.name} {by}"
            if not words or any(re.search(word, text) for word in words):
                yield attack, by


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="of the attacks; all without any")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each")
    parser.add_argument("--logs", action="store_true", help="print the servers' logs")
    parser.add_argument("--be", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.be:
        _be(given.be)
        return
    print(f"| {' | '.join(HEADINGS)} |\n|---|---|{'---:|' * (len(HEADINGS) - 3)}---|")
    for attack, by in chosen(given.words):
        with tempfile.TemporaryDirectory() as name:
            with serving(Path(name)) as server:
                found = measure(attack, by, given.seconds, server)
            print(f"| {' | '.join(found.row())} |", flush=True)
            if given.logs:
                print((Path(name) / "log").read_text()[-3000:], flush=True)


if __name__ == "__main__":
    main()
