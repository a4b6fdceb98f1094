"""What a client saw, without what differs from run to run: ids, times, addresses."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.clients.harness import Event

# Made by the client; longer where its own address is IPv6.
UNIQUE_KEY = re.compile(r"[0-9A-F]{32}|[0-9A-F]{56}")
OFFSET_ID = re.compile(r"7F000001[0-9A-F]{24}")
TIMES = {"born_ms", "stored_ms", "at_ms", "earliest_ms"}
PROPERTIES_OF_TIME = {
    "CONSUME_START_TIME",
    "__SYSTEM_PROP_FIRST_STORE_TIME",
    # How far the queue was when the message was pulled.
    "MAX_OFFSET",
}


class Transcript:
    """Makes events comparable; ids become names in the order in which they came."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, events: Sequence[Event]) -> list[Event]:
        """The comparable part of events."""
        return [self._fields(event) for event in events]

    def of_messages(self, events: Sequence[Event]) -> list[Event]:
        """The same, sorted: messages of several queues come in any order."""
        order = ("topic", "queue", "offset", "reconsume_times")
        return self.of(sorted(events, key=lambda one: [one[name] for name in order]))

    def _fields(self, event: Mapping[str, Any]) -> Event:
        dropped = TIMES | PROPERTIES_OF_TIME | {"id"}
        return {
            name: self._value(value)
            for name, value in sorted(event.items())
            if name not in dropped
        }

    def _value(self, value: object) -> object:
        if isinstance(value, Mapping):
            return self._fields(value)
        if isinstance(value, str):
            return ",".join(self._named(part) for part in value.split(","))
        return value

    def _named(self, text: str) -> str:
        kinds = {"offset id": OFFSET_ID, "unique key": UNIQUE_KEY}
        for kind, pattern in kinds.items():
            if pattern.fullmatch(text):
                return self._names.setdefault(text, f"{kind} {len(self._names)}")
        return text
