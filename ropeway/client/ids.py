"""Names that nobody else has: of clients, and of messages.

A message's unique key, 32 hexadecimal digits for an IPv4 host:

     address 4 bytes | process 2 | origin 4 | ms since the month began 4 | count 2

Source: MessageClientIDSetter.java and ClientConfig.buildMQClientId, RocketMQ 5.3.4.
"""

from __future__ import annotations

import ipaddress
import itertools
import os
import random
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_clients = itertools.count()


def local_address() -> str:
    """The address that this machine has towards others; 127.0.0.1 where it has none.

    Nothing is sent: connecting a datagram socket only chooses a route.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def new_instance() -> str:
    """An instance name that no other client on this machine has."""
    return f"{os.getpid()}#{time.time_ns()}#{next(_clients)}"


def client_id(instance: str) -> str:
    """The name that brokers know a client by."""
    return f"{local_address()}@{instance}"


class UniqueKeys:
    """Makes unique keys for messages, in time order within a client.

    Args:
        address: The machine's IPv4 or IPv6 address.
        origin: Tells apart makers in one process; Java has a class loader's hash.
        now_ms: The clock, in milliseconds since 1970.
    """

    def __init__(
        self,
        address: str | None = None,
        origin: int | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        packed = ipaddress.ip_address(address or local_address()).packed
        process = (os.getpid() & 0xFFFF).to_bytes(2, "big")
        number = random.getrandbits(32) if origin is None else origin
        self._prefix = (packed + process + number.to_bytes(4, "big")).hex().upper()
        self._now_ms = now_ms
        self._count = 0
        self._month_start_ms = self._month_end_ms = 0

    def make(self) -> str:
        """A new key."""
        now_ms = self._now_ms()
        if not self._month_start_ms <= now_ms < self._month_end_ms:
            self._enter_month(now_ms)
        self._count = (self._count + 1) & 0xFFFF
        return f"{self._prefix}{now_ms - self._month_start_ms:08X}{self._count:04X}"

    def _enter_month(self, now_ms: int) -> None:
        now = time.localtime(now_ms // 1000)
        year, month = now.tm_year, now.tm_mon
        self._month_start_ms = _local_ms(year, month)
        self._month_end_ms = _local_ms(year + month // 12, month % 12 + 1)


def _local_ms(year: int, month: int) -> int:
    return int(time.mktime((year, month, 1, 0, 0, 0, 0, 0, -1))) * 1000
