"""What access control costs: server CPU of a single send, with and without it.

    $ python -m benchmarks.acl
    $ python -m benchmarks.acl --rounds 1 --sends 100

One connection sends 128 B and waits for each answer. The same server program runs
without access control, with ACL 1.0, with ACL 2.0, and with Pulsar's tokens; the
signature is HMAC-SHA1. All run side by side and take turns, and a ratio is of figures
of one round. It takes half a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import jwt

from benchmarks import counters, requests, tokens
from ropeway.acl.vault import new_key
from ropeway.client.credentials import Credentials, signed
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import to_fields
from tests.requests import sending
from tests.system.process import free_ports

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

TARGETS = {"plain, signed": 1.15, "users, signed": 1.15, "pulsar, token": 1.05}
"""What a guarded send may cost, in sends that are not."""
ROUNDS = 60
SENDS = 500
BODY = bytes(128)
PASSWORD = "hush-hush-hush"
WHO = Credentials(access_key="RocketMQ", secret_key=PASSWORD)
PLAIN = f"accounts:\n- {{accessKey: root-user, secretKey: {PASSWORD}, admin: true}}\n"
PLAIN += (
    f"- {{accessKey: RocketMQ, secretKey: {PASSWORD}, defaultTopicPerm: PUB|SUB}}\n"
)


def settings(kind: str, directory: Path, admin_url: str) -> str:
    """The configuration's table of access control."""
    if kind == "off":
        return ""
    rules, key = directory / "plain_acl.yml", directory / "key"
    rules.write_text(PLAIN)
    key.write_bytes(tokens.SECRET)
    options = {
        "plain": f'file = "{rules}"',
        "users": f'migrate_from = "{rules}"',
        "pulsar": f'token_secret_key = "{key}"\nadmin_url = "{admin_url}"',
    }
    return f'[acl]\nhooks = ["{kind}"]\n[acl.options.{kind}]\n{options[kind]}\n'


@contextmanager
def permitting() -> Iterator[str]:
    """The address of an admin REST that permits everything, on a thread."""
    loop, addresses, end = asyncio.new_event_loop(), [], asyncio.Event()
    is_up = threading.Event()

    async def serve() -> None:
        async with tokens.pulsar() as address:
            addresses.append(address)
            is_up.set()
            await end.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    is_up.wait()
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()


@contextmanager
def serving(
    kind: str, directory: Path, admin_url: str, frame: bytes
) -> Iterator[tuple[int, socket.socket]]:
    """A server's process id, and a connection to it that has sent a frame."""
    directory.mkdir()
    file, port = directory / "ropeway.toml", free_ports(1)[0]
    file.write_text(
        f'data = "{directory / "data"}"\n[[listeners]]\nport = {port}\n'
        # A disk or a machine that is slow for a moment refuses nothing here.
        "[limits]\nsend_wait_ms = 60_000\n" + settings(kind, directory, admin_url)
    )
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "ropeway.gateway.cli.main",
            "serve",
            "--config",
            str(file),
        ],
        env={**os.environ, "ROPEWAY_ACL_KEY": new_key()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        connection = connected(port)
        # Who does not sign in for a while is closed, and other servers start first.
        requests.ask(connection, frame)
        yield server.pid, connection
    finally:
        server.terminate()
        server.wait()


def connected(port: int) -> socket.socket:
    """A connection, once the server listens."""
    give_up = time.monotonic() + 60
    while True:
        try:
            return requests.connect(port)
        except ConnectionRefusedError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


def cost(pid: int, connection: socket.socket, frame: bytes, sends: int) -> float:
    """Microseconds of server CPU a send."""
    before = counters.cpu_s(pid)
    for _ in range(sends):
        code = requests.ask(connection, frame)
        assert code == 0, code
    return (counters.cpu_s(pid) - before) / sends * 1e6


def frames() -> dict[str, bytes]:
    """The same send, as clients make it for each hook."""
    fields = to_fields(sending("bench"))
    token = jwt.encode({"sub": "bench"}, tokens.SECRET, "HS256")
    shown = Credentials(access_key=token, secret_key="unused")
    made = {
        "unsigned": fields,
        "signed": signed(fields, BODY, WHO),
        "token": signed(fields, BODY, shown),
    }
    code = RequestCode.SEND_MESSAGE_V2
    return {
        name: encode_frame(code, 1, fields=one, body=BODY) for name, one in made.items()
    }


CASES = ("off, unsigned", "off, signed", *TARGETS)
SIGNED = {"off": "unsigned", "plain": "signed", "users": "signed", "pulsar": "token"}
"""What the frames have that servers of each kind take."""


def main(rounds: int, sends: int) -> None:
    """Measure every kind, in turn."""
    made, costs = frames(), {name: [] for name in CASES}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        admin_url = stack.enter_context(permitting())
        servers = {
            kind: stack.enter_context(
                serving(kind, Path(name) / kind, admin_url, made[what])
            )
            for kind, what in SIGNED.items()
        }
        for number in range(rounds + 1):
            for case in CASES:
                kind, what = case.split(", ")
                found = cost(*servers[kind], made[what], sends)
                # The first round warms up.
                if number:
                    costs[case].append(found)
    print("| access control | us CPU/send | in unguarded sends | target |")
    print("| --- | ---: | ---: | ---: |")
    base = costs[CASES[0]]
    for case, found in costs.items():
        ratios = [one / other for one, other in zip(found, base, strict=True)]
        target = f"<= {TARGETS[case]}" if case in TARGETS else "-"
        print(
            f"| {case} | {statistics.median(found):.1f} "
            f"| {statistics.median(ratios):.2f} | {target} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--sends", type=int, default=SENDS)
    arguments = parser.parse_args()
    main(arguments.rounds, arguments.sends)
