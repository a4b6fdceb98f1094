"""The loop, threads, network and files that runs stand on."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.simulation.loop import PROCESS, StuckError
from tests.simulation.world import World

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path):
    made = World(7, tmp_path, keep=True)
    with made.entered():
        yield made


def test_time_goes_on_only_when_nothing_is_ready(world: World) -> None:
    began = time.monotonic()
    world.loop.run_until_complete(asyncio.sleep(3600.0))
    assert 3600.0 <= time.monotonic() - began < 3600.1


def test_what_waits_for_nothing_is_an_error(world: World) -> None:
    with pytest.raises(StuckError):
        world.loop.run_until_complete(asyncio.Event().wait())


def test_a_process_that_stands_still_goes_on_where_it_was(world: World) -> None:
    seen: list[tuple[str, float]] = []

    async def tick() -> None:
        while True:
            seen.append((PROCESS.get().name, round(time.monotonic() - 1000.0, 1)))
            await asyncio.sleep(0.5)

    frozen, other = world.process("frozen", "a"), world.process("other", "b")
    world.loop.spawn(frozen, tick())
    world.loop.spawn(other, tick())
    world.loop.hold(frozen, 1.2)
    world.loop.run_until_complete(asyncio.sleep(1.6))
    assert [at for name, at in seen if name == "frozen"] == [1.2]
    assert [at for name, at in seen if name == "other"] == [0.0, 0.5, 1.0, 1.5]


def test_nothing_of_a_dead_process_goes_on(world: World) -> None:
    seen: list[int] = []

    async def work() -> None:
        try:
            await asyncio.to_thread(time.sleep, 5.0)
        finally:
            seen.append(1)

    process = world.process("dead", "a")
    world.loop.spawn(process, work())
    world.loop.run_until_complete(asyncio.sleep(1.0))
    world.kill(process)
    world.loop.run_until_complete(asyncio.sleep(10.0))
    assert seen == []


def test_the_loop_comes_between_the_calls_of_a_thread(world: World) -> None:
    machine = world.machine("m")
    steps: list[str] = []

    def write() -> None:
        fd = os.open(machine.root / "file", os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, b"x", 0)
        steps.append("written")
        os.fsync(fd)
        steps.append("synced")
        os.close(fd)

    async def tick() -> None:
        done = asyncio.ensure_future(asyncio.to_thread(write))
        while not done.done():
            if steps and steps[-1] == "written":
                steps.append("loop")
            await asyncio.sleep(1e-6)

    process = world.process("p", "a")
    world.loop.run_until_complete(world.loop.spawn(process, tick()))
    assert steps == ["written", "loop", "synced"]


def test_a_power_loss_keeps_what_was_synced(world: World) -> None:
    machine = world.machine("m")

    async def write() -> None:
        fd = os.open(machine.root / "file", os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, b"old", 0)
        os.fsync(fd)
        directory = os.open(machine.root, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(directory)
        os.pwrite(fd, b"new", 0)

    process = world.process("p", "a")
    world.loop.run_until_complete(world.loop.spawn(process, write()))
    world.kill(process, power=True)
    machine.lose_power()
    assert (machine.root / "file").read_bytes() in {b"old", b"new"}
    lost = machine.disk.image(lambda _kind, _number: False)
    assert lost["file"] in {b"old", b"new"}, "what is left was not synced"


def test_connections_keep_their_order_and_end_with_their_process(world: World) -> None:
    got = bytearray()

    class Server(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            got.extend(data)

    async def serve() -> None:
        sock = world.network.listen("10.0.0.1", 1)
        loop = asyncio.get_running_loop()
        loop.add_reader(sock, lambda: loop.create_task(take(sock)))
        await asyncio.Event().wait()

    async def take(sock) -> None:
        client, _ = sock.accept()
        await world.loop.connect_accepted_socket(Server, client)

    async def send() -> str:
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection("10.0.0.1", 1)
        for number in range(200):
            writer.write(b"%d " % number)
            await asyncio.sleep(0.001)
        await asyncio.sleep(1.0)
        world.kill(server)
        try:
            await reader.read()
        except ConnectionResetError as error:
            return str(error)
        return "end"

    server, client = world.process("s", "10.0.0.1"), world.process("c", "10.0.1.1")
    world.loop.spawn(server, serve())
    how = world.loop.run_until_complete(world.loop.spawn(client, send()))
    assert "connection reset" in how
    assert [int(one) for one in got.split()] == [*range(200)]
