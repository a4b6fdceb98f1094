"""Starts the agents (see README.md), gives them commands, and collects their events."""

import contextlib
import itertools
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import answers, jvm

Event = dict[str, Any]

DEADLINE_SECONDS = 3 * 3600
"""An agent ends by itself after this time, longer than any run of the tests."""

WAIT_SECONDS = 180
"""Longer than the start of a JVM and a rebalance of the slowest client (20 s) take on a
loaded machine."""

STOP_SECONDS = 5


class AgentError(Exception):
    """A command failed; its `code` is the broker's answer, or -1."""

    def __init__(self, event: Event) -> None:
        super().__init__(f"{event.get('type')} {event.get('code')}: {event['error']}")
        self.code: int = event.get("code", -1)


class Agent:
    """One running agent program.

    Args:
        arguments: the command line without the deadline.
        directory: the working and home directory, with the log of the agent.
        environment: added to this process's own.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.log = directory / "agent.log"
        self._ids = itertools.count(1)
        self._calls: dict[int, Call] = {}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*jvm.command(arguments, shares=True), str(DEADLINE_SECONDS)],
                cwd=directory,
                env={
                    **os.environ,
                    "HOME": str(directory),
                    "TZ": "UTC",
                    **(environment or {}),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def call(self, do: str, **arguments: Any) -> "Call":
        """Give a command; arguments as in README.md."""
        call = Call(self, next(self._ids), do)
        self._calls[call.id] = call
        stdin = self._process.stdin
        assert stdin is not None
        # A test runs commands one after the other from one thread.
        stdin.write(json.dumps({"id": call.id, "do": do, **arguments}) + "\n")
        stdin.flush()
        return call

    def alive(self) -> bool:
        """Whether the program still runs."""
        return self._process.poll() is None

    def tail(self) -> str:
        """The end of what the program wrote to stderr."""
        return self.log.read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        """Close its stdin, which ends it."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        try:
            jvm.wait(self._process, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            jvm.wait(self._process)
        self._reader.join()
        stdout.close()

    def kill(self) -> None:
        """End it without warning, as `kill -9` does."""
        self._process.kill()
        self.stop()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # The last line of one that was killed may be a part of one.
            if line.startswith("{") and line.endswith("\n"):
                event = json.loads(line)
                if "error" in event:
                    what = f"{event['event']} of {event.get('type', 'an agent')}"
                    answers.note(what, event.get("code", -1), event["error"])
                self._calls[event["id"]].incoming.put(event)


class Call:
    """One command and the events that answer it so far.

    Args:
        agent: who carries it out.
        call_id: what its events carry.
        do: the command, for errors.
    """

    def __init__(self, agent: Agent, call_id: int, do: str) -> None:
        self.id = call_id
        self.incoming: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._agent = agent
        self._do = do
        self._events: list[Event] = []

    def events(self, name: str) -> list[Event]:
        """The events of one name until now."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._events.append(self.incoming.get_nowait())
        return [event for event in self._events if event["event"] == name]

    def wait(
        self,
        until: Callable[[list[Event]], bool],
        name: str = "received",
        seconds: float = WAIT_SECONDS,
    ) -> list[Event]:
        """The events of one name, as soon as they satisfy a condition.

        Raises:
            TimeoutError: they did not in time; the text has the last of them.
            AgentError: the command failed.
        """
        give_up = time.monotonic() + seconds
        while not until(found := self.events(name)):
            for error in self.events("error"):
                raise AgentError(error)
            left = give_up - time.monotonic()
            if left <= 0 or not self._agent.alive():
                raise TimeoutError(
                    f"{self._do}: {len(found)} {name}, the last {found[-3:]}; "
                    f"{self._agent.tail()}"
                )
            with contextlib.suppress(queue.Empty):
                self._events.append(self.incoming.get(timeout=min(left, 1)))
        return found

    def wait_for(
        self, count: int, name: str = "received", seconds: float = WAIT_SECONDS
    ) -> list[Event]:
        """The events of one name, as soon as there are so many."""
        return self.wait(lambda events: len(events) >= count, name, seconds)

    def wait_for_bodies(
        self, bodies: Sequence[str], seconds: float = WAIT_SECONDS
    ) -> list[Event]:
        """The received events, as soon as each body has come at least once."""
        wanted = set(bodies)
        return self.wait(
            lambda events: wanted <= {one["body"] for one in events}, seconds=seconds
        )

    def finish(self) -> "Call":
        """Wait until the command is done; a consumer then has started.

        Raises:
            AgentError: it failed.
            TimeoutError: it did not end in time.
        """
        self.wait_for(1, "done")
        return self

    def stop(self) -> list[Event]:
        """Stop a running consumer; returns everything it received."""
        self._agent.call("stop", target=self.id).finish()
        return self.events("received")


class Session:
    """An agent that talks to one server.

    Args:
        agent: who carries out the commands.
        name_server: `host:port` of the server.
    """

    def __init__(self, agent: Agent, name_server: str) -> None:
        self._agent = agent
        self._name_server = name_server

    def call(self, do: str, **arguments: Any) -> Call:
        """Give a command and do not wait."""
        return self._agent.call(do, namesrv=self._name_server, **arguments)

    def start(self, do: str, **arguments: Any) -> Call:
        """Start a consumer, which then runs until its `stop`."""
        return self.call(do, **arguments).finish()

    def introduce(self, topic: str, group: str) -> None:
        """Make a topic and let a group consume its first message.

        A client looks for its group's retry topic before its first heartbeat, which
        makes that topic, and then not for another 30 s: its next start finds it.
        """
        introduction = {"body": "introduction", "shard": 3}
        self.produce(topic, [introduction], mode="ordered")
        consumer = self.start("consume", topic=topic, group=group)
        consumer.wait_for(1)
        consumer.stop()

    def ask(self, do: str, event: str, **arguments: Any) -> list[Event]:
        """Give a command, wait until it is done, and take its events of one name."""
        return self.call(do, **arguments).finish().events(event)

    def produce(
        self, topic: str, messages: Sequence[Event], **arguments: Any
    ) -> list[Event]:
        """Send messages, all of which must be accepted; returns what was answered."""
        call = self.call(
            "produce", topic=topic, messages=messages, **arguments
        ).finish()
        if failed := call.events("failed"):
            raise AgentError(failed[0])
        return call.events("sent")


def bodies(events: Sequence[Event]) -> list[str]:
    """The bodies of messages, in the order of the events."""
    return [event["body"] for event in events]


def numbered(count: int, prefix: str = "message", **more: Any) -> list[Event]:
    """Messages to send that differ in their bodies."""
    return [{"body": f"{prefix} {number}", **more} for number in range(count)]
