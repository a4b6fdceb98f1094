"""Several nodes under one roof: starts workers, and starts them again when they end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import structlog

from ropeway.gateway.backends import node_name, open_routes
from ropeway.gateway.errors import WorkerError
from ropeway.gateway.worker import Failed, Listening, Orders, dump_orders, load_report
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogForeignError

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Sequence

log = structlog.get_logger(__name__)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
STEADY_S = 10.0
"""Who has run for so long has started well."""
MOST_STARTS = 5
"""So many in a row that did not last, and we give up."""
_KILL_AFTER_S = 5.0
"""On top of what a worker allows its requests at its end."""


async def supervise(
    orders: Sequence[Orders],
    stop: asyncio.Event,
    listening: Callable[[Sequence[Listening]], None],
) -> None:
    """Run workers until told to stop; none is left when this returns.

    Args:
        orders: One for each worker.
        stop: Ends all of them.
        listening: Called once, when all of them listen.

    Raises:
        WorkerError: One did not start at first, or not again after it had ended.
        LogForeignError: The log is another cluster's, or lost.
    """
    # Before the workers open it all at the same time.
    routes = await open_routes(orders[0].config)
    await routes.close()
    try:
        async with asyncio.TaskGroup() as group:
            loop = asyncio.get_running_loop()
            reports: list[asyncio.Future[Listening]]
            reports = [loop.create_future() for _ in orders]
            tasks = [
                group.create_task(_Keeper(order, report).run())
                for order, report in zip(orders, reports, strict=True)
            ]
            tasks.append(group.create_task(_when_all(reports, listening)))
            await stop.wait()
            log.info("stopping")
            for task in tasks:
                task.cancel()
    except* (WorkerError, LogForeignError, OSError) as errors:
        raise errors.exceptions[0] from None
    log.info("stopped")


async def _when_all(
    reports: Sequence[asyncio.Future[Listening]],
    listening: Callable[[Sequence[Listening]], None],
) -> None:
    listening(await asyncio.gather(*reports))


class _Keeper:
    """Keeps one worker running."""

    def __init__(self, orders: Orders, listening: asyncio.Future[Listening]) -> None:
        self._orders = orders
        self._name = orders.config.broker
        self._listening = listening
        """Gets the first report."""
        self._incarnation: str | None = None
        """Of the process that was started last, if it came to listen."""

    async def run(self) -> None:
        """Start the worker, again and again, until cancelled; then end it.

        Raises:
            WorkerError: It does not start, or does not last.
            LogForeignError: Another start would find the same.
        """
        clock = asyncio.get_running_loop().time
        short = 0
        while True:
            begun_s = clock()
            reason = await self._run_once()
            short = 0 if clock() - begun_s >= STEADY_S else short + 1
            if not self._listening.done():
                raise WorkerError(f"{self._name} did not start: {reason}")
            if short == MOST_STARTS:
                raise WorkerError(
                    f"{self._name} ended {short} times in a row within "
                    f"{STEADY_S:g} s of its start, at last: {reason}"
                )
            pause_s = min(FIRST_PAUSE_S * 2**short, LONGEST_PAUSE_S)
            log.error(
                "worker ended",
                broker=self._name,
                reason=reason,
                restart_in_ms=int(pause_s * 1000),
            )
            await self._withdraw()
            await asyncio.sleep(pause_s)

    async def _run_once(self) -> str:
        """Start the worker, and say why it ended."""
        self._incarnation = None
        paths = os.pathsep.join(path for path in sys.path if path)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ropeway.gateway.worker_process"),
            stdin=PIPE,
            stdout=PIPE,
            env={**os.environ, "PYTHONPATH": paths},
            # Ctrl-C is for us, and we tell the workers.
            start_new_session=True,
        )
        try:
            report = await self._brief(process)
            if isinstance(report, Failed):
                await process.wait()
                if report.foreign:
                    raise LogForeignError(
                        f"{self._name} did not start: {report.reason}"
                    )
                return report.reason
            if report is not None:
                self._started(process, report)
            return _outcome(await process.wait())
        finally:
            await self._end(process)

    async def _brief(self, process: Process) -> Listening | Failed | None:
        """Give a worker its orders, and take its report; None where it just ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(dump_orders(self._orders))
        line = await process.stdout.readline()
        return load_report(line) if line else None

    def _started(self, process: Process, report: Listening) -> None:
        config = self._orders.config
        self._incarnation = report.incarnation
        # Where any free port was asked for, a next start takes the same again.
        listeners = tuple(
            msgspec.structs.replace(listener, port=endpoint.port)
            for listener, endpoint in zip(
                config.listeners, report.endpoints, strict=True
            )
        )
        self._orders = msgspec.structs.replace(
            self._orders, config=msgspec.structs.replace(config, listeners=listeners)
        )
        log.info("worker started", broker=self._name, process=process.pid)
        if not self._listening.done():
            self._listening.set_result(report)

    async def _end(self, process: Process) -> None:
        """End a worker that has not ended; in good order, if it lets us."""
        if process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        timeout_s = self._orders.config.shutdown_ms / 1000 + _KILL_AFTER_S
        try:
            await asyncio.wait_for(process.wait(), timeout_s)
        except TimeoutError:
            log.warning("worker killed", broker=self._name, reason="it did not stop")
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _withdraw(self) -> None:
        """See that clients are no longer sent to a worker that has ended.

        Another process may have its node's name by now.
        """
        if self._incarnation is None:
            return
        try:
            routes = await open_routes(self._orders.config)
            try:
                node = node_name(self._orders.config)
                await routes.remove_broker(self._name, node, self._incarnation)
            finally:
                await routes.close()
        except RouteError as error:
            log.warning(
                "clients are told of an ended worker for some seconds",
                broker=self._name,
                reason=str(error),
            )


def _outcome(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
