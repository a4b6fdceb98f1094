"""Which node of a broker leads it: taking over, giving up, and being in doubt.

Laws:

* A node serves its broker while it leads, and it leads only while it is certain of it:
  no longer than the route store, or the log itself, vouches that no other node can have
  taken its place. A process that was stopped finds out before it answers anybody.
* Duties are taken over in their order and given up in reverse; one that fails puts the
  whole take-over off, and nothing is left half-done.
* Appends do not rely on any of this: the log fences whoever was the leader before.
* What came while the process stood still for longer than that is of unknown age, and
  `is_stale` until all of it has been read: a send among it is stored by nobody.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import structlog

from ropeway.routing.api import RouteError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.routing.api import Broker, RouteStore

log = structlog.get_logger(__name__)

SETTLE_S = 10.0
"""How long a request waits for the broker to have a leader: less than clients wait for
answers to sends and pulls, and longer than a take-over takes."""
_HEARD_S = 2.0
"""What the routes say has reached every node that can be reached by then."""
_TOLD_S = 0.25
"""Who led until now knows more than who still sends to it, and has heard by then."""
_RETRY_S = 1.0
BEAT_S = 0.25
STILL_S = 1.0
"""A loop that does not come round for longer stood still; for less, it was busy."""
STALE_S = 1.0
"""What clients and the network held while the process stood still arrives in this."""
STALE_PASSES = 16
"""And so often each connection that has something is read after it, up to 256 KiB."""
_DOUBT_POLL_S = 0.05


class NoLeaderError(Exception):
    """No node leads the broker now; asking again later may work."""


class HandOverError(Exception):
    """This node cannot let another one lead; the text says why, and what is needed."""


class Duty(Protocol):
    """What only the leader does."""

    async def take_over(self) -> None:
        """Begin; raises LogError or RouteError where that is not possible now."""

    async def give_up(self) -> None:
        """End, also when it has begun only in part, or raises. Twice is fine."""


class Leadership:
    """Whether this node leads its broker, and who does otherwise.

    Args:
        broker: The broker's name.
        node: This node's name.
        routes: Tells who is to lead.
        duties: What the leader does.
        proofs: Each tells until when nobody can have taken this node's place, in
            seconds of `time.monotonic`; the latest counts. None where nobody ever can.
        incarnation: Which process of the node's name this is.
    """

    def __init__(
        self,
        broker: str,
        node: str,
        routes: RouteStore,
        duties: Sequence[Duty],
        proofs: Sequence[Callable[[], float]] = (),
        incarnation: str = "",
    ) -> None:
        self.leads = False
        """Whether requests are answered here. Looked at for each of them."""
        self.is_stale = False
        """Whether what comes may have been sent long ago; this node leads nobody."""
        self.went_on_s = -math.inf
        """When this process last went on after it had stood still for too long."""
        self.certain_until_s = math.inf
        self.node = node
        self._broker = broker
        self._incarnation = incarnation
        self._routes = routes
        self._duties = duties
        self._proofs = proofs
        self._on_duty = False
        self._deposed = self._ends = False
        self._gave_up_s = -math.inf
        self.late_s = math.inf
        """A loop that comes round later stood still."""
        self._vouched_until_s = math.inf
        """What the proofs said when it came round last."""
        self._beating: asyncio.Handle | None = None
        self._catching_up: asyncio.Handle | None = None
        self._changed = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._stepping_back: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def check(self, now_s: float) -> None:
        """Stop leading where it is not certain: for ticks past one of the two times."""
        if now_s > self.late_s:
            self._go_on(now_s)
        if now_s > self.certain_until_s and self.leads:
            self.certain_until_s = self._proven_until_s()
            if now_s > self.certain_until_s:
                self.leads = False
                self._changed.set()

    def _beat(self) -> None:
        now_s = time.monotonic()
        self.check(now_s)
        self.late_s = now_s + STILL_S
        self._vouched_until_s = self._proven_until_s()
        self._beating = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _go_on(self, now_s: float) -> None:
        """Work on nothing that came meanwhile, if another node may lead by now."""
        stood_s = now_s - self.late_s + STILL_S
        self.late_s = now_s + STILL_S
        if now_s <= self._vouched_until_s:
            return
        log.warning(
            "this node stood still for longer than its lease; "
            "sends that came meanwhile are refused",
            broker=self._broker,
            seconds=round(stood_s, 1),
        )
        self.leads = False
        self.is_stale = True
        self.went_on_s = now_s
        self._changed.set()
        if self._catching_up is not None:
            self._catching_up.cancel()
        self._catching_up = asyncio.get_running_loop().call_later(
            STALE_S, self._catch_up, STALE_PASSES
        )

    def _catch_up(self, passes: int) -> None:
        if not passes:
            self.is_stale = False
            self._changed.set()
            return
        loop = asyncio.get_running_loop()
        self._catching_up = loop.call_soon(self._catch_up, passes - 1)

    def is_certain(self) -> bool:
        """Whether this node leads, for answers to what no tick has just begun."""
        self.check(time.monotonic())
        return self.leads

    def is_led_elsewhere(self) -> bool:
        """Whether another node is to lead, as routes say."""
        # Where nobody is, routes have lost sight of their nodes, and the log decides.
        return self._chosen() is not None and not self._is_this(self._chosen())

    async def settle(self, *, expected: bool = False) -> Broker | None:
        """Wait until it is known who leads: another node, or None for this one.

        Args:
            expected: Another node says that it is this one. It may have heard of it
                earlier, so what the routes say here is not believed at once.

        Raises:
            NoLeaderError: Nobody does for too long, or since the last node ends.
        """
        loop = asyncio.get_running_loop()
        give_up_s = loop.time() + SETTLE_S
        heard_s = _TOLD_S if loop.time() < self._gave_up_s + _HEARD_S else _HEARD_S
        believe_s = loop.time() + (heard_s if expected else 0.0)
        while not self.leads:
            chosen = self._chosen()
            elsewhere = self.is_led_elsewhere()
            if self._task is None and chosen is not None and chosen.node == self.node:
                # Before this node is announced: who had its name may have died.
                elsewhere = False
            left_s = (believe_s if elsewhere else give_up_s) - loop.time()
            if left_s <= 0 and elsewhere:
                return chosen
            if left_s <= 0 or (self._ends and chosen is None):
                raise NoLeaderError(
                    f"broker {self._broker} has no master now; try again"
                )
            moved = loop.create_future()
            self._waiting.append(moved)
            await asyncio.wait([moved], timeout=left_s)
        return None

    async def lead(self) -> None:
        """Lead without being asked, where nobody else can.

        Raises:
            LogError, RouteError: A duty cannot be taken over.
        """
        for duty in self._duties:
            await duty.take_over()
        self.leads = True

    def contest(self) -> None:
        """Lead when the route store says so, from now on."""
        self._routes.watch_brokers(self._routes_changed)
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._beat()

    def deposed(self) -> None:
        """Another node has taken over, as the log knows; whatever routes say."""
        self._stop_leading()
        self._deposed = True
        self._changed.set()

    async def step_back(self, successor: str | None = None) -> None:
        """Go to the end of the order of the broker's nodes; who leads, gives up first.

        It returns when the routes say so. The next node takes over then, like after an
        orderly stop, and requests that come meanwhile wait for it.

        Args:
            successor: Which node is to be the next, where that matters.

        Raises:
            HandOverError: No other node can lead, or the next is not that one.
            RouteError: The routes cannot be changed; this node goes on as it was.
        """
        if self._task is None:
            raise HandOverError(
                f"broker {self._broker} keeps its messages in an embedded log, which "
                "no other node can open; a broker moves between nodes on Pulsar"
            )
        others = self._others()
        if not others:
            raise HandOverError(
                f"broker {self._broker} has no node but {self.node}; start another one"
            )
        if successor not in (None, others[0]):
            raise HandOverError(
                f"the next node of broker {self._broker} is {others[0]}, "
                f"not {successor:.200}; look again, and say so then"
            )
        if self._stepping_back is None:
            self._stepping_back = asyncio.get_running_loop().create_future()
            self._changed.set()
        await asyncio.shield(self._stepping_back)

    async def close(self) -> None:
        """Give everything up."""
        self._stop_leading()
        self._ends = True
        for handle in filter(None, (self._beating, self._catching_up)):
            handle.cancel()
        self._stepped_back(HandOverError(f"node {self.node} ends"))
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._give_up()

    def _routes_changed(self, broker: str) -> None:
        if broker == self._broker:
            self._changed.set()
            self._tell()

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for moved in waiting:
            if not moved.done():
                moved.set_result(None)

    def _chosen(self) -> Broker | None:
        return next(iter(self._routes.brokers.get(self._broker, ())), None)

    def _others(self) -> list[str]:
        nodes = self._routes.brokers.get(self._broker, ())
        return [one.node for one in nodes if not self._is_this(one)]

    def _is_this(self, node: Broker | None) -> bool:
        """Whether a node is this process; another may have had its name before."""
        this = (self.node, self._incarnation)
        return node is not None and (node.node, node.incarnation) == this

    def _proven_until_s(self) -> float:
        return max((proof() for proof in self._proofs), default=math.inf)

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            wait_s: float | None = None
            if self._stepping_back is not None:
                await self._go_to_the_end()
                wait_s = 0.0
            elif self._deposed or (self._on_duty and self.is_led_elsewhere()):
                await self._give_up()
                log.info("this node is a slave now", broker=self._broker)
                # Where routes still choose this node, it takes its place back.
                wait_s = _RETRY_S if self._deposed else None
                self._deposed = False
            elif self._is_this(self._chosen()) and not self._on_duty:
                wait_s = await self._take_over()
            elif self._on_duty and not self.leads:
                wait_s = self._look_again()
            self._tell()
            # Not by `wait_for`, which in Python 3.11 may forget that it was cancelled.
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()

    async def _go_to_the_end(self) -> None:
        """Announce this node anew, which makes it the last; nothing is held by then."""
        failure: Exception | None = None
        try:
            announced = self._announced()
            if self._on_duty:
                failure = await self._give_up()
                log.info("this node lets another one lead", broker=self._broker)
            if failure is None:
                await self._routes.put_broker(announced)
        except (HandOverError, RouteError) as error:
            failure = error
        self._stepped_back(failure)

    def _announced(self) -> Broker:
        for one in filter(self._is_this, self._routes.brokers.get(self._broker, ())):
            return one
        raise HandOverError(
            f"the routes do not know node {self.node} now; try again in a moment"
        )

    def _stepped_back(self, failure: Exception | None) -> None:
        told, self._stepping_back = self._stepping_back, None
        if told is None or told.done():
            return
        if failure is None:
            told.set_result(None)
        else:
            told.set_exception(failure)
            # Who asked may have gone, and nobody else wants to know.
            told.exception()

    async def _take_over(self) -> float | None:
        began_s = time.monotonic()
        try:
            for duty in self._duties:
                await duty.take_over()
        except Exception as error:  # noqa: BLE001 - whatever it is, a later try may work
            log.warning("cannot lead yet", broker=self._broker, reason=repr(error))
            await self._give_up()
            return _RETRY_S
        self._on_duty = True
        log.info(
            "this node is the master now",
            broker=self._broker,
            took_ms=round((time.monotonic() - began_s) * 1000),
        )
        return self._look_again()

    def _look_again(self) -> float | None:
        """Lead where that is certain; else say when to look again."""
        self.certain_until_s = self._proven_until_s()
        is_certain = self.certain_until_s > time.monotonic()
        self.leads = is_certain and not self._deposed and not self.is_stale
        return None if self.leads else _DOUBT_POLL_S

    def _stop_leading(self) -> None:
        self.leads = False
        self._gave_up_s = asyncio.get_running_loop().time()

    async def _give_up(self) -> Exception | None:
        """End every duty, also where one fails; why the last one did that failed."""
        self._stop_leading()
        self._on_duty = False
        failure: Exception | None = None
        for duty in reversed(self._duties):
            try:
                await duty.give_up()
            except Exception as error:  # noqa: BLE001 - the others are to end, too
                log.warning(
                    "a duty of the master did not end in good order",
                    broker=self._broker,
                    duty=type(duty).__name__,
                    reason=repr(error),
                )
                failure = error
        return failure
